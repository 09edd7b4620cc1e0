"""Schedules: goals that are worked on at the times of a cron expression, by whichever copy of the service looks first.

Others are worked on whenever a node changed or a file arrived, by whichever copy gets the news. The look at the times also lets
tasks go on that have waited for a date, or in vain for an answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from itertools import islice, pairwise, takewhile
from typing import Any
from uuid import UUID, uuid4, uuid5
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from phronesis_bus import Bus, Call, News, audit_entry, follow, serve
from phronesis_bus.tracing import turn as turn_at_hand
from phronesis_contracts import (
    BadRequest,
    Busy,
    Forbidden,
    Label,
    NotFound,
    OriginKind,
    Principal,
    ServiceError,
    TimedOut,
    Unauthorized,
    Unavailable,
)
from phronesis_contracts.constitution.lists import GET_NODE_TOOL, GetConstitutionNode
from phronesis_contracts.constitution.registry import TYPES
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_contracts.constitution.writes import CONSTITUTION_CHANGED, ConstitutionChanged, NodeNews, Operation
from phronesis_contracts.media import MEDIA_READY, MediaKind, MediaReady, label_medium
from phronesis_contracts.orchestrator import ChangedThing, ScheduledRun, StartingEvent, SubmitTurn, TaskOrder, turn_id
from phronesis_contracts.service import AUDITED
from phronesis_contracts.tasks import (
    MAX_RUNS_AN_HOUR,
    MAX_SCHEDULES,
    MIN_SECONDS_BETWEEN_RUNS,
    SCHEDULE_ADD,
    SCHEDULE_CHANGE,
    SCHEDULE_GET,
    SCHEDULE_LIST,
    SCHEDULE_REMOVE,
    TRIGGER_ADD,
    AddSchedule,
    AddTrigger,
    ChangeSchedule,
    ListSchedules,
    Schedule,
    ScheduleRef,
    Schedules,
    Trigger,
)
from phronesis_postgres import EVERY_TENANT, Connection, Database, write_news, write_once

from ..approvals.handlers import start_sweep
from ..turns.ports import Neighbours
from ..turns.store import accept_turn
from ..turns.turn import (
    PLACEHOLDERS,
    NewTurn,
    check_task_order,
    expiry_seconds,
    hash_request,
    parse_uuid,
    problem_from_error,
)
from .store import PostgresWaits

log = logging.getLogger(__name__)

Row = Any
"""A row of the table `schedules`."""
SERVICE = "orchestrator"
SWEEP = 1.0
"""Seconds between two looks for schedules that are due."""
LATE = 60.0
"""Seconds after its time from which on a run is called late."""
SHOWN = 3
"""Times ahead that are shown."""
_POSTPONED = 30.0
"""Seconds until a schedule whose run could not be started is looked at again."""
_BATCH = 100
"""Tasks that one look lets go on."""
_COUNTED = 1_000
"""Times that are counted as missed at most."""
_CHECKED, _CHECKED_DAYS = 600, 2_200
"""Times ahead, and days, for which it is checked that runs are far enough apart: every month of a leap cycle is among them."""
_NAMED, _LOOKED_AT = 10, 25
"""Nodes of one change that a goal names at most, and those that are read to find them."""
_TOLD_AGAIN = 20
"""Times that an event is told to a schedule of a tenant that has no room for a run: about a quarter of an hour."""
_FOLLOWED = 4
"""News that are looked at side by side."""


@lru_cache(maxsize=1)
def _zones() -> frozenset[str]:
    # These two mean something else on each machine.
    return frozenset(available_timezones() - {"localtime", "Factory"})


def check_times(cron: str, time_zone: str, now: datetime) -> None:
    """Hold a cron expression to what a schedule may be.

    Raises:
        BadRequest: the time zone is unknown, or the expression is invalid, never due, or due too often.
    """
    if time_zone not in _zones():
        raise BadRequest("there is no such time zone; name one as `Europe/Oslo`", field="time_zone")
    if len(cron.split()) != 5:
        raise BadRequest("a cron expression has five fields: minute, hour, day, month, day of the week", field="cron")
    try:
        # Gaps are those of the expression itself: on the two nights when clocks are put, times may be closer.
        last = now + timedelta(days=_CHECKED_DAYS)
        times = list(islice(takewhile(lambda time: time < last, iterate_times(cron, "UTC", now)), _CHECKED))
        local = next_time(cron, time_zone, now)
    except CronSimError as error:
        raise BadRequest(f"the cron expression cannot be read: {error}", field="cron") from error
    if local is None:
        raise BadRequest("this cron expression is never due", field="cron")
    if any((after - before).total_seconds() < MIN_SECONDS_BETWEEN_RUNS for before, after in pairwise(times)):
        raise BadRequest(f"runs have to be {MIN_SECONDS_BETWEEN_RUNS // 60} minutes apart at least", field="cron")


def iterate_times(cron: str, time_zone: str, after: datetime) -> Iterator[datetime]:
    """The times of an expression after a moment, in UTC.

    A time in an hour that the clock leaves out is due once, at the end of the gap; one in an hour that the clock repeats is due
    once. Expressions whose minute or hour begins with `*` follow the clock instead. Raises `CronSimError`.
    """
    for time in CronSim(cron, after.astimezone(ZoneInfo(time_zone))):
        yield time.astimezone(UTC)


def next_time(cron: str, time_zone: str, after: datetime) -> datetime | None:
    return next(iterate_times(cron, time_zone, after), None)


_ADD = """
INSERT INTO schedules (id, tenant, user_id, agent, goal, budget, cron, time_zone, principal, key_id, enabled, next_at, on_event)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $14
WHERE (SELECT count(*) FROM schedules WHERE tenant = $2 AND user_id = $3) < $13 RETURNING *
"""
# Two requests of one user at once wait for each other, so that they do not pass the limit together.
_LOCK_OWNER = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"
_OF_OWNER = "tenant = $1 AND user_id = $2"
_CHANGE = f"""
UPDATE schedules SET agent = $4, goal = $5, budget = $6, cron = $7, time_zone = $8, enabled = $9, next_at = $10,
    paused = NULL, not_before = NULL, principal = $11, key_id = $12, rights_at = now()
