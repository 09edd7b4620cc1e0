"""Orders: what a task may be, how long it may take, and that nothing else has waves."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from phronesis_contracts import BadRequest, Principal
from phronesis_contracts.episodes import RECORD_STRATEGY
from phronesis_contracts.orchestrator import SubmitTurn, TaskBudget, TaskOrder, TurnProgress
from phronesis_contracts.tasks import NoPlan, Verified, VerifiedBy
from phronesis_orchestrator.tasks import background, decisions
from phronesis_orchestrator.tasks.ports import goal_signature
from phronesis_orchestrator.tasks.store import RememberedStrategies
from phronesis_orchestrator.turns.run import Patience, Worker
from phronesis_orchestrator.turns.turn import ENDING, Claim, Wait, attempt_limit, check_task_order, expiry_seconds
from tests.support.personas import Persona
from tests.unit.orchestrator.fakes import FakeNeighbours, ScriptedReasoner, Stage, claim, direct, reply

from .stage import ANN, NOON, ScriptedPlanner, TaskStage, plan

TASK = SubmitTurn(idempotency_key="k", text="Do it", task=TaskOrder(budget=TaskBudget(seconds=600)))


@pytest.mark.parametrize(
    "more",
    [{"conversation_id": "c"}, {"media": ("m",)}, {"text": " "}, {"text": "x" * 4_001}],
    ids=lambda more: next(iter(more)),
)
def test_a_task_that_would_block_a_conversation_or_has_no_goal_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(BadRequest):
        check_task_order(TASK.model_copy(update=more))


def test_a_task_has_its_own_time_and_a_turn_has_the_services() -> None:
    task, turn = replace(claim(), request=TASK), claim()
    assert (attempt_limit(task, 60), attempt_limit(turn, 60)) == (600 + ENDING, 60)
    assert (expiry_seconds(TASK, 900), expiry_seconds(turn.request, 900)) == (900 + 600 + ENDING, 900)


@pytest.mark.req("V-038", "V-128", "V-C16")
async def test_a_turn_that_is_no_task_has_no_boundary_and_records_no_strategy(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*given: Any) -> Any:
        raise AssertionError("a turn of a conversation has no waves")

    monkeypatch.setattr(decisions.Replanner, "replan_between_waves", never)
    stage = Stage(ScriptedReasoner([direct()], [reply()]))
    await stage.run(claim())
    assert RECORD_STRATEGY.subject not in [subject for subject, _, _ in stage.neighbours.questions]


@pytest.mark.req("V-134")
async def test_a_strategy_that_cannot_be_kept_or_recalled_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    strategies = RememberedStrategies(FakeNeighbours())
    accepted = Verified(by=VerifiedBy.CHECKER, accepted=True, at=NOON)
    assert await strategies.recall(ANN, "goal", 2, "nova", ()) == ()
    stage = TaskStage(ScriptedPlanner([plan("a")]), strategies=strategies)
    monkeypatch.setattr(background, "verified_by_checker", lambda *given: accepted)
    await stage.run()
    assert (stage.state.report is not None, stage.state.verified) == (True, accepted)


@pytest.mark.req("V-T05")
def test_goals_that_differ_in_order_and_small_words_have_one_signature() -> None:
    assert goal_signature("Report on the risks of MOD", "nova") == goal_signature("risks MOD: a report", "nova")
    assert goal_signature("Report on risks", "nova") != goal_signature("Report on risks", "noor")
    assert goal_signature("Report of 2021", "nova") != goal_signature("Report of 2022", "nova")


def test_goals_for_two_numbered_things_have_two_signatures_however_short_the_numbers() -> None:
    assert goal_signature("Close ticket 12", "nova") != goal_signature("Close ticket 15", "nova")


async def test_tasks_take_no_more_slots_than_their_share() -> None:
    asked: asyncio.Queue[int | None] = asyncio.Queue()
    waiting = [replace(claim(), request=TASK) for _ in range(2)]

    class Queue:
        async def claim(
            self,
            worker: str,
            limit: int,
            lease: float,
            tasks: int | None = None,
            away: Collection[str] = (),
            most: tuple[str, int] | None = None,
        ) -> list[Claim]:
            await asked.put(tasks)
            return [waiting.pop()] if waiting else []

        async def renew(self, worker: str, claims: list[Claim], lease: float) -> set[str]:
            return {one.turn_id for one in claims}

        async def give_back(self, claim: Claim, delay: float, *, counts: bool) -> None:
            return None

        async def put_back(self, claim: Claim, wait: Wait, delay: float) -> bool:
            return True

    async def run(claimed: Claim) -> None:
        await asyncio.Event().wait()

    async def show(who: Principal, line: TurnProgress) -> None:
        return None

    bus = SimpleNamespace(process="w", connected=True)
    worker = Worker(bus, Queue(), run, slots=4, lease=15, patience=Patience(show), task_slots=2)
    worker.start()
    try:
        assert [await asked.get() for _ in range(3)] == [2, 1, 0]
    finally:
        await worker.stop()


@pytest.mark.req("V-036")
async def test_a_tool_that_the_callers_role_may_not_call_is_not_made_by_a_plan() -> None:
    stage = TaskStage(ScriptedPlanner([plan("a")]), who=ANN.model_copy(update=Persona.EDITOR.rights))
    with pytest.raises(NoPlan, match="unknown tool"):
        await stage.run()
    assert stage.made == []
