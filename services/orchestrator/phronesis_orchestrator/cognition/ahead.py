"""The look ahead: one short call of the light model before the work begins, on a message or on a background task."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from phronesis_contracts import ServiceError

from ..reasoner import Answer, CallFailed, Reasoner, TurnContext
from ..running import Running
from .measures import PREFLIGHT, capability
from .thinker import LookAhead, Thinker

log = logging.getLogger(__name__)


def can_look_ahead(reasoner: Reasoner, turn: TurnContext) -> bool:
    """Whether the turn's agent has the stage and a prompt for it, and its reasoner thinks at all."""
    agent = turn.agent
    return isinstance(reasoner, Thinker) and agent is not None and {"preflight"} <= set(agent.stages) & set(agent.prompts)


async def looked_ahead(running: Running, reasoner: Reasoner, turn: TurnContext, plan: str) -> str:
    """The look ahead, or nothing: it is asked once, has its limit, and what it fails with costs nothing but itself (V-099).

    Args:
        running: the turn.
        reasoner: who may look ahead.
        turn: its context.
        plan: the block that it is shown: what worked before, and signals.
    """
    if not isinstance(reasoner, Thinker) or not can_look_ahead(reasoner, turn):
        return ""
    given = replace(turn, thought=replace(turn.thought, plan=plan))

    async def asked() -> Answer[LookAhead]:
        # What came to nothing is journalled too, so that whoever takes the turn over does not ask again (V-102).
        try:
            async with asyncio.timeout(running.cognition.settings.preflight_limit):
                answer = await reasoner.look_ahead(given)
        except CallFailed as failed:
            log.warning("the look ahead failed: %s", failed.error.code)
            return Answer(LookAhead(), None, failed.spent, failed.cost_usd)
        except (ServiceError, TimeoutError) as error:
            log.warning("the look ahead failed: %s", getattr(error, "code", "too slow"))
            return Answer(LookAhead())
        return answer if answer.value else replace(answer, value=LookAhead(), fault=None)

    with capability(running.tracing, PREFLIGHT) as outcome:
        answer = await running.steps.made("preflight", LookAhead, asked)
        text = answer.value.text() if answer.value else ""
        if not text:
            outcome.name = "nothing"
            running.degrade("preflight")
    await running.show("preflight", used=bool(text))
    return text
