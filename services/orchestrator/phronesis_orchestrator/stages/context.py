"""Stage context: the package that every prompt of the turn is made of (D-037 to D-046). It writes nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from opentelemetry.trace import Span

from phronesis_contracts import Principal, ServiceError
from phronesis_contracts.instructions import AgentProfile

from ..history import Past, PastMessage, Summary
from ..ports import Neighbours
from ..summary import view

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Background:
    """What is known before the message is looked at."""

    agent: AgentProfile | None
    profile: dict[str, object]
    past: Past
    summary: Summary
    history: tuple[PastMessage, ...]
    degraded: tuple[str, ...]


async def background(
    neighbours: Neighbours,
    read_past: Callable[[str, str], Awaitable[Past]],
    who: Principal,
    agent: str,
    conversation_id: str,
    weighed: Callable[[Past], tuple[Summary, tuple[PastMessage, ...]]] = view,
) -> Background:
    """Read the agent's profile, the user's profile and the history, side by side. A part that fails is marked.

    Args:
        neighbours: the services that know the first two.
        read_past: reads a conversation of a tenant.
        who: the caller.
        agent: whose profile.
        conversation_id: the conversation.
        weighed: makes of the past what is shown of it.
    """
    found = await asyncio.gather(
        neighbours.agent(who, agent),
        neighbours.profile(who),
        read_past(who.tenant, conversation_id),
        return_exceptions=True,
    )
    degraded = []
    for name, part in zip(("instructions", "profile", "history"), found, strict=True):
        if isinstance(part, ServiceError):
            log.warning("the turn goes on without %s: %s", name, part.code)
            degraded.append(name)
        elif isinstance(part, BaseException):
            raise part
    profile, known, read = found
    past = read if isinstance(read, Past) else Past()
    if past.stale:
        degraded.append("history")
    summary, history = weighed(past)
    return Background(
        agent=profile if isinstance(profile, AgentProfile) else None,
        profile=known if isinstance(known, dict) else {},
        past=past,
        summary=summary,
        history=history,
        degraded=tuple(degraded),
    )


def note_agent(span: Span, agent: AgentProfile) -> None:
    """Which instructions a turn ran with: version, release, and the arms of experiments that its user is in."""
    span.set_attribute("gen_ai.agent.version", agent.version)
    if agent.release:
        span.set_attribute("phronesis.instructions.release", agent.release)
    if agent.arms:
        span.set_attribute("phronesis.instructions.arms", [f"{name}={arm}" for name, arm in sorted(agent.arms.items())])
