"""Gates in the database: while a gate is held, whatever would write that durable step waits inside its transaction.

Advisory locks taken by triggers do it, so the product needs no hook: a process is killed while its statement waits. Then
either the waiting session is ended too (the step was never committed: the kill came *before* it), or the gate is opened
and the statement commits with nobody left to hear of it (the kill came *after* it). Questions fire no trigger: where they
shall wait, the whole table is locked.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import asyncpg

_KEY = 720_000


@dataclass(frozen=True)
class Point:
    """One durable step, as the trigger that guards it."""

    name: str
    table: str
    event: str
    when: str = ""


CLAIM = Point("claim", "orchestrator.turns", "UPDATE", "NEW.fence <> OLD.fence AND NEW.status = 'running'")
"""A turn that waited its time is claimed. One that need not wait is claimed as it is accepted."""
POINTS = (
    Point("accept", "orchestrator.turns", "INSERT"),
    CLAIM,
    Point("route", "orchestrator.journal", "INSERT", "NEW.step = 'route' AND NEW.result IS NOT NULL"),
    Point("compose", "orchestrator.journal", "INSERT", "NEW.step = 'compose' AND NEW.result IS NOT NULL"),
    Point("end", "orchestrator.turns", "UPDATE", "NEW.status = 'completed' AND OLD.status <> 'completed'"),
    Point("relay", "orchestrator.outbox", "DELETE"),
    Point("learn", "memory.items", "INSERT", "NEW.kind = 'episode'"),
    Point("remember", "memory.items", "INSERT", "NEW.kind <> 'episode'"),
    Point("news of items", "memory.outbox", "DELETE"),
)
RETRIEVAL = Point("retrieval", "memory.texts", "")
"""Memory searches: its question to the table waits."""
_WAIT = "SELECT pid FROM pg_locks WHERE NOT granted AND "


class Gates:
    """The gates of one database. A lost connection opens them all, as a killed server must."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connection: asyncpg.Connection | None = None

    async def install(self) -> None:
        """Put a trigger on every durable step."""
        connection = await self._connected()
        await connection.execute(
            "CREATE SCHEMA IF NOT EXISTS chaos;"
            "CREATE OR REPLACE FUNCTION chaos.gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "PERFORM pg_advisory_xact_lock_shared(TG_ARGV[0]::bigint); RETURN coalesce(NEW, OLD); END $$"
        )
        for number, point in enumerate(POINTS):
            when = f"WHEN ({point.when})" if point.when else ""
            name = f"chaos_{number}"
            await connection.execute(f"DROP TRIGGER IF EXISTS {name} ON {point.table}")
            await connection.execute(
                f"CREATE TRIGGER {name} BEFORE {point.event} ON {point.table} FOR EACH ROW {when} "
                f"EXECUTE FUNCTION chaos.gate({_KEY + number})"
            )

    async def hold(self, point: Point) -> None:
        """Close one gate."""
        connection = await self._connected()
        if point == RETRIEVAL:
            await connection.execute(f"BEGIN; LOCK TABLE {point.table} IN ACCESS EXCLUSIVE MODE")
            return
        await connection.execute("SELECT pg_advisory_lock($1)", _KEY + POINTS.index(point))

    async def waiting(self, point: Point, limit: float) -> list[int]:
        """The sessions that wait at a gate, as soon as there is one; empty after `limit` seconds."""
        connection = await self._connected()
        end = asyncio.get_running_loop().time() + limit
        while asyncio.get_running_loop().time() < end:
            if point == RETRIEVAL:  # what is learnt meanwhile waits too, in another mode
                asks = _WAIT + "relation = $1::regclass AND mode = 'AccessShareLock'"
                rows = await connection.fetch(asks, point.table)
            else:
                asks = _WAIT + "locktype = 'advisory' AND objid = $1::bigint::oid"
                rows = await connection.fetch(asks, _KEY + POINTS.index(point))
            if rows:
                return [row["pid"] for row in rows]
            await asyncio.sleep(0.01)
        return []

    async def end_sessions(self, pids: list[int]) -> None:
        """End waiting sessions: what they were about to commit is rolled back."""
        connection = await self._connected()
        await connection.execute("SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) AS pid", pids)

    async def open(self) -> None:
        """Open every gate; on a server that was killed they are open already."""
        if self._connection is None:
            return
        try:
            await self._connection.execute("ROLLBACK; SELECT pg_advisory_unlock_all()", timeout=5)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
            self._connection.terminate()
            self._connection = None

    async def close(self) -> None:
        """Leave."""
        await self.open()
        if self._connection is not None:
            await self._connection.close()

    async def _connected(self) -> asyncpg.Connection:
        async with asyncio.timeout(60):
            while self._connection is None or self._connection.is_closed():
                try:
                    self._connection = await asyncpg.connect(self._dsn, timeout=2)
                except (asyncpg.PostgresError, OSError, TimeoutError):
                    await asyncio.sleep(0.1)
        return self._connection
