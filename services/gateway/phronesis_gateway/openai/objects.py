"""What both kinds of answer hold: how a turn is told to clients of this face."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from phronesis_contracts.orchestrator import Reply, Source, Turn
from phronesis_contracts.orchestrator import Usage as Used


class Extra(BaseModel):
    """What this platform says of an answer beside what OpenAI's API has a place for."""

    turn_id: str
    conversation_id: str
    reasoner: str = ""
    """What thought: the name of a provider, or `extractive`, which is no model."""
    degraded: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    ignored: tuple[str, ...] = ()
    """Parts of the request that changed nothing: rules of the client's own, and a history that is not known here."""


class Model(BaseModel):
    """An agent."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "phronesis"


class Models(BaseModel):
    """The agents."""

    object: Literal["list"] = "list"
    data: tuple[Model, ...]


def extra(turn: Turn, ignored: tuple[str, ...]) -> Extra:
    """What is said of a turn."""
    said = Extra(turn_id=turn.turn_id, conversation_id=turn.conversation_id, ignored=ignored)
    reply = turn.reply
    if reply is None:
        return said
    return said.model_copy(update={"reasoner": reply.reasoner, "degraded": reply.degraded, "sources": reply.sources})


def used(reply: Reply | None) -> Used:
    """What a turn used; nothing where it has no reply."""
    return reply.usage if reply else Used()
