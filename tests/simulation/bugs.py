"""Bugs that are planted, one at a time, to see that the simulation finds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from phronesis_bus import delivery
from phronesis_bus.outbox import BATCH, Relay
from phronesis_contracts.orchestrator import SubmitTurn, TurnProgress
from phronesis_contracts.orchestrator import turn_id as make_turn_id
from phronesis_orchestrator.approvals import store as approvals
from phronesis_orchestrator.turns import handlers, run
from phronesis_orchestrator.turns import store as turns

from . import statements
from .postgres import Row, Transaction, seconds
from .statements import STATEMENTS


@dataclass(frozen=True)
class Bug:
    """A bug, and how many seeds are enough to find it."""

    plant: Callable[[], AbstractContextManager[None]]
    seeds: int
    what: str


BUGS: dict[str, Bug] = {}


def bug(seeds: int) -> Callable[[Callable[[], Iterator[None]]], None]:
    """Register a bug under its function's name; the docstring says what it is."""

    def take(plant: Callable[[], Iterator[None]]) -> None:
        BUGS[plant.__name__] = Bug(contextmanager(plant), seeds, (plant.__doc__ or "").strip())

    return take


@contextmanager
def _statement(sql: str, apply: Callable[..., Any], **more: Any) -> Iterator[None]:
    """Let a statement do something else."""
    right = STATEMENTS[sql]
    STATEMENTS[sql] = replace(right, apply=apply, **more)
    try:
        yield
    finally:
        STATEMENTS[sql] = right


@contextmanager
def _attribute(of: object, name: str, wrong: object) -> Iterator[None]:
    right = getattr(of, name)
    setattr(of, name, wrong)
    try:
        yield
    finally:
        setattr(of, name, right)


def _fence(at: Transaction, id: UUID, fence: int) -> int:
    """The fence that a turn has by now, in place of the holder's."""
    row = at.get("turns", id)
    return row["fence"] if row is not None else fence


@bug(400)
def end_without_the_fence() -> Iterator[None]:
    """Ending a turn does not look at the fence."""

    def complete(at: Transaction, id: UUID, fence: int, *more: Any) -> Any:
        return statements.complete(at, id, _fence(at, id, fence), *more)

    def fail(at: Transaction, id: UUID, fence: int, *more: Any) -> Any:
        return statements.fail(at, id, _fence(at, id, fence), *more)

    with _statement(turns._COMPLETE, complete), _statement(turns._FAIL, fail):
        yield


@bug(40)
def result_without_the_fence() -> Iterator[None]:
    """The result of a step is written down whoever holds the claim."""

    def result(at: Transaction, id: UUID, step: str, fence: int, given: Row, intent: Row) -> Row | None:
        found = at.get("journal", id, step)
        if found is None:
            return statements.result(at, id, step, _fence(at, id, fence), given, intent)
        at.update("journal", (id, step), result=given)
        return {"true": True}

    with _statement(turns._RESULT, result):
        yield


@bug(40)
def renewal_of_anybodys_lease() -> Iterator[None]:
    """A lease is renewed by the turn's id alone."""

    def renew(at: Transaction, worker: str, ids: list[UUID], fences: list[int], lease: float) -> list[Row]:
        running = [row for id in ids if (row := at.get("turns", id)) is not None and row["status"] == "running"]
        for row in running:
            at.update("turns", (row["id"],), lease_until=at.now + seconds(lease))
        return running

    with _statement(turns._RENEW, renew):
        yield


@bug(300)
def giving_back_anybodys_claim() -> Iterator[None]:
    """A claim is given back, or put back to wait, by the turn's id alone."""

    def give_back(at: Transaction, id: UUID, fence: int, *more: Any) -> None:
        statements.give_back(at, id, _fence(at, id, fence), *more)

    def put_back(at: Transaction, id: UUID, fence: int, *more: Any) -> Any:
        return statements.put_back(at, id, _fence(at, id, fence), *more)

    with _statement(turns._GIVE_BACK, give_back), _statement(turns._PUT_BACK, put_back):
        yield


