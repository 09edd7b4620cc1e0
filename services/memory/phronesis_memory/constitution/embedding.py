"""Embedding nodes: what is due is taken in batches, the higher tiers first, and no write waits for it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import groupby, islice
from typing import Protocol

import numpy as np

from phronesis_contracts import ServiceError, Unavailable
from phronesis_contracts.constitution import search
from phronesis_contracts.constitution.maintenance import EmbeddingRefused
from phronesis_contracts.memory import EmbeddingMismatch

from ..embedding.chunks import pool
from ..ports import Embedder
from ..values import Vector
from .nodes import VectorRefused, check_vector, split_text, state_after_failure
from .pgvector import PgNodeVectors
from .ports import NodeFilter
from .queue import DueNode, NodeQueue

log = logging.getLogger(__name__)

BATCH = 32
"""Texts of one call. What is written meanwhile waits for one batch at most."""
_EVERY = 1.0
"""Seconds between two looks at the queue and the schedule, where nobody says that there is something."""
_HOPELESS = 3
"""Texts refused in a row after which the others of a batch are not tried by themselves: it is the key, and not the text."""
_ALIKE = 10
"""Near-duplicates of one node that are kept."""
_FOR_GOOD = (EmbeddingRefused, EmbeddingMismatch, VectorRefused)


class Schedule(Protocol):
    """What puts nodes on the queue by the clock."""

    async def look(self, now: datetime) -> None:
        """Begin the runs that are due."""


class NoSchedule:
    """No schedule, for whoever embeds what is due and ends."""

    async def look(self, now: datetime) -> None:
        """Begin nothing."""


class EmbeddingWorker:
    """Embeds what is due, in a task of its own. `step` does one batch, for whoever has no task."""

    def __init__(
        self, queue: NodeQueue, embedder: Embedder, index: PgNodeVectors, schedule: Schedule, clock: Callable[[], datetime]
    ) -> None:
        self._queue, self._embedder, self._index = queue, embedder, index
        self._schedule, self._clock = schedule, clock
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="constitution-embedding")

    async def stop(self) -> None:
        """End; what is taken and not done is given back."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def wake(self) -> None:
        self._wake.set()

    async def step(self) -> int:
        """Embed one batch; how many nodes were taken. Raises `Unavailable`."""
        now = self._clock()
        taking = asyncio.create_task(self._queue.take(now, BATCH))
        try:
            taken = sorted(await asyncio.shield(taking), key=lambda due: (due.tenant, due.tier, due.id))
            for tenant, of_tenant in groupby(await self._made(taken), key=lambda made: made[0].tenant):
                await self._keep(tenant, list(of_tenant), now)
        except asyncio.CancelledError:
            await self._give_back(taking, now)
            raise
        return len(taken)

    async def _give_back(self, taking: asyncio.Task[list[DueNode]], when: datetime) -> None:
        """Have nodes be due again: whoever goes on in place of this process would wait for the lease to end otherwise."""
        try:
            await self._queue.give_back(await taking, when)
        except ServiceError as error:
            log.warning("what was taken is due when its lease ends: %s", error.code)

    async def _made(self, taken: Sequence[DueNode]) -> list[tuple[DueNode, Vector]]:
        try:
            return await self._checked(taken, await self._vectors(taken))
        except EmbeddingRefused as error:
            return await self._one_by_one(taken) if len(taken) > 1 else await self._failed(taken, error)
        except ServiceError as error:
            return await self._failed(taken, error)

    async def _vectors(self, taken: Sequence[DueNode]) -> list[Vector]:
        parts = [split_text(due.body) for due in taken]
        made = await self._embedder.embed_texts([part for some in parts for part in some]) if parts else []
        if len(made) != sum(map(len, parts)):
            raise Unavailable("the embedder did not answer for every text")
        rest = iter(made)
        return [
            some[0] if len(some) == 1 else _pool_if_searchable(some) for some in (list(islice(rest, len(of))) for of in parts)
        ]

    async def _checked(self, taken: Sequence[DueNode], vectors: Sequence[Vector]) -> list[tuple[DueNode, Vector]]:
        good: list[tuple[DueNode, Vector]] = []
        for due, vector in zip(taken, vectors, strict=True):
            try:
                check_vector(vector, self._embedder.dimension)
                good.append((due, vector))
            except VectorRefused as error:
                await self._failed([due], error)
        return good

    async def _one_by_one(self, taken: Sequence[DueNode]) -> list[tuple[DueNode, Vector]]:
        good: list[tuple[DueNode, Vector]] = []
        for number, due in enumerate(taken):
            if not good and number >= _HOPELESS:
                return await self._failed(taken[number:], EmbeddingRefused("the embedder refuses"))
            good += await self._made([due])
        return good

    async def _failed(self, taken: Sequence[DueNode], error: ServiceError) -> list[tuple[DueNode, Vector]]:
        for due in taken:
            state = state_after_failure(due.attempts, error.code, self._clock(), for_good=isinstance(error, _FOR_GOOD))
            log.warning("node %s could not be embedded: %s, now %s", due.id, error.code, state.state)
            await self._queue.fail(due, state)
        return []

    async def _keep(self, tenant: str, made: Sequence[tuple[DueNode, Vector]], taken: datetime) -> None:
        try:
            stored = await self._queue.store(tenant, made, self._clock())
        except EmbeddingMismatch as error:
            await self._failed([due for due, _ in made], error)
            return
        await self._index.settle(tenant, stored)
        for due, vector in made:
            if due.id in stored:
                await self._compare(tenant, due, vector)
        await self._queue.done(tenant, stored, taken)

    async def _compare(self, tenant: str, due: DueNode, vector: Vector) -> None:
        near = await self._index.nearest_stored(tenant, vector, NodeFilter(types=frozenset({due.type})), _ALIKE + 1)
        found = [(hit.id, hit.cosine) for hit in near if hit.id != due.id and hit.cosine > search.DUPLICATE_COSINE]
        await self._queue.pair(tenant, due.id, found[:_ALIKE])

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            more = 0
            try:
                await self._schedule.look(self._clock())
                more = await self.step()
            except ServiceError as error:
                log.warning("nodes could not be embedded: %s", error.code)
            except Exception:
                # The task may not end: what is due would stay due with nobody to notice.
                log.exception("nodes could not be embedded")
            if not more:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_EVERY):
                        await self._wake.wait()


def _pool_if_searchable(vectors: Sequence[Vector]) -> Vector:
    """One vector of several; one that cannot be searched by stays so, and is refused."""
    fits = len({vector.shape for vector in vectors}) == 1 and all(vector.any() for vector in vectors)
    return pool(vectors) if fits else np.zeros_like(vectors[0])
