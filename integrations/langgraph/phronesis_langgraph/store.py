"""A LangGraph store whose items are memories of Phronesis."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Self, TypeVar
from weakref import WeakKeyDictionary

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    validate_op_namespace,
)

from phronesis import AsyncClient, Client, batches
from phronesis.aio import Memory as AsyncMemory
from phronesis_contracts import NotFound
from phronesis_contracts.memories import FoundMemories, Memory, MemoryPage, Metadata, NewMemory

from .items import filter_of, is_under, make_id, make_memory, matches, plain_prefix, read_found, read_item

T = TypeVar("T")

_AT_ONCE = 16
"""Reads of one batch that are under way together."""
_MOST_DELETED = 100
_MOST_FOUND = 100
_PAGE = 200
_MOST_QUERY = 4_000
"""Characters of a query."""


class PhronesisStore(BaseStore):
    """Long-term memory for LangGraph: items by namespace and key, filters, and searches by meaning.

    Each item is a memory of the user whom the key acts for, so that it is searched, exported and erased as all of their
    memories are. Embeddings are made by Phronesis. Items do not expire: `ttl` is refused, as `supports_ttl` says.

    Args:
        base_url: of the gateway; by default `PHRONESIS_URL`, or the local stack of `phronesis up`.
        api_key: a key of Phronesis; by default `PHRONESIS_KEY`, or the local stack's.
        user_id: your own name for the user whom the items belong to; the key needs the scope `act_for_users`.
        fields: paths of what of a value is found by meaning, as in `put(index=...)`; the whole value by default.
        wait: let `put` return only once the item is found by its meaning, instead of a moment before that.
    """

    supports_ttl = False

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        user_id: str | None = None,
        fields: Sequence[str] = ("$",),
        wait: bool = False,
    ) -> None:
        self._base_url, self._api_key, self._user_id = base_url, api_key, user_id
        self._fields, self._wait = tuple(fields), wait
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncClient] = WeakKeyDictionary()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations: first what reads, then what writes; of two writes to one key the last one.

        Raises:
            InvalidNamespaceError: a label is empty or has a period.
            TypeError, ValueError: a value is no JSON, or over 100,000 bytes.
            ServiceError: Phronesis refuses an operation or is away.
        """
        given = _checked(ops)
        results = [_finish(_read(self._blocking, op)) for op in given]
        _finish(self._write(self._blocking, given))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """What `batch` does, without blocking; reads go side by side."""
        given = _checked(ops)
        memory, slots = self._asynchronous().memory, asyncio.Semaphore(_AT_ONCE)

        async def read(op: Op) -> Result:
            async with slots:
                return await _read(memory, op)

        results = list(await asyncio.gather(*map(read, given)))
        await self._write(memory, given)
        return results

    def close(self) -> None:
        """Close the connections of the blocking calls."""
        if "_client" in vars(self):
            self._client.close()

    async def aclose(self) -> None:
        """Close the connections that this event loop has opened."""
        if client := self._clients.pop(asyncio.get_running_loop(), None):
            await client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def _write(self, memory: AsyncMemory | _Blocking, ops: Sequence[Op]) -> None:
        last = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        kept = [make_memory(op, self._fields) for op in last.values() if op.value is not None]
        gone = [make_id(*place) for place, op in last.items() if op.value is None]
        for some in batches(kept):
            await memory.add(some, wait=self._wait)
        for start in range(0, len(gone), _MOST_DELETED):
            await memory.delete(gone[start : start + _MOST_DELETED])

    @cached_property
    def _client(self) -> Client:
        return Client(self._base_url, self._api_key, user_id=self._user_id)

    @cached_property
    def _blocking(self) -> _Blocking:
        return _Blocking(self._client)

    def _asynchronous(self) -> AsyncClient:
        """A client for each event loop: a connection cannot be used by another loop than the one that opened it."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = AsyncClient(self._base_url, self._api_key, user_id=self._user_id)
        return self._clients[loop]


class _Blocking:
    """The calls of a blocking client with the signatures of the asynchronous one; awaiting them never waits."""

    def __init__(self, client: Client) -> None:
        self._memory = client.memory

    async def get(self, id: str) -> Memory:
        return self._memory.get(id)

    async def list(self, **wanted: Any) -> MemoryPage:
        return self._memory.list(**wanted)

    async def search(self, query: str, **wanted: Any) -> FoundMemories:
        return self._memory.search(query, **wanted)

    async def add(self, given: Iterable[NewMemory], **how: Any) -> object:
        return self._memory.add(given, **how)

    async def delete(self, ids: Iterable[str]) -> object:
        return self._memory.delete(ids)


def _finish(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that awaits nothing but blocking calls."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise RuntimeError("a blocking call has waited")


def _checked(ops: Iterable[Op]) -> list[Op]:
    given = list(ops)
    for op in given:
        validate_op_namespace(op)
    return given


async def _read(memory: AsyncMemory | _Blocking, op: Op) -> Result:
    match op:
        case GetOp():
            return await _get(memory, op)
        case SearchOp():
            return await _search(memory, op)
        case ListNamespacesOp():
            return await _list_namespaces(memory, op)
        case PutOp():
            return None
    raise TypeError(f"unknown operation: {type(op).__name__}")


async def _get(memory: AsyncMemory | _Blocking, op: GetOp) -> Item | None:
    try:
        return read_item(await memory.get(make_id(op.namespace, op.key)))
    except NotFound:
        return None


async def _search(memory: AsyncMemory | _Blocking, op: SearchOp) -> list[SearchItem]:
    end = op.offset + op.limit
    wanted = filter_of(op.namespace_prefix, op.filter, by_meaning=bool(op.query))
    if not op.query:
        return (await _list(memory, wanted, op.filter, end))[op.offset : end]
    limit = _MOST_FOUND if op.filter else max(1, min(end, _MOST_FOUND))
    found = (await memory.search(op.query[:_MOST_QUERY], limit=limit, metadata=wanted)).memories
    return _matching(found, op.filter)[op.offset : end]


async def _list(
    memory: AsyncMemory | _Blocking, wanted: Metadata, filter: Mapping[str, Any] | None = None, enough: float = math.inf
) -> list[SearchItem]:
    """Items that a filter leaves, the newest first: all of them, or `enough`."""
    found: list[SearchItem] = []
    cursor: str | None = None
    while True:
        page = await memory.list(limit=_PAGE, cursor=cursor, metadata=wanted)
        found += _matching(page.memories, filter)
        cursor = page.next
        if cursor is None or len(found) >= enough:
            return found


def _matching(memories: Sequence[Memory], filter: Mapping[str, Any] | None) -> list[SearchItem]:
    items = map(read_found, memories)
    return [item for item in items if all(matches(item.value.get(name), one) for name, one in (filter or {}).items())]


async def _list_namespaces(memory: AsyncMemory | _Blocking, op: ListNamespacesOp) -> list[tuple[str, ...]]:
    conditions = op.match_conditions or ()
    found = {item.namespace for item in await _list(memory, filter_of(plain_prefix(conditions)))}
    kept = {one[: op.max_depth] for one in found if all(is_under(one, condition) for condition in conditions)}
    return sorted(kept)[op.offset : op.offset + op.limit]
