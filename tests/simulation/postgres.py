"""A model of a Postgres server, and of the driver's pool of connections to it, for the statements in `statements.py`.

What it keeps of the real one: READ COMMITTED (each statement sees what is committed when it begins, and what its own
transaction wrote), row locks that are waited for or skipped, unique keys that wait for whoever is inserting the same,
`now()` that is the beginning of the transaction, row-level security, deadlocks that are found, statements that are
cancelled, and commits whose outcome the client does not learn.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg

Row = dict[str, Any]
OPEN = ("queued", "running", "waiting")
"""States of a turn that has not ended."""
Key = tuple[Any, ...]
Change = tuple[str, Key, Row | None, Row | None]
"""Table, key, and the row before and after."""
_BEGIN = re.compile(r"BEGIN( READ ONLY)?; SET LOCAL phronesis\.tenant = '(.*)'$")


class Blocked(Exception):
    """Another transaction holds what the statement needs."""

    def __init__(self, holder: Transaction) -> None:
        self.holder = holder


class Records(Row):
    """A row that reads as a tuple too, as the driver's do."""

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        return iter(self.values())


@dataclass(eq=False)
class Transaction:
    """A transaction at work; statements read and write through it."""

    server: Server
    reach: str
    reads_only: bool
    now: datetime
    writes: dict[tuple[str, Key], Row | None] = field(default_factory=dict)
    locks: list[tuple[str, Key]] = field(default_factory=list)
    waiting: list[Session] = field(default_factory=list)
    """Sessions that wait for its end."""
    failed: bool = False
    over: bool = False

    def rows(self, table: str) -> list[Row]:
        """The rows of a table that it may see, oldest first."""
        stored = self.server.tables.setdefault(table, {})
        if self.writes:
            stored = {**stored, **{key: row for (of, key), row in self.writes.items() if of == table}}  # type: ignore[dict-item]
        if self.reach == "*":
            return [row for row in stored.values() if row is not None]
        return [row for row in stored.values() if row is not None and row["tenant"] == self.reach]

    def get(self, table: str, *key: Any) -> Row | None:
        row = self._find(table, key)
        return row if row is not None and self.reach in ("*", row["tenant"]) else None

    def _find(self, table: str, key: Key) -> Row | None:
        place = (table, key)
        return self.writes[place] if place in self.writes else self.server.tables.setdefault(table, {}).get(key)

    def lock(self, table: str, *key: Any) -> None:
        """Lock a row, or a unique key. Raises `Blocked`."""
        holder = self.server.locks.get((table, key))
        if holder is None:
            self.server.locks[table, key] = self
            self.locks.append((table, key))
        elif holder is not self:
            raise Blocked(holder)

    def is_locked(self, table: str, *key: Any) -> bool:
        """Whether somebody else holds it."""
        return self.server.locks.get((table, key), self) is not self

    def update(self, table: str, key: Key, unique: Iterable[tuple[str, Key]] = (), **values: Any) -> Row:
        """Change a row that was found; `unique`, and what it raises, as of `insert`: the keys that change."""
        self._check_writable()
        self.lock(table, *key)
        row = self._find(table, key)
        assert row is not None
        self._check_unique(table, unique, row)
        changed = {**row, **values}
        self.writes[table, key] = changed
        return changed

    def insert(self, table: str, key: Key, row: Row, unique: Iterable[tuple[str, Key]] = ()) -> None:
        """Insert a row. Raises `Blocked`, and the driver's `UniqueViolationError`.

        Args:
            unique: names and values of its other unique keys; each named as `column,column` of the table.
        """
        self._check_writable()
        self.lock(table, *key)
        if self._find(table, key) is not None:
            raise asyncpg.UniqueViolationError(f"duplicate key in {table}")
        self._check_unique(table, unique)
        if self.reach not in ("*", row["tenant"]):
            raise asyncpg.InsufficientPrivilegeError(f"row-level security of {table}")
        self.writes[table, key] = row

    def delete(self, table: str, key: Key) -> None:
        self._check_writable()
        self.lock(table, *key)
        self.writes[table, key] = None

    def _check_unique(self, table: str, unique: Iterable[tuple[str, Key]], itself: Row | None = None) -> None:
        for columns, value in unique:
            self.lock(f"{table}({columns})", *value)
            names = columns.split(",")
            if any(old is not itself and tuple(old[name] for name in names) == value for old in self._all(table)):
                raise asyncpg.UniqueViolationError(f"duplicate key in {table} ({columns})")

    def _all(self, table: str) -> list[Row]:
        reach, self.reach = self.reach, "*"
        try:
            return self.rows(table)
        finally:
            self.reach = reach

    def _check_writable(self) -> None:
        if self.reads_only:
            raise asyncpg.ReadOnlySQLTransactionError("cannot write in a read-only transaction")


