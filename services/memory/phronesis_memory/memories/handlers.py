"""The handlers of memory as other programs use it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from phronesis_bus import Bus, Call, serve
from phronesis_contracts import BadRequest, Unavailable, memories
from phronesis_contracts.memory import Forget, ItemKind
from phronesis_postgres import Database
from phronesis_tokens import count

from ..embedding.queries import QueryVectors
from ..indexes import make_search
from ..items.drafts import Drafter, hash_content
from ..items.rows import ItemRemover
from ..ports import Embedder, VectorIndex
from ..settings import MemorySettings
from ..tracing import trace_handler
from ..values import Draft, Said, VectorMissing, is_storable
from .search import MemorySearch
from .store import PostgresMemories, may_change

STORE = "memories"
_TRIES = 3
_CONTEXT = 50
"""Memories that a block is made of at most."""


class MemoryHandlers:
    def __init__(self, stored: PostgresMemories, search: MemorySearch, forgetting: ItemRemover, drafting: Drafter) -> None:
        self._stored, self._search, self._forgetting, self._drafting = stored, search, forgetting, drafting

    async def add(self, call: Call, request: memories.AddMemories) -> memories.AddedMemories:
        """Store messages or texts of the caller, all or none, once for the call's key."""
        _check(request)
        drafts = [_draft(one, request.conversation_id) for one in request.memories]
        return await self._drafting.store(drafts, {}, partial(self._stored.add, call, request))

    async def search(self, call: Call, request: memories.SearchMemories) -> memories.FoundMemories:
        """What the caller's memory holds on a question."""
        _check_text(request.query, "query")
        return await self._search.find(call.who, request)

    async def get(self, call: Call, request: memories.GetMemory) -> memories.Memory:
        return (await self._stored.get(may_change(call.who), request.id)).memory

    async def list(self, call: Call, request: memories.ListMemories) -> memories.MemoryPage:
        audience = may_change(call.who)
        kinds = request.kinds or audience.kinds
        return await self._stored.list(type(audience)(audience.tenant, audience.owners, kinds), request)

    async def update(self, call: Call, request: memories.UpdateMemory) -> memories.Memory:
        """Correct one memory; what it said before stays in its history."""
        if request.text is None and request.metadata is None:
            raise BadRequest("nothing to change: give a text, or metadata", field="text")
        for name, value in (("text", request.text), ("metadata", request.metadata)):
            _check_text(value, name)
        audience = may_change(call.who)
        for _ in range(_TRIES):
            stored = await self._stored.get(audience, request.id)
            now = stored.memory
            text = now.text if request.text is None else request.text
            metadata = now.metadata if request.metadata is None else request.metadata
            said = Said(now.conversation_id, now.occurred_at)
            digest = hash_content([now.kind, stored.title, text, metadata])
            draft = Draft(now.kind, text, digest, now.external_id, title=stored.title, metadata=metadata, said=said)
            [ready] = await self._drafting.complete([draft], {})
            try:
                return await self._stored.update(call, audience, request, ready)
            except VectorMissing:
                continue
        raise Unavailable("the memory changes too fast", retry_after=1)

    async def history(self, call: Call, request: memories.GetMemory) -> memories.MemoryHistory:
        memory = (await self._stored.get(may_change(call.who), request.id)).memory
        return memories.MemoryHistory(memory=memory, versions=await self._stored.versions(call.who.tenant, memory.id))

    async def delete(self, call: Call, request: memories.DeleteMemories) -> memories.DeletedMemories:
        """Delete memories of the caller for good, with their history."""
        for number, id in enumerate(request.ids):
            _check_text(id, f"ids.{number}")
        gone = await self._forgetting.forget(call, Forget(ids=request.ids))
        return memories.DeletedMemories(ids=gone.ids)

    async def context(self, call: Call, request: memories.BuildContext) -> memories.MemoryContext:
        """A block for a prompt: the best memories that fit, in the order in which they were said."""
        _check_text(request.query, "query")
        asked = memories.SearchMemories(**request.model_dump(exclude={"budget_tokens"}), limit=_CONTEXT)
        found = await self._search.find(call.who, asked)
        kept: list[memories.FoundMemory] = []
        left = request.budget_tokens
        for one in found.memories:
            cost = count(_line(len(found.memories), one), left)
            if cost > left:
                continue
            kept.append(one)
            left -= cost
        kept.sort(key=lambda one: (one.occurred_at, one.id))
        text = "\n".join(_line(number, one) for number, one in enumerate(kept, 1))
        return memories.MemoryContext(text=text, memories=tuple(kept), degraded=found.degraded)


