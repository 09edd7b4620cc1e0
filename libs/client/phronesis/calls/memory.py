"""Tools by name, and those of memory with their types: items, scopes, facts, and forgetting for good."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar
from uuid import uuid4

from phronesis_contracts import Message, Risk, Tool, episodes, facts, memory

from ..models import ToolInfo
from ..request import Request, listed, parse_list, path_segment, validate_message

T = TypeVar("T")
Out = TypeVar("Out", bound=Message)


def list_tools() -> Request[tuple[ToolInfo, ...]]:
    """The tools that this caller may call."""
    return Request("GET", "/api/v1/tools", parse_list(ToolInfo, "tools"), reads=True)


def call_tool(name: str, input: Mapping[str, Any], idempotency_key: str | None = None) -> Request[dict[str, Any]]:
    """Call a tool by name. With an idempotency key it is repeated on a passing failure, without one it is not."""
    return _request(name, input, dict, key=idempotency_key)


def _request(
    name: str, body: Mapping[str, Any], parse: Callable[[Any], T], *, key: str | None = None, reads: bool = False
) -> Request[T]:
    path = f"/api/v1/tools/{path_segment(name, 'name')}"
    return Request("POST", path, parse, json=dict(body), key=key, reads=reads, timeout=60.0)


def _tool_request(
    tool: Tool[Any, Out], fields: Mapping[str, Any], key: str | None = None, *, defaults: bool = True
) -> Request[Out]:
    """A call of a tool that is known here by its contract; one that writes gets an idempotency key."""
    message = validate_message(tool.rpc.input, fields)
    body = message.model_dump(mode="json", exclude_none=True, exclude_defaults=not defaults)
    reads = tool.risk is Risk.READ
    return _request(tool.name, body, tool.rpc.output.model_validate, key=None if reads else key or uuid4().hex, reads=reads)


def remember(
    items: str | Iterable[memory.RememberItem | str], idempotency_key: str | None = None
) -> Request[memory.Remembered]:
    """Store up to 500 things in the caller's memory, all or none; a string is a fact."""
    given = [{"text": item} if isinstance(item, str) else item for item in listed(items)]
    return _tool_request(memory.REMEMBER_TOOL, {"items": given}, idempotency_key, defaults=False)


def recall(query: str, limit: int = 10, kinds: str | Iterable[memory.ItemKind] = ()) -> Request[memory.Recalled]:
    """Find what the caller's memory holds on `query`, best first; not what was lived through unless `kinds` names it."""
    return _tool_request(memory.RECALL_TOOL, {"query": query, "limit": limit, "kinds": listed(kinds)})


def forget(ids: str | Iterable[str], idempotency_key: str | None = None) -> Request[memory.Forgotten]:
    """Remove up to 100 items from the caller's memory for good, by id or external id."""
    return _tool_request(memory.FORGET_TOOL, {"ids": listed(ids)}, idempotency_key)


def recall_memory(scope: str, query: str, limit: int = 5) -> Request[memory.RecalledMemories]:
    """Find what one scope holds on `query`, best first; at most 50."""
    return _tool_request(memory.RECALL_MEMORY_TOOL, {"scope": scope, "query_summary": query, "limit": limit})


def memory_query(operation: str, query: str, limit: int = 5) -> Request[episodes.MemoryFound]:
    """Look through the caller's episodes, context, style or failures; at most 20 results."""
    return _tool_request(episodes.MEMORY_QUERY_TOOL, {"operation": operation, "query": query, "limit": limit})


def keep_memory(
    scope: str, key: str, content: str, confidence: float = 1.0, idempotency_key: str | None = None
) -> Request[memory.KeptMemory]:
    """Keep one memory in a scope, in place of the one with that key; `confidence` from 0 to 1."""
    fields = {"scope": scope, "key": key, "content": content, "confidence": confidence}
    return _tool_request(memory.KEEP_MEMORY_TOOL, fields, idempotency_key)


def forget_memory(scope: str, key: str, idempotency_key: str | None = None) -> Request[memory.ForgottenMemory]:
    """Remove one memory from a scope for good."""
    return _tool_request(memory.FORGET_MEMORY_TOOL, {"scope": scope, "key": key}, idempotency_key)


def list_facts(
    subject: str | None = None,
    kind: facts.FactKind | str | None = None,
    superseded: bool = False,
    limit: int = 50,
    offset: int = 0,
) -> Request[facts.FactList]:
    """What is known of the caller, the newest first; with `superseded`, what no longer holds too."""
    fields = {"subject": subject, "kind": kind, "superseded": superseded, "limit": limit, "offset": offset}
    return _tool_request(facts.LIST_FACTS_TOOL, fields)


def recall_facts(query: str, limit: int = 10) -> Request[facts.RecalledFacts]:
    """Facts that bear on `query`, best first, each with what gave it its score."""
    return _tool_request(facts.RECALL_FACTS_TOOL, {"query": query, "limit": limit})


def import_memory(lines: str, idempotency_key: str | None = None) -> Request[facts.ImportedMemory]:
    """Take facts in from JSON Lines: at most 500 lines and 400,000 bytes, all or none."""
    return _tool_request(facts.IMPORT_MEMORY_TOOL, {"lines": lines}, idempotency_key)


def preview_forgetting(
    ids: str | Iterable[str] = (), subject: str | None = None, conversation_id: str | None = None
) -> Request[facts.ForgettingPreview]:
    """What a forgetting would remove: facts or items by id, all about a subject, or all that a conversation taught."""
    fields = {"ids": listed(ids), "subject": subject, "conversation_id": conversation_id}
    return _tool_request(facts.PREVIEW_FORGETTING_TOOL, fields)


def forget_for_good(
    ids: str | Iterable[str] = (),
    subject: str | None = None,
    conversation_id: str | None = None,
    idempotency_key: str | None = None,
) -> Request[facts.Forgetting]:
    """Forget, wherever a copy is; `forgetting` tells how far it is."""
    fields = {"ids": listed(ids), "subject": subject, "conversation_id": conversation_id}
    return _tool_request(facts.FORGET_FOR_GOOD_TOOL, fields, idempotency_key)


def forgetting(forgetting_id: str) -> Request[facts.Forgetting]:
    """How far a forgetting is, and what went, service by service."""
    return _tool_request(facts.GET_FORGETTING_TOOL, {"forgetting_id": forgetting_id})
