"""Stage recall: what memory knows of earlier turns, side by side, once for a turn, with a hard limit (V-018, V-C15)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from phronesis_contracts.tools import Tool

from ..reasoner import TurnContext
from ..running import Running
from .measures import STRATEGIES, capability
from .plan import MAX_EPISODES, MAX_EXAMPLES
from .remembered import Remembered, ToolRecord
from .thought import CONTENT_WRITER, Intent, Tier

log = logging.getLogger(__name__)

_QUERY = 500
"""Characters of the message that memory is asked with."""


async def gathered(running: Running, turn: TurnContext, intent: Intent, tools: Sequence[Tool[Any, Any]]) -> Remembered:
    """What memory gives for a message, as far as the agent's stages ask for it. A part that fails is left out, and marked.

    Args:
        running: the turn.
        turn: its context.
        intent: what the message is; of a flash one nothing is asked.
        tools: those at hand.
    """
    who, stages, experience = running.claim.who, turn.agent.stages if turn.agent else (), running.cognition.experience
    query = " ".join((turn.user_text or turn.final_input).split())[:_QUERY]
    if intent.tier is Tier.FLASH or not query:
        return Remembered(records=running.cognition.records.get(who) or ())
    recall, shown = "recall" in stages, running.cognition.settings.strategies
    styled = recall and intent.persona == CONTENT_WRITER
    episodes, style, known, records = await asyncio.gather(
        _part(running, "episodes", recall, lambda: experience.recall_episodes(who, query, MAX_EPISODES)),
        _part(running, "style", styled, lambda: experience.style_examples(who, query, MAX_EXAMPLES)),
        _part(
            running,
            STRATEGIES,
            "strategies" in stages and shown > 0,
            lambda: experience.recall_strategies(who, query, shown),
        ),
        tool_records(running, tools, wanted=recall),
    )
    return Remembered(episodes or (), style or (), (known or ())[:shown], records, asked=recall or known is not None)


async def tool_records(running: Running, tools: Iterable[Tool[Any, Any]], *, wanted: bool = True) -> tuple[ToolRecord, ...]:
    """How often tools worked for the caller, as memory said within the last minute; none where it does not say.

    Args:
        running: the turn.
        tools: those at hand.
        wanted: whether memory is asked where nothing is kept.
    """
    who, kept = running.claim.who, running.cognition.records
    if (known := kept.get(who)) is not None:
        return known
    names = tuple(tool.name for tool in tools)
    fresh: tuple[ToolRecord, ...] | None = await _part(
        running, "records", wanted, lambda: running.cognition.experience.tool_statistics(who, names)
    )
    if fresh is not None:
        kept.put(who, fresh)
    return fresh or ()


async def _part(running: Running, name: str, wanted: bool, ask: Any) -> Any:
    if not wanted:
        return None
    try:
        with _measured(running, name):
            async with asyncio.timeout(running.cognition.settings.recall_limit):
                return await ask()
    except Exception as error:  # whatever a memory did, the turn goes on without it (V-111)
        log.warning("the turn goes on without %s: %s", name, getattr(error, "code", None) or type(error).__name__)
        running.degrade(name)
        return None


def _measured(running: Running, name: str) -> AbstractContextManager[object]:
    return capability(running.tracing, name) if name == STRATEGIES else running.phase(f"0 {name}")
