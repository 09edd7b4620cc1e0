"""What an ended task says of what it did, on a real Postgres: from its journal, and so also after a kill."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import pytest

from phronesis_contracts import Principal
from phronesis_contracts.orchestrator import SubmitTurn, TaskOrder, TurnStatus, turn_id
from phronesis_contracts.outside import OutcomeUnknown
from phronesis_contracts.tasks import ListTasks, StepState, Task, TaskState, TaskStep
from phronesis_orchestrator.tasks.store import PostgresTasks
from phronesis_orchestrator.turns.store import PostgresJournal, PostgresTurns
from phronesis_orchestrator.turns.turn import Claim, Completed, Failed, NewTurn, problem_from_error
from phronesis_postgres import EVERY_TENANT, Database
from tests.stores.test_turns import claimed, completed, someone
from tests.support.servers import PostgresServer

DELETE, READ, KEEP = "node.delete.v1", "survey_twin", "remember"
STEPS = (
    TaskStep(id="look", wave=1, description="Look at the goals.", tool=READ, state=StepState.DONE),
    TaskStep(id="goal", wave=2, description="Delete the goal.", tool=DELETE, state=StepState.RUNNING),
    TaskStep(id="note", wave=2, description="Delete the note", tool=DELETE, state=StepState.RUNNING),
    TaskStep(id="plan", wave=2, description="Delete the plan", tool=DELETE, state=StepState.RUNNING),
    TaskStep(id="last", wave=3, description="Tell of it", tool=READ, depends=("goal",)),
)


@pytest.fixture
async def database(postgres: PostgresServer) -> AsyncIterator[Database]:
    async with postgres.fresh_schema("orchestrator") as settings, Database.open(settings, "orchestrator") as database:
        yield database


class Desk:
    """One task in hand."""

    def __init__(self, database: Database, who: Principal) -> None:
        self.database, self.who = database, who
        self.turns, self.tasks, self.journal = PostgresTurns(database), PostgresTasks(database), PostgresJournal(database)
        self.claim: Claim

    async def begin(self, *, dry_run: bool = False) -> None:
        goal, task = "Tidy up", TaskOrder(dry_run_of="Tidy up" if dry_run else None)
        request = SubmitTurn(idempotency_key=uuid4().hex, text="" if dry_run else goal, agent="nova", task=task)
        id = turn_id(self.who.tenant, self.who.user, request.idempotency_key)
        await self.turns.accept(NewTurn(id, self.who, request, "f", 900.0, None, None), 100)
        self.claim = await claimed(self.turns)
        await self.tasks.keep_state(self.claim, TaskState(waves=3, steps=STEPS))

    async def step(self, name: str, tool: str, result: dict[str, Any] | None, *, changes: bool | None = None) -> None:
        intent = {"call": tool} | ({} if changes is None else {"changes": changes})
        await self.journal.intend(self.claim, name, intent)
        if result is not None:
            await self.journal.result(self.claim, name, result)

    async def get(self) -> Task:
        return await self.tasks.get(self.who, self.claim.turn_id)


@pytest.fixture
async def desk(database: Database) -> Desk:
    made = Desk(database, someone())
    await made.begin()
    return made


GOOD: dict[str, Any] = {"answer": {}, "ms": 5}


async def test_a_cancelled_task_says_what_it_did_what_is_not_known_and_what_it_left_undone(desk: Desk) -> None:
    await desk.step("task.step.look", READ, GOOD)
    await desk.step("task.step.goal", DELETE, GOOD, changes=True)
    await desk.step("task.step.note", DELETE, None, changes=True)
    await desk.step("task.step.plan", DELETE, {"problem": {"code": "not_found", "detail": "gone"}}, changes=True)
    await desk.turns.cancel(desk.who, desk.claim.turn_id)
    task = await desk.get()
    assert [(one.step, one.tool, one.state) for one in task.progress.effects] == [
        ("goal", DELETE, "done"),
        ("note", DELETE, "unknown"),
    ]
    assert [(one.id, one.state, one.code) for one in task.progress.steps] == [
        ("look", StepState.DONE, None),
        ("goal", StepState.DONE, None),
        ("note", StepState.FAILED, "task.ended_early"),
        ("plan", StepState.FAILED, "not_found"),
        ("last", StepState.SKIPPED, "task.ended_early"),
    ]
    assert task.problem is not None
    assert (task.problem.code, task.problem.detail) == (
        "task.cancelled",
        "the task was cancelled after 2 of 5 steps; this was done and stays done: Delete the goal (node.delete.v1); "
        "of this it is not known whether it was done: Delete the note (node.delete.v1)",
    )


async def test_a_task_that_changed_nothing_says_so(desk: Desk) -> None:
    await desk.step("task.step.look", READ, GOOD)
    await desk.turns.cancel(desk.who, desk.claim.turn_id)
    task = await desk.get()
    assert task.progress.effects == ()
    assert task.problem is not None
    assert task.problem.detail == "the task was cancelled after 1 of 5 steps; nothing was changed"


async def test_a_call_whose_outcome_is_unknown_is_told_as_such(desk: Desk) -> None:
    await desk.step("task.step.goal", "outside.crm.send", {"problem": OutcomeUnknown("lost").body()}, changes=True)
    await desk.turns.cancel(desk.who, desk.claim.turn_id)
    assert [(one.step, one.state) for one in (await desk.get()).progress.effects] == [("goal", "unknown")]


async def test_calls_inside_a_step_and_the_saved_report_are_told_under_their_names(desk: Desk) -> None:
    await desk.step("task.step.goal.call.1.1", DELETE, GOOD, changes=True)
    await desk.step("task.step.note.2", DELETE, GOOD, changes=True)
    await desk.step("task.document", KEEP, GOOD, changes=True)
    await desk.turns.cancel(desk.who, desk.claim.turn_id)
    effects = (await desk.get()).progress.effects
    assert [(one.step, one.description) for one in effects] == [
        ("goal", "Delete the goal."),
        ("note", "Delete the note"),
        ("report", "Save the report"),
    ]


async def test_a_journal_of_the_version_before_says_by_its_tools_what_was_changed(desk: Desk) -> None:
    await desk.step("task.step.look", READ, GOOD)
    await desk.step("task.step.goal", DELETE, GOOD)
    await desk.turns.cancel(desk.who, desk.claim.turn_id)
    assert [one.step for one in (await desk.get()).progress.effects] == ["goal"]


async def test_a_failed_task_adds_what_it_did_to_why_it_failed_and_a_list_says_neither(desk: Desk) -> None:
    await desk.step("task.step.goal", DELETE, GOOD, changes=True)
    await desk.turns.end(desk.claim, Failed(TurnStatus.FAILED, problem_from_error(OutcomeUnknown("it broke"))))
    task = await desk.get()
    assert task.problem is not None
    assert task.problem.detail == "it broke; this was done and stays done: Delete the goal (node.delete.v1)"
    (listed,) = (await desk.tasks.list(desk.who, ListTasks())).tasks
    assert (listed.progress.effects, listed.problem and listed.problem.detail) == ((), "it broke")


async def test_a_completed_task_lists_what_it_did_and_keeps_its_steps_as_they_ended(desk: Desk) -> None:
    await desk.step("task.step.goal", DELETE, GOOD, changes=True)
    await desk.turns.end(desk.claim, completed(desk.claim))
    task = await desk.get()
    assert [one.step for one in task.progress.effects] == ["goal"]
    assert (task.progress.steps, task.problem) == (STEPS, None)


async def test_a_dry_run_leaves_no_message_no_text_in_its_news_and_nothing_to_learn_from(database: Database) -> None:
    desk = Desk(database, someone())
    await desk.begin(dry_run=True)
    assert ((await desk.get()).dry_run, (await desk.get()).goal, desk.claim.request.text) == (True, "Tidy up", "Tidy up")
    end: Completed = completed(desk.claim)
    await desk.turns.end(desk.claim, end)
    id = UUID(desk.claim.turn_id)
    async with database.connection(EVERY_TENANT) as connection:
        assert await connection.fetchval("SELECT count(*) FROM messages WHERE turn_id = $1", id) == 0
        assert await connection.fetchval("SELECT learnt FROM turns WHERE id = $1", id) is True
        bodies = [row["body"].decode() for row in await connection.fetch("SELECT body FROM outbox")]
    news = [body for body in bodies if desk.claim.turn_id in body]
    assert len(news) == 1
    assert "Tidy up" not in news[0]
    assert end.reply.user_response not in news[0]


async def test_a_failed_dry_run_tells_nobody_what_its_goal_was(database: Database) -> None:
    desk = Desk(database, someone())
    await desk.begin(dry_run=True)
    await desk.turns.end(desk.claim, Failed(TurnStatus.FAILED, problem_from_error(OutcomeUnknown("it broke"))))
    async with database.connection(EVERY_TENANT) as connection:
        bodies = [row["body"].decode() for row in await connection.fetch("SELECT body FROM outbox")]
    assert [("Tidy up" in body) for body in bodies if desk.claim.turn_id in body] == [False]
