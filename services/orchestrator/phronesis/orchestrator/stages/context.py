"""Stage context: the package that every prompt of the turn is made of (D-037 to D-046). It writes nothing."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from phronesis.contracts import Principal, ServiceError
from phronesis.contracts.instructions import AgentProfile
from phronesis.contracts.orchestrator import Directive

from ..ports import Conversations, Neighbours
from ..reasoner import PastMessage

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Background:
    """What is known before the message is looked at."""

    agent: AgentProfile | None
    profile: dict[str, object]
    directive: Directive
    history: tuple[PastMessage, ...]
    degraded: tuple[str, ...]


async def background(
    neighbours: Neighbours, conversations: Conversations, who: Principal, agent: str, conversation_id: str, messages: int
) -> Background:
    """Read the agent's profile, the user's profile and the history, side by side. A part that fails is marked."""
    found = await asyncio.gather(
        neighbours.agent(who, agent),
        neighbours.profile(who),
        conversations.recent(conversation_id, messages),
        return_exceptions=True,
    )
    degraded = []
    for name, part in zip(("instructions", "profile", "history"), found, strict=True):
        if isinstance(part, ServiceError):
            log.warning("the turn goes on without %s: %s", name, part.code)
            degraded.append(name)
        elif isinstance(part, BaseException):
            raise part
    profile, known, past = found
    directive, history = past if isinstance(past, tuple) else (Directive.SUPPORTIVE_COMPANION, ())
    return Background(
        agent=profile if isinstance(profile, AgentProfile) else None,
        profile=known if isinstance(known, dict) else {},
        directive=directive,
        history=history,
        degraded=tuple(degraded),
    )
