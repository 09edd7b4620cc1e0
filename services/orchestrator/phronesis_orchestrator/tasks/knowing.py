"""What the plan of a task is made with: the tools at hand, what worked for goals like it, and a look ahead."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from phronesis_contracts import Tool

from ..cognition.ahead import can_look_ahead, looked_ahead
from ..cognition.gathering import tool_records
from ..cognition.reasoning import ReasoningContext
from ..reasoner import Reasoner, TurnContext
from ..running import Running
from .ports import Known, Strategies, Strategy, Templates
from .telling import described, of_strategies
from .templates import signature, usable

log = logging.getLogger(__name__)

GOAL = 2_000
"""Characters of a goal that strategies are looked for with."""


async def known_of(
    running: Running,
    turn: TurnContext,
    templates: Templates,
    strategies: Strategies,
    tools: Mapping[str, Tool[Any, Any]],
    offered: tuple[dict[str, Any], ...],
) -> Known:
    """The goal with what worked before. It is journalled, so that whoever takes the task over plans with the same.

    Args:
        running: the turn.
        turn: its context, with the goal as its text.
        templates: decompositions that worked.
        strategies: approaches that worked.
        tools: those at hand, by name.
        offered: the same tools, as the chat API takes them.
    """
    who, goal = running.claim.who, turn.user_text
    template = await templates.template(who, signature(goal, running.claim.agent))

    async def recalled() -> dict[str, Any]:
        shown = running.cognition.settings.strategies
        found = await strategies.recall(who, goal[:GOAL], shown) if shown else ()
        return {"strategies": [vars(one) for one in found], "tools": list(tools)}

    given = await running.steps.called("task.recall", "task.recall", recalled)
    worked = tuple(Strategy(**{**one, "tools_used": tuple(one["tools_used"])}) for one in given["strategies"])
    if worked:
        log.info("PROVEN STRATEGIES: %d for this task", len(worked))
    names = tuple(given["tools"])
    return Known(goal, names, worked, described(tools, offered), usable(template, names))


async def thought_ahead(
    running: Running, reasoner: Reasoner, turn: TurnContext, known: Known, tools: Mapping[str, Tool[Any, Any]]
) -> Known:
    """The same with a look ahead, where the agent has one: it is shown what worked before, and what is known of the tools.

    Args:
        running: the turn.
        reasoner: who may look ahead.
        turn: its context.
        known: what is known so far.
        tools: those at hand, by name.
    """
    if not can_look_ahead(reasoner, turn):
        return known
    records = await tool_records(running, tools.values())
    signals = ReasoningContext.build(tools=tools.values(), records=records, said=known.goal).to_prompt()
    shown = "\n".join([*(line.text for line in of_strategies(known.strategies)), signals])
    return replace(known, ahead=await looked_ahead(running, reasoner, turn, shown))
