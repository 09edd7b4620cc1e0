"""A pool of connections to one schema: each transaction reaches one tenant's rows, and driver errors leave it as ours."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import asyncpg

from phronesis_bus import Metrics, Tracing, record_span
from phronesis_bus.metrics import POOL, POOL_MOST, POOL_WAITING
from phronesis_contracts import ServiceError, Unavailable

from .settings import PostgresSettings

SETTING: Final = "phronesis.tenant"
"""The setting of Postgres that the policies read; made for one transaction and gone with it."""


class _Every(Enum):
    TENANT = "*"


EVERY_TENANT: Final = _Every.TENANT
"""In place of a tenant: the platform's own work over all of them. No tenant's name, whatever it says, becomes this."""
Reach: TypeAlias = str | Literal[_Every.TENANT]


def reach_of(*tenants: str) -> Reach:
    """The tenant whose rows all these are, or every tenant where they are of several."""
    return tenants[0] if len(set(tenants)) == 1 else EVERY_TENANT


def begin_statements(tenant: Reach, *, writes: bool) -> str:
    """The statements that begin a transaction for a tenant, in one round trip.

    Raises:
        ValueError: no tenant can have this name, and the policies would take it for something else.
    """
    if tenant is EVERY_TENANT:
        name = tenant.value
    elif not tenant or tenant == EVERY_TENANT.value or "\0" in tenant:
        raise ValueError("not the name of a tenant")
    else:
        name = tenant.replace("'", "''")
    return f"BEGIN{'' if writes else ' READ ONLY'}; SET LOCAL {SETTING} = '{name}'"


log = logging.getLogger(__name__)

GONE = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # seen on a connection whose server died while it was idle
    asyncpg.OperatorInterventionError,  # shut down, starting, cancelled, crashed
    asyncpg.InsufficientResourcesError,  # connections, memory, disk
    asyncpg.PostgresSystemError,
    asyncpg.PostgresIOError,
    asyncpg.ReadOnlySQLTransactionError,  # the primary has become a replica
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.LockNotAvailableError,
    OSError,
    TimeoutError,
)
_NOT_OURS = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError)


@contextmanager
def translate_errors() -> Iterator[None]:
    """Errors of the driver inside the block leave it as ours.

    Raises:
        Unavailable: the database is down, refuses, or does not answer in time.
    """
    try:
        yield
    except ServiceError:
        raise
    except _NOT_OURS as error:
        log.error("the database does not let the service in: %s", error.sqlstate)
        raise Unavailable("the database does not let the service in", retry_after=5) from error
    except GONE as error:
        away = Unavailable("the database does not answer", retry_after=1)
        away.dependency = "postgres"
        raise away from error


if TYPE_CHECKING:
    Connection: TypeAlias = asyncpg.pool.PoolConnectionProxy[asyncpg.Record]
else:
    Connection = asyncpg.pool.PoolConnectionProxy


_ACQUIRE, _CONNECT, _RELEASE = 5.0, 3.0, 0.25
"""Seconds to get a connection, to make one, and to wait for the end of what failed on one; then it is dropped."""
_VANISHED = {
    "statement_timeout": "60s",
    "idle_in_transaction_session_timeout": "60s",
    "tcp_user_timeout": "30s",
    "tcp_keepalives_idle": "15s",
    "tcp_keepalives_interval": "5s",
    "tcp_keepalives_count": "3",
}
"""How long the server keeps the locks of a client that vanished without a word; by default that is hours."""
_ABOVE = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"


class _Shared:
    """The transaction of a block, whose connection the block's reads have one at a time.

    What a read failed on is given to no other: the transaction may be over. It ends with the block, whatever still runs then.
    """

    def __init__(self, database: Database, tenant: Reach, connection: Connection) -> None:
        self._whose = database, tenant
        self._connection = connection
        self._open = self._free = True

    def take(self, database: Database, tenant: Reach) -> Connection | None:
        """The connection, where it is free and of this database and tenant; `give_back` follows a read that went well."""
        if not (self._open and self._free) or self._whose != (database, tenant):
            return None
        self._free = False
        return self._connection

    def give_back(self) -> None:
        self._free = True

    def close(self) -> None:
        self._open = False


_SHARED: ContextVar[_Shared | None] = ContextVar("_SHARED", default=None)


class Database:
    """One service's schema. `open()` makes one."""

    def __init__(self, pool: asyncpg.Pool, schema: str) -> None:
        self._pool = pool
        self.schema = schema
        self._waiting = 0
        self._sharing = 0

    @classmethod
    @asynccontextmanager
    async def open(
        cls, settings: PostgresSettings, schema: str, tracing: Tracing | None = None, *, plan_anew: bool = False
    ) -> AsyncIterator[Database]:
        """The database for the length of a block. It need not be there yet: each use finds that out by itself.

        Args:
            tracing: where the pool's figures are shown, and statements traced.
            plan_anew: whether statements are planned for their arguments each time. A plan for any arguments, which Postgres
                takes up after five of the same statement, knows nothing of how long a list is: one for 120 ids took 20 ms in
                place of 1.4.
        """
        pool = asyncpg.create_pool(  # type: ignore[call-overload]  # the stubs know connections, not the pool's proxies
            settings.dsn.get_secret_value(),
            password=settings.password(),
            min_size=0,
            max_size=settings.pool_size,
            command_timeout=settings.command_timeout,
            timeout=_CONNECT,
            max_inactive_connection_lifetime=60,
            init=_init_traced if tracing is not None and tracing.exports else _init,
            reset=_keep_session,
            # in the start-up packet, and not in a statement, so that it outlives the pool's reset of a connection
            server_settings={
                "search_path": f"{schema},public",
                "application_name": f"phronesis-{schema}",
                "standard_conforming_strings": "on",
                **({"plan_cache_mode": "force_custom_plan"} if plan_anew else {}),
                **_VANISHED,
            },
        )
        await pool
        database = cls(pool, schema)
        if tracing is not None:
            database._show(tracing.metrics)
        try:
            yield database
        finally:
            try:
                await _close_pool(pool)
            except TimeoutError:
                pool.terminate()

    @asynccontextmanager
    async def connection(self, tenant: Reach, settings: str = "") -> AsyncIterator[Connection]:
        """A connection to read with, in one transaction that sees the rows of `tenant` alone.

        Args:
            settings: what is set for this transaction, as `SET LOCAL` statements; it costs no round trip.

        Raises:
            Unavailable: the database is down, refuses, or does not answer in time.
        """
        shared = _SHARED.get()
        if shared is not None and not settings and (free := shared.take(self, tenant)) is not None:
            with translate_errors():
                yield free
            shared.give_back()
            return
        begin = begin_statements(tenant, writes=False)
        async with self._begun(f"{begin}; {settings}" if settings else begin) as connection:
            yield connection

    @asynccontextmanager
    async def reading(self, tenant: Reach) -> AsyncIterator[None]:
        """Let the reads of a block share one transaction, which saves two round trips for each.

        A read that finds it taken, or needs settings of its own, begins another, as it does without this block. This one is
        held meanwhile, so half of the pool is kept for such reads: blocks beyond the other half share nothing.

        Raises:
            Unavailable: the database is down, refuses, or does not answer in time.
        """
        if self._sharing >= self._pool.get_max_size() // 2:
            yield
            return
        self._sharing += 1
        try:
            async with self._held() as connection:
                shared = _Shared(self, tenant, connection)
                token = _SHARED.set(shared)
                try:
                    await connection.execute(begin_statements(tenant, writes=False))
                    yield
                finally:
                    _SHARED.reset(token)
                    shared.close()
                    await _roll_back(connection)
        finally:
            self._sharing -= 1

    @asynccontextmanager
    async def transaction(self, tenant: Reach) -> AsyncIterator[Connection]:
        """A connection in one transaction, committed when the block ends well, that reaches the rows of `tenant` alone.

        Raises:
            Unavailable: the database is down, or the outcome of the commit is not known; a repeat finds out by its key.
        """
        async with self._begun(begin_statements(tenant, writes=True)) as connection:
            yield connection

    @asynccontextmanager
    async def _begun(self, begin: str) -> AsyncIterator[Connection]:
        async with self._held() as connection:
            try:
                await connection.execute(begin)
                yield connection
                # What a block swallowed has ended the transaction all the same.
                if await connection.execute("COMMIT") != "COMMIT":
                    raise asyncpg.InFailedSQLTransactionError("the transaction was rolled back")
            except BaseException:
                await _roll_back(connection)
                raise

    @asynccontextmanager
    async def _held(self) -> AsyncIterator[Connection]:
        with translate_errors():
            connection = await self._acquired()
            try:
                yield connection
            finally:
                await self._released(connection)

    async def _acquired(self) -> Connection:
        self._waiting += 1
        try:
            return await self._pool.acquire(timeout=_ACQUIRE)
        finally:
            self._waiting -= 1

    def _show(self, metrics: Metrics) -> None:
        pool, idle = self._pool, self._pool.get_idle_size
        metrics.watch(POOL, lambda: float(pool.get_size() - idle()), self.schema, "used")
        metrics.watch(POOL, lambda: float(idle()), self.schema, "idle")
        metrics.watch(POOL_WAITING, lambda: float(self._waiting), self.schema)
        metrics.set(POOL_MOST, float(pool.get_max_size()), self.schema)

    async def _released(self, connection: Connection) -> None:
        """Give a connection back. What was cancelled on it has a moment to end: a caller's limit is not held up by it."""
        try:
            await self._pool.release(connection, timeout=_RELEASE)
        except GONE as error:  # the pool has dropped it
            log.warning("a connection to the database is dropped: %s", type(error).__name__)

    async def ping(self) -> None:
        async with self._held() as connection:
            await connection.execute("SELECT 1")


