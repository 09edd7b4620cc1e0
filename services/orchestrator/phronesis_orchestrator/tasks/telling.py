"""What a model is told of a task: its tools, what worked before, what was done and what is left, as lines of data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..budget import Line, best
from .plan import Step
from .ports import Known, StepResult, Strategy

_TEMPLATE = "a plan that worked for a goal like this"


def of_plan(known: Known) -> list[Line]:
    """What a plan is made with: what was done of an older one, what worked for goals like it, and the tools."""
    ahead = [Line.json(what="a look ahead", said=known.ahead)] if known.ahead else []
    template = [Line.json(what=_TEMPLATE, steps=[_step(step) for step in known.template.steps])] if known.template else []
    return [*of_state(known), *ahead, *of_strategies(known.strategies), *template, *map(_tool, known.offered)]


def of_strategies(strategies: Iterable[Strategy]) -> list[Line]:
    """What worked for goals like this one."""
    return [
        Line.json(
            what="an approach that worked",
            goal=strategy.goal,
            approach=strategy.approach,
            tools=strategy.tools_used,
            avoid=strategy.avoid,
        )
        for strategy in strategies
    ]


def of_state(known: Known) -> list[Line]:
    """How far a task is: what is left, what failed, and what worked."""
    left = [Line.json(what="left to do", **_step(step)) for step in known.remaining]
    return [*left, *of_results(known)]


def of_results(known: Known) -> list[Line]:
    """What the steps of a task gave; the failures first, since there are few."""
    failed = (Line.json(what="failed", **_result(one), why=one.outcome.code, said=one.outcome.text) for one in known.failed)
    worked = (Line.json(what="worked", **_result(one), gave=one.outcome.text) for one in known.worked)
    return [*failed, *worked]


def described(names: Iterable[str], offered: Iterable[dict[str, Any]]) -> tuple[tuple[str, str, dict[str, Any]], ...]:
    """Tools by the names that plans know them by.

    Args:
        names: those names.
        offered: the same tools, as the chat API takes them.
    """
    functions = (one["function"] for one in offered)
    return tuple((name, one["description"], one["parameters"]) for name, one in zip(names, functions, strict=True))


def told(lines: Iterable[Line], tokens: int) -> str:
    """Lines as the text of one block, in at most so many tokens: the first ones stay."""
    return "\n".join(best(list(lines), tokens))


def _step(step: Step) -> dict[str, object]:
    return {"id": step.id, "wave": step.wave, "description": step.description, "tool": step.tool, "depends": step.depends}


def _result(result: StepResult) -> dict[str, object]:
    return {"step": result.step.id, "description": result.step.description, "tool": result.step.tool}


def _tool(offered: tuple[str, str, dict[str, Any]]) -> Line:
    name, description, arguments = offered
    return Line.json(what="tool", name=name, description=description, arguments=arguments)