def _line(number: int, one: memories.FoundMemory) -> str:
    """A memory as a line of a block; line breaks of its text would make it look like several."""
    speaker = f" {one.speaker}" if one.speaker else ""
    return f"[{number}] {one.occurred_at:%Y-%m-%d}{speaker}: {' '.join(one.text.split())}\n"[:-1]


def _draft(one: memories.NewMemory, conversation_id: str | None) -> Draft:
    """A message where it belongs to a conversation or has a speaker, a note otherwise."""
    kind = ItemKind.MESSAGE if conversation_id or one.speaker else ItemKind.NOTE
    sources = (conversation_id,) if conversation_id else ()
    digest = hash_content([kind, one.speaker, one.text, one.metadata, str(one.occurred_at), conversation_id])
    said = Said(conversation_id, one.occurred_at)
    return Draft(kind, one.text, digest, one.external_id, title=one.speaker, metadata=one.metadata, sources=sources, said=said)


def _check(request: memories.AddMemories) -> None:
    """Raise `BadRequest`: an external id stands twice, or something cannot be stored."""
    _check_text(request.conversation_id, "conversation_id")
    seen: set[str] = set()
    for number, one in enumerate(request.memories):
        if one.external_id in seen:
            raise BadRequest("an external id stands twice in one request", field=f"memories.{number}.external_id")
        if one.external_id is not None:
            seen.add(one.external_id)
        for name in ("text", "speaker", "external_id", "metadata"):
            _check_text(getattr(one, name), f"memories.{number}.{name}")


def _check_text(value: Any, field: str) -> None:
    if not is_storable(value):
        raise BadRequest("no NUL characters and no infinite numbers", field=field)


async def serve_memories(
    bus: Bus,
    database: Database,
    embedder: Embedder,
    settings: MemorySettings,
    vectors: VectorIndex,
    wake: Callable[[], None],
    queries: QueryVectors,
) -> None:
    """Let memories be added, found, read, changed and deleted."""
    stored = PostgresMemories(database, vectors, wake)
    search = MemorySearch(make_search(database, vectors, queries, settings), stored, embedder.floor)
    handlers = MemoryHandlers(stored, search, ItemRemover(database, vectors, wake), Drafter(embedder))
    span = partial(trace_handler, bus.tracing)
    await serve(bus, memories.ADD_MEMORIES_TOOL, span("upsert_memory", STORE, handlers.add), workers=8)
    await serve(bus, memories.SEARCH_MEMORIES_TOOL, span("search_memory", STORE, handlers.search))
    await serve(bus, memories.GET_MEMORY_TOOL, span("search_memory", STORE, handlers.get))
    await serve(bus, memories.LIST_MEMORIES_TOOL, span("search_memory", STORE, handlers.list))
    await serve(bus, memories.UPDATE_MEMORY_TOOL, span("update_memory", STORE, handlers.update))
    await serve(bus, memories.GET_HISTORY_TOOL, span("search_memory", STORE, handlers.history))
    await serve(bus, memories.DELETE_MEMORIES_TOOL, span("delete_memory", STORE, handlers.delete))
    await serve(bus, memories.BUILD_CONTEXT_TOOL, span("search_memory", STORE, handlers.context))