@dataclass(eq=False)
class Operation:
    sql: str
    arguments: tuple[Any, ...]
    reply: asyncio.Future[Any]
    cancelled: bool = False
    snapshot: Any = None
    looked: bool = False


@dataclass(eq=False)
class Session:
    """A connection as the server sees it: what it is asked, one after the other."""

    owner: object
    transaction: Transaction | None = None
    sent: list[Operation] = field(default_factory=list)
    """Statements under way."""
    asked: list[Operation] = field(default_factory=list)
    blocked_on: Transaction | None = None
    resting: bool = False
    """Between looking at the rows and locking them."""
    closed: bool = False


@dataclass(frozen=True)
class Statement:
    """What one SQL statement does: `look` reads what it decides by, if that happens ahead of `apply`."""

    apply: Callable[..., Any]
    look: Callable[..., Any] | None = None


class Wire:
    """The way between clients and the server: without delay or loss, but never within the step that asks."""

    def deliver(self, callback: Callable[..., None], *args: Any) -> None:
        """Bring a statement to the server."""
        asyncio.get_running_loop().call_soon(callback, *args)

    rest = wake = deliver
    """Let a moment pass inside a statement; go on with a session that waited."""

    def loses(self, when: str) -> bool:
        """Whether the connection breaks `before` or `after` a statement."""
        return False

    def skips(self) -> bool:
        """Whether a statement whose caller was cancelled is not run any more."""
        return True

    def refuses(self) -> bool:
        """Whether the server takes no connections."""
        return False