@bug(40)
def claim_not_looked_at_under_the_lock() -> Iterator[None]:
    """Whether a turn is free is decided before its row is locked, and not again behind it."""

    def claim(at: Transaction, seen: Any, *more: Any) -> Any:
        with _attribute(statements, "_is_free", lambda row, now: True):
            return statements.claim(at, seen, *more)

    with _statement(turns._CLAIM, claim):
        yield


@bug(40)
def claim_out_of_order() -> Iterator[None]:
    """Any open turn of a conversation is claimed, not the first."""

    def look(at: Transaction, *more: Any) -> list[tuple[Any, ...]]:
        return [(False, 0, row["created_at"], row["id"]) for row in at.rows("turns") if statements._is_free(row, at.now)]

    with _statement(turns._CLAIM, statements.claim, look=look):
        yield


@bug(40)
def slot_taken_out_of_order() -> Iterator[None]:
    """A new turn has a free slot though an earlier one of its conversation is open, or somebody waits."""

    def insert(at: Transaction, id: UUID, *more: Any) -> Row:
        *_, worker, lease = more
        row = statements.insert_turn(at, id, *more)
        if worker is None or row["status"] == "running":
            return row
        at.update("turns", (id,), status="running", worker=worker, lease_until=at.now + seconds(lease), fence=1)
        return {**row, **at.update("turns", (id,), attempts=1, idle_claims=1)}

    with _statement(turns._INSERT, insert):
        yield


@bug(200)
def place_without_the_lock() -> Iterator[None]:
    """A turn's place in its conversation is read, and counted up, without a lock."""

    def place(at: Transaction, id: UUID, tenant: str, user: str) -> Row | None:
        row = at.get("conversations", id)
        if row is None:
            return None
        at.server.tables["conversations"][(id,)] = {**row, "next_turn": row["next_turn"] + 1}
        highest = max((turn["sequence"] for turn in at.rows("turns") if turn["conversation_id"] == id), default=0)
        return {"sequence": highest + 1, "agent": row["agent"]}

    with _statement(turns._PLACE, place), _attribute(Transaction, "insert", _insert_freely):
        yield


_insert = Transaction.insert


def _insert_freely(self: Transaction, table: str, key: Any, row: Row, unique: Any = ()) -> None:
    _insert(self, table, key, row, () if table == "turns" else unique)


@bug(400)
def going_on_without_the_lock() -> Iterator[None]:
    """A turn that waited keeps its place where no later one is committed, without waiting for one that is being accepted."""

    def resume(at: Transaction, id: UUID, expired: datetime) -> None:
        row = at.get("turns", id)
        found = None if row is None else at.get("conversations", row["conversation_id"])
        if row is None or found is None or row["status"] != "waiting":
            return
        if found["next_turn"] > row["sequence"] + 1:
            statements.resume(at, id, expired)
        else:
            at.update("turns", (id,), status="queued", expires_at=at.now + (row["expires_at"] - expired))

    with _statement(approvals.RESUME, resume):
        yield


@bug(40)
def cancelling_without_the_fence() -> Iterator[None]:
    """Cancelling a turn leaves the fence as it is."""

    def cancel(at: Transaction, id: UUID, tenant: str, user: str) -> Row | None:
        row = statements.cancel(at, id, tenant, user)
        return None if row is None else at.update("turns", (id,), fence=row["fence"] - 1)

    with _statement(turns._CANCEL, cancel):
        yield


@bug(40)
def journal_not_looked_up() -> Iterator[None]:
    """A step whose result is there is made again."""

    def intend(at: Transaction, *more: Any) -> Row | None:
        found = statements.intend(at, *more)
        return None if found is None else {"result": None, "intents": found["intents"]}

    with _statement(turns._INTEND, intend), _statement(turns._KNOWN, lambda at, id, step: None):
        yield


