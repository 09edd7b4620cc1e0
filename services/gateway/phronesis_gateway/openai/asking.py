"""Handing in what a client of this face asks: the message it is about, in the conversation it goes on with."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal
from uuid import uuid4

from pydantic import BaseModel

from phronesis_bus import Bus, ask
from phronesis_contracts import BadRequest, NotFound, Principal, TooLarge
from phronesis_contracts.orchestrator import CONVERSATION_FIND, MAX_ATTACHMENTS, MAX_TEXT, FindConversation
from phronesis_gateway.messages import MediaGiven, MessageGiven
from phronesis_gateway.submission import Refused, Submitted, Turns
from phronesis_gateway.uploads import Arrived, Uploads

from .content import Content, Said, said, text_of

Role = Literal["system", "developer", "user", "assistant", "tool", "function"]
PERSON = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {"role": {"const": "user"}, "content": {"type": "string", "format": "not-blank"}},
}
"""One such message has to be there, for the description."""
_COMPARED = 3
"""Exchanges by which a conversation is known again: clients leave out the oldest ones of a long chat."""
_SPACE = " \n\t\r\f\v"
_RULES = frozenset({"system", "developer"})


class ModelNotFound(NotFound):
    """There is no agent of this name."""

    code = "model_not_found"


class ChatMessage(BaseModel):
    """One message of a chat, as its client keeps it."""

    role: Role
    content: Content | None = None


@dataclass(frozen=True)
class Question:
    """What is asked: the last message of the person, and what stands before it."""

    said: Said
    before: tuple[tuple[str, str], ...]
    """What was said and answered before it, by the client's record."""
    ignored: tuple[str, ...]
    """Messages that change nothing: rules of the client's own, since an agent is governed by its instructions alone."""


def question(messages: Sequence[ChatMessage], field: str) -> Question:
    """The question of a chat: its last message by a person.

    Raises:
        BadRequest: there is none, or it is empty, or too long, or one of its media cannot be read.
    """
    persons = [at for at, one in enumerate(messages) if one.role == "user" and one.content is not None]
    place = persons[-1] if persons else None
    if place is None:
        raise BadRequest("there is no message by a user", field=field)
    found = said(messages[place].content, f"{field}.{place}.content")
    where = f"{field}.{place}"
    if not found.text.strip() and not found.media:
        raise BadRequest("a message needs text or media", field=where)
    if len(found.text) > MAX_TEXT:
        raise TooLarge(f"a message has {MAX_TEXT} characters at most", field=where)
    if len(found.media) > MAX_ATTACHMENTS:
        raise BadRequest(f"a message has {MAX_ATTACHMENTS} media at most", field=where)
    ignored = tuple(f"{field}.{at}" for at, one in enumerate(messages) if one.role in _RULES)
    return Question(found, _exchanges(messages[:place]), ignored)


def _exchanges(messages: Sequence[ChatMessage]) -> tuple[tuple[str, str], ...]:
    """What was said and answered. Words of a person that got no answer are none; they failed, and are asked anew."""
    found, asked = [], None
    for one in messages:
        text = text_of(one.content)
        if one.role == "user":
            asked = text
        elif one.role == "assistant" and asked is not None and text.strip():
            found.append((asked, text))
            asked = None
    return tuple(found)


def digest(said: str, answered: str) -> str:
    """What an exchange is found again by: SHA-256 of both texts, without the space around them."""
    return hashlib.sha256(f"{said.strip(_SPACE)}\x1f{answered.strip(_SPACE)}".encode()).hexdigest()


class Asking:
    """Hands questions in.

    Args:
        bus: the connected bus.
        turns: hands turns in.
        uploads: takes in what a message itself holds.
    """

    def __init__(self, bus: Bus, turns: Turns, uploads: Uploads) -> None:
        self._bus = bus
        self._turns = turns
        self._uploads = uploads

    async def conversation(self, who: Principal, agent: str, before: Sequence[tuple[str, str]]) -> str | None:
        """The caller's conversation with an agent that ends with these exchanges; `None` where none does."""
        if not before:
            return None
        last = tuple(digest(*one) for one in before[-_COMPARED:])
        wanted = FindConversation(agent=agent, exchanges=last, whole=len(before) <= _COMPARED)
        return (await ask(self._bus, who, CONVERSATION_FIND, wanted)).conversation_id

    @asynccontextmanager
    async def asked(
        self, who: Principal, agent: str, message: Said, conversation: str | None, key: str | None
    ) -> AsyncIterator[Submitted]:
        """The accepted turn of a question, for the length of a block.

        Raises:
            ModelNotFound: there is no such agent.
            ServiceError: it was not accepted; as `Turns.submitted`.
        """
        key = key or uuid4().hex
        media = [await self._medium(who, one, f"{key}/{place}") for place, one in enumerate(message.media)]
        given: dict[str, Any] = {"agent": agent, "current_message_text": message.text, "current_message_media": tuple(media)}
        if conversation is not None:
            given["conversation_id"] = conversation
        try:
            async with self._turns.submitted(who, MessageGiven(**given), key) as turn:
                yield turn
        except Refused as refused:
            if refused.problem.field == "agent":
                raise ModelNotFound(refused.problem.detail, field="agent") from refused
            raise

    async def _medium(self, who: Principal, one: MediaGiven | Arrived, key: str) -> MediaGiven:
        if isinstance(one, MediaGiven):
            return one
        # The same file under the same key is the same medium: a repeat of a question is the same question.
        return MediaGiven(media_id=(await self._uploads.accept(who, one, f"openai/{who.user}/{key}")).id)
