"""LangGraph's Postgres store, in process, with its own HNSW index over pgvector."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from uuid import uuid4

from langgraph.store.base import PutOp
from langgraph.store.postgres.aio import AsyncPostgresStore
from worker import Embedder, serve


class LangGraph:
    """Messages as values of a namespace for each user."""

    def __init__(self, store: AsyncPostgresStore, open_until_the_end: AsyncExitStack) -> None:
        self._store, self._open = store, open_until_the_end

    async def add(self, user: str, messages: Sequence[dict[str, str]]) -> list[str]:
        """Store messages in one batch."""
        ids = [str(uuid4()) for _ in messages]
        values = [{"text": f"{one['speaker']}: {one['text']}", "at": one["at"]} for one in messages]
        await self._store.abatch([PutOp(("memories", user), id, value) for id, value in zip(ids, values, strict=True)])
        return ids

    async def search(self, user: str, question: str, limit: int) -> list[str]:
        """Its search by vectors."""
        return [one.key for one in await self._store.asearch(("memories", user), query=question, limit=limit)]


async def _made(embedder: Embedder, servers: dict[str, str]) -> LangGraph:
    stack = AsyncExitStack()
    index = {"dims": 384, "embed": embedder.embed, "fields": ["text"]}
    pool = {"min_size": 1, "max_size": 4}
    store = await stack.enter_async_context(
        AsyncPostgresStore.from_conn_string(servers["postgres"], pool_config=pool, index=index)
    )
    await store.setup()
    return LangGraph(store, stack)


serve(_made)