WHERE {_OF_OWNER} AND id = $3 RETURNING *
"""  # noqa: S608
# One row, so that one that cannot be worked on keeps no other back. Whoever looks at the same moment takes the next one.
_DUE = """
SELECT schedules.*, clock_timestamp() AS now,
       EXISTS (SELECT FROM revoked_keys WHERE revoked_keys.key_id = schedules.key_id) AS key_revoked,
       EXISTS (SELECT FROM turns WHERE turns.id = last_turn AND status IN ('queued', 'running', 'waiting')) AS busy
FROM schedules WHERE enabled AND next_at <= now() AND coalesce(not_before <= now(), true)
ORDER BY next_at LIMIT 1 FOR UPDATE OF schedules SKIP LOCKED
"""


def _last_let_in(tenant: str, user: str, key: str, since: str) -> str:
    """SQL for what an owner was let in with last: by the same key, or as the same user of a provider or a program.

    A run of another schedule is none of it: that one may stand for rights of before. Nor is an erased one, which says nothing
    any more.
    """
    return f"""
    SELECT turns.principal, turns.created_at FROM turns
    WHERE turns.tenant = {tenant} AND turns.user_id = {user} AND turns.key_id IS NOT DISTINCT FROM {key}
      AND turns.created_at > {since} AND NOT turns.erased AND turns.request -> 'task' -> 'schedule' ->> 'schedule_id' IS NULL
    ORDER BY turns.created_at DESC LIMIT 1
    """  # noqa: S608


_RIGHTS = _last_let_in("$1", "$2", "$3", "$4")
_STARTED = """
UPDATE schedules SET runs = runs + 1, last_turn = $2, last_due = $3, next_at = $4, not_before = NULL, principal = $5,
    rights_at = $6
WHERE id = $1
"""
# Those that an event may start, with what their owners were let in with last; none of whoever's task caused the event.
_ON_EVENT = f"""
SELECT schedules.id, on_event, coalesce(seen.principal, schedules.principal) AS principal FROM schedules LEFT JOIN LATERAL (
    {_last_let_in("schedules.tenant", "schedules.user_id", "schedules.key_id", "schedules.rights_at")}
) AS seen ON true
WHERE schedules.tenant = $1 AND schedules.enabled AND on_event ->> 'event' = $2 AND ($3::text IS NULL OR schedules.user_id = $3)
  AND NOT EXISTS (
    SELECT FROM turns WHERE turns.id = $4 AND turns.tenant = $1 AND turns.background AND turns.user_id = schedules.user_id
  )
