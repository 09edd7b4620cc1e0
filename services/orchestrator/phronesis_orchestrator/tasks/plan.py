"""A plan: its steps, and what makes it one that can be worked off (V-040, V-041)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from graphlib import CycleError, TopologicalSorter
from typing import Any

from pydantic import Field

from phronesis_contracts import Message

MAX_STEPS = 60
"""Steps of one plan."""
MAX_WAVES = 20
MAX_OF_WAVE = 16
"""Steps that are made side by side."""


class BadPlan(ValueError):
    """A plan that is not worked off; the text says why."""


class Step(Message):
    """One step of a plan."""

    id: str = Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    description: str = Field(min_length=1, max_length=1_000)
    tool: str | None = None
    """The tool that it calls; without one the step is worked on with all the tools at hand."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    depends: tuple[str, ...] = Field(default=(), max_length=MAX_STEPS)
    """Steps of earlier waves without which it is not made."""
    wave: int = Field(ge=1, le=1_000)
    optional: bool = False
    """Only looks around: it is left out where a strategy that worked did without its tool."""


class Plan(Message):
    """The steps to a goal."""

    title: str = Field(default="", max_length=300)
    """What the report will be called."""
    kind: str = Field(default="", max_length=100)
    """What sort of task it is, where the planner knows it."""
    steps: tuple[Step, ...]


def checked(plan: Plan, tools: Collection[str], done: Collection[str] = (), *, works: bool = True) -> Plan:
    """A plan that can be worked off, its waves counted from 1 without holes.

    Args:
        plan: as it was made.
        tools: names of the tools at hand.
        done: ids of finished steps that its own may depend on.
        works: whether a step without a tool can be made.

    Raises:
        BadPlan: it is empty, too large, cyclic, names an unknown tool or step, or a step stands before what it needs.
    """
    steps = plan.steps
    if not steps:
        raise BadPlan("it has no steps")
    if len(steps) > MAX_STEPS:
        raise BadPlan(f"it has more than {MAX_STEPS} steps")
    waves = {step.id: step.wave for step in steps}
    if len(waves) < len(steps) or set(waves) & set(done):
        raise BadPlan("two of its steps have one id")
    _acyclic(steps)
    for step in steps:
        _sound(step, tools, waves, done, works)
    counted = _counted(steps)
    if max(step.wave for step in counted) > MAX_WAVES:
        raise BadPlan(f"it has more than {MAX_WAVES} waves")
    return plan.model_copy(update={"steps": counted})


def _acyclic(steps: Iterable[Step]) -> None:
    try:
        TopologicalSorter({step.id: step.depends for step in steps}).prepare()
    except CycleError as error:
        raise BadPlan("its steps wait for each other") from error


def _sound(step: Step, tools: Collection[str], waves: dict[str, int], done: Collection[str], works: bool) -> None:
    if step.tool is None and not works:
        raise BadPlan(f"{step.id} names no tool")
    if step.tool is not None and step.tool not in tools:
        raise BadPlan(f"{step.id} names an unknown tool")
    for needed in step.depends:
        if needed not in waves and needed not in done:
            raise BadPlan(f"{step.id} depends on a step that there is not")
        if needed in waves and waves[needed] >= step.wave:
            raise BadPlan(f"{step.id} stands no later than what it depends on")


def _counted(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps in the order of their waves, these counted from 1; a wave that is too wide goes on in the next one."""
    found: list[Step] = []
    wave = 0
    for number in sorted({step.wave for step in steps}):
        same = [step for step in steps if step.wave == number]
        for at in range(0, len(same), MAX_OF_WAVE):
            wave += 1
            found += [step.model_copy(update={"wave": wave}) for step in same[at : at + MAX_OF_WAVE]]
    return tuple(found)
