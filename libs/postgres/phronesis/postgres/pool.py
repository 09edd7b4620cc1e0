"""A pool of connections to one schema. Driver errors leave it as ours."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

import asyncpg

from phronesis.contracts import ServiceError, Unavailable

from .settings import PostgresSettings

if TYPE_CHECKING:
    Connection: TypeAlias = asyncpg.pool.PoolConnectionProxy[asyncpg.Record]
else:
    Connection = asyncpg.pool.PoolConnectionProxy

_ACQUIRE = 5.0
_GONE = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # seen on a connection whose server died while it was idle
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.QueryCanceledError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    OSError,
    TimeoutError,
)


class Database:
    """One service's schema. `open()` makes one."""

    def __init__(self, pool: asyncpg.Pool, schema: str) -> None:
        self._pool = pool
        self.schema = schema

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: PostgresSettings, schema: str) -> AsyncIterator[Database]:
        """The database for the length of a block. It need not be there yet: each use finds that out by itself."""
        pool = asyncpg.create_pool(  # type: ignore[call-overload]  # the stubs know connections, not the pool's proxies
            settings.dsn.get_secret_value(),
            min_size=0,
            max_size=settings.pool_size,
            command_timeout=settings.command_timeout,
            timeout=3,
            max_inactive_connection_lifetime=60,
            init=_init,
            reset=_kept,
            # in the start-up packet, and not in a statement, so that it outlives the pool's reset of a connection
            server_settings={"search_path": f"{schema},public", "application_name": f"phronesis-{schema}"},
        )
        await pool
        try:
            yield cls(pool, schema)
        finally:
            try:
                await _closed(pool)
            except TimeoutError:
                pool.terminate()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection, with each statement in a transaction of its own.

        Raises:
            Unavailable: the database is down, refuses, or does not answer in time.
        """
        try:
            async with self._pool.acquire(timeout=_ACQUIRE) as connection:
                yield connection
        except ServiceError:
            raise
        except _GONE as error:
            raise Unavailable("the database does not answer", retry_after=1) from error

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A connection in one transaction, committed when the block ends well.

        Raises:
            Unavailable: the database is down, or the outcome of the commit is not known; a repeat finds out by its key.
        """
        async with self.connection() as connection, connection.transaction():
            yield connection

    async def ping(self) -> None:
        """Raise `Unavailable` unless the database answers."""
        async with self.connection() as connection:
            await connection.execute("SELECT 1")


async def _init(connection: Connection) -> None:  # one for each new connection
    for name in ("json", "jsonb"):
        await connection.set_type_codec(name, schema="pg_catalog", encoder=json.dumps, decoder=json.loads)


async def _kept(connection: Connection) -> None:
    """Nothing to reset, and so no round trip: what is set is set for one transaction (`SET LOCAL`)."""


async def _closed(pool: asyncpg.Pool) -> None:
    async with asyncio.timeout(5):
        await pool.close()
