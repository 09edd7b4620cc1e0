"""Plans: what makes one sound, and that any sound one is worked off whole and in order."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from phronesis_orchestrator.tasks.ports import (
    MAX_OF_WAVE,
    MAX_STEPS,
    BadPlan,
    Plan,
    Step,
    check_plan,
    missing_needs,
    next_wave,
    rename_steps,
)

from .stage import plan, step

TOOLS = ("survey_twin",)


@st.composite
def sound_plans(draw: st.DrawFn) -> Plan:
    """Plans whose steps depend on steps of earlier waves alone; waves may have holes between them."""
    numbers = draw(st.lists(st.integers(1, 30), min_size=1, max_size=20))
    steps: list[Step] = []
    for at, wave in enumerate(sorted(numbers)):
        earlier = [one.id for one in steps if one.wave < wave]
        needed = draw(st.lists(st.sampled_from(earlier), max_size=3, unique=True)) if earlier else []
        steps.append(step(f"s{at}", wave, depends=tuple(needed)))
    return Plan(steps=tuple(draw(st.permutations(steps))))


@pytest.mark.req("V-041")
@pytest.mark.parametrize(
    "bad",
    [
        Plan(steps=()),
        Plan(steps=(step("a", 1), step("a", 2))),
        Plan(steps=(step("a", 1, depends=("b",)), step("b", 1, depends=("a",)))),
        Plan(steps=(step("a", 1, depends=("a",)),)),
        Plan(steps=(step("a", 1, tool="rm"),)),
        Plan(steps=(step("a", 1), step("b", 1, depends=("a",)))),
        Plan(steps=(step("a", 1, depends=("nowhere",)),)),
        Plan(steps=tuple(step(f"s{n}", 1) for n in range(MAX_STEPS + 1))),
    ],
    ids=["empty", "twice", "cyclic", "itself", "unknown tool", "same wave", "unknown step", "too large"],
)
def test_a_plan_that_cannot_be_worked_off_is_refused(bad: Plan) -> None:
    with pytest.raises(BadPlan):
        check_plan(bad, TOOLS)


def test_a_step_without_a_tool_needs_somebody_who_works_on_it() -> None:
    thinking = Plan(steps=(step("a", 1).model_copy(update={"tool": None}),))
    assert check_plan(thinking, TOOLS).steps[0].tool is None
    with pytest.raises(BadPlan):
        check_plan(thinking, TOOLS, works=False)


@pytest.mark.parametrize("id", ["", "a b", "a/b", "x" * 65])
def test_an_id_that_is_no_name_of_a_step_is_refused(id: str) -> None:
    with pytest.raises(ValidationError):
        Step(id=id, description="d", wave=1)


@pytest.mark.req("V-019")
@given(sound_plans())
def test_any_sound_plan_is_worked_off_whole_and_nothing_before_what_it_needs(made: Plan) -> None:
    remaining = check_plan(made, TOOLS).steps
    done: list[str] = []
    waves = []
    while remaining:
        wave, remaining = next_wave(remaining)
        waves.append(wave[0].wave)
        assert all(not missing_needs(one, done) for one in wave)
        done += [one.id for one in wave]
    assert Counter(done) == Counter(one.id for one in made.steps)
    assert waves == list(range(1, len(waves) + 1))


@given(st.integers(1, MAX_STEPS))
def test_a_wave_that_is_too_wide_goes_on_in_the_next_one(n: int) -> None:
    made = check_plan(Plan(steps=tuple(step(f"s{at}", 1) for at in range(n))), TOOLS)
    sizes = Counter(one.wave for one in made.steps)
    assert max(sizes.values()) <= MAX_OF_WAVE
    assert sum(sizes.values()) == n


@pytest.mark.req("V-028")
@given(sound_plans(), st.frozensets(st.sampled_from([f"s{n}" for n in range(20)])))
def test_no_step_of_a_new_plan_has_the_name_of_an_old_one(tail: Plan, taken: frozenset[str]) -> None:
    found = rename_steps(tail, taken)
    names = [one.id for one in found.steps]
    assert not set(names) & taken
    assert len(set(names)) == len(names)
    assert check_plan(found, TOOLS).steps


@pytest.mark.req("V-040")
def test_a_plan_is_the_same_value_read_back() -> None:
    made = plan("a b", "c")
    assert Plan.model_validate_json(made.model_dump_json()) == made