ORDER BY schedules.created_at, schedules.id
"""  # noqa: S608
_HELD = """
SELECT schedules.*, clock_timestamp() AS now,
       EXISTS (SELECT FROM revoked_keys WHERE revoked_keys.key_id = schedules.key_id) AS key_revoked
FROM schedules WHERE tenant = $1 AND id = $2 AND enabled AND on_event IS NOT NULL FOR UPDATE OF schedules
"""
_TOLD = """
INSERT INTO trigger_events (tenant, schedule_id, event_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING RETURNING true
"""
_OF_THE_HOUR = """
SELECT count(*) FROM trigger_events WHERE schedule_id = $1 AND started AND at > now() - interval '1 hour'
"""
_NOTED = "UPDATE trigger_events SET started = true WHERE schedule_id = $1 AND event_id = $2"
# News is repeated within minutes, or once a service is back.
_FORGET_TOLD = "DELETE FROM trigger_events WHERE schedule_id = $1 AND at < now() - interval '30 days'"
_LEFT_OUT = "UPDATE schedules SET skipped = skipped + 1 WHERE id = $1"
_SKIPPED = "UPDATE schedules SET skipped = skipped + 1, next_at = $2, not_before = NULL WHERE id = $1"
_PAUSE = "UPDATE schedules SET enabled = false, paused = $2, next_at = NULL WHERE id = $1"
_POSTPONE = "UPDATE schedules SET not_before = now() + make_interval(secs => $2) WHERE id = $1"


class PostgresSchedules:
    """The table `schedules`. A run begins as a turn in the transaction that moves its schedule on to the next time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, call: Call, wanted: AddSchedule | AddTrigger, now: datetime) -> Schedule:
        """Make a schedule of the caller. Raises `BadRequest`: the caller has too many."""
        who = call.who

        async def write(connection: Connection) -> Schedule:
            await connection.execute(_LOCK_OWNER, f"schedules/{who.tenant}/{who.user}")
            cron, time_zone, due, on = "", "UTC", None, None
            if isinstance(wanted, AddTrigger):
                on = wanted.on.model_dump(mode="json", exclude_none=True)
            else:
                cron, time_zone = wanted.cron, wanted.time_zone
                due = next_time(cron, time_zone, now) if wanted.enabled else None
            values = (wanted.agent, wanted.goal, wanted.budget.model_dump(mode="json"), cron, time_zone)
            rights = (who.model_dump(mode="json"), who.key)
            row = await connection.fetchrow(
                _ADD, uuid4(), who.tenant, who.user, *values, *rights, wanted.enabled, due, MAX_SCHEDULES, on
            )
            if row is None:
                raise BadRequest(f"a user has at most {MAX_SCHEDULES} schedules")
            await _audit(connection, who, "schedules.add", row)
            return schedule_from_row(row, now)

        return await write_once(self._database, call, wanted, Schedule, write)

    async def get(self, who: Principal, id: str, now: datetime) -> Schedule:
        """A schedule of the caller. Raises `NotFound`."""
        async with self._database.connection(who.tenant) as connection:
            return schedule_from_row(await _find(connection, who, id), now)

    async def list(self, who: Principal, query: ListSchedules, now: datetime) -> Schedules:
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(
                f"SELECT * FROM schedules WHERE {_OF_OWNER} ORDER BY created_at, id LIMIT $3",  # noqa: S608
                who.tenant,
                who.user,
                query.limit,
            )
        return Schedules(schedules=tuple(schedule_from_row(row, now) for row in rows))

    async def change(self, call: Call, wanted: ChangeSchedule, now: datetime) -> Schedule:
        """Change a schedule of the caller, who stands for it from now on with the rights of this request. Raises `NotFound`."""
        who = call.who

        async def write(connection: Connection) -> Schedule:
            row = await _find(connection, who, wanted.schedule_id, lock=True)
            stated = wanted.model_dump(mode="json", exclude_unset=True, exclude_none=True)
            new = {**dict(row), **stated}
            due = _next_due(row, new, now)
            changed = await connection.fetchrow(
                _CHANGE,
                *(who.tenant, who.user, row["id"], new["agent"], new["goal"], new["budget"], new["cron"], new["time_zone"]),
                *(new["enabled"], due, who.model_dump(mode="json"), who.key),
            )
            assert changed is not None, "the row is locked"
            await _audit(connection, who, "schedules.change", changed)
            return schedule_from_row(changed, now)

        return await write_once(self._database, call, wanted, Schedule, write)

    async def remove(self, call: Call, id: str, now: datetime) -> Schedule:
        """Remove a schedule of the caller; a run that it has started goes on. Raises `NotFound`."""
        who = call.who
        async with self._database.transaction(who.tenant) as connection:
            row = await _find(connection, who, id, lock=True)
            await connection.execute("DELETE FROM schedules WHERE id = $1", row["id"])
            await _audit(connection, who, "schedules.remove", row)
        return schedule_from_row(row, now)

    async def start_due(self, expiry: float, open_turns: int) -> bool:
        """Start the run that is due longest, skip it, or pause its schedule; whether one was due.

        Args:
            expiry: seconds that a turn may wait before it fails.
            open_turns: turns of one tenant that may be open at once.
        """
        at_hand: UUID | None = None
        try:
            async with self._database.transaction(EVERY_TENANT) as connection:
                row = await connection.fetchrow(_DUE)
                if row is not None:
                    at_hand = row["id"]
                    await _start(connection, row, expiry, open_turns)
        except Exception as error:
            if at_hand is None:
                raise
            # One that cannot be started may not keep the others waiting.
            if isinstance(error, Busy):
                log.warning("the run of schedule %s has to wait: %s", at_hand, error.detail)
            else:
                log.exception("the run of schedule %s could not be started", at_hand)
            async with self._database.transaction(EVERY_TENANT) as connection:
                await connection.execute(_POSTPONE, at_hand, _POSTPONED)
        return at_hand is not None

    async def triggers(self, tenant: str, event: str, user: str | None, turn: str | None) -> tuple[Triggered, ...]:
        """The schedules that an event may start.

        Args:
            user: whose alone; everybody's where it is `None`.
            turn: the turn in which the event was caused; if it is a background task, its owner's schedules are left out.
        """
        try:
            caused = UUID(turn) if turn is not None else None
        except ValueError:
            caused = None  # whoever is no part of the platform may call a turn as they like
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_ON_EVENT, tenant, event, user, caused)
        return tuple(
            Triggered(row["id"], Principal.model_validate(row["principal"]), Trigger.model_validate(row["on_event"]))
            for row in rows
        )

    async def start_on(self, news: News, id: UUID, event: StartingEvent, expiry: float, open_turns: int) -> bool:
        """Start the run of a schedule for an event, once however often it is told; whether a run was started.

        Args:
            id: the schedule.
            expiry: seconds that a turn may wait before it fails.
            open_turns: turns of one tenant that may be open at once.

        Raises:
            Busy: too many are open; the event may be told again.
        """
        async with self._database.transaction(news.tenant) as connection:
            row = await connection.fetchrow(_HELD, news.tenant, id)
            if row is None:
                return False  # it was paused or removed meanwhile
            if row["key_revoked"]:
                why = Unauthorized("the key that it acts with was revoked")
                await _pause(connection, row, Principal.model_validate(row["principal"]), why)
                return False
            if not await connection.fetchval(_TOLD, news.tenant, id, news.id):
                return False
            if await connection.fetchval(_OF_THE_HOUR, id) >= MAX_RUNS_AN_HOUR:
                await connection.execute(_LEFT_OUT, id)
                log.warning("schedule %s has had its %d runs of the hour: an event is left out", id, MAX_RUNS_AN_HOUR)
                return False
            run = ScheduledRun(schedule_id=str(id), due=row["now"], event=event)
            media = tuple(thing.id for thing in event.things) if event.event == "file_arrived" else ()
            key = f"trigger/{id}/{uuid5(id, news.id)}"
            await _accept(connection, row, _Wanted(run, key, None, media), expiry, open_turns)
            await connection.execute(_NOTED, id, news.id)
            await connection.execute(_FORGET_TOLD, id)
        return True

    async def leave_out(self, news: News, id: UUID) -> None:
        """Count an event that a schedule is not run for; told again, it is not either."""
        async with self._database.transaction(news.tenant) as connection:
            if await connection.fetchval(_TOLD, news.tenant, id, news.id):
                await connection.execute(_LEFT_OUT, id)
                log.warning("there is no room for a run of schedule %s: an event is left out", id)


