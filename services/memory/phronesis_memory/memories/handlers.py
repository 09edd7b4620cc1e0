"""The handlers of memory as other programs use it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from functools import partial

from phronesis_bus import Bus, Call, serve, work_in_background
from phronesis_contracts import BadRequest, Label, OriginKind, Unavailable, formed, memories, merge_labels, untrusted
from phronesis_contracts.memory import Forget, ItemKind
from phronesis_postgres import Database
from phronesis_tokens import count

from ..embedding.queries import QueryVectors
from ..indexes import make_search
from ..items.drafts import Drafter, hash_content, with_words
from ..items.rows import ItemRemover
from ..ports import Embedder, VectorIndex
from ..settings import MemorySettings
from ..tracing import trace_handler
from ..values import Draft, Said, VectorMissing, check_batch, check_storable, is_storable, labels_of_call, utc_now
from .search import MemorySearch
from .store import PostgresMemories, own

STORE = "memories"
_TRIES = 3
_MOST_WAITING = 2_000
"""Memories of one tenant that may wait for their vectors; what is added beyond them is embedded before it is stored."""
_BATCH = 24
"""Memories that are embedded together: some 130 ms of work, for which the next tenant waits."""
_AT_ONCE = 2
"""Batches that are under way: while one is written, another is embedded."""
_CONTEXT = 50
"""Memories that a block is made of at most."""


class MemoryHandlers:
    """The handlers of memories. `wake` is set when some wait for their vectors."""

    def __init__(
        self, stored: PostgresMemories, search: MemorySearch, forgetting: ItemRemover, drafting: Drafter, wake: asyncio.Event
    ) -> None:
        self._stored, self._search, self._forgetting, self._drafting = stored, search, forgetting, drafting
        self._wake = wake

    async def add(self, call: Call, request: memories.AddMemories) -> memories.AddedMemories:
        """Store messages or texts of the caller, all or none, once for the call's key."""
        if not is_storable(request.conversation_id or ""):
            raise BadRequest("no NUL characters", field="conversation_id")
        check_batch(request.memories, "memories")
        for number, one in enumerate(request.memories):
            if one.expires_at is not None:
                _check_expiry(one.expires_at, f"memories.{number}.expires_at")
        labels = labels_of_call(call, request.labels)
        drafts = [_draft(one, request.conversation_id, labels) for one in request.memories]
        if request.wait or await self._stored.waiting(call.who.tenant, _MOST_WAITING) >= _MOST_WAITING:
            named = [draft.external_id for draft in drafts if draft.external_id is not None]
            known = await self._stored.digests(call.who.tenant, call.who.user, named) if named else {}
            return await self._drafting.store(drafts, known, partial(self._stored.add, call, request))
        added = await self._stored.add(call, request, await with_words(drafts), embed_later=True)
        self._wake.set()
        return added

    async def search(self, call: Call, request: memories.SearchMemories) -> memories.FoundMemories:
        """What the caller's memory holds on a question."""
        return await self._search.find(call.who, check_storable(request))

    async def get(self, call: Call, request: memories.GetMemory) -> memories.Memory:
        """One memory of the caller."""
        return (await self._stored.get(own(call.who), check_storable(request).id)).memory

    async def list(self, call: Call, request: memories.ListMemories) -> memories.MemoryPage:
        return await self._stored.list(own(call.who, request.kinds), check_storable(request))

    async def update(self, call: Call, request: memories.UpdateMemory) -> memories.Memory:
        """Correct one memory; what it said before stays in its history."""
        if request.text is None and request.metadata is None and request.expires_at is None:
            raise BadRequest("nothing to change: give a text, metadata, or a time of expiry", field="text")
        check_storable(request)
        if isinstance(request.expires_at, datetime):
            _check_expiry(request.expires_at, "expires_at")
        audience = own(call.who)
        if request.text is None and request.metadata is None:
            return await self._stored.update(call, audience, request, None)
        for _ in range(_TRIES):
            stored = await self._stored.get(audience, request.id)
            now = stored.memory
            text = now.text if request.text is None else request.text
            metadata = now.metadata if request.metadata is None else request.metadata
            said = Said(now.conversation_id, now.occurred_at, now.expires_at)
            labels = labels_of_call(call, request.labels)
            if request.text is None:
                labels = formed((*now.labels, *labels))
            digest = hash_content([now.kind, stored.title, text, metadata], labels)
            draft = Draft(
                now.kind, text, digest, now.external_id, title=stored.title, metadata=metadata, said=said, labels=labels
            )
            [ready] = await self._drafting.complete([draft], {})
            try:
                return await self._stored.update(call, audience, request, ready)
            except VectorMissing:
                continue
        raise Unavailable("the memory changes too fast", retry_after=1)

    async def history(self, call: Call, request: memories.GetMemory) -> memories.MemoryHistory:
        memory = await self.get(call, request)
        return memories.MemoryHistory(memory=memory, versions=await self._stored.versions(call.who.tenant, memory.id))

    async def delete(self, call: Call, request: memories.DeleteMemories) -> memories.DeletedMemories:
        """Delete memories of the caller for good, with their history."""
        gone = await self._forgetting.forget(call, Forget(ids=check_storable(request).ids))
        return memories.DeletedMemories(ids=gone.ids)

    async def context(self, call: Call, request: memories.BuildContext) -> memories.MemoryContext:
        """A block for a prompt: the best memories that fit, in the order in which they were said."""
        check_storable(request)
        asked = memories.SearchMemories(**request.model_dump(exclude={"budget_tokens"}), limit=_CONTEXT)
        found = await self._search.find(call.who, asked)
        kept: list[memories.FoundMemory] = []
        left = request.budget_tokens
        for one in found.memories:
            cost = count(_line(len(found.memories), one) + "\n", left)
            if cost > left:
                continue
            kept.append(one)
            left -= cost
        kept.sort(key=lambda one: (one.occurred_at, one.id))
        text = "\n".join(_line(number, one) for number, one in enumerate(kept, 1))
        return memories.MemoryContext(text=text, memories=tuple(kept), degraded=found.degraded)


