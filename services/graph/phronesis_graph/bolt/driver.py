"""The store over Bolt: one driver for each user, one session and one transaction for each operation, errors made ours."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, TypeVar

from neo4j import (
    READ_ACCESS,
    AsyncDriver,
    AsyncGraphDatabase,
    AsyncManagedTransaction,
    AsyncTransaction,
    Record,
    ResultSummary,
    unit_of_work,
)
from neo4j.exceptions import ConstraintError, DriverError, Neo4jError, TransientError
from pydantic import SecretStr

from phronesis_bus import record_span
from phronesis_contracts import Internal, ServiceError, TimedOut, Unavailable

from ..settings import Dialect, GraphSettings

log = logging.getLogger(__name__)

TOO_LONG = "Neo.ClientError.Transaction.TransactionTimedOut"
_NOT_OURS = ("Neo.ClientError.Security.", "Neo.ClientError.Database.")


class driver_errors:
    """Makes the driver's errors ours. No text of the store leaves: it may hold data."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        match error:
            case None | ServiceError():
                return
            case TimeoutError():
                raise TimedOut("the graph store did not answer in time") from error
            case TransientError() | ConstraintError():
                raise Unavailable("the graph store is busy with the same nodes", retry_after=1) from error
            case Neo4jError() if (error.code or "").startswith(TOO_LONG):
                raise TimedOut("the graph store did not answer in time") from error
            case Neo4jError() if (error.code or "").startswith(_NOT_OURS):
                log.error("the graph store refuses us: %s", error.code)
                raise Unavailable("the graph store does not let the service in", retry_after=5) from error
            case Neo4jError():
                log.error("the graph store did not take a statement: %s", error.code)
                raise Internal("the graph store did not take a statement") from error
            case DriverError() | OSError():
                raise Unavailable("the graph store does not answer", retry_after=1) from error


T = TypeVar("T")
Row = dict[str, Any]

_TRIES = 8
_FIRST_PAUSE = 0.02
"""Seconds before the second try of a write; doubled for each further one."""
_FEW = 100
"""Records of a caller's statement that are fetched at once."""
_QUIET: dict[str, dict[str, Any]] = {Dialect.NEO4J: {"notifications_min_severity": "OFF"}}
"""Neo4j remarks on each label and property that no node has yet; ArcadeDB's version of the protocol has no remarks."""


class Transaction:
    """One transaction. Statements are constants of this package; whatever comes from outside is a parameter."""

    def __init__(self, inner: AsyncManagedTransaction | AsyncTransaction, system: str = Dialect.NEO4J) -> None:
        self._inner, self._system = inner, system

    async def rows(self, statement: str, **parameters: object) -> list[Row]:
        with self._statement_span(statement):
            result = await self._inner.run(statement, parameters)
            return await result.data()

    async def taken(self, statement: str, parameters: Row, take: Callable[[Record], bool]) -> ResultSummary:
        """Run a statement and hand each record to `take`, until it has enough; the rest is dropped."""
        with self._statement_span(statement):
            result = await self._inner.run(statement, parameters)
            async for record in result:
                if not take(record):
                    break
            return await result.consume()

    async def created(self, statement: str, **parameters: object) -> int:
        """Run a statement and count the relationships that it created."""
        with self._statement_span(statement):
            result = await self._inner.run(statement, parameters)
            return (await result.consume()).counters.relationships_created

    @contextmanager
    def _statement_span(self, statement: str) -> Iterator[None]:
        """A span for a statement: its first word, and nothing of its text or its values."""
        began, failed = time.perf_counter(), None
        operation = statement.split(None, 1)[0]
        try:
            yield
        except BaseException as error:
            failed = getattr(error, "code", None) or type(error).__name__
            raise
        finally:
            seconds = time.perf_counter() - began
            record_span(operation, seconds, failed, db__system__name=self._system, db__operation__name=operation)


