"""Schedules that events start, on a real Postgres: one run for each event, with the rights of the owner, and not too many."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from phronesis_bus import Call, News
from phronesis_contracts import BadRequest, Busy, Label, OriginKind, Principal, Role, Unavailable
from phronesis_contracts.constitution.lists import GET_NODE, ConstitutionNodeFound
from phronesis_contracts.constitution.registry import Layer
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_contracts.constitution.writes import ConstitutionChanged, NodeNews, Operation
from phronesis_contracts.media import MediaKind, MediaReady
from phronesis_contracts.orchestrator import ChangedThing, StartingEvent, SubmitTurn, TaskOrder, turn_id
from phronesis_contracts.tasks import (
    MAX_RUNS_AN_HOUR,
    AddTrigger,
    ChangeSchedule,
    ListSchedules,
    Schedule,
    Trigger,
)
from phronesis_orchestrator.tasks.schedules import PostgresSchedules, TriggerHandlers
from phronesis_orchestrator.turns.store import PostgresTurns
from phronesis_orchestrator.turns.turn import NewTurn
from phronesis_postgres import EVERY_TENANT, Database
from tests.stores.test_schedules import get, owner, runs, waits_for_a_lock
from tests.stores.test_turns import LEASE
from tests.support.personas import Persona
from tests.support.servers import PostgresServer
from tests.unit.orchestrator.fakes import FakeNeighbours

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


@pytest.fixture
def handlers(schedules: PostgresSchedules) -> TriggerHandlers:
    """Whoever follows the news, where every task that is asked for is there and done."""

    def read(request: Any) -> ConstitutionNodeFound:
        node = ConstitutionNode(id=request.id, type="task", layer=Layer.EXECUTION, title="Order flour", status="done")
        return ConstitutionNodeFound(node=node)

    return TriggerHandlers(schedules, FakeNeighbours(owners={GET_NODE.subject: read}), 900.0, OPEN, lambda: None)


def reader_of_nodes(tenant: str | None = None) -> Principal:
    return owner(tenant).model_copy(update=Persona.EXECUTE.rights)


async def hear(handlers: TriggerHandlers, tenant: str, news: str = "news-1") -> None:
    """Let it be told in a tenant that a task was done."""
    node = NodeNews(
        id="task-17", type="task", layer=Layer.EXECUTION, operation=Operation.UPDATE, version=2, changed=("status",)
    )
    await handlers.on_constitution_changed(News(tenant, news, 1), ConstitutionChanged(nodes=(node,), actor="cy"))


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


async def test_news_of_a_tenant_starts_no_run_of_another(
    schedules: PostgresSchedules, database: Database, handlers: TriggerHandlers
) -> None:
    mine = reader_of_nodes()
    # The same user and the same key in another tenant: nothing but the tenant tells them apart.
    others = mine.model_copy(update={"tenant": owner().tenant})
    for who in (mine, others):
        await added(schedules, who)
        await added(schedules, who, FILE)
    await hear(handlers, mine.tenant)
    await handlers.on_media_ready(
        News(mine.tenant, "news-2", 1), MediaReady(media_id="m-1", user=mine.user, kind=MediaKind.DOCUMENT, name="a.pdf")
    )
    assert [sorted(task.goal for task in await runs(database, who)) for who in (mine, others)] == [
        ["Look at m-1", "Look at task-17"],
        [],
    ]
    [theirs] = [one for one in (await schedules.list(others, ListSchedules(), datetime.now(UTC))).schedules if one.on == NODE]
    assert not await start(schedules, mine, theirs, "news-3"), "nor if its id is known"
    assert await runs(database, others) == []


async def test_whoever_lost_the_right_to_read_nodes_has_no_runs_of_them(
    schedules: PostgresSchedules, turns: PostgresTurns, database: Database, handlers: TriggerHandlers
) -> None:
    lowered, same = reader_of_nodes(), reader_of_nodes()
    same = same.model_copy(update={"tenant": lowered.tenant})
    for who in (lowered, same):
        await added(schedules, who)
    less = lowered.model_copy(update=Persona.NOOR.rights)
    request = SubmitTurn(idempotency_key="k", text="hello", agent="dialogue")
    await turns.accept(NewTurn(turn_id(less.tenant, less.user, "k"), less, request, "f", 900.0, None, None), OPEN)
    await hear(handlers, lowered.tenant)
    assert (await runs(database, lowered), len(await runs(database, same))) == ([], 1)


async def test_a_run_of_another_schedule_gives_no_rights_back(
    schedules: PostgresSchedules, turns: PostgresTurns, database: Database, handlers: TriggerHandlers
) -> None:
    before = reader_of_nodes()
    less = before.model_copy(update=Persona.NOOR.rights)
    await added(schedules, less)
    stale = await added(schedules, before, FILE)
    assert await start(schedules, before, stale, "news-1", arrived()), "it stands for rights of before"
    await hear(handlers, before.tenant, "news-2")
    assert [task.goal for task in await runs(database, before)] == ["Look at m-1"]


async def test_a_turn_that_was_erased_takes_no_rights_along(
    schedules: PostgresSchedules, turns: PostgresTurns, database: Database, handlers: TriggerHandlers
) -> None:
    who = reader_of_nodes().model_copy(update={"key": None})
    await added(schedules, who)
    request = SubmitTurn(idempotency_key="k", text="hello", agent="dialogue")
    await turns.accept(NewTurn(turn_id(who.tenant, who.user, "k"), who, request, "f", 900.0, None, None), OPEN)
    async with database.transaction(EVERY_TENANT) as connection:
        await connection.execute("UPDATE turns SET erased = true, request = '{}', principal = '{}', key_id = NULL")
    await hear(handlers, who.tenant)
    assert [task.goal for task in await runs(database, who)] == ["Look at task-17"]


async def test_one_that_is_paused_or_removed_while_its_node_is_read_starts_nothing(
    schedules: PostgresSchedules, turns: PostgresTurns, database: Database
) -> None:
    who = reader_of_nodes()
    assert who.key is not None
    paused, removed, revoked = [await added(schedules, who) for _ in range(3)]
    there = await schedules.triggers(who.tenant, "node_changed", None, None)
    assert len(there) == 3
    call = Call(who, "gateway", None)
    await schedules.change(call, ChangeSchedule(schedule_id=paused.schedule_id, enabled=False), datetime.now(UTC))
    await schedules.remove(call, removed.schedule_id, datetime.now(UTC))
    await turns.revoke(who.tenant, who.key)
    for one in (paused, removed, revoked):
        assert not await start(schedules, who, one, "news-1")
    assert await runs(database, who) == []


async def test_a_follower_that_dies_while_it_starts_a_run_leaves_the_event_to_the_next(
    schedules: PostgresSchedules, database: Database
) -> None:
    who = owner()
    schedule = await added(schedules, who)
    async with database.transaction(EVERY_TENANT) as connection:
        await connection.execute("LOCK TABLE turns IN SHARE MODE")
        starting = asyncio.create_task(start(schedules, who, schedule, "news-1"))
        await connection.execute("SELECT pg_terminate_backend($1)", await waits_for_a_lock(database))
        with pytest.raises(Unavailable):
            await starting
    assert await runs(database, who) == []
    assert await start(schedules, who, schedule, "news-1")
    assert len(await runs(database, who)) == 1
