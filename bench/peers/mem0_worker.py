"""mem0 on pgvector, in process, storing messages as they are (`infer=False`)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from mem0 import Memory
from mem0.configs.base import MemoryConfig
from worker import Embedder, serve


class Mem0:
    """Its synchronous client, called in a thread: the faster of its two."""

    def __init__(self, embedder: Embedder, servers: dict[str, str]) -> None:
        store = {"connection_string": servers["postgres"], "embedding_model_dims": 384, "collection_name": "peers"}
        self._memory = Memory(
            MemoryConfig(
                vector_store={"provider": "pgvector", "config": store},
                # No model is called: neither of the two is asked for anything.
                llm={"provider": "openai", "config": {"api_key": "none"}},
                embedder={"provider": "openai", "config": {"api_key": "none"}},
                history_db_path=servers["folder"] + "/history.db",
            )
        )
        self._memory.embedding_model = _Vectors(embedder)

    async def add(self, user: str, messages: Sequence[dict[str, str]]) -> list[str]:
        """Store messages in one call, as users of it do."""
        said = [{"role": "user", "content": f"{one['speaker']}: {one['text']}"} for one in messages]
        stored = await asyncio.to_thread(self._memory.add, said, user_id=user, infer=False)
        return [one["id"] for one in stored["results"]]

    async def search(self, user: str, question: str, limit: int) -> list[str]:
        """Its hybrid search."""
        found = await asyncio.to_thread(self._memory.search, question, top_k=limit, filters={"user_id": user})
        return [one["id"] for one in found["results"]]


class _Vectors:
    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.config = type("Config", (), {"embedding_dims": 384})()

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self._embedder.embed_from_thread([text])[0]

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        return self._embedder.embed_from_thread(texts)


async def _made(embedder: Embedder, servers: dict[str, str]) -> Mem0:
    return await asyncio.to_thread(Mem0, embedder, servers)


serve(_made)