class Bolt:
    """The store. It need not be there yet: each use finds that out by itself."""

    def __init__(self, writer: AsyncDriver, reader: AsyncDriver, settings: GraphSettings) -> None:
        self._writer, self._reader, self._settings = writer, reader, settings
        self.query_timeout = settings.query_timeout

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: GraphSettings) -> AsyncIterator[Bolt]:
        async with AsyncExitStack() as stack:
            writer = await stack.enter_async_context(_driver(settings, settings.login()))
            login = settings.read_login()
            reader = await stack.enter_async_context(_driver(settings, login)) if login else writer
            yield cls(writer, reader, settings)

    async def read(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `work` in one read transaction, as the reading user. Raises `Unavailable`, `TimedOut`."""
        limit = self._settings.read_timeout

        async def once() -> T:
            async with self._reader.session(database=self._settings.database) as session:
                return await session.execute_read(_in_transaction(work, limit, self._settings.dialect))

        return await _retry(once, limit)

    async def ask(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `work` in one read transaction, as the reading user, within the time of a query, and never again.

        It is for statements of a caller's: one that brought the store to its limits would do so with each try. Raises
        `Unavailable` (the store is down or refuses), `TimedOut` (it did not answer in time).
        """
        limit = self.query_timeout
        with driver_errors():
            async with (
                asyncio.timeout(limit),
                self._reader.session(
                    database=self._settings.database, default_access_mode=READ_ACCESS, fetch_size=_FEW
                ) as session,
                await session.begin_transaction(timeout=limit) as inner,
            ):
                result = await work(Transaction(inner, self._settings.dialect))
                await inner.rollback()  # left to itself it would commit
                return result

    async def write(self, work: Callable[[Transaction], Awaitable[T]], limit: float | None = None) -> T:
        """Run `work` in one write transaction, within `limit` seconds, as set by default; all of it takes effect, or nothing.

        It is tried again, a few times, where it met another writer. All writes merge on unique keys, so a broken constraint is
        such a meeting too. Raises `Unavailable` (the store is down or refuses, or the outcome of the commit is not known),
        `TimedOut` (it did not answer in time).
        """
        limit = self._settings.write_timeout if limit is None else limit

        async def once() -> T:
            # A session's own auto-commit is not atomic on ArcadeDB: a failing statement leaves part of its writes.
            async with self._writer.session(database=self._settings.database) as session:
                return await session.execute_write(_in_transaction(work, limit, self._settings.dialect))

        return await _retry(once, limit)


def _driver(settings: GraphSettings, login: tuple[str, SecretStr] | None) -> AsyncDriver:
    return AsyncGraphDatabase.driver(
        settings.url,
        auth=(login[0], login[1].get_secret_value()) if login else None,
        connection_timeout=2,
        connection_acquisition_timeout=2,
        liveness_check_timeout=5,
        max_connection_pool_size=settings.pool_size,
        max_transaction_retry_time=0,  # tries are counted here, where a broken constraint counts as one
        user_agent="phronesis-graph",
        **_QUIET.get(settings.dialect, {}),
    )


def _in_transaction(
    work: Callable[[Transaction], Awaitable[T]], limit: float, system: str
) -> Callable[[AsyncManagedTransaction], Awaitable[T]]:
    @unit_of_work(timeout=limit)
    async def run(inner: AsyncManagedTransaction) -> T:
        return await work(Transaction(inner, system))

    return run


async def _retry(once: Callable[[], Awaitable[T]], limit: float) -> T:
    with driver_errors():
        async with asyncio.timeout(limit):
            for attempt in range(_TRIES - 1):
                try:
                    return await once()
                except (Neo4jError, DriverError) as error:
                    if not _is_transient(error, attempt):
                        raise
                    await asyncio.sleep(_FIRST_PAUSE * 2**attempt * random.uniform(0.5, 1.5))
            return await once()


def _is_transient(error: Neo4jError | DriverError, attempt: int) -> bool:
    if isinstance(error, (TransientError, ConstraintError)):
        return "OutOfMemory" not in (error.code or "")  # what filled the store's memory would fill it again
    # A connection that died while it was idle; the driver has dropped its like when the first one failed.
    return isinstance(error, DriverError) and error.is_retryable() and attempt == 0
