"""Applying the noted changes of vectors to an outside index: one writer's at once, and by a sweep whatever was left."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence, Sized
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from phronesis_bus import Kind, Metric, Metrics
from phronesis_contracts import ServiceError, Unavailable
from phronesis_postgres import EVERY_TENANT, Connection, Database

from . import changes

log = logging.getLogger(__name__)

D = TypeVar("D", bound=Sized)
"""The changes of one tenant."""

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


class Ledger(Protocol[D]):
    """The table of noted changes; `vector_changes` is the one of items."""

    async def take(self, connection: Connection, tenant: str, ids: Sequence[str], /) -> Mapping[str, D]:
        """The changes of these things that nobody else holds, by tenant, locked until the transaction ends."""
        ...

    async def take_due(self, connection: Connection, most: int, /) -> Mapping[str, D]:
        """The changes that have waited longest and that nobody else holds, by tenant, locked as those."""
        ...

    async def waiting(self, connection: Connection, tenant: str, ids: Sequence[str], /) -> bool:
        """Whether a change of one of these is left; what the index has just refused is not waited for."""
        ...

    async def left(self, connection: Connection, began: datetime, /) -> bool:
        """Whether a change is left that was noted up to then, or that the index refused."""
        ...

    async def finish(self, connection: Connection, applied: Mapping[str, D], refused: Mapping[str, Sequence[str]], /) -> None:
        """Remove what was applied, by tenant, and let what the index refused come again later."""
        ...

    async def release_news(self, connection: Connection, /) -> None:
        """Let news go out that waited for changes which are applied."""
        ...


class IndexSync(Generic[D]):
    """Applies changes. Their rows are locked meanwhile, so that of two changes of an item the later one is applied last.

    Args:
        database: the schema.
        apply: tells the index changes, by tenant; gives what it refuses for good, by tenant. Raises `Unavailable`; may be
            told them again.
        ledger: where changes are noted.
    """

    def __init__(
        self,
        database: Database,
        apply: Callable[[Mapping[str, D]], Awaitable[Mapping[str, Sequence[str]]]],
        ledger: Ledger[D],
    ) -> None:
        self._database = database
        self._apply = apply
        self._ledger = ledger
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

    async def drain(self) -> None:
        """Apply everything that was noted before.

        Raises:
            Unavailable: the index does not take it.
        """
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
            due = await self._ledger.take(connection, tenant, ids)
            await self._tell(connection, due)
            return not await self._ledger.waiting(connection, tenant, ids)

    async def _left(self, began: datetime) -> bool:
        async with self._database.connection(EVERY_TENANT) as connection:
            return await self._ledger.left(connection, began)

    async def _sweep(self, most: int) -> int:
        async with self._database.transaction(EVERY_TENANT) as connection:
            due = await self._ledger.take_due(connection, most)
            await self._tell(connection, due)
            await self._ledger.release_news(connection)
        return sum(map(len, due.values()))

    async def _tell(self, connection: Connection, due: Mapping[str, D]) -> None:
        if due:
            await self._ledger.finish(connection, due, await self._apply(due))
            await self._ledger.release_news(connection)

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
    """Sets the gauge.

    Args:
        database: the memory service's schema.
        metrics: where the gauge is.
    """

    def __init__(self, database: Database, metrics: Metrics) -> None:
        self._database = database
        self._metrics = metrics

    async def look(self) -> None:
        """Look once. Raises `Unavailable`."""
        async with self._database.connection(EVERY_TENANT) as connection:
            self._metrics.set(WAITING, await changes.count(connection))