@dataclass(frozen=True)
class Triggered:
    """A schedule that an event may start, with the rights that its owner has."""

    id: UUID
    who: Principal
    on: Trigger


@dataclass(frozen=True)
class _Wanted:
    """A run to begin. `next_at`: when the next one is due, if times say so."""

    run: ScheduledRun
    key: str
    next_at: datetime | None
    media: tuple[str, ...] = ()


def _next_due(row: Row, new: dict[str, Any], now: datetime) -> datetime | None:
    """When a schedule is due that was changed. Raises `BadRequest`: the new times cannot be taken."""
    if row["on_event"] is not None:
        check_places(row["on_event"]["event"], new["goal"])
        if (new["cron"], new["time_zone"]) != (row["cron"], row["time_zone"]):
            raise BadRequest("events start its runs: make another schedule for times", field="cron")
        return None
    times, old = (new["cron"], new["time_zone"]), (row["cron"], row["time_zone"])
    if times != old or (new["enabled"] and not row["enabled"]):
        check_times(*times, now)
    due: datetime | None = row["next_at"]
    if row["enabled"] and new["enabled"] and times == old:
        return due
    # A clock that lags may not make a time due that has had its run.
    return next_time(*times, max(now, row["last_due"] or now)) if new["enabled"] else None


async def _start(connection: Connection, row: Row, expiry: float, open_turns: int) -> None:
    now, id = row["now"], row["id"]
    who = Principal.model_validate(row["principal"])
    if row["key_revoked"]:
        return await _pause(connection, row, who, Unauthorized("the key that it acts with was revoked"))
    try:
        after = next_time(row["cron"], row["time_zone"], now)
        passed = list(_times_until(row, now))
    except (CronSimError, ValueError, OSError) as error:
        return await _pause(connection, row, who, BadRequest(f"its times cannot be read: {error}", field="cron"))
    if row["busy"]:
        await connection.execute(_SKIPPED, id, after)
        return
    due = passed[-1]
    run = ScheduledRun(
        schedule_id=str(id), due=due, late=(now - due).total_seconds() > LATE or len(passed) > 1, missed=len(passed) - 1
    )
    key = f"schedule/{id}/{due:%Y-%m-%dT%H:%M:%SZ}"
    await _accept(connection, row, _Wanted(run, key, after), expiry, open_turns)


