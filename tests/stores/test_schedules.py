"""Schedules on a real Postgres: each time starts one run, whoever looks, with the rights of the owner, or says why not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from phronesis_bus import Call
from phronesis_contracts import BadRequest, NotFound, Principal, Role
from phronesis_contracts.orchestrator import SubmitTurn, TaskBudget, TurnStatus, turn_id
from phronesis_contracts.tasks import MAX_SCHEDULES, AddSchedule, ChangeSchedule, ListSchedules, ListTasks, Schedule, Task
from phronesis_orchestrator.tasks.schedules import PostgresSchedules
from phronesis_orchestrator.tasks.store import PostgresTasks
from phronesis_orchestrator.turns.store import PostgresTurns
from phronesis_orchestrator.turns.turn import Failed, NewTurn, problem_from_error
from phronesis_postgres import EVERY_TENANT, Database
from tests.stores.test_turns import LEASE, claimed, someone
from tests.support.bus import eventually
from tests.support.servers import PostgresServer

OPEN = 100


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


async def added(schedules: PostgresSchedules, who: Principal, cron: str = "0 8 * * *", **more: Any) -> Schedule:
    wanted = AddSchedule(goal="Look at the risks", cron=cron, **more)
    return await schedules.add(Call(who, "gateway", None), wanted, datetime.now(UTC))


async def due(database: Database, schedule: Schedule, ago: timedelta = timedelta(seconds=1)) -> datetime:
    """Let a schedule be due; when."""
    at = (datetime.now(UTC) - ago).replace(microsecond=0)
    async with database.transaction(EVERY_TENANT) as connection:
        await connection.execute("UPDATE schedules SET next_at = $2 WHERE id = $1", UUID(schedule.schedule_id), at)
    return at


async def start_all(schedules: PostgresSchedules) -> int:
    """Start whatever is due; how many rows were looked at."""
    looked = 0
    while await schedules.start_due(900.0, OPEN):
        looked += 1
    return looked


async def runs(database: Database, who: Principal) -> list[Task]:
    return list((await PostgresTasks(database).list(who, ListTasks(limit=100))).tasks)


async def get(schedules: PostgresSchedules, who: Principal, schedule: Schedule) -> Schedule:
    return await schedules.get(who, schedule.schedule_id, datetime.now(UTC))


async def ended(database: Database, turns: PostgresTurns) -> None:
    """End the one run that is open."""
    claim = await claimed(turns)
    await turns.end(claim, Failed(TurnStatus.FAILED, problem_from_error(NotFound("nothing to do"))))


async def waits_for_a_lock(database: Database) -> int:
    """The process of the server that waits for a lock to insert a turn."""
    found: list[int] = []

    async def waits() -> bool:
        async with database.connection(EVERY_TENANT) as connection:  # statistics stay the same inside one transaction
            rows = await connection.fetch(
                "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%INSERT INTO turns%'"
            )
        found.extend(row["pid"] for row in rows)
        return bool(found)

    await eventually(waits)
    return found[0]


async def test_a_time_starts_one_task_of_the_owner_and_the_schedule_goes_on(
    schedules: PostgresSchedules, database: Database
) -> None:
    who = owner()
    schedule = await added(schedules, who, budget=TaskBudget(seconds=60), agent="noor")
    at = await due(database, schedule)
    assert await start_all(schedules) == 1
    (task,) = await runs(database, who)
    assert (task.goal, task.agent, task.budget, task.status) == (
        "Look at the risks",
        "noor",
        TaskBudget(seconds=60),
        TurnStatus.QUEUED,
    )
    assert task.schedule is not None
    assert (task.schedule.schedule_id, task.schedule.due, task.schedule.late) == (schedule.schedule_id, at, False)
    after = await get(schedules, who, schedule)
    assert (after.runs, after.last_task, after.last_due) == (1, task.task_id, at)
    assert after.next_runs[0] > datetime.now(UTC)


async def test_copies_that_look_at_once_start_each_run_once(schedules: PostgresSchedules, database: Database) -> None:
    whos = [owner() for _ in range(6)]
    for who in whos:
        await due(database, await added(schedules, who))
    copies = [PostgresSchedules(database) for _ in range(8)]
    await asyncio.gather(*(start_all(copy) for copy in copies))
    assert [len(await runs(database, who)) for who in whos] == [1] * 6


async def test_a_look_that_dies_while_it_writes_starts_nothing_and_loses_nothing(
    schedules: PostgresSchedules, database: Database
) -> None:
    who = owner()
    at = await due(database, await added(schedules, who))
    async with database.transaction(EVERY_TENANT) as connection:
        await connection.execute("LOCK TABLE turns IN SHARE MODE")
        looking = asyncio.create_task(start_all(schedules))
        pid = await waits_for_a_lock(database)
        assert await schedules.start_due(900.0, OPEN) is False, "it is in hand"
        await connection.execute("SELECT pg_terminate_backend($1)", pid)
        assert await looking == 1
    assert await runs(database, who) == []
    async with database.transaction(EVERY_TENANT) as connection:
        await connection.execute("UPDATE schedules SET not_before = now()")
    assert await start_all(schedules) == 1
    (task,) = await runs(database, who)
    assert task.schedule is not None
    assert task.schedule.due == at


async def test_times_missed_while_nobody_was_there_start_one_run_that_is_told_as_late(
    schedules: PostgresSchedules, database: Database
) -> None:
    who = owner()
    schedule = await added(schedules, who, "0 * * * *")
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    await due(database, schedule, datetime.now(UTC) - (hour - timedelta(hours=3)))
    assert await start_all(schedules) == 1
    (task,) = await runs(database, who)
    assert task.schedule is not None
    assert (task.schedule.due, task.schedule.late, task.schedule.missed) == (hour, True, 3)
    assert (await get(schedules, who, schedule)).next_runs[0] == hour + timedelta(hours=1)


async def test_nothing_is_started_while_the_last_run_is_open_and_that_is_counted(
    schedules: PostgresSchedules, turns: PostgresTurns, database: Database
) -> None:
    who = owner()
    schedule = await added(schedules, who)
    await due(database, schedule)
    await start_all(schedules)
    await due(database, schedule)
    await start_all(schedules)
    found = await get(schedules, who, schedule)
    assert (found.runs, found.skipped, len(await runs(database, who))) == (1, 1, 1)
    await ended(database, turns)
    await due(database, schedule, timedelta(seconds=5))
    await start_all(schedules)
    found = await get(schedules, who, schedule)
    assert (found.runs, found.skipped, len(await runs(database, who))) == (2, 1, 2)


async def test_a_run_has_the_rights_that_its_owner_was_let_in_with_last(
    schedules: PostgresSchedules, turns: PostgresTurns, database: Database
) -> None:
    who = owner().model_copy(update={"role": Role.ADMIN, "agents": ()})
    schedule = await added(schedules, who)
    less = Principal(tenant=who.tenant, user=who.user, key=who.key, department="Works")
    request = SubmitTurn(idempotency_key="k", text="hello", agent="dialogue")
    await turns.accept(NewTurn(turn_id(who.tenant, who.user, "k"), less, request, "f", 900.0, None, None), OPEN)
    await due(database, schedule)
    await start_all(schedules)
    claims = await turns.claim("w1", 10, LEASE)
    assert [claim.who for claim in claims if claim.request.task] == [less]


async def test_what_another_key_of_the_owner_may_do_changes_no_schedule(
    schedules: PostgresSchedules, turns: PostgresTurns, database: Database
) -> None:
    who = owner()
    schedule = await added(schedules, who)
    more = Principal(tenant=who.tenant, user=who.user, key=str(uuid4()), role=Role.ADMIN, agents=())
    request = SubmitTurn(idempotency_key="k", text="hello", agent="dialogue")
    await turns.accept(NewTurn(turn_id(who.tenant, who.user, "k"), more, request, "f", 900.0, None, None), OPEN)
    await due(database, schedule)
    await start_all(schedules)
    claims = await turns.claim("w1", 10, LEASE)
    assert [claim.who for claim in claims if claim.request.task] == [who]


async def test_a_revoked_key_pauses_its_schedules_with_the_reason_and_its_owner_resumes_them_with_another(
    schedules: PostgresSchedules, turns: PostgresTurns, database: Database
) -> None:
    who = owner()
    schedule, other = await added(schedules, who), await added(schedules, owner(who.tenant))
    assert who.key is not None
    await turns.revoke(who.tenant, who.key)
    paused = await get(schedules, who, schedule)
    assert (paused.enabled, paused.paused and paused.paused.code, paused.next_runs) == (False, "unauthorized", ())
    await due(database, schedule)
    await due(database, other)
    assert await start_all(schedules) == 1, "the other one alone"
    again = who.model_copy(update={"key": str(uuid4())})
    change = ChangeSchedule(schedule_id=schedule.schedule_id, enabled=True)
    resumed = await schedules.change(Call(again, "gateway", None), change, datetime.now(UTC))
    assert (resumed.enabled, resumed.paused) == (True, None)
    await due(database, schedule)
    await start_all(schedules)
    assert [claim.who.key for claim in await turns.claim("w1", 10, LEASE) if claim.who.user == who.user] == [again.key]


async def test_a_key_that_was_revoked_before_its_schedule_was_stored_starts_nothing(
    schedules: PostgresSchedules, turns: PostgresTurns, database: Database
) -> None:
    who = owner()
    assert who.key is not None
    await turns.revoke(who.tenant, who.key)
    schedule = await added(schedules, who)
    await due(database, schedule)
    await start_all(schedules)
    found = await get(schedules, who, schedule)
    assert (found.enabled, found.paused and found.paused.code) == (False, "unauthorized")
    assert await runs(database, who) == []


async def test_a_run_that_finds_no_place_waits_and_holds_no_other_back(
    schedules: PostgresSchedules, database: Database
) -> None:
    full, free = owner(), owner()
    first, second = await added(schedules, full), await added(schedules, free)
    await due(database, first, timedelta(seconds=9))
    await due(database, second)
    assert await schedules.start_due(900.0, 0), "no turn of the tenant may be open"
    assert await runs(database, full) == []
    assert await start_all(schedules) == 1
    assert [len(await runs(database, who)) for who in (full, free)] == [0, 1]
    async with database.transaction(EVERY_TENANT) as connection:
        await connection.execute("UPDATE schedules SET not_before = now()")
    assert await start_all(schedules) == 1
    assert len(await runs(database, full)) == 1


async def test_a_schedule_is_its_owners_alone(schedules: PostgresSchedules) -> None:
    who = owner()
    schedule = await added(schedules, who)
    for stranger in (owner(who.tenant), owner(), owner(who.tenant).model_copy(update={"role": Role.ADMIN, "agents": ()})):
        call, now = Call(stranger, "gateway", None), datetime.now(UTC)
        assert (await schedules.list(stranger, ListSchedules(), now)).schedules == ()
        with pytest.raises(NotFound):
            await schedules.get(stranger, schedule.schedule_id, now)
        with pytest.raises(NotFound):
            await schedules.change(call, ChangeSchedule(schedule_id=schedule.schedule_id, enabled=False), now)
        with pytest.raises(NotFound):
            await schedules.remove(call, schedule.schedule_id, now)
    assert await get(schedules, who, schedule) == schedule


async def test_a_paused_schedule_starts_nothing_and_makes_up_for_nothing_when_it_is_resumed(
    schedules: PostgresSchedules, database: Database
) -> None:
    who = owner()
    schedule = await added(schedules, who, enabled=False)
    assert (schedule.enabled, schedule.next_runs) == (False, ())
    await due(database, schedule, timedelta(days=3))
    assert await start_all(schedules) == 0
    change = ChangeSchedule(schedule_id=schedule.schedule_id, enabled=True)
    resumed = await schedules.change(Call(who, "gateway", None), change, datetime.now(UTC))
    assert resumed.next_runs[0] > datetime.now(UTC)
    assert await start_all(schedules) == 0


async def test_new_times_are_held_to_the_same_rules(schedules: PostgresSchedules) -> None:
    who = owner()
    schedule = await added(schedules, who)
    change = ChangeSchedule(schedule_id=schedule.schedule_id, cron="* * * * *")
    with pytest.raises(BadRequest) as caught:
        await schedules.change(Call(who, "gateway", None), change, datetime.now(UTC))
    assert caught.value.field == "cron"
    change = ChangeSchedule(schedule_id=schedule.schedule_id, cron="30 9 * * *", time_zone="Asia/Tokyo")
    changed = await schedules.change(Call(who, "gateway", None), change, datetime.now(UTC))
    assert [f"{time:%H:%M}" for time in changed.next_runs] == ["00:30"] * 3


async def test_a_user_has_no_more_schedules_than_the_limit_however_many_come_at_once(schedules: PostgresSchedules) -> None:
    who = owner()
    for _ in range(MAX_SCHEDULES - 2):
        await added(schedules, who)
    made = await asyncio.gather(*(added(schedules, who) for _ in range(6)), return_exceptions=True)
    assert sum(isinstance(one, Schedule) for one in made) == 2
    assert {type(one) for one in made} == {Schedule, BadRequest}
    await added(schedules, owner(who.tenant))


async def test_a_removed_schedule_starts_nothing_and_its_run_goes_on(schedules: PostgresSchedules, database: Database) -> None:
    who = owner()
    schedule = await added(schedules, who)
    await due(database, schedule)
    await start_all(schedules)
    await schedules.remove(Call(who, "gateway", None), schedule.schedule_id, datetime.now(UTC))
    assert [task.status for task in await runs(database, who)] == [TurnStatus.QUEUED]
    assert await start_all(schedules) == 0


async def test_a_repeat_with_the_same_key_makes_no_second_schedule(schedules: PostgresSchedules) -> None:
    who = owner()
    call, wanted = Call(who, "gateway", "http/ann/k"), AddSchedule(goal="Look", cron="0 8 * * *")
    first = await schedules.add(call, wanted, datetime.now(UTC))
    assert (await schedules.add(call, wanted, datetime.now(UTC))).schedule_id == first.schedule_id
    assert len((await schedules.list(who, ListSchedules(), datetime.now(UTC))).schedules) == 1