class Server:
    """The server: its tables, and who holds which locks.

    Args:
        statements: what it can do, by the text of each statement.
        clock: seconds since the epoch.
    """

    def __init__(self, statements: dict[str, Statement], clock: Callable[[], float], wire: Wire | None = None) -> None:
        self.statements = statements
        self.tables: dict[str, dict[Key, Row]] = {}
        self.locks: dict[tuple[str, Key], Transaction] = {}
        self.sessions: list[Session] = []
        self.committed: list[Callable[[object, list[Change]], None]] = []
        """Called at each commit with whose it was, and what it changed."""
        self.commits = 0
        self._clock = clock
        self._wire = wire or Wire()
        self._sequence = 0

    def next_id(self) -> int:
        """A number that no rollback gives back."""
        self._sequence += 1
        return self._sequence

    def connect(self, owner: object) -> Session:
        if self._wire.refuses():
            raise ConnectionRefusedError("the server takes no connections")
        session = Session(owner)
        self.sessions.append(session)
        return session

    def receive(self, session: Session, sql: str, arguments: tuple[Any, ...], reply: asyncio.Future[Any]) -> Operation:
        """Take a statement from a client. The answer comes by the future."""
        operation = Operation(sql, arguments, reply)
        session.sent.append(operation)
        self._wire.deliver(self._arrived, session)
        return operation

    def begin(self, session: Session, sql: str) -> str:
        """Begin a transaction at once."""
        begins = _BEGIN.match(sql)
        assert begins is not None, sql
        now = datetime.fromtimestamp(self._clock(), UTC)
        session.transaction = Transaction(self, begins[2].replace("''", "'"), begins[1] is not None, now)
        return "SET"

    def cancel(self, session: Session, operation: Operation) -> None:
        """The client does not want the answer any more."""
        operation.cancelled = True
        if session.blocked_on is not None and session.asked and session.asked[0] is operation:
            session.blocked_on.waiting.remove(session)
            session.blocked_on = None
            self._wire.wake(self._work, session)

    def close(self, session: Session) -> None:
        """The connection is gone: what it has not committed did not happen."""
        if session.closed:
            return
        session.closed = True
        self.sessions.remove(session)
        if session.blocked_on is not None:
            session.blocked_on.waiting.remove(session)
            session.blocked_on = None
        if session.transaction is not None:
            self._end(session, commit=False)
        for operation in session.asked:
            _fail(operation.reply, asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation"))
        session.asked.clear()

    def close_all(self, owner: object | None = None) -> None:
        """Close the connections of one client, or, where the server goes down, of all."""
        for session in [s for s in self.sessions if owner is None or s.owner is owner]:
            self.close(session)

    def _arrived(self, session: Session) -> None:
        """What was sent comes in the order in which it was sent."""
        operation = session.sent.pop(0)
        if not session.closed and self._wire.loses("before"):
            self.close(session)
        if session.closed:
            _fail(operation.reply, asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation"))
            return
        session.asked.append(operation)
        if len(session.asked) == 1:
            self._work(session)

    def _work(self, session: Session) -> None:
        while session.asked and session.blocked_on is None and not session.resting and not session.closed:
            operation = session.asked[0]
            try:
                result = self._run(session, operation)
            except Blocked as blocked:
                if self._closes_circle(session, blocked.holder):
                    self._refuse(session, operation, asyncpg.DeadlockDetectedError("deadlock detected"))
                    continue
                session.blocked_on = blocked.holder
                blocked.holder.waiting.append(session)
                return
            except _Resting:
                session.resting = True
                self._wire.rest(self._rested, session)
                continue
            except asyncpg.PostgresError as error:
                self._refuse(session, operation, error)
                continue
            except Exception as error:  # the model itself is at fault: whoever asks learns it, and so does the loop
                self._refuse(session, operation, error)
                raise
            session.asked.pop(0)
            if self._wire.loses("after"):
                _fail(operation.reply, asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation"))
                self.close(session)
            elif not operation.reply.done():
                operation.reply.set_result(result)

    def _rested(self, session: Session) -> None:
        session.resting = False
        self._work(session)

    def _refuse(self, session: Session, operation: Operation, error: Exception) -> None:
        session.asked.pop(0)
        if session.transaction is not None:
            session.transaction.failed = True
        _fail(operation.reply, error)

    def _run(self, session: Session, operation: Operation) -> Any:
        sql, transaction = operation.sql, session.transaction
        if sql == "COMMIT" or sql == "ROLLBACK":
            commits = sql == "COMMIT" and transaction is not None and not transaction.failed
            if transaction is not None:
                self._end(session, commit=commits)
            return "COMMIT" if commits else "ROLLBACK"
        if operation.cancelled and self._wire.skips():
            raise asyncpg.QueryCanceledError("canceling statement due to user request")
        if sql == "SELECT 1":
            return [Records(one=1)]
        if transaction is None:
            raise asyncpg.InternalServerError("the model runs no statement outside a transaction")
        if transaction.failed:
            raise asyncpg.InFailedSQLTransactionError("current transaction is aborted")
        return self._apply(transaction, operation)

    def _apply(self, transaction: Transaction, operation: Operation) -> Any:
        statement = self.statements.get(operation.sql)
        if statement is None:
            raise NotImplementedError(f"the model of Postgres does not know this statement yet:\n{operation.sql}")
        seen: tuple[Any, ...] = ()
        if statement.look is not None:
            if not operation.looked:
                operation.looked, operation.snapshot = True, statement.look(transaction, *operation.arguments)
                raise _Resting
            seen = (operation.snapshot,)
        before = dict(transaction.writes)
        try:
            result = statement.apply(transaction, *seen, *operation.arguments)
        except BaseException:
            transaction.writes = before
            raise
        return [] if result is None else result if isinstance(result, list) else [result]

    def _closes_circle(self, session: Session, holder: Transaction) -> bool:
        seen = holder
        while True:
            if seen is session.transaction:
                return True
            next_session = next((s for s in self.sessions if s.transaction is seen), None)
            if next_session is None or next_session.blocked_on is None:
                return False
            seen = next_session.blocked_on

    def _end(self, session: Session, *, commit: bool) -> None:
        transaction, session.transaction = session.transaction, None
        assert transaction is not None
        transaction.over = True
        for place in transaction.locks:
            del self.locks[place]
        if commit and transaction.writes:
            self.commits += 1
            changes = []
            for (table, key), row in transaction.writes.items():
                rows = self.tables.setdefault(table, {})
                changes.append((table, key, rows.get(key), row))
                if row is None:
                    rows.pop(key, None)
                else:
                    rows[key] = row
            for hear in self.committed:
                hear(session.owner, changes)
        for waiting in transaction.waiting:
            waiting.blocked_on = None
            self._wire.wake(self._work, waiting)
        transaction.waiting = []


class _Resting(Exception):
    """The statement has looked at the rows, and takes a moment before it locks them."""


def _fail(reply: asyncio.Future[Any], error: Exception) -> None:
    if not reply.done():
        reply.set_exception(error)
        reply.exception()  # a client that is gone reads it never


class Connection:
    """A connection as the driver gives it to a client."""

    def __init__(self, server: Server, owner: object) -> None:
        self._server = server
        self._session = server.connect(owner)

    @property
    def usable(self) -> bool:
        session = self._session
        return not (session.closed or session.transaction or session.asked or session.sent)

    async def execute(self, sql: str, *arguments: Any) -> str:
        answer = await self._ask(sql, arguments)
        return answer if isinstance(answer, str) else f"DONE {len(answer)}"

    async def fetch(self, sql: str, *arguments: Any) -> list[Row]:
        rows: list[Row] = await self._ask(sql, arguments)
        return rows

    async def fetchrow(self, sql: str, *arguments: Any) -> Row | None:
        rows = await self._ask(sql, arguments)
        return rows[0] if rows else None

    async def fetchval(self, sql: str, *arguments: Any) -> Any:
        rows = await self._ask(sql, arguments)
        return next(iter(rows[0].values())) if rows else None

    def terminate(self) -> None:
        self._server.close(self._session)

    async def _ask(self, sql: str, arguments: tuple[Any, ...]) -> Any:
        if self._session.closed:
            raise asyncpg.InterfaceError("connection is closed")
        if sql.startswith("BEGIN"):
            return self._server.begin(self._session, sql)  # on a connection from the pool, so nothing is before it
        reply = asyncio.get_running_loop().create_future()
        operation = self._server.receive(self._session, sql, arguments, reply)
        try:
            return await reply
        except asyncio.CancelledError:
            self._server.cancel(self._session, operation)
            raise


class Pool:
    """The driver's pool. `owner`: the client that all its connections are of."""

    def __init__(self, server: Server, owner: object, size: int = 100) -> None:
        self._server, self._owner = server, owner
        self._free: list[Connection] = []
        self._places = asyncio.Semaphore(size)

    async def acquire(self, *, timeout: float) -> Connection:
        async with asyncio.timeout(timeout):
            await self._places.acquire()
        try:
            while self._free:
                connection = self._free.pop()
                if connection.usable:
                    return connection
            return Connection(self._server, self._owner)
        except BaseException:
            self._places.release()
            raise

    async def release(self, connection: Connection, *, timeout: float) -> None:
        if connection.usable:
            self._free.append(connection)
        else:
            connection.terminate()
        self._places.release()


def seconds(value: float) -> timedelta:
    """The interval of so many seconds."""
    return timedelta(seconds=value)