async def _accept(connection: Connection, row: Row, wanted: _Wanted, expiry: float, open_turns: int) -> None:
    """Begin a run as a turn of the owner, with the rights that they have now. Raises `Busy`."""
    who, key = Principal.model_validate(row["principal"]), wanted.key
    seen = await connection.fetchrow(_RIGHTS, row["tenant"], row["user_id"], row["key_id"], row["rights_at"])
    if seen is not None:
        who = Principal.model_validate(seen["principal"])
    order = TaskOrder.model_validate({"budget": row["budget"], "schedule": wanted.run})
    request = SubmitTurn(idempotency_key=key, text=row["goal"], agent=row["agent"], task=order, media=wanted.media)
    turn = turn_id(who.tenant, who.user, key)
    new = NewTurn(turn, who, request, hash_request(request), expiry_seconds(request, expiry), None, turn)
    await accept_turn(connection, new, open_turns)
    rights_at = seen["created_at"] if seen is not None else row["rights_at"]
    due, rights = wanted.run.due, who.model_dump(mode="json")
    await connection.execute(_STARTED, row["id"], UUID(turn), due, wanted.next_at, rights, rights_at)
    await _audit(connection, who, "schedules.run", row, turn_id=turn)


def _times_until(row: Row, now: datetime) -> Iterator[datetime]:
    """The time that is due, and those that have passed behind it."""
    yield row["next_at"]
    for time in islice(iterate_times(row["cron"], row["time_zone"], row["next_at"]), _COUNTED):
        if time > now:
            return
        yield time


async def _pause(connection: Connection, row: Row, who: Principal, why: ServiceError) -> None:
    await connection.execute(_PAUSE, row["id"], problem_from_error(why).model_dump(mode="json", exclude_none=True))
    await _audit(connection, who, "schedules.pause", row, why=why.code)
    log.warning("schedule %s is paused: %s", row["id"], why.code)


async def _find(connection: Connection, who: Principal, id: str, *, lock: bool = False) -> Row:
    row = await connection.fetchrow(
        f"SELECT * FROM schedules WHERE {_OF_OWNER} AND id = $3 {'FOR UPDATE' if lock else ''}",  # noqa: S608
        who.tenant,
        who.user,
        parse_uuid(id, "schedule"),
    )
    if row is None:
        raise NotFound("no such schedule")
    return row


