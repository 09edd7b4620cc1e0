"""Applying the noted changes of vectors to an outside index: one writer's at once, and by a sweep whatever was left."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Generic

from phronesis_bus import Kind, Metric, Metrics
from phronesis_contracts import ServiceError, Unavailable
from phronesis_postgres import EVERY_TENANT, Connection, Database

from .changes import Changes, ChangeTable, E, ItemChanges

log = logging.getLogger(__name__)

BATCH = 500
"""Changes that are applied together."""
_SETTLE = 3.0
"""Seconds that a writer waits until a search finds what it wrote. Then the sweep sees to it."""
_PAUSE = 1.0
"""Seconds after a failure in which no writer waits: while the index is away, each of them would."""
_LOOK = 0.02
_DRAIN = 60.0
_EVERY, _LONGEST = 2.0, 10.0
"""Seconds between two looks of the sweep, and at most, while the index does not answer."""


class IndexSync(Generic[E]):
    """Applies changes. Their rows are locked meanwhile, so that of two changes of an item the later one is applied last.

    Args:
        apply: applies changes, by tenant; returns what the index refuses for good, by tenant. Raises `Unavailable`; may be
            given them again.
    """

    def __init__(
        self,
        database: Database,
        apply: Callable[[Mapping[str, Changes[E]]], Awaitable[Mapping[str, Sequence[str]]]],
        changes: ChangeTable[E],
    ) -> None:
        self._database, self._apply, self._changes = database, apply, changes
        self._failed = float("-inf")

    async def settle(self, tenant: str, ids: Sequence[str]) -> None:
        """Apply the changes of these items, in a few seconds or not at all."""
        if not ids or time.monotonic() < self._failed + _PAUSE:
            return
        try:
            async with asyncio.timeout(_SETTLE):
                while not await self._settled(tenant, ids):  # noqa: ASYNC110  # another process may hold them
                    await asyncio.sleep(_LOOK)
        except (ServiceError, TimeoutError) as error:
            self._failed = time.monotonic()
            log.warning("vectors of %d items wait for the index: %s", len(ids), getattr(error, "code", "timed_out"))

    async def settle_all(self, tenant: str) -> bool:
        """Apply a tenant's changes, the latest of them where there are very many; whether they were, within a few seconds."""
        async with self._database.connection(tenant) as connection:
            noted = await self._changes.noted(connection, tenant, BATCH)
        await self.settle(tenant, noted)
        if not noted:
            return True
        async with self._database.connection(tenant) as connection:
            return not await self._changes.waiting(connection, tenant, noted)

    async def drain(self) -> None:
        """Apply everything that was noted before. Raises `Unavailable`: the index does not take it."""
        async with self._database.connection(EVERY_TENANT) as connection:
            began: datetime = await connection.fetchval("SELECT now()")
        try:
            async with asyncio.timeout(_DRAIN):
                while await self._sweep(BATCH) or await self._left(began):  # noqa: ASYNC110  # as above
                    await asyncio.sleep(_LOOK)
        except TimeoutError as error:
            raise Unavailable("the vector store does not take what waits for it", retry_after=5) from error

    @asynccontextmanager
    async def sweeping(self) -> AsyncIterator[None]:
        """For the length of a block, apply what is left, whoever left it."""
        task = asyncio.create_task(self._run(), name="vector-sweep")
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _settled(self, tenant: str, ids: Sequence[str]) -> bool:
        async with self._database.transaction(tenant) as connection:
            due = await self._changes.take(connection, tenant, ids)
            await self._finish(connection, due)
            return not await self._changes.waiting(connection, tenant, ids)

    async def _left(self, began: datetime) -> bool:
        async with self._database.connection(EVERY_TENANT) as connection:
            return await self._changes.left(connection, began)

    async def _sweep(self, most: int) -> int:
        async with self._database.transaction(EVERY_TENANT) as connection:
            due = await self._changes.take_due(connection, most)
            await self._finish(connection, due)
            await self._changes.release_events(connection)
        return sum(map(len, due.values()))

    async def _finish(self, connection: Connection, due: Mapping[str, Changes[E]]) -> None:
        if due:
            await self._changes.finish(connection, due, await self._apply(due))
            await self._changes.release_events(connection)

    async def _run(self) -> None:
        pause, most = _EVERY, BATCH
        while True:
            try:
                while await self._sweep(most):
                    pause, most = _EVERY, BATCH
            except ServiceError as error:
                log.warning("changes of vectors wait for the index: %s", error.code)
                pause, most = min(pause * 2, _LONGEST), max(most // 2, 1)  # a slow index gets through a smaller batch
            except Exception:
                # The sweep may not end: what waits would wait with nobody to notice.
                log.exception("changes of vectors could not be applied")
                pause = _LONGEST
            await asyncio.sleep(pause)


WAITING = Metric(
    "phronesis_vectors_waiting",
    Kind.GAUGE,
    "Changes of vectors that the index has not been told yet, in all processes together.",
)


class VectorDepth:
    """Sets the gauge."""

    def __init__(self, database: Database, metrics: Metrics) -> None:
        self._database, self._metrics = database, metrics

    async def look(self) -> None:
        """Look once. Raises `Unavailable`."""
        async with self._database.connection(EVERY_TENANT) as connection:
            self._metrics.set(WAITING, await ItemChanges().count(connection))
