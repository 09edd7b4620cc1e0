"""A plan: its steps, its waves, what makes it sound (V-040, V-041), and plans that worked (V-042)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
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


def check_plan(plan: Plan, tools: Collection[str], done: Collection[str] = (), *, works: bool = True) -> Plan:
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
        _check_step(step, tools, waves, done, works)
    counted = _renumber_waves(steps)
    if max(step.wave for step in counted) > MAX_WAVES:
        raise BadPlan(f"it has more than {MAX_WAVES} waves")
    return plan.model_copy(update={"steps": counted})


def _acyclic(steps: Iterable[Step]) -> None:
    try:
        TopologicalSorter({step.id: step.depends for step in steps}).prepare()
    except CycleError as error:
        raise BadPlan("its steps wait for each other") from error


def _check_step(step: Step, tools: Collection[str], waves: dict[str, int], done: Collection[str], works: bool) -> None:
    if step.tool is None and not works:
        raise BadPlan(f"{step.id} names no tool")
    if step.tool is not None and step.tool not in tools:
        raise BadPlan(f"{step.id} names an unknown tool")
    for needed in step.depends:
        if needed not in waves and needed not in done:
            raise BadPlan(f"{step.id} depends on a step that there is not")
        if needed in waves and waves[needed] >= step.wave:
            raise BadPlan(f"{step.id} stands no later than what it depends on")


def _renumber_waves(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps in the order of their waves, these counted from 1; a wave that is too wide goes on in the next one."""
    found: list[Step] = []
    wave = 0
    for number in sorted({step.wave for step in steps}):
        same = [step for step in steps if step.wave == number]
        for at in range(0, len(same), MAX_OF_WAVE):
            wave += 1
            found += [step.model_copy(update={"wave": wave}) for step in same[at : at + MAX_OF_WAVE]]
    return tuple(found)


Remaining = tuple[Step, ...]


def next_wave(remaining: Remaining) -> tuple[Remaining, Remaining]:
    """The steps of the lowest wave, and those that are left behind it (V-019)."""
    first = min(step.wave for step in remaining)
    return tuple(step for step in remaining if step.wave == first), tuple(step for step in remaining if step.wave != first)


def missing_needs(step: Step, ended_well: Collection[str]) -> tuple[str, ...]:
    """What a step needs and did not get."""
    return tuple(needed for needed in step.depends if needed not in ended_well)


def rename_steps(tail: Plan, taken: Collection[str]) -> Plan:
    """A new tail whose steps have ids of their own, so that no journalled step is taken for another.

    Args:
        tail: the new steps, as they were made.
        taken: ids of all steps that there were.
    """
    names = _names(tail, taken)
    steps = tuple(
        step.model_copy(update={"id": names[step.id], "depends": tuple(names.get(needed, needed) for needed in step.depends)})
        for step in tail.steps
    )
    return tail.model_copy(update={"steps": steps})


def _names(tail: Plan, taken: Collection[str]) -> Mapping[str, str]:
    used, names = set(taken), dict[str, str]()
    for step in tail.steps:
        name, nth = step.id, 1
        while name in used and step.id not in names:
            nth += 1
            name = f"{step.id[:60]}.{nth}"
        names[step.id] = name
        used.add(name)
    return names


_WORD = re.compile(r"[^\W\d_]{3,}|\d+")
"""Numbers count however short they are: a plan for part 12 is none for part 15."""
_SMALL = frozenset(
    "a an and are by do for from how in is it of on or our please the their to up us was we what which with".split()
)


def goal_signature(goal: str, agent: str) -> str:
    """What goals have in common that one decomposition is good for: their words, without order, case and small words.

    Args:
        goal: of the task.
        agent: whose tools the plan used.
    """
    words = sorted({word for word in _WORD.findall(goal.casefold()) if word not in _SMALL})
    return hashlib.sha256("\x00".join((agent, *words)).encode()).hexdigest()


def usable_plan(plan: Plan | None, tools: tuple[str, ...]) -> Plan | None:
    """A kept plan whose tools are all at hand still."""
    if plan is None or any(step.tool is not None and step.tool not in tools for step in plan.steps):
        return None
    return plan
