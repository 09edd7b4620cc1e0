"""The vector index in Weaviate: what the items' transactions noted is applied after their commit, at once or by a sweep."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import cast

from phronesis_contracts import SYSTEM_TENANT, Unavailable
from phronesis_postgres import EVERY_TENANT, Connection, Database, reach

from ..domain.values import Audience, Vector, VectorEntry, VectorHit
from ..ports import Transaction
from ..settings import WeaviateSettings
from . import vector_changes as changes
from . import weaviate_reads as reads
from . import weaviate_writes as writes
from .embedding import Agreement
from .vector_changes import Changes
from .vector_settling import BATCH, Settling
from .weaviate_client import Weaviate

_ASK, _APPLY, _WRITE = 10.0, 5.0, 30.0
"""Seconds of one question, of changes whose rows are locked meanwhile, and of a batch that nobody else waits for."""


class WeaviateIndex:
    """`VectorIndex` on Weaviate's collections and the table `vector_changes`. `open()` makes one that sweeps.

    Args:
        database: the schema.
        weaviate: the connection.
        model: name of the model whose vectors these are.
        dimension: numbers in a vector.
    """

    def __init__(self, database: Database, weaviate: Weaviate, model: str, dimension: int) -> None:
        self._database = database
        self._weaviate = weaviate
        self._agreement = Agreement(database, model, dimension)
        self._settling = Settling(database, self._apply, changes)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, settings: WeaviateSettings, database: Database, model: str, dimension: int
    ) -> AsyncIterator[WeaviateIndex]:
        """The index for the length of a block, in which what waits is applied."""
        async with Weaviate.open(settings) as weaviate:
            index = cls(database, weaviate, model, dimension)
            async with index._settling.sweeping():
                yield index

    @property
    def weaviate(self) -> Weaviate:
        """The connection, for the other collections of the service."""
        return self._weaviate

    async def upsert(self, entries: Sequence[VectorEntry], *, within: Transaction | None = None) -> None:
        """See `VectorIndex`."""
        for entry in entries:
            for vector in (entry.vector, *entry.passages):
                self._agreement.fit(vector)
        if within is not None:
            if entries:
                await self._agreement.claim(cast(Connection, within))
                await changes.note(cast(Connection, within), entries)
            return
        for start in range(0, len(entries), BATCH):
            await self._write(entries[start : start + BATCH])

    async def delete(self, tenant: str, ids: Sequence[str], *, within: Transaction | None = None) -> bool:
        """See `VectorIndex`."""
        if within is not None:
            await changes.note_gone(cast(Connection, within), tenant, ids)
            return not ids
        async with self._database.transaction(tenant) as connection:
            await changes.drop(connection, tenant, ids)
            async with self._weaviate.client(_WRITE) as client:
                await writes.remove(client, tenant, ids)
        return True

    async def settle(self, tenant: str, ids: Sequence[str]) -> None:
        """See `VectorIndex`."""
        await self._settling.settle(tenant, ids)

    async def search(self, audience: Audience, vectors: Sequence[Vector], limit: int) -> list[list[VectorHit]]:
        """See `VectorIndex`."""
        await self._expect(vectors)
        async with self._weaviate.client(_ASK) as client:
            return await reads.search(client, audience, vectors, limit)

    async def similarity(
        self, audience: Audience, vectors: Sequence[Vector], ids: Sequence[Sequence[str]]
    ) -> list[dict[str, float]]:
        """See `VectorIndex`."""
        await self._expect(vectors)
        wanted = list(dict.fromkeys(id for of_vector in ids for id in of_vector))
        async with self._weaviate.client(_ASK) as client:
            found = await reads.entries(client, audience, wanted)
        rows = {entry.id: row for entry, row in zip(found, reads.cosines(found, vectors).tolist(), strict=True)}
        return [{id: rows[id][n] for id in of_vector if id in rows} for n, of_vector in enumerate(ids)]

    async def check(self) -> None:
        """See `VectorIndex`."""
        await self._agreement.check()
        async with self._weaviate.client(_ASK) as client:
            await reads.answers(client, SYSTEM_TENANT)

    async def scan(self, size: int) -> AsyncIterator[list[VectorEntry]]:
        """See `VectorIndex`. What waits is applied first."""
        await self._settling.drain()
        async with self._weaviate.client(_ASK) as client:
            places = await reads.places(client)
        for place in places:
            last = ""
            while page := await self._page(place, last, size):
                yield page
                last = page[-1].id

    async def clear(self) -> None:
        """See `VectorIndex`."""
        async with self._database.transaction(EVERY_TENANT) as connection:
            await changes.drop_all(connection)
            async with self._weaviate.client(_WRITE) as client:
                await writes.remove_all(client)
                await self._weaviate.ensure(client)
            await self._agreement.forget(connection)
            await changes.release_news(connection)

    async def _expect(self, vectors: Sequence[Vector]) -> None:
        for vector in vectors:
            self._agreement.fit(vector)
        await self._agreement.expect()

    async def _page(self, place: tuple[str, str], last: str, size: int) -> list[VectorEntry]:
        async with self._weaviate.client(_ASK) as client:
            return await reads.page(client, place, last, size)

    async def _write(self, entries: Sequence[VectorEntry]) -> None:
        """Store entries past the table. What it holds of these items is older, and may not come after them."""
        async with self._database.transaction(reach(*(entry.tenant for entry in entries))) as connection:
            await self._agreement.claim(connection)
            due: dict[str, Changes] = {}
            for tenant in sorted({entry.tenant for entry in entries}):
                due[tenant] = Changes(tuple(entry for entry in entries if entry.tenant == tenant), ())
                await changes.drop(connection, tenant, [entry.id for entry in due[tenant].entries])
            if any((await self._apply(due, _WRITE)).values()):
                raise Unavailable("the vector store does not take every vector", retry_after=1)

    async def _apply(self, due: Mapping[str, Changes], seconds: float = _APPLY) -> dict[str, list[str]]:
        refused: dict[str, list[str]] = {}
        async with self._weaviate.client(seconds) as client:
            for tenant, of_tenant in due.items():
                if of_tenant.gone:
                    await writes.remove(client, tenant, of_tenant.gone)
                refused[tenant] = await writes.put(client, tenant, of_tenant.entries)
        return refused
