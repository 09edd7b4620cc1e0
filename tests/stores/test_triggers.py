"""Schedules that events start, on a real Postgres: one run for each event, with the rights of the owner, and not too many."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from phronesis_bus import Call, News
from phronesis_contracts import BadRequest, Busy, Label, OriginKind, Principal, Role
from phronesis_contracts.orchestrator import ChangedThing, StartingEvent, SubmitTurn, TaskOrder, turn_id
from phronesis_contracts.tasks import MAX_RUNS_AN_HOUR, AddTrigger, ChangeSchedule, ListTasks, Schedule, Task, Trigger
from phronesis_orchestrator.tasks.schedules import PostgresSchedules
from phronesis_orchestrator.tasks.store import PostgresTasks
from phronesis_orchestrator.turns.store import PostgresTurns
from phronesis_orchestrator.turns.turn import NewTurn
from phronesis_postgres import EVERY_TENANT, Database
from tests.stores.test_turns import LEASE, someone
from tests.support.servers import PostgresServer

OPEN = 100
NODE = Trigger(event="node_changed", type="task", property="status", value="done")
FILE = Trigger(event="file_arrived")


@pytest.fixture
async def database(postgres: PostgresServer) -> AsyncIterator[Database]:
    async with postgres.fresh_schema("orchestrator") as settings, Database.open(settings, "orchestrator") as database:
        yield database


@pytest.fixture
def schedules(database: Database) -> PostgresSchedules:
    return PostgresSchedules(database)


@pytest.fixture
def turns(database: Database) -> PostgresTurns:
    return PostgresTurns(database)


def owner(tenant: str | None = None) -> Principal:
    return someone(tenant, key=str(uuid4()))


async def added(schedules: PostgresSchedules, who: Principal, on: Trigger = NODE, **more: Any) -> Schedule:
    place = "{node}" if on.event == "node_changed" else "{file}"
    wanted = AddTrigger(goal=f"Look at {place}", on=on, **more)
    return await schedules.add(Call(who, "gateway", None), wanted, datetime.now(UTC))


def happened(id: str = "task-17") -> StartingEvent:
    label = Label(kind=OriginKind.TOOL, id="node.get.v1")
    return StartingEvent(event="node_changed", things=(ChangedThing(id=id, title="Order flour"),), type="task", label=label)


def arrived(id: str = "m-1") -> StartingEvent:
    label = Label(kind=OriginKind.DOCUMENT, id=id, name="invoice.pdf")
    things = (ChangedThing(id=id, title="invoice.pdf"),)
    return StartingEvent(event="file_arrived", things=things, type="document", label=label)


async def start(
    schedules: PostgresSchedules, who: Principal, schedule: Schedule, news: str, event: StartingEvent | None = None
) -> bool:
    told = News(who.tenant, news, 1)
    return await schedules.start_on(told, UUID(schedule.schedule_id), event or happened(), 900.0, OPEN)


async def runs(database: Database, who: Principal) -> list[Task]:
    return list((await PostgresTasks(database).list(who, ListTasks(limit=100))).tasks)


async def get(schedules: PostgresSchedules, who: Principal, schedule: Schedule) -> Schedule:
    return await schedules.get(who, schedule.schedule_id, datetime.now(UTC))


async def found(
    schedules: PostgresSchedules, who: Principal, event: str = "node_changed", turn: str | None = None
) -> list[str]:
    return [str(one.id) for one in await schedules.triggers(who.tenant, event, None, turn)]


async def test_an_event_starts_one_task_whose_goal_names_the_node(schedules: PostgresSchedules, database: Database) -> None:
    who = owner()
    schedule = await added(schedules, who)
    assert (schedule.cron, schedule.on, schedule.next_runs) == ("", NODE, ())
    assert await start(schedules, who, schedule, "news-1")
    [task] = await runs(database, who)
    assert task.goal == "Look at task-17"
    assert task.schedule is not None
    assert task.schedule.event == happened()
    after = await get(schedules, who, schedule)
    assert (after.runs, after.last_task, after.skipped) == (1, task.task_id, 0)


async def test_copies_that_are_told_of_one_event_at_once_start_one_run(
    schedules: PostgresSchedules, database: Database
) -> None:
    who = owner()
    schedule = await added(schedules, who)
    copies = [PostgresSchedules(database) for _ in range(8)]
    began = await asyncio.gather(*(start(copy, who, schedule, "news-1") for copy in copies))
    assert sum(began) == 1
    assert not await start(schedules, who, schedule, "news-1")
    assert len(await runs(database, who)) == 1
    assert (await get(schedules, who, schedule)).runs == 1


async def test_each_schedule_has_a_run_of_its_own_for_an_event(schedules: PostgresSchedules, database: Database) -> None:
    who = owner()
    for schedule in [await added(schedules, who), await added(schedules, who)]:
        assert await start(schedules, who, schedule, "news-1")
    assert len(await runs(database, who)) == 2


async def test_events_start_no_more_than_twelve_runs_within_an_hour_and_the_others_are_counted(
    schedules: PostgresSchedules, database: Database
) -> None:
    who = owner()
    schedule = await added(schedules, who)
    began = [await start(schedules, who, schedule, f"news-{at}") for at in range(MAX_RUNS_AN_HOUR + 3)]
    assert began == [True] * MAX_RUNS_AN_HOUR + [False] * 3
    after = await get(schedules, who, schedule)
    assert (after.runs, after.skipped) == (MAX_RUNS_AN_HOUR, 3)
    async with database.transaction(EVERY_TENANT) as connection:
        await connection.execute("UPDATE trigger_events SET at = at - interval '61 minutes'")
    assert not await start(schedules, who, schedule, f"news-{MAX_RUNS_AN_HOUR}"), "what was left out is not made up for"
    assert await start(schedules, who, schedule, "later")


async def test_what_a_task_changes_starts_no_schedule_of_its_owner_and_those_of_others(
    schedules: PostgresSchedules, turns: PostgresTurns
) -> None:
    who = owner()
    own, other = await added(schedules, who), await added(schedules, owner(who.tenant))
    order = SubmitTurn(idempotency_key="t", text="Do it", agent="nova", task=TaskOrder())
    message = SubmitTurn(idempotency_key="m", text="Do it", agent="dialogue")
    task, turn = (turn_id(who.tenant, who.user, key) for key in ("t", "m"))
    await turns.accept(NewTurn(task, who, order, "f", 900.0, None, None), OPEN)
    await turns.accept(NewTurn(turn, who, message, "f", 900.0, None, None), OPEN)
    assert await found(schedules, who, turn=task) == [other.schedule_id]
    everyone = [own.schedule_id, other.schedule_id]
    assert await found(schedules, who, turn=turn) == everyone, "in a conversation it was the owner's own doing"
    assert await found(schedules, who, turn=str(uuid4())) == everyone
    assert await found(schedules, who, turn="nobody's") == everyone
    assert await found(schedules, who) == everyone


async def test_an_event_is_for_its_kind_its_tenant_and_the_owner_of_a_file(schedules: PostgresSchedules) -> None:
    who = owner()
    node, file = await added(schedules, who), await added(schedules, who, FILE)
    await added(schedules, owner())
    others = await added(schedules, owner(who.tenant), FILE)
    assert await found(schedules, who) == [node.schedule_id]
    assert await found(schedules, who, "file_arrived") == [file.schedule_id, others.schedule_id]
    mine = await schedules.triggers(who.tenant, "file_arrived", who.user, None)
    assert [str(one.id) for one in mine] == [file.schedule_id]


async def test_a_file_comes_with_the_run_that_it_starts(schedules: PostgresSchedules, turns: PostgresTurns) -> None:
    who = owner()
    schedule = await added(schedules, who, FILE)
    assert await start(schedules, who, schedule, "news-1", arrived())
    [claim] = await turns.claim("w1", 10, LEASE)
    assert (claim.request.media, claim.request.text) == (("m-1",), "Look at {file}")


async def test_a_run_has_the_rights_that_its_owner_was_let_in_with_last(
    schedules: PostgresSchedules, turns: PostgresTurns
) -> None:
    who = owner().model_copy(update={"role": Role.ADMIN, "agents": ()})
    schedule = await added(schedules, who)
    less = Principal(tenant=who.tenant, user=who.user, key=who.key, department="Works")
    request = SubmitTurn(idempotency_key="k", text="hello", agent="dialogue")
    await turns.accept(NewTurn(turn_id(who.tenant, who.user, "k"), less, request, "f", 900.0, None, None), OPEN)
    assert [one.who for one in await schedules.triggers(who.tenant, "node_changed", None, None)] == [less]
    await start(schedules, who, schedule, "news-1")
    claims = await turns.claim("w1", 10, LEASE)
    assert [claim.who for claim in claims if claim.request.task] == [less]


async def test_a_revoked_key_pauses_its_triggers_and_they_start_nothing(
    schedules: PostgresSchedules, turns: PostgresTurns, database: Database
) -> None:
    before, after = owner(), owner()
    assert before.key is not None
    assert after.key is not None
    schedule = await added(schedules, before)
    await turns.revoke(before.tenant, before.key)
    await turns.revoke(after.tenant, after.key)
    late = await added(schedules, after)
    for who, one in ((before, schedule), (after, late)):
        assert not await start(schedules, who, one, "news-1")
        kept = await get(schedules, who, one)
        assert (kept.enabled, kept.paused and kept.paused.code) == (False, "unauthorized")
        assert await runs(database, who) == []


async def test_a_paused_trigger_is_not_found_and_makes_up_for_nothing(schedules: PostgresSchedules, database: Database) -> None:
    who = owner()
    schedule = await added(schedules, who, enabled=False)
    assert await found(schedules, who) == []
    assert not await start(schedules, who, schedule, "news-1")
    change = ChangeSchedule(schedule_id=schedule.schedule_id, enabled=True)
    resumed = await schedules.change(Call(who, "gateway", None), change, datetime.now(UTC))
    assert (resumed.enabled, resumed.next_runs) == (True, ())
    assert await runs(database, who) == []
    assert await start(schedules, who, schedule, "news-2")


async def test_an_event_that_finds_no_place_may_be_told_again(schedules: PostgresSchedules, database: Database) -> None:
    who = owner()
    schedule = await added(schedules, who)
    told = News(who.tenant, "news-1", 1)
    with pytest.raises(Busy):
        await schedules.start_on(told, UUID(schedule.schedule_id), happened(), 900.0, 0)
    assert await start(schedules, who, schedule, "news-1")
    assert len(await runs(database, who)) == 1


@pytest.mark.parametrize("wrong", [{"cron": "0 8 * * *"}, {"time_zone": "Europe/Oslo"}, {"goal": "Look at {file}"}])
async def test_a_trigger_takes_no_times_and_no_goal_with_a_place_that_nothing_fills(
    schedules: PostgresSchedules, wrong: dict[str, str]
) -> None:
    who = owner()
    schedule = await added(schedules, who)
    change = ChangeSchedule.model_validate({"schedule_id": schedule.schedule_id, **wrong})
    with pytest.raises(BadRequest):
        await schedules.change(Call(who, "gateway", None), change, datetime.now(UTC))
    better = ChangeSchedule(schedule_id=schedule.schedule_id, goal="Report on {node}")
    assert (await schedules.change(Call(who, "gateway", None), better, datetime.now(UTC))).goal == "Report on {node}"


async def test_times_are_never_due_for_a_trigger_and_a_removed_one_forgets_its_events(
    schedules: PostgresSchedules, database: Database
) -> None:
    who = owner()
    schedule = await added(schedules, who)
    assert await schedules.start_due(900.0, OPEN) is False
    await start(schedules, who, schedule, "news-1")
    await schedules.remove(Call(who, "gateway", None), schedule.schedule_id, datetime.now(UTC))
    async with database.connection(EVERY_TENANT) as connection:
        assert await connection.fetchval("SELECT count(*) FROM trigger_events") == 0
    assert not await start(schedules, who, schedule, "news-2")