class MemoryEmbedder:
    """Gives memories that were stored without vectors theirs, a batch of one owner at a time, tenants in turn."""

    def __init__(self, stored: PostgresMemories, drafting: Drafter) -> None:
        self._stored, self._drafting = stored, drafting
        self._last = ""

    async def step(self) -> bool:
        """Embed one batch; whether there was one.

        Raises:
            ServiceError: the model or the store does not answer; the batch comes again after a minute.
        """
        waiting = await self._stored.claim(self._last, _BATCH)
        if waiting is None:
            return False
        self._last = waiting.tenant
        await self._stored.embedded(waiting, await self._drafting.vectors(list(waiting.drafts.values())))
        return True


def _line(number: int, one: memories.FoundMemory) -> str:
    """A memory as a line of a block; line breaks of a text, or of a speaker's name, would make it look like several."""
    said = f"{one.speaker}: {one.text}" if one.speaker else one.text
    mark = " " if one.speaker else ": "
    return f"[{number}] {one.occurred_at:%Y-%m-%d}{mark}{' '.join(said.split())}"


def _check_expiry(at: datetime, field: str) -> None:
    if at <= utc_now():
        raise BadRequest("a memory expires at a moment to come", field=field)


_SELF = "user"
"""The speaker that is the user."""


def _draft(one: memories.NewMemory, conversation_id: str | None, labels: tuple[Label, ...]) -> Draft:
    """A message where it belongs to a conversation or has a speaker, a note otherwise."""
    kind = ItemKind.MESSAGE if conversation_id or one.speaker else ItemKind.NOTE
    sources = (conversation_id,) if conversation_id else ()
    expiry = [str(one.expires_at)] if one.expires_at is not None else []
    if one.speaker is not None and one.speaker.casefold() != _SELF:
        labels = merge_labels(untrusted(labels), (Label(kind=OriginKind.PERSON, name=one.speaker),))
    digest = hash_content([kind, one.speaker, one.text, one.metadata, str(one.occurred_at), conversation_id, *expiry])
    said = Said(conversation_id, one.occurred_at, one.expires_at)
    return Draft(
        kind,
        one.text,
        digest,
        one.external_id,
        title=one.speaker,
        metadata=one.metadata,
        sources=sources,
        said=said,
        labels=labels,
    )


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
    drafting, waiting = Drafter(embedder), asyncio.Event()
    handlers = MemoryHandlers(stored, search, ItemRemover(database, vectors, wake), drafting, waiting)
    span = partial(trace_handler, bus.tracing)
    await serve(bus, memories.ADD_MEMORIES_TOOL, span("upsert_memory", STORE, handlers.add), workers=8)
    await serve(bus, memories.SEARCH_MEMORIES_TOOL, span("search_memory", STORE, handlers.search))
    await serve(bus, memories.GET_MEMORY_TOOL, span("search_memory", STORE, handlers.get))
    await serve(bus, memories.LIST_MEMORIES_TOOL, span("search_memory", STORE, handlers.list))
    await serve(bus, memories.UPDATE_MEMORY_TOOL, span("update_memory", STORE, handlers.update))
    await serve(bus, memories.GET_HISTORY_TOOL, span("search_memory", STORE, handlers.history))
    await serve(bus, memories.DELETE_MEMORIES_TOOL, span("delete_memory", STORE, handlers.delete))
    await serve(bus, memories.BUILD_CONTEXT_TOOL, span("search_memory", STORE, handlers.context))
    embedder_of_waiting = MemoryEmbedder(stored, drafting)
    for _ in range(_AT_ONCE):
        work_in_background(bus, "memories", embedder_of_waiting.step, waiting)
