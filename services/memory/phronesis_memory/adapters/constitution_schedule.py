"""The table of scheduled runs: whoever locks a row that is due runs it, and nobody else does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from phronesis_contracts import SYSTEM_TENANT
from phronesis_contracts.constitution.keeping import ScheduledRun
from phronesis_postgres import EVERY_TENANT, Database

from ..constitution.schedule import Run
from .constitution_queue import NodeQueue

_PUT = "INSERT INTO constitution_schedule (name, next_at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING"
_NEXT = "SELECT name, next_at, last_at FROM constitution_schedule"
_DUE = "SELECT name FROM constitution_schedule WHERE name = $1 AND next_at <= $2 FOR UPDATE SKIP LOCKED"
_RAN = "UPDATE constitution_schedule SET next_at = $2, last_at = $3 WHERE name = $1"


class NodeSchedule:
    """Puts the nodes of a run on the queue when its time has come. One that was missed is made up for, once.

    Args:
        database: the schema.
        queue: the queue.
        runs: the runs that are wanted.
    """

    def __init__(self, database: Database, queue: NodeQueue, runs: Sequence[Run]) -> None:
        self._database = database
        self._queue = queue
        self._runs = runs
        self._earliest: datetime | None = None

    async def look(self, now: datetime) -> None:
        """Begin the runs that are due. Raises `Unavailable`."""
        if self._earliest is not None and now < self._earliest:
            return
        async with self._database.transaction(EVERY_TENANT) as connection:
            for run in self._runs:
                await connection.execute(_PUT, run.name, run.after(now))
                if await connection.fetchval(_DUE, run.name, now) is not None:
                    await self._queue.call(connection, run.tiers, now, again=run.again)
                    await connection.execute(_RAN, run.name, run.after(now), now)
            rows = await connection.fetch(_NEXT)
        names = {run.name for run in self._runs}
        self._earliest = min((row["next_at"] for row in rows if row["name"] in names), default=None)

    async def told(self) -> tuple[ScheduledRun, ...]:
        """The runs, with when they were and will be."""
        async with self._database.connection(SYSTEM_TENANT) as connection:
            rows = {row["name"]: row for row in await connection.fetch(_NEXT)}
        return tuple(
            ScheduledRun(
                name=run.name,
                tiers=tuple(tier.name for tier in run.tiers),
                schedule=run.text,
                next_at=rows[run.name]["next_at"] if run.name in rows else None,
                last_at=rows[run.name]["last_at"] if run.name in rows else None,
            )
            for run in self._runs
        )