async def _audit(connection: Connection, who: Principal, action: str, row: Row, **more: Any) -> None:
    times = {"cron": row["cron"], "time_zone": row["time_zone"]} if row["on_event"] is None else {"on": row["on_event"]}
    details = {"schedule_id": str(row["id"]), **times, "enabled": row["enabled"]}
    await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], audit_entry(who, action, {**details, **more}))


def schedule_from_row(row: Row, now: datetime) -> Schedule:
    named = {name: row[name] for name in Schedule.model_fields if name in row}
    ahead: tuple[datetime, ...] = ()
    if row["enabled"] and row["next_at"] is not None:
        first = row["next_at"]
        ahead = (first, *islice(iterate_times(row["cron"], row["time_zone"], max(first, now)), SHOWN - 1))
    last = str(row["last_turn"]) if row["last_turn"] else None
    named = {**named, "on": row["on_event"]}
    return Schedule.model_validate({**named, "schedule_id": str(row["id"]), "next_runs": ahead, "last_task": last})


class ScheduleHandlers:
    """The handlers. `written`: called when a schedule was written, to wake the relay of news."""

    def __init__(self, schedules: PostgresSchedules, neighbours: Neighbours, written: Callable[[], None]) -> None:
        self._schedules, self._neighbours, self._written = schedules, neighbours, written

    async def add(self, call: Call, request: AddSchedule) -> Schedule:
        """Make a schedule.

        Raises:
            BadRequest: its times or its goal cannot be taken, there is no such agent, or the caller has too many schedules.
            Forbidden: it is an outside system that asks.
        """
        _refuse_outsiders(call)
        now = datetime.now(UTC)
        check_times(request.cron, request.time_zone, now)
        await self._check(call.who, request.goal, request.agent)
        return self._wrote(await self._schedules.add(call, request, now))

    async def add_trigger(self, call: Call, request: AddTrigger) -> Schedule:
        """Make a schedule whose runs are started by events.

        Raises:
            BadRequest: its events or its goal cannot be taken, there is no such agent, or the caller has too many schedules.
            Forbidden: it is an outside system that asks, or the caller may not read the nodes that are to start runs.
        """
        _refuse_outsiders(call)
        check_trigger(call.who, request.on, request.goal)
        await self._check(call.who, request.goal, request.agent)
        return self._wrote(await self._schedules.add(call, request, datetime.now(UTC)))

    async def get(self, call: Call, request: ScheduleRef) -> Schedule:
        return await self._schedules.get(call.who, request.schedule_id, datetime.now(UTC))

    async def list(self, call: Call, request: ListSchedules) -> Schedules:
        return await self._schedules.list(call.who, request, datetime.now(UTC))

    async def change(self, call: Call, request: ChangeSchedule) -> Schedule:
        """Change, pause or resume a schedule. Raises as `add` does, and `NotFound`."""
        _refuse_outsiders(call)
        await self._check(call.who, request.goal, request.agent)
        return self._wrote(await self._schedules.change(call, request, datetime.now(UTC)))

    async def remove(self, call: Call, request: ScheduleRef) -> Schedule:
        _refuse_outsiders(call)
        return self._wrote(await self._schedules.remove(call, request.schedule_id, datetime.now(UTC)))

    async def _check(self, who: Principal, goal: str | None, agent: str | None) -> None:
        if goal is not None:
            check_task_order(SubmitTurn(idempotency_key="-", text=goal, task=TaskOrder()))
            if "\x00" in goal:
                raise BadRequest("the goal holds a NUL character", field="goal")
        if agent is not None:
            try:
                await self._neighbours.agent(who, agent)
            except NotFound as error:
                raise BadRequest(f"there is no agent {agent!r}"[:200], field="agent") from error

    def _wrote(self, schedule: Schedule) -> Schedule:
        self._written()
        return schedule


