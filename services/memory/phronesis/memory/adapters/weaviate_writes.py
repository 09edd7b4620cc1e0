"""Writes to Weaviate's collections. Each may be made again, and each says what became of every single object."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Iterator, Sequence
from typing import TypeVar
from uuid import UUID

from weaviate import WeaviateAsyncClient
from weaviate.classes.query import Filter
from weaviate.exceptions import WeaviateDeleteManyError, WeaviateInsertManyAllFailedError, WeaviateQueryError

from phronesis.contracts import Unavailable

from ..domain.values import VectorEntry
from .weaviate_schema import KINDS, collection_of, data_of, ensure

log = logging.getLogger(__name__)
T = TypeVar("T")

_NUMBERS = 500_000
"""Numbers in one call at most: some megabytes, well below the server's greatest message."""
_NOTHING = str(UUID(int=0))
_IDS = 500
"""Ids in one call."""


async def of_tenant(work: Awaitable[T], empty: T) -> T:
    """What a call returns, or `empty` where its collection does not have the tenant yet: nothing was stored there."""
    try:
        return await work
    except (WeaviateQueryError, WeaviateDeleteManyError) as error:
        if "tenant not found" in str(error):
            return empty
        raise


async def put(client: WeaviateAsyncClient, tenant: str, entries: Sequence[VectorEntry]) -> list[str]:
    """Store entries of one tenant, each in place of its item's former one, in whatever collection that was.

    The former one is deleted, and not written over: an object that a killed server has without its vector, the server
    would take for unchanged.

    Returns:
        The ids of what the server refuses, also by itself.
    """
    last = {entry.id: entry for entry in entries}
    await remove(client, tenant, list(last))
    refused: list[str] = []
    for name in KINDS:
        mine = [entry for entry in last.values() if collection_of(entry.kind) == name]
        for batch in _batches(mine):
            failed = await _insert(client, name, tenant, batch)
            for entry in failed:
                refused += [one.id for one in await _insert(client, name, tenant, [entry])]
        if mine:
            await _flush(client, name, tenant)
    if refused:
        log.error("the vector store refuses %d of %d objects", len(refused), len(last))
    return refused


async def remove(client: WeaviateAsyncClient, tenant: str, ids: Sequence[str]) -> None:
    """Delete objects of one tenant from every collection."""
    for name in KINDS:
        await _remove(client, name, tenant, ids)


async def remove_all(client: WeaviateAsyncClient) -> None:
    """Delete every object of every tenant."""
    for name in KINDS:
        await client.collections.delete(name)
    await ensure(client)


async def _insert(client: WeaviateAsyncClient, name: str, tenant: str, entries: Sequence[VectorEntry]) -> list[VectorEntry]:
    """Store entries by one call; those that failed."""
    objects = client.collections.use(name).with_tenant(tenant).data
    try:
        done = await objects.insert_many([data_of(entry) for entry in entries])
    except WeaviateInsertManyAllFailedError as error:
        if "not present in schema" in str(error):  # no object's fault; it is there when the client is made anew
            raise
        return list(entries)
    return [entries[number] for number in done.errors]


async def _remove(client: WeaviateAsyncClient, name: str, tenant: str, ids: Sequence[str]) -> None:
    objects = client.collections.use(name).with_tenant(tenant).data
    for start in range(0, len(ids), _IDS):
        some = Filter.by_id().contains_any(list(ids[start : start + _IDS]))
        done = await of_tenant(objects.delete_many(some), None)
        if done is not None and done.failed:
            raise Unavailable("the vector store did not delete everything", retry_after=1)


async def _flush(client: WeaviateAsyncClient, name: str, tenant: str) -> None:
    """Have the index of this tenant on disk as its objects are.

    Weaviate 1.35 writes a batch's objects out, and of its vector index what fits no buffer: a server that is killed next
    has objects that no search finds. A deletion, also one of nothing, writes out the rest.
    """
    await _remove(client, name, tenant, [_NOTHING])


def _batches(entries: Sequence[VectorEntry]) -> Iterator[list[VectorEntry]]:
    batch: list[VectorEntry] = []
    numbers = 0
    for entry in entries:
        batch.append(entry)
        numbers += entry.vector.size * (1 + len(entry.passages))
        if numbers >= _NUMBERS:
            yield batch
            batch, numbers = [], 0
    if batch:
        yield batch
