"""The order of steps: which come next, what is left, and how a new tail is named. Nothing here does I/O."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from .plan import Plan, Step

Remaining = tuple[Step, ...]


def next_wave(remaining: Remaining) -> tuple[Remaining, Remaining]:
    """The steps of the lowest wave, and those that are left behind it (V-019)."""
    first = min(step.wave for step in remaining)
    return tuple(step for step in remaining if step.wave == first), tuple(step for step in remaining if step.wave != first)


def lacking(step: Step, ended_well: Collection[str]) -> tuple[str, ...]:
    """What a step needs and did not get."""
    return tuple(needed for needed in step.depends if needed not in ended_well)


def renamed(tail: Plan, taken: Collection[str]) -> Plan:
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
