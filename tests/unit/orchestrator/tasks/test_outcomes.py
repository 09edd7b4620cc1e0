"""Outcomes: who verifies what a task found out, what is learnt then, and the goals that are planned without strategies."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_contracts import Unavailable
from phronesis_contracts.tasks import NoResult, StrategiesArm, TaskNotEnded, TaskState, Verified, VerifiedBy
from phronesis_orchestrator.settings import CognitionSettings
from phronesis_orchestrator.tasks import background
from phronesis_orchestrator.tasks.ports import Criticism, Strategy, goal_signature, is_held_out
from phronesis_orchestrator.tasks.store import wilson_interval

from .stage import NOON, MemoryStrategies, ScriptedPlanner, TaskStage, plan

WORKED = Strategy("s1", "g", "a", ("survey_twin",))


def task(score: float = 0.9, **more: Any) -> TaskStage:
    """A task that ends well, with a strategy that is recalled for it."""
    scores = [Criticism(score=score), Criticism(score=score)]
    return TaskStage(ScriptedPlanner([plan("a")], scores=scores), strategies=MemoryStrategies((WORKED,)), **more)


async def test_a_result_that_nobody_has_verified_teaches_nothing() -> None:
    stage = task(score=1.0)
    await stage.run()
    assert (stage.state.verified, stage.strategies.log, stage.store.templates) == (None, [], {})


async def test_an_accepted_result_raises_what_was_used_and_is_learnt_from() -> None:
    stage = task()
    await stage.run()
    found = await stage.judged(accepted=True, comment="as asked")
    said = found.progress.verified
    assert said is not None
    assert (said.by, said.accepted, said.comment) == (VerifiedBy.PERSON, True, "as asked")
    [outcome, (name, lesson)] = stage.strategies.log
    assert (outcome, name, lesson.approach) == (("outcome", (("s1",), True)), "record", "1. Do a")
    assert list(stage.store.templates) == [goal_signature("Do it all", "nova")]


async def test_a_rejected_result_lowers_what_was_used_and_is_not_learnt_from() -> None:
    stage = task()
    await stage.run()
    await stage.judged(accepted=False)
    assert (stage.strategies.log, stage.store.templates) == ([("outcome", (("s1",), False))], {})


async def test_a_person_may_say_otherwise_later_and_what_was_learnt_goes() -> None:
    stage = task()
    await stage.run()
    await stage.judged(accepted=True)
    found = await stage.judged(accepted=False)
    assert found.progress.verified is not None
    assert (found.progress.verified.accepted, stage.store.templates) == (False, {})
    assert stage.strategies.log[-1] == ("outcome", (("s1",), False))


async def test_the_same_word_again_keeps_the_time_of_the_first() -> None:
    stage = task()
    await stage.run()
    first, again = await stage.judged(accepted=True), await stage.judged(accepted=True)
    assert first.progress.verified == again.progress.verified
    assert [name for name, _ in stage.store.log] == ["template"]


async def test_a_word_that_memory_did_not_hear_is_kept_and_learnt_from_when_it_is_said_again() -> None:
    stage = task()
    await stage.run()
    strategies = stage.strategies
    stage.strategies = _Away()
    with pytest.raises(Unavailable):
        await stage.judged(accepted=True)
    assert stage.state.verified is not None
    stage.strategies = strategies
    await stage.judged(accepted=True)
    assert [name for name, _ in strategies.log] == ["outcome", "record"]


class _Away(MemoryStrategies):
    async def outcome(self, *given: Any) -> None:
        raise Unavailable("memory is away")


async def test_a_task_that_has_not_ended_has_no_outcome() -> None:
    stage = task()
    stage.store.states.append(TaskState())
    with pytest.raises(TaskNotEnded):
        await stage.judged(accepted=True)


async def test_a_task_without_a_report_can_be_rejected_and_not_accepted() -> None:
    stage = task()
    await stage.run()
    found = await stage.store.get(stage.who, "t")
    bare = found.model_copy(update={"progress": TaskState(strategies=("s1",))})
    stage.store.get = lambda who, id: _given(bare)  # type: ignore[method-assign]
    with pytest.raises(NoResult):
        await stage.judged(accepted=True)
    await stage.judged(accepted=False)
    assert stage.strategies.log == [("outcome", (("s1",), False))]


async def _given(found: Any) -> Any:
    return found


async def test_what_a_checker_says_is_learnt_from_at_once_and_is_the_same_after_a_takeover(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = iter([NOON, NOON.replace(hour=13)])
    monkeypatch.setattr(
        background, "verified_by_checker", lambda *of: Verified(by=VerifiedBy.CHECKER, accepted=True, at=next(times))
    )
    stage = task()
    await stage.run()
    assert [name for name, _ in stage.strategies.log] == ["outcome", "record"]
    await stage.run()
    assert stage.state.verified == Verified(by=VerifiedBy.CHECKER, accepted=True, at=NOON)


@pytest.mark.parametrize(
    ("found", "share", "arm", "used"),
    [
        ((WORKED,), 0.0, StrategiesArm.USED, ("s1",)),
        ((WORKED,), 1.0, StrategiesArm.HELD_OUT, ()),
        ((), 1.0, StrategiesArm.NONE, ()),
    ],
)
async def test_a_task_says_whether_it_had_strategies(
    found: tuple[Strategy, ...], share: float, arm: StrategiesArm, used: tuple[str, ...]
) -> None:
    stage = task(thinking=CognitionSettings(strategy_holdout=share))
    stage.strategies.found = found
    await stage.run()
    assert (stage.state.strategies_arm, stage.state.strategies) == (arm, used)


async def test_a_goal_stays_in_its_arm_when_the_task_is_taken_over_with_another_share() -> None:
    stage = task(thinking=CognitionSettings(strategy_holdout=1.0))
    await stage.run()
    stage.thinking = CognitionSettings(strategy_holdout=0.0)
    await stage.run()
    assert stage.state.strategies_arm is StrategiesArm.HELD_OUT


def test_a_fifth_of_goals_is_held_out_and_always_the_same() -> None:
    signatures = [goal_signature(f"goal number {number}", "nova") for number in range(2_000)]
    held = [is_held_out("acme", "ann", one, 0.2) for one in signatures]
    assert held == [is_held_out("acme", "ann", one, 0.2) for one in signatures]
    assert 340 < sum(held) < 460, "within 3.4 standard deviations of 400"


@given(st.text(), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_holds_out_every_goal_that_a_smaller_one_does(signature: str, one: float, other: float) -> None:
    small, large = sorted((one, other))
    assert is_held_out("t", "u", signature, small) <= is_held_out("t", "u", signature, large)


@pytest.mark.parametrize(
    ("accepted", "of", "interval"),
    [(0, 0, (0.0, 1.0)), (3, 5, (0.231, 0.882)), (17, 20, (0.640, 0.948)), (20, 20, (0.839, 1.0)), (0, 20, (0.0, 0.161))],
)
def test_the_interval_of_a_share_is_wilsons(accepted: int, of: int, interval: tuple[float, float]) -> None:
    low, high = wilson_interval(accepted, of)
    assert (round(low, 3), round(high, 3)) == interval
