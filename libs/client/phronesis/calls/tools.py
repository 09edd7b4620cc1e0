"""Tools by name, and those of memory with their types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar
from uuid import uuid4

from phronesis.models import ToolInfo
from phronesis.request import Request
from phronesis_contracts.episodes import MemoryFound, MemoryQuery
from phronesis_contracts.memory import Forget, Forgotten, ItemKind, Recall, Recalled, Remember, Remembered, RememberItem
from phronesis_contracts.scoped_memory import (
    ForgetMemory,
    ForgottenMemory,
    KeepMemory,
    KeptMemory,
    RecalledMemories,
    RecallMemory,
)

from .parts import checked, each, segment

T = TypeVar("T")


def list_tools() -> Request[tuple[ToolInfo, ...]]:
    """The tools that this caller may call."""
    return Request("GET", "/api/v1/tools", each(ToolInfo, "tools"), reads=True)


def call_tool(name: str, input: Mapping[str, Any], idempotency_key: str | None = None) -> Request[dict[str, Any]]:
    """Call a tool by name. With an idempotency key it is repeated on a passing failure, without one it is not."""
    return tool(name, input, dict, key=idempotency_key)


def remember(items: Iterable[RememberItem | str], idempotency_key: str | None = None) -> Request[Remembered]:
    """Store up to 500 things in the caller's memory, all or none; a string is a fact."""
    listed = [{"text": item} if isinstance(item, str) else item for item in items]
    message = checked(Remember, {"items": listed})
    body = message.model_dump(mode="json", exclude_defaults=True)
    return tool("remember", body, Remembered.model_validate, key=idempotency_key or uuid4().hex)


def recall(query: str, limit: int = 10, kinds: Iterable[ItemKind] = ()) -> Request[Recalled]:
    """Find what the caller's memory holds on `query`, best first; not what was lived through unless `kinds` names it."""
    message = checked(Recall, {"query": query, "limit": limit, "kinds": tuple(kinds)})
    return tool("recall", message.model_dump(mode="json"), Recalled.model_validate, reads=True)


def forget(ids: Iterable[str], idempotency_key: str | None = None) -> Request[Forgotten]:
    """Remove up to 100 items from the caller's memory for good, by id or external id."""
    message = checked(Forget, {"ids": tuple(ids)})
    return tool("forget", message.model_dump(mode="json"), Forgotten.model_validate, key=idempotency_key or uuid4().hex)


def recall_memory(scope: str, query: str, limit: int = 5) -> Request[RecalledMemories]:
    """Find what one scope holds on `query`, best first; at most 50."""
    message = checked(RecallMemory, {"scope": scope, "query_summary": query, "limit": limit})
    return tool("recall_memory", message.model_dump(mode="json"), RecalledMemories.model_validate, reads=True)


def memory_query(operation: str, query: str, limit: int = 5) -> Request[MemoryFound]:
    """Look through the caller's episodes, context, style or failures; at most 20 results."""
    message = checked(MemoryQuery, {"operation": operation, "query": query, "limit": limit})
    return tool("memory_query", message.model_dump(mode="json"), MemoryFound.model_validate, reads=True)


def keep_memory(
    scope: str, key: str, content: str, confidence: float = 1.0, idempotency_key: str | None = None
) -> Request[KeptMemory]:
    """Keep one memory in a scope, in place of the one with that key; `confidence` from 0 to 1."""
    message = checked(KeepMemory, {"scope": scope, "key": key, "content": content, "confidence": confidence})
    body = message.model_dump(mode="json")
    return tool("keep_memory", body, KeptMemory.model_validate, key=idempotency_key or uuid4().hex)


def forget_memory(scope: str, key: str, idempotency_key: str | None = None) -> Request[ForgottenMemory]:
    """Remove one memory from a scope for good."""
    message = checked(ForgetMemory, {"scope": scope, "key": key})
    body = message.model_dump(mode="json")
    return tool("forget_memory", body, ForgottenMemory.model_validate, key=idempotency_key or uuid4().hex)


def tool(
    name: str, body: Mapping[str, Any], parse: Callable[[Any], T], *, key: str | None = None, reads: bool = False
) -> Request[T]:
    """A call of a tool that is known here by its type."""
    path = f"/api/v1/tools/{segment(name, 'name')}"
    return Request("POST", path, parse, json=dict(body), key=key, reads=reads, timeout=60.0)