async def _init(connection: Connection) -> None:  # one for each new connection
    if await connection.fetchval(_ABOVE):
        log.error("the database's role is above row-level security; a service needs one of its own, which migrating makes")
        raise Unavailable("the database's role may do too much", retry_after=5)
    for name in ("json", "jsonb"):
        await connection.set_type_codec(name, schema="pg_catalog", encoder=json.dumps, decoder=json.loads)


async def _init_traced(connection: Connection) -> None:
    await _init(connection)
    connection.add_query_logger(_record_statement)


def _record_statement(query: asyncpg.connection.LoggedQuery) -> None:
    """A span for a statement: its first word, and nothing of its text or its values."""
    operation, error = query.query.split(None, 1)[0].rstrip(";").upper(), query.exception
    if operation == "BEGIN":  # there is one before each; what a transaction costs is told by its end
        return
    code = getattr(error, "sqlstate", None) or (type(error).__name__ if error is not None else None)
    record_span(operation, query.elapsed, code, db__system__name="postgresql", db__operation__name=operation)


async def _keep_session(connection: Connection) -> None:
    """Nothing to reset, and so no round trip: what is set is set for one transaction (`SET LOCAL`), which has ended."""


async def _roll_back(connection: Connection) -> None:
    """Leave the transaction, or else the connection: none goes back to the pool with a tenant set."""
    try:
        async with asyncio.timeout(_RELEASE):
            await connection.execute("ROLLBACK")
    except BaseException as error:
        connection.terminate()
        if not isinstance(error, GONE):
            raise
        log.warning("a connection to the database is dropped: %s", type(error).__name__)


async def _close_pool(pool: asyncpg.Pool) -> None:
    async with asyncio.timeout(5):
        await pool.close()
