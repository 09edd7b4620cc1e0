"""Which errors put a turn back, for how long, and how a turn that waited in vain ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from phronesis_contracts import BadRequest, Busy, ModelUnavailable, ServiceError, TimedOut, Unavailable
from phronesis_contracts.media import ExtractedText
from phronesis_contracts.orchestrator import TurnStatus
from phronesis_orchestrator.turns.turn import Completed, Deferred, Failed, Wait, retry_delay, wait_after

from .fakes import FakeNeighbours, ScriptedReasoner, Stage, claim, direct, reply
from .tasks.stage import KEEP, ScriptedPlanner, TaskStage, plan
from .tasks.test_orders_by_rules import Graph, clinic


def of(error: ServiceError, service: str | None = "graph") -> ServiceError:
    """The error as whoever asked a service passes it on."""
    error.dependency = service
    return error


@pytest.mark.parametrize("error", [Unavailable(retry_after=1), TimedOut(), Busy()], ids=lambda error: error.code)
def test_a_service_that_is_away_late_or_busy_is_waited_for(error: ServiceError) -> None:
    assert wait_after(of(error), None, progressed=False) == Wait(service="graph", code=error.code)


@pytest.mark.parametrize(
    "error",
    [of(BadRequest()), of(ModelUnavailable()), of(Unavailable(retry_after=1), None), of(Unavailable("no such page"), "media")],
    ids=["refused", "model", "of nobody", "of something else"],
)
def test_what_no_retry_would_mend_is_not_waited_for(error: ServiceError) -> None:
    assert wait_after(error, None, progressed=False) is None


def test_tries_are_counted_in_a_row_and_anew_after_progress_or_for_another_service() -> None:
    before = Wait(service="graph", code="unavailable", tries=3)
    error = of(Unavailable(retry_after=1))
    assert wait_after(error, before, progressed=False) == Wait(service="graph", code="unavailable", tries=4)
    assert wait_after(error, before, progressed=True) == Wait(service="graph", code="unavailable")
    assert wait_after(of(Unavailable(retry_after=1), "memory"), before, progressed=False) == Wait(
        service="memory", code="unavailable"
    )


def test_an_answer_that_is_always_late_is_an_error_in_the_end_and_a_service_that_is_away_is_not() -> None:
    late, away = Wait(service="graph", code="timed_out", tries=6), Wait(service="graph", code="unavailable", tries=600)
    assert wait_after(of(TimedOut()), late, progressed=False) is None
    assert wait_after(of(Unavailable(retry_after=1)), away, progressed=False) is not None


def test_waits_grow_to_a_limit_and_are_drawn_so_that_no_two_come_back_together() -> None:
    def drawn(tries: int) -> list[float]:
        return [
            retry_delay(Wait(service="graph", code="unavailable", tries=tries), Unavailable(retry_after=1), 0.5, 15)
            for _ in range(400)
        ]

    assert max(drawn(1)) <= 0.5
    assert 2 < max(drawn(4)) <= 4
    assert 10 < max(drawn(10_000)) <= 15
    assert min(drawn(10_000)) < 2


def test_a_busy_service_is_not_asked_before_it_wants_to_be() -> None:
    wait = Wait(service="graph", code="busy")
    assert all(3 <= retry_delay(wait, Busy(retry_after=3), 0.5, 15) <= 3.5 for _ in range(100))


async def test_a_turn_whose_only_attachment_cannot_be_read_for_the_moment_waits() -> None:
    stage = Stage(ScriptedReasoner([], []), FakeNeighbours(documents={"m": of(Unavailable(retry_after=1), "media")}))
    with pytest.raises(Deferred) as deferred:
        await stage.run(claim("", media=("m",)))
    assert deferred.value.error.dependency == "media"


async def test_a_turn_with_words_of_its_own_is_answered_without_an_attachment_that_cannot_be_read() -> None:
    away: dict[str, ExtractedText | ServiceError] = {"m": of(Unavailable(retry_after=1), "media")}
    stage = Stage(ScriptedReasoner([direct()], [reply()]), FakeNeighbours(documents=away))
    end = await stage.run(claim("What is it?", media=("m",)))
    assert isinstance(end, Completed)
    assert "media" in end.reply.degraded


async def test_a_turn_that_expires_while_it_waits_says_for_what() -> None:
    waited = replace(claim(), expired=True, wait=Wait(service="graph", code="unavailable", tries=40))
    end = await Stage(ScriptedReasoner([], [])).run(waited)
    assert isinstance(end, Failed)
    assert (end.status, end.problem.code, end.problem.status) == (TurnStatus.FAILED, "expired_waiting", 504)
    assert end.problem.waiting_for == "graph"
    assert "graph" in end.problem.detail


async def test_a_turn_that_expires_for_another_reason_says_that_it_expired() -> None:
    end = await Stage(ScriptedReasoner([], [])).run(replace(claim(), expired=True))
    assert isinstance(end, Failed)
    assert (end.problem.code, end.problem.waiting_for) == ("timed_out", None)


async def test_a_task_whose_step_meets_a_service_that_is_away_waits_and_goes_on_where_its_journal_stands() -> None:
    stage = TaskStage(ScriptedPlanner([plan("a", "b")], [KEEP]), answers={"b": of(Unavailable(retry_after=1))})
    with pytest.raises(Deferred):
        await stage.run()
    assert ("task.step.a" in stage.journal.results, "task.step.b" in stage.journal.results) == (True, False)
    stage.answers.clear()
    await stage.run()
    assert stage.made == ["a", "b", "b"]
    assert stage.planner.times("decompose") == 1


@pytest.mark.parametrize("goal", ["List the overdue tasks as a table", "Mark the task “Order the partition walls” as done"])
async def test_a_goal_that_is_planned_while_the_graph_is_away_waits_and_is_not_declined(goal: str) -> None:
    graph, down = Graph(), [True]

    def unless_down(answer: Any) -> Any:
        def answered(request: Any) -> Any:
            return of(Unavailable(retry_after=1)) if down else answer(request) if callable(answer) else answer

        return answered

    graph.owners = {subject: unless_down(answer) for subject, answer in graph.owners.items()}
    stage, _ = clinic(goal, graph)
    with pytest.raises(Deferred):
        await stage.run()
    down.clear()
    await stage.run()
    assert stage.state.score == 1.0


async def test_a_step_that_fails_for_good_is_a_result_of_the_task() -> None:
    stage = TaskStage(ScriptedPlanner([plan("a")]), answers={"a": of(BadRequest("no such type"))})
    await stage.run()
    assert [(one.id, one.code) for one in stage.state.steps] == [("a", "bad_request")]
