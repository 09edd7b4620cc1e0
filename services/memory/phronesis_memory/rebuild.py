"""Make the projections of the items anew: their vectors in the index, their nodes and links in the graph.

    python -m phronesis_memory.rebuild            both
    python -m phronesis_memory.rebuild vectors    the vectors alone, as after a change of the model
    python -m phronesis_memory.rebuild links      news for the graph alone

The vectors are those of the constitutional graph's nodes, too; they are made from the texts that memory keeps of them.

It runs beside the service, with the service's settings, as often as one likes; searches go on, with what is there already.
An index that holds another model's vectors is emptied first. The graph follows the news as it follows all news.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from itertools import groupby

from phronesis_contracts.memory import EmbeddingMismatch, ItemKind
from phronesis_postgres import EVERY_TENANT, Database

from .constitution.embedding import EmbeddingWorker, NoSchedule
from .constitution.pgvector import PgNodeVectors
from .constitution.queue import NodeQueue
from .indexes import open_nodes
from .items.drafts import Drafter
from .items.store import LINKED_KINDS, StoredItem, announce_items, count_items, find_existing, lock_unchanged, walk_items
from .ports import Embedder, VectorIndex
from .settings import MemorySettings
from .values import Vector, VectorEntry, utc_now

_BATCH = 256
"""Items that are embedded together while those before them are written."""
_LOOK = 0.2
"""Seconds between two looks at what somebody else embeds."""
ReportProgress = Callable[[str, int, int], None]
"""Hears what is made, how much of it is done, and how much there is."""
_EmbeddedBatch = tuple[list[StoredItem], list[tuple[Vector, tuple[Vector, ...]]]]


async def rebuild_vectors(database: Database, index: VectorIndex, drafting: Drafter, report: ReportProgress) -> int:
    """Embed every item and put its vector into the index; vectors without an item go.

    An item that changes meanwhile is left to whoever changes it.

    Returns:
        How many items there were.

    Raises:
        Unavailable: the embedder or a store does not answer; what is done stays done.
    """
    try:
        await index.check()
    except EmbeddingMismatch:
        await index.clear()
    total, done = await count_items(database, tuple(ItemKind), scopes=True), 0
    report("vectors", done, total)
    async for batch, vectors in _prefetch(_embed_batches(database, drafting)):
        await _put(database, index, batch, vectors)
        done += len(batch)
        report("vectors", done, max(done, total))
    await _drop_orphans(database, index)
    return done


async def rebuild_links(database: Database, report: ReportProgress) -> int:
    """Announce every item that the graph knows, with its links; how many. Raises `Unavailable`: what is announced stays so."""
    total, done = await count_items(database, LINKED_KINDS, scopes=False), 0
    report("links", done, total)
    async for batch in walk_items(database, LINKED_KINDS, _BATCH, scopes=False):
        for _, of_owner in groupby(batch, key=lambda item: (item.tenant, item.owner)):
            await announce_items(database, list(of_owner))
        done += len(batch)
        report("links", done, max(done, total))
    return done


async def _embed_batches(database: Database, drafting: Drafter) -> AsyncIterator[_EmbeddedBatch]:
    async for batch in walk_items(database, tuple(ItemKind), _BATCH, scopes=True):
        yield batch, await drafting.vectors([item.draft for item in batch])


async def _prefetch(made: AsyncIterator[_EmbeddedBatch]) -> AsyncIterator[_EmbeddedBatch]:
    """The same, with the next one in the making while this one is used."""

    async def following() -> _EmbeddedBatch | None:
        return await anext(made, None)

    coming = asyncio.create_task(following())
    try:
        while (ready := await coming) is not None:
            coming = asyncio.create_task(following())
            yield ready
    finally:
        coming.cancel()
        await asyncio.gather(coming, return_exceptions=True)


async def _put(
    database: Database, index: VectorIndex, batch: Sequence[StoredItem], vectors: Iterable[tuple[Vector, tuple[Vector, ...]]]
) -> None:
    made = {item.id: vector for item, vector in zip(batch, vectors, strict=True)}
    # Of every tenant, since a batch may hold what is of several scopes, and a tenant's transaction sees one at most.
    async with database.transaction(EVERY_TENANT) as connection:
        # The owners' locks are held, so that no newer vector of an item is written over.
        entries = [
            VectorEntry(item.id, item.tenant, item.owner, item.draft.kind, whole, item.draft.family, passages)
            for item in await lock_unchanged(connection, batch)
            for whole, passages in [made[item.id]]
        ]
        await index.upsert(entries)


async def _drop_orphans(database: Database, index: VectorIndex) -> None:
    async for entries in index.scan(1_000):
        alive = await find_existing(database, [entry.id for entry in entries])
        orphans = sorted((entry.tenant, entry.id) for entry in entries if entry.id not in alive)
        for tenant, of_tenant in groupby(orphans, key=lambda orphan: orphan[0]):
            await index.delete(tenant, [id for _, id in of_tenant])


async def rebuild_nodes(database: Database, nodes: PgNodeVectors, embedder: Embedder, report: ReportProgress) -> int:
    """Embed every node of the constitutional graph, and tell the index, which is emptied first.

    A node that the embedder fails for, four times, is left to the service, which tries again every minute.

    Returns:
        How many nodes there were.

    Raises:
        Unavailable: a store does not answer; what is done stays done.
    """
    queue = NodeQueue(database, nodes, embedder.model, embedder.dimension)
    embedding = EmbeddingWorker(queue, embedder, nodes, NoSchedule(), utc_now)
    await queue.renew(utc_now())
    await nodes.clear()
    left = total = await queue.left()
    report("nodes", 0, total)
    while left:
        # Beside it the service takes from the same queue; what failed waits for its next time, and is left to the service.
        if not await embedding.step():
            await asyncio.sleep(_LOOK)
        left = await queue.left()
        report("nodes", total - left, total)
    return total


class _Progress:
    """One line for each percent, or each second where that is rarer."""

    def __init__(self) -> None:
        self._began: dict[str, float] = {}
        self._said = 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        began = self._began.setdefault(what, now)
        if done < total and now - self._said < 1:
            return
        self._said = now
        rate = f", {done / (now - began):,.0f}/s" if done and now > began else ""
        print(f"{what}: {done:,} of {total:,}{rate}", file=sys.stderr, flush=True)


async def _main(parts: Sequence[str]) -> None:
    from .__main__ import open_stores  # what the service itself stands on

    report = _Progress()
    settings = MemorySettings()
    async with open_stores(settings) as (database, embedder, index):
        if "vectors" in parts:
            await rebuild_vectors(database, index, Drafter(embedder), report)
            async with open_nodes(index, database, embedder.model, embedder.dimension, settings) as nodes:
                await rebuild_nodes(database, nodes, embedder, report)
        if "links" in parts:
            await rebuild_links(database, report)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "parts", nargs="*", metavar="PART", choices=["vectors", "links", []], help="vectors, links; both by default"
    )
    asyncio.run(_main(parser.parse_args().parts or ["vectors", "links"]))
