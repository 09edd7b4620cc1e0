"""Helpers of the tests of memories by scope."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import uuid4

from phronesis_contracts import Principal
from phronesis_contracts.memory import ForgetMemory, KeepMemory, KeptMemory, RecalledMemories, RecallMemory, Scope
from phronesis_memory.app import assemble_scopes
from phronesis_memory.items.scopes import ScopeHandlers
from phronesis_memory.settings import MemorySettings
from phronesis_postgres import EVERY_TENANT
from tests.support.personas import Persona

from .bus import eventually
from .memory import Memory, WordEmbedder, calling, open_memory
from .servers import PostgresServer, VectorServer


@dataclass(frozen=True)
class Scopes:
    """The memory service, with its handlers of memories by scope."""

    memory: Memory
    handlers: ScopeHandlers

    async def keep(self, who: Principal, scope: Scope, content: str, key: str | None = None, **more: float) -> KeptMemory:
        """Keep one memory, and wait until the vector index has it."""
        request = KeepMemory(scope=scope, key=key or uuid4().hex, content=content, **more)
        kept = await self.handlers.keep_memory(calling(who), request)
        await eventually(lambda: self._settled(kept.id), within=60)
        return kept

    async def recall(self, who: Principal, scope: str, query: str, limit: int = 5) -> RecalledMemories:
        """Recall from one scope."""
        return await self.handlers.recall_memory(calling(who), RecallMemory(scope=scope, query_summary=query, limit=limit))

    async def found(self, who: Principal, scope: str, query: str, limit: int = 5) -> list[str]:
        """The contents of what is recalled, best first."""
        return [one.content for one in (await self.recall(who, scope, query, limit)).snippets]

    async def forget(self, who: Principal, scope: Scope, key: str) -> str | None:
        """Remove one memory, and wait until the vector index has not; its id."""
        id = (await self.handlers.forget_memory(calling(who), ForgetMemory(scope=scope, key=key))).id
        if id is not None:
            await eventually(lambda: self._settled(id), within=60)
        return id

    async def _settled(self, id: str) -> bool:
        async with self.memory.database.connection(EVERY_TENANT) as connection:
            return not await connection.fetchval("SELECT EXISTS (SELECT FROM vector_changes WHERE item_id = $1)", id)


@asynccontextmanager
async def open_scopes(
    postgres: PostgresServer, weaviate: VectorServer | None, embedder: WordEmbedder | None = None, exact_rows: int = 10_000
) -> AsyncIterator[Scopes]:
    """The handlers on a database of their own."""
    async with open_memory(postgres, weaviate, embedder, exact_rows=exact_rows) as memory:
        settings = MemorySettings(stage_seconds=5)
        yield Scopes(memory, assemble_scopes(memory.database, memory.embedder, settings, lambda: None, memory.vectors))


def minister(tenant: str, **more: str | None) -> Principal:
    """Somebody of a tenant who writes in every scope."""
    return person(tenant, Persona.MAESTRO, **more)


def person(tenant: str, role: Persona = Persona.NOOR, **more: str | None) -> Principal:
    """Somebody of a tenant, in a department and a ministry unless it is said otherwise."""
    given = {"user": f"u{uuid4().hex[:12]}", "department": "Health", "ministry": "Care", **more}
    return Principal.model_validate({"tenant": tenant, **role.rights, **given})


def some_tenant() -> str:
    """A tenant that no other test knows."""
    return f"t{uuid4().hex[:12]}"