class TriggerHandlers:
    """Follows the news that start runs.

    Args:
        expiry: seconds that a turn may wait before it fails.
        open_turns: turns of one tenant that may be open at once.
        started: called when a run was started.
    """

    def __init__(
        self,
        schedules: PostgresSchedules,
        neighbours: Neighbours,
        expiry: float,
        open_turns: int,
        started: Callable[[], None],
    ) -> None:
        self._schedules, self._neighbours, self._started = schedules, neighbours, started
        self._expiry, self._open_turns = expiry, open_turns

    async def on_constitution_changed(self, news: News, change: ConstitutionChanged) -> None:
        """Start the runs that wait for such a change, each for all of its nodes. A repeat starts nothing again."""
        nodes = [node for node in change.nodes if node.operation is not Operation.DELETE]
        if not nodes:
            return
        kept: dict[str, dict[str, ConstitutionNode | None]] = {}  # by rights, so that each node is read once for all of them

        async def read(one: Triggered) -> StartingEvent | None:
            fitting = [node for node in nodes if fits_news(one.on, node)]
            if not fitting:
                return None
            rights = f"{one.who.rights} {' '.join(sorted(one.who.scopes))}"
            return await self._read(one, fitting, kept.setdefault(rights, {}))

        await self._start_all(news, await self._schedules.triggers(news.tenant, "node_changed", None, turn_at_hand.get()), read)

    async def on_media_ready(self, news: News, medium: MediaReady) -> None:
        """Start the runs that wait for a file of this user. A repeat starts nothing again."""
        thing = ChangedThing(id=medium.media_id, title=_title(medium.name))
        label = label_medium(medium.kind, medium.media_id, medium.name)
        event = StartingEvent(event="file_arrived", things=(thing,), type=medium.kind, label=label)

        async def read(one: Triggered) -> StartingEvent | None:
            return event if one.on.type in (None, medium.kind) else None

        found = await self._schedules.triggers(news.tenant, "file_arrived", medium.user, turn_at_hand.get())
        await self._start_all(news, found, read)

    async def _start_all(
        self, news: News, found: Sequence[Triggered], read: Callable[[Triggered], Awaitable[StartingEvent | None]]
    ) -> None:
        """Start the runs of those that the event is for. One that cannot be started keeps no other back.

        Args:
            read: what a schedule is told of the event; `None` where the event is not for it.

        Raises:
            Unavailable: a store or a service is away, or there is no room; the event is told again.
            TimedOut: it did not answer in time.
        """
        again: ServiceError | None = None
        for one in found:
            try:
                event = await read(one)
                if event is not None and await self._schedules.start_on(news, one.id, event, self._expiry, self._open_turns):
                    self._started()
            except Busy as error:
                if news.deliveries < _TOLD_AGAIN:
                    again = error
                else:  # it may not hold up the news of other tenants for as long as there is no room
                    await self._schedules.leave_out(news, one.id)
            except (Unavailable, TimedOut) as error:
                again = error
            except Exception:
                log.exception("an event could not start the run of schedule %s", one.id)
        if again is not None:
            raise again

    async def _read(
        self, one: Triggered, fitting: Sequence[NodeNews], kept: dict[str, ConstitutionNode | None]
    ) -> StartingEvent | None:
        """The event as the schedule's owner may know it; `None` where there is nothing in it for them.

        Args:
            kept: nodes of the event as somebody of the same rights read them, to which this adds.
        """
        ids = list(dict.fromkeys(news.id for news in fitting[:_LOOKED_AT]))
        unread = [id for id in ids if id not in kept]
        kept.update(zip(unread, await asyncio.gather(*(self._node(one.who, id) for id in unread)), strict=True))
        found = [node for id in ids if (node := kept[id]) is not None and has_value(one.on, node)]
        if not found:
            return None
        types = {node.type for node in found}
        return StartingEvent(
            event="node_changed",
            things=tuple(ChangedThing(id=node.id, title=_title(node.title)) for node in found[:_NAMED]),
            type=types.pop() if len(types) == 1 else "",
            left_out=len(fitting[_LOOKED_AT:]) + len(found[_NAMED:]),
            label=Label(kind=OriginKind.TOOL, id=GET_NODE_TOOL.name),
        )

    async def _node(self, who: Principal, id: str) -> ConstitutionNode | None:
        """A node as somebody may read it; `None` where it is gone, or none of theirs."""
        if not GET_NODE_TOOL.open_to(who):
            return None
        try:
            return (await self._neighbours.ask(who, GET_NODE_TOOL.rpc, GetConstitutionNode(id=id))).node
        except (NotFound, Forbidden, Unauthorized):
            return None


def _title(text: str) -> str:
    """A title as it can be stored with a task."""
    return text.replace("\x00", "")[:500]


