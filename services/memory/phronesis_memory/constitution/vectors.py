"""`NodeVectors`: the index, the tables that it is made of, and the wait for what was written just now."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

from phronesis_contracts import Unavailable
from phronesis_contracts.constitution.kinds import Layer

from ..adapters.constitution_pgvector import PgNodeVectors
from ..adapters.constitution_queue import NodeQueue
from ..adapters.constitution_records import NodeRecords
from ..domain.values import Vector
from .following import Following
from .keeping import NodeIndex
from .ports import Chosen, LayerState, NodeHit, NodeVector

_WAIT = 5.0
"""Seconds that a search waits for what was written before it."""
_LOOK = 0.01


class ConstitutionVectors:
    """See `NodeVectors`.

    Args:
        rows: the vectors in the schema.
        index: what finds them.
        records: the store of the records.
        queue: what is to be embedded.
        following: the follower of the graph.
    """

    def __init__(
        self, rows: PgNodeVectors, index: NodeIndex, records: NodeRecords, queue: NodeQueue, following: Following
    ) -> None:
        self._rows = rows
        self._index = index
        self._records = records
        self._queue = queue
        self._following = following

    async def nearest(self, tenant: str, vector: Vector, chosen: Chosen, limit: int) -> list[NodeHit]:
        """See `NodeVectors`."""
        return await self._index.nearest(tenant, vector, chosen, limit)

    async def cosines(self, tenant: str, vector: Vector, ids: Sequence[str]) -> dict[str, float]:
        """See `NodeVectors`."""
        return await self._rows.cosines(tenant, vector, ids)

    def scan(self, tenant: str, chosen: Chosen) -> AsyncIterator[NodeVector]:
        """See `NodeVectors`."""
        return self._rows.scan(tenant, chosen)

    async def settled(self, tenant: str) -> None:
        """See `NodeVectors`. The graph is asked what changed: its news may still be on the way."""
        try:
            async with asyncio.timeout(_WAIT):
                await self._following.catch_up(tenant)
                asked = waiting = await self._queue.hurrying(tenant)
                while waiting:
                    await asyncio.sleep(_LOOK)
                    waiting = await self._queue.hurrying(tenant, waiting)
                await self._index.tell(tenant, asked)
        except TimeoutError as error:
            raise Unavailable("what was written just now is not embedded yet", retry_after=1) from error

    async def state(self, tenant: str) -> tuple[LayerState, ...]:
        """See `NodeVectors`."""
        return await self._rows.state(tenant)

    async def populating(self, tenant: str) -> frozenset[Layer]:
        """See `NodeVectors`."""
        return await self._rows.populating(tenant)

    async def assign(self, tenant: str, topics: Mapping[str, str | None]) -> None:
        """See `NodeVectors`."""
        await self._index.tell(tenant, await self._records.assign(tenant, topics))
