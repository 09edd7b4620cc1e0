"""Writes to Weaviate's collections. Each may be made again, and each says what became of every single object."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar
from uuid import UUID

from weaviate import WeaviateAsyncClient
from weaviate.classes.data import DataObject
from weaviate.classes.query import Filter
from weaviate.exceptions import WeaviateDeleteManyError, WeaviateInsertManyAllFailedError, WeaviateQueryError

from phronesis_contracts import Unavailable

from ..domain.values import VectorEntry
from .weaviate_schema import KINDS, collection_of, data_of

log = logging.getLogger(__name__)
T = TypeVar("T")
Object: TypeAlias = DataObject[dict[str, Any], None]

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
        sizes = [entry.vector.size * (1 + len(entry.passages)) for entry in mine]
        refused += await insert(client, name, tenant, [data_of(entry) for entry in mine], sizes)
    return refused


async def insert(
    client: WeaviateAsyncClient, name: str, tenant: str, objects: Sequence[Object], sizes: Sequence[int]
) -> list[str]:
    """Store objects of one tenant that its collection does not have; `sizes` are the numbers in the vectors of each.

    Returns:
        The ids of what the server refuses, also by itself.
    """
    refused: list[str] = []
    for batch in _batches(objects, sizes):
        for one in await _insert(client, name, tenant, batch):
            refused += [str(alone.uuid) for alone in await _insert(client, name, tenant, [one])]
    if objects:
        await _flush(client, name, tenant)
    if refused:
        log.error("the vector store refuses %d of %d objects", len(refused), len(objects))
    return refused


async def remove(client: WeaviateAsyncClient, tenant: str, ids: Sequence[str]) -> None:
    """Delete objects of one tenant from every collection."""
    for name in KINDS:
        await remove_from(client, name, tenant, ids)


async def remove_all(client: WeaviateAsyncClient) -> None:
    """Delete every object of every tenant."""
    for name in KINDS:
        await client.collections.delete(name)


async def _insert(client: WeaviateAsyncClient, name: str, tenant: str, given: Sequence[Object]) -> list[Object]:
    """Store objects by one call; those that failed."""
    objects = client.collections.use(name).with_tenant(tenant).data
    try:
        done = await objects.insert_many(list(given))
    except WeaviateInsertManyAllFailedError as error:
        if "not present in schema" in str(error):  # no object's fault; it is there when the client is made anew
            raise
        return list(given)
    return [given[number] for number in done.errors]


async def remove_from(
    client: WeaviateAsyncClient, name: str, tenant: str, ids: Sequence[str], named: str | None = None
) -> None:
    """Delete objects of one tenant from one collection, by their ids or by the property that is `named`."""
    objects = client.collections.use(name).with_tenant(tenant).data
    which = Filter.by_id() if named is None else Filter.by_property(named)
    for start in range(0, len(ids), _IDS):
        some = which.contains_any(list(ids[start : start + _IDS]))
        done = await of_tenant(objects.delete_many(some), None)
        if done is not None and done.failed:
            raise Unavailable("the vector store did not delete everything", retry_after=1)


async def _flush(client: WeaviateAsyncClient, name: str, tenant: str) -> None:
    """Have the index of this tenant on disk as its objects are.

    Weaviate 1.35 writes a batch's objects out, and of its vector index what fits no buffer: a server that is killed next
    has objects that no search finds. A deletion, also one of nothing, writes out the rest.
    """
    await remove_from(client, name, tenant, [_NOTHING])


def _batches(objects: Sequence[Object], sizes: Sequence[int]) -> Iterator[list[Object]]:
    batch: list[Object] = []
    numbers = 0
    for one, size in zip(objects, sizes, strict=True):
        batch.append(one)
        numbers += size
        if numbers >= _NUMBERS:
            yield batch
            batch, numbers = [], 0
    if batch:
        yield batch