def check_trigger(who: Principal, on: Trigger, goal: str) -> None:
    """Hold the events of a schedule to what there is.

    Raises:
        BadRequest: there is no such type, a word cannot be stored, or the goal has a place for what the event does not tell.
        Forbidden: whoever asks may not read nodes.
    """
    for name in ("property", "value"):
        if "\x00" in (getattr(on, name) or ""):
            raise BadRequest(f"the {name} holds a NUL character", field=f"on.{name}")
    types = TYPES if on.event == "node_changed" else [kind.value for kind in MediaKind]
    if on.type is not None and on.type not in types:
        raise BadRequest(f"there is no such type; the types are: {', '.join(types)}", field="on.type")
    check_places(on.event, goal)
    if on.event == "node_changed" and not GET_NODE_TOOL.open_to(who):
        raise Forbidden("whoever is told of changed nodes has to have the right to read them")


_MOST_PLACES = 3
"""Times that a goal may name what an event tells: up to `_NAMED` ids stand in each place."""


def check_places(event: str, goal: str) -> None:
    """Raises `BadRequest`: the goal has a place for what the event does not tell, or too many for what it does."""
    if goal.count(PLACEHOLDERS[event]) > _MOST_PLACES:
        raise BadRequest(f"{PLACEHOLDERS[event]} may stand in a goal {_MOST_PLACES} times", field="goal")
    for other, place in PLACEHOLDERS.items():
        if other != event and place in goal:
            raise BadRequest(f"{place} stands for nothing where the event is {event}", field="goal")


def fits_news(on: Trigger, node: NodeNews) -> bool:
    """Whether a change is of the type and of the property that a trigger is for."""
    return on.type in (None, node.type) and (on.property is None or _plain(on.property) in map(_plain, node.changed))


def has_value(on: Trigger, node: ConstitutionNode) -> bool:
    """Whether a node has the value that a trigger is for, if it is for one; of a list one member has to be it."""
    if on.property is None or on.value is None:
        return True
    stated = node.model_dump(mode="json", by_alias=True)
    fields = {_plain(name): value for name, value in {**(node.properties or {}), **stated}.items()}
    held = fields.get(_plain(on.property))
    return any(_is_value(one, on.value) for one in (held if isinstance(held, list) else [held]))


def _plain(name: str) -> str:
    return name.replace("_", "").casefold()


def _is_value(held: Any, wanted: str) -> bool:
    if isinstance(held, int | float) and not isinstance(held, bool):
        try:
            return float(held) == float(wanted)
        except ValueError:
            return False
    return held is not None and str(held).casefold() == wanted.casefold()


def _refuse_outsiders(call: Call) -> None:
    if call.who.inbox is not None:
        raise Forbidden("a schedule is made and changed by its owner, and by no system on the bus")


async def serve_schedules(
    bus: Bus,
    schedules: PostgresSchedules,
    waits: PostgresWaits,
    neighbours: Neighbours,
    expiry: float,
    open_turns: int,
    started: Callable[[], None],
) -> None:
    """Wire them to the bus, start what is due, and let tasks go on whose waits are over.

    Args:
        expiry: seconds that a turn may wait before it fails.
        open_turns: turns of one tenant that may be open at once.
        started: called when a run was started, or a schedule written, to wake a worker and the relay of news.
    """
    handlers = ScheduleHandlers(schedules, neighbours, started)
    await serve(bus, SCHEDULE_ADD, handlers.add)
    await serve(bus, TRIGGER_ADD, handlers.add_trigger)
    await serve(bus, SCHEDULE_GET, handlers.get)
    await serve(bus, SCHEDULE_LIST, handlers.list)
    await serve(bus, SCHEDULE_CHANGE, handlers.change)
    await serve(bus, SCHEDULE_REMOVE, handlers.remove)
    triggers = TriggerHandlers(schedules, neighbours, expiry, open_turns, started)
    await follow(bus, CONSTITUTION_CHANGED, triggers.on_constitution_changed, workers=_FOLLOWED)
    await follow(bus, MEDIA_READY, triggers.on_media_ready, workers=_FOLLOWED)

    start_sweep(bus, "waits", partial(waits.end_due, _BATCH), started, SWEEP)
    start_sweep(bus, "schedules", partial(schedules.start_due, expiry, open_turns), started, SWEEP)
