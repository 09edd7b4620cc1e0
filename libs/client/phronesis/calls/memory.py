"""Tools by name, and those of memory with their types: items, scopes, facts, and forgetting for good."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar
from uuid import uuid4

from phronesis_contracts.episodes import MemoryFound, MemoryQuery
from phronesis_contracts.facts import (
    FactKind,
    FactList,
    ForgetFor,
    Forgetting,
    ForgettingPreview,
    ForgettingRef,
    ImportedMemory,
    ImportMemory,
    ListFacts,
    RecalledFacts,
    RecallFacts,
)
from phronesis_contracts.memory import (
    Forget,
    ForgetMemory,
    Forgotten,
    ForgottenMemory,
    ItemKind,
    KeepMemory,
    KeptMemory,
    Recall,
    Recalled,
    RecalledMemories,
    RecallMemory,
    Remember,
    Remembered,
    RememberItem,
)

from ..models import ToolInfo
from ..request import Request, parse_list, path_segment, validate_message

T = TypeVar("T")


def list_tools() -> Request[tuple[ToolInfo, ...]]:
    """The tools that this caller may call."""
    return Request("GET", "/api/v1/tools", parse_list(ToolInfo, "tools"), reads=True)


def call_tool(name: str, input: Mapping[str, Any], idempotency_key: str | None = None) -> Request[dict[str, Any]]:
    """Call a tool by name. With an idempotency key it is repeated on a passing failure, without one it is not."""
    return tool_request(name, input, dict, key=idempotency_key)


def remember(items: Iterable[RememberItem | str], idempotency_key: str | None = None) -> Request[Remembered]:
    """Store up to 500 things in the caller's memory, all or none; a string is a fact."""
    listed = [{"text": item} if isinstance(item, str) else item for item in items]
    message = validate_message(Remember, {"items": listed})
    body = message.model_dump(mode="json", exclude_defaults=True)
    return tool_request("remember", body, Remembered.model_validate, key=idempotency_key or uuid4().hex)


def recall(query: str, limit: int = 10, kinds: Iterable[ItemKind] = ()) -> Request[Recalled]:
    """Find what the caller's memory holds on `query`, best first; not what was lived through unless `kinds` names it."""
    message = validate_message(Recall, {"query": query, "limit": limit, "kinds": tuple(kinds)})
    return tool_request("recall", message.model_dump(mode="json"), Recalled.model_validate, reads=True)


def forget(ids: Iterable[str], idempotency_key: str | None = None) -> Request[Forgotten]:
    """Remove up to 100 items from the caller's memory for good, by id or external id."""
    message = validate_message(Forget, {"ids": tuple(ids)})
    return tool_request("forget", message.model_dump(mode="json"), Forgotten.model_validate, key=idempotency_key or uuid4().hex)


def recall_memory(scope: str, query: str, limit: int = 5) -> Request[RecalledMemories]:
    """Find what one scope holds on `query`, best first; at most 50."""
    message = validate_message(RecallMemory, {"scope": scope, "query_summary": query, "limit": limit})
    return tool_request("recall_memory", message.model_dump(mode="json"), RecalledMemories.model_validate, reads=True)


def memory_query(operation: str, query: str, limit: int = 5) -> Request[MemoryFound]:
    """Look through the caller's episodes, context, style or failures; at most 20 results."""
    message = validate_message(MemoryQuery, {"operation": operation, "query": query, "limit": limit})
    return tool_request("memory_query", message.model_dump(mode="json"), MemoryFound.model_validate, reads=True)


def keep_memory(
    scope: str, key: str, content: str, confidence: float = 1.0, idempotency_key: str | None = None
) -> Request[KeptMemory]:
    """Keep one memory in a scope, in place of the one with that key; `confidence` from 0 to 1."""
    message = validate_message(KeepMemory, {"scope": scope, "key": key, "content": content, "confidence": confidence})
    body = message.model_dump(mode="json")
    return tool_request("keep_memory", body, KeptMemory.model_validate, key=idempotency_key or uuid4().hex)


def forget_memory(scope: str, key: str, idempotency_key: str | None = None) -> Request[ForgottenMemory]:
    """Remove one memory from a scope for good."""
    message = validate_message(ForgetMemory, {"scope": scope, "key": key})
    body = message.model_dump(mode="json")
    return tool_request("forget_memory", body, ForgottenMemory.model_validate, key=idempotency_key or uuid4().hex)


def tool_request(
    name: str, body: Mapping[str, Any], parse: Callable[[Any], T], *, key: str | None = None, reads: bool = False
) -> Request[T]:
    """A call of a tool that is known here by its type."""
    path = f"/api/v1/tools/{path_segment(name, 'name')}"
    return Request("POST", path, parse, json=dict(body), key=key, reads=reads, timeout=60.0)


def list_facts(
    subject: str | None = None, kind: FactKind | str | None = None, superseded: bool = False, limit: int = 50, offset: int = 0
) -> Request[FactList]:
    """What is known of the caller, the newest first; with `superseded`, what no longer holds too."""
    given = {"subject": subject, "kind": kind, "superseded": superseded, "limit": limit, "offset": offset}
    body = validate_message(ListFacts, given).model_dump(mode="json", exclude_none=True)
    return tool_request("facts.list", body, FactList.model_validate, reads=True)


def recall_facts(query: str, limit: int = 10) -> Request[RecalledFacts]:
    """Facts that bear on `query`, best first, each with what gave it its score."""
    body = validate_message(RecallFacts, {"query": query, "limit": limit}).model_dump(mode="json")
    return tool_request("facts.recall", body, RecalledFacts.model_validate, reads=True)


def import_memory(lines: str, idempotency_key: str | None = None) -> Request[ImportedMemory]:
    """Take facts in from JSON Lines: at most 500 lines and 400,000 bytes, all or none."""
    body = validate_message(ImportMemory, {"lines": lines}).model_dump(mode="json")
    return tool_request("facts.import", body, ImportedMemory.model_validate, key=idempotency_key or uuid4().hex)


def preview_forgetting(
    ids: Iterable[str] = (), subject: str | None = None, conversation_id: str | None = None
) -> Request[ForgettingPreview]:
    """What a forgetting would remove: facts or items by id, all about a subject, or all that a conversation taught."""
    body = _forgetting_body(ids, subject, conversation_id)
    return tool_request("memory.forget.preview", body, ForgettingPreview.model_validate, reads=True)


def forget_for_good(
    ids: Iterable[str] = (),
    subject: str | None = None,
    conversation_id: str | None = None,
    idempotency_key: str | None = None,
) -> Request[Forgetting]:
    """Forget, wherever a copy is; `forgetting` tells how far it is."""
    body = _forgetting_body(ids, subject, conversation_id)
    return tool_request("memory.forget", body, Forgetting.model_validate, key=idempotency_key or uuid4().hex)


def forgetting(forgetting_id: str) -> Request[Forgetting]:
    """How far a forgetting is, and what went, service by service."""
    body = validate_message(ForgettingRef, {"forgetting_id": forgetting_id}).model_dump(mode="json")
    return tool_request("memory.forgetting", body, Forgetting.model_validate, reads=True)


def _forgetting_body(ids: Iterable[str], subject: str | None, conversation_id: str | None) -> dict[str, object]:
    given = {"ids": tuple(ids), "subject": subject, "conversation_id": conversation_id}
    return validate_message(ForgetFor, given).model_dump(mode="json", exclude_none=True)
