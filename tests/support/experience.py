"""Helpers of the tests of experience: its handlers on a real database, turns that end, and strategies to record."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from phronesis_bus import News
from phronesis_contracts import Principal
from phronesis_contracts.deletions import ConversationDeleted
from phronesis_contracts.episodes import MemoryFound, MemoryOperation, MemoryQuery, RecordStrategy
from phronesis_contracts.orchestrator import ToolOutcome, TurnEndedNews, TurnStatus
from phronesis_memory.episodes.handlers import Experience, assemble_experience
from phronesis_memory.settings import MemorySettings

from .memory import Memory, WordEmbedder, calling, open_memory
from .servers import PostgresServer, VectorServer

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
WORKED = ToolOutcome(name="web_search", ok=True, ms=12)
FAILED = ToolOutcome(name="web_search", ok=False, code="timed_out", detail="the search engine did not answer", ms=5_000)


@dataclass(frozen=True)
class Lived:
    """A memory with its experience."""

    memory: Memory
    experience: Experience

    async def ended(self, who: Principal, text: str, *tools: ToolOutcome, **more: Any) -> TurnEndedNews:
        """A turn that has ended, as the memory hears of it."""
        said = {"turn_id": str(uuid4()), "conversation_id": str(uuid4()), "agent": "nova", "status": TurnStatus.COMPLETED}
        event = TurnEndedNews.model_validate(
            said | {"user": who.user, "user_text": text, "reply_text": "Done.", "tools": tools, "at": NOON} | more
        )
        await self.heard(who, event)
        return event

    async def heard(self, who: Principal, event: TurnEndedNews) -> None:
        """The news of an end."""
        await self.memory.handlers.on_turn_ended(News(who.tenant, "1", 1), event)

    async def deleted(self, who: Principal, conversation: str) -> None:
        """The news of a conversation's deletion."""
        event = ConversationDeleted(deletion_id=str(uuid4()), conversation_id=conversation, user=who.user)
        await self.memory.handlers.on_conversation_deleted(News(who.tenant, "1", 1), event)

    async def asked(self, who: Principal, operation: str, query: str, limit: int = 5) -> MemoryFound:
        """One question by the tool."""
        request = MemoryQuery(operation=MemoryOperation(operation), query=query, limit=limit)
        return await self.experience.querying.memory_query(calling(who), request)

    async def rows(self, who: Principal, table: str) -> int:
        """How many rows of a table the tenant has."""
        async with self.memory.database.connection(who.tenant) as connection:
            return int(await connection.fetchval(f"SELECT count(*) FROM {table} WHERE tenant = $1", who.tenant))


@asynccontextmanager
async def open_experience(
    postgres: PostgresServer, weaviate: VectorServer | None, embedder: WordEmbedder | None = None
) -> AsyncIterator[Lived]:
    """The handlers on a database of their own."""
    async with open_memory(postgres, weaviate, embedder) as memory:
        yield over(memory)


def over(memory: Memory) -> Lived:
    """The experience of a memory that is open."""
    made = assemble_experience(memory.database, memory.embedder, MemorySettings(stage_seconds=5), memory.vectors, lambda: None)
    return Lived(memory, made)


def strategy(goal: str = "publish an article on LinkedIn", **more: Any) -> RecordStrategy:
    """A strategy of a task that went well, as a person said."""
    said: dict[str, Any] = {
        "task_id": str(uuid4()),
        "goal": goal,
        "approach": "Read two older posts, draft, shorten, publish.",
        "tools_used": ("memory_query", "compose", "linkedin"),
        "score": 0.8,
        "succeeded": True,
        "avoid": "Publishing before the picture is uploaded fails.",
        "verified_by": "person",
    }
    return RecordStrategy.model_validate(said | more)