@bug(40)
def results_of_models_not_looked_up() -> Iterator[None]:
    """A model's call whose result is there is made again."""
    with _statement(turns._KNOWN, lambda at, id, step: None):
        yield


@bug(60)
def begun_calls_not_counted() -> Iterator[None]:
    """What may be begun once is begun again: nobody counts how often it was meant to be."""

    def intend(at: Transaction, *more: Any) -> Row | None:
        found = statements.intend(at, *more)
        return None if found is None else {"result": found["result"], "intents": 1}

    with _statement(turns._INTEND, intend):
        yield


@bug(40)
def idle_claims_miscounted() -> Iterator[None]:
    """A turn that is put back for what does not answer counts as one that gets nowhere."""

    def put_back(at: Transaction, id: UUID, *more: Any) -> Row | None:
        row = at.get("turns", id)
        done = statements.put_back(at, id, *more)
        if done is not None and row is not None:
            at.update("turns", (id,), idle_claims=row["idle_claims"])
        return done

    with _statement(turns._PUT_BACK, put_back):
        yield


@bug(40)
def key_of_a_turn_ignored() -> Iterator[None]:
    """Each message is a turn of its own, whatever its key."""

    with _attribute(handlers, "turn_id", lambda tenant, user, key: str(uuid4())):
        yield


@bug(40)
def key_of_a_write_ignored() -> Iterator[None]:
    """An owner does a write again whose key was there before."""

    def begin(at: Transaction, tenant: str, service: str, key: str, digest: str) -> Row:
        return statements.begin_write(at, tenant, service, key, digest) or {"true": True}

    sql = next(sql for sql, known in STATEMENTS.items() if known.apply is statements.begin_write)
    with _statement(sql, begin):
        yield


@bug(40)
def accepted_before_the_commit() -> Iterator[None]:
    """A turn is said to be accepted before its row is committed."""
    turn = handlers.TurnHandlers.turn

    async def intake(self: handlers.TurnHandlers, call: Any, request: SubmitTurn) -> None:
        id = make_turn_id(call.who.tenant, call.who.user, request.idempotency_key)
        await self._progress(call.who, TurnProgress(turn_id=id, kind="accepted", conversation_id=id))
        await turn(self, call, request)

    with _attribute(handlers.TurnHandlers, "turn", intake):
        yield


@bug(40)
def acknowledged_before_the_work() -> Iterator[None]:
    """A message is acknowledged before the work on it."""
    handle = delivery.handle_message

    async def early(bus: Any, name: str, durable: str, opened: Any, msg: Any) -> None:
        await msg._client.publish(msg.reply)
        await handle(bus, name, durable, opened, msg)

    with _attribute(delivery, "handle_message", early):
        yield


@bug(40)
def outbox_emptied_before_sending() -> Iterator[None]:
    """A row leaves the outbox before its news is stored."""

    async def send(self: Any) -> bool:
        rows = await self._outbox.unsent(BATCH)
        if rows:
            await self._outbox.sent([row.id for row in rows])
            for row in rows:
                await self._publish(row)
        return False

    with _attribute(Relay, "_send", send):
        yield


@bug(200)
def outbox_read_before_the_commit() -> Iterator[None]:
    """News is sent of what may yet be rolled back."""

    def read(at: Transaction, limit: int) -> list[Row]:
        rows = statements.read_outbox(at, limit)
        for session in at.server.sessions:
            if session.transaction is not None:
                written = session.transaction.writes.items()
                rows += [row for (table, _), row in written if table == "outbox" and row is not None]
        return rows[:limit]

    sql = next(sql for sql, known in STATEMENTS.items() if known.apply is statements.read_outbox)
    with _statement(sql, read):
        yield


@bug(40)
def queue_not_swept() -> Iterator[None]:
    """A worker looks at the queue when it is woken, and at no other time."""
    with _attribute(run, "SWEEP", 1e6):
        yield
