"""Tools by name, and those of memory with their types: items, scopes, facts, and forgetting for good."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeVar
from uuid import uuid4

from phronesis_contracts import Message, Risk, Tool, episodes, facts, memories, memory

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
    name: str,
    body: Mapping[str, Any],
    parse: Callable[[Any], T],
    *,
    key: str | None = None,
    reads: bool = False,
    user_id: str | None = None,
) -> Request[T]:
    path = f"/api/v1/tools/{path_segment(name, 'name')}"
    return Request("POST", path, parse, json=dict(body), key=key, reads=reads, timeout=60.0, user=user_id)


def _tool_request(
    tool: Tool[Any, Out],
    fields: Mapping[str, Any],
    key: str | None = None,
    *,
    defaults: bool = True,
    user_id: str | None = None,
) -> Request[Out]:
    """A call of a tool that is known here by its contract; one that writes gets an idempotency key."""
    message = validate_message(tool.rpc.input, fields)
    body = message.model_dump(mode="json", exclude_none=True, exclude_defaults=not defaults)
    reads = tool.risk is Risk.READ
    once = None if reads else key or uuid4().hex
    return _request(tool.name, body, tool.rpc.output.model_validate, key=once, reads=reads, user_id=user_id)


def add(
    given: str | memories.NewMemory | Mapping[str, Any] | Iterable[str | memories.NewMemory | Mapping[str, Any]],
    *,
    conversation_id: str | None = None,
    expires_at: datetime | str | None = None,
    wait: bool = False,
    idempotency_key: str | None = None,
    user_id: str | None = None,
) -> Request[memories.AddedMemories]:
    """Remember messages of a conversation, or texts: up to 500 at once, all or none.

    Args:
        given: one or several; a string is a text, a mapping has the fields of `NewMemory`, such as
            `{"speaker": "Ada", "text": "The launch is on 4 May"}`.
        conversation_id: the conversation that they belong to, in the order in which they were said.
        expires_at: when those are to be forgotten that state no time of their own; a time with its zone.
        wait: return only once they are found by their meaning; otherwise that comes a moment after they are stored.
        idempotency_key: the same key again adds nothing twice; one is made where none is given.
        user_id: your own name for the user that it is done for; the key needs the scope `act_for_users`. So in all calls.
    """
    several = [given] if isinstance(given, str | memories.NewMemory | Mapping) else list(given)
    items = [{"text": one} if isinstance(one, str) else one for one in several]
    if expires_at is not None:
        items = [_expiring(one, expires_at) for one in items]
    fields = {"memories": items, "conversation_id": conversation_id, "wait": wait}
    return _tool_request(memories.ADD_MEMORIES_TOOL, fields, idempotency_key, defaults=False, user_id=user_id)


_MOST_ADDED, _BYTES_ADDED = 500, 400_000
"""What one call adds: the broker takes a megabyte, and a batch of less is stored well within the time of a call."""


def batches(given: Iterable[memories.NewMemory]) -> Iterator[list[memories.NewMemory]]:
    """Any number of memories in batches that `add` takes: 500 at most, and 400,000 bytes unless one alone has more."""
    batch: list[memories.NewMemory] = []
    size = 0
    for one in given:
        bytes_ = len(one.model_dump_json().encode())
        if batch and (len(batch) == _MOST_ADDED or size + bytes_ > _BYTES_ADDED):
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += bytes_
    if batch:
        yield batch


def _expiring(one: memories.NewMemory | Mapping[str, Any], at: datetime | str) -> Mapping[str, Any]:
    given = one.model_dump(mode="json", exclude_none=True) if isinstance(one, memories.NewMemory) else dict(one)
    return {"expires_at": at} | given


def search(
    query: str,
    *,
    limit: int = 10,
    kinds: str | Iterable[str] = (),
    conversation_id: str | None = None,
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    metadata: Mapping[str, Any] | None = None,
    as_of: datetime | str | None = None,
    user_id: str | None = None,
) -> Request[memories.FoundMemories]:
    """Find what memory holds on `query`, best first; what has nothing to do with it is left out.

    Args:
        limit: memories at most, up to 100.
        kinds: only `message`, `note`, `fact`, `concept` or `episode`.
        conversation_id: only messages of this conversation.
        since: only what was said then or later; a time with its zone.
        until: only what was said before.
        metadata: only what holds all of these values.
        as_of: memory as it was then.
    """
    wanted = _filter(kinds, conversation_id, since, until, metadata)
    fields = {"query": query, "limit": limit, "as_of": as_of} | wanted
    return _tool_request(memories.SEARCH_MEMORIES_TOOL, fields, user_id=user_id)


def get(id: str, *, user_id: str | None = None) -> Request[memories.Memory]:
    """One memory, by its id or external id."""
    return _tool_request(memories.GET_MEMORY_TOOL, {"id": id}, user_id=user_id)


def list_memories(
    *,
    limit: int = 50,
    cursor: str | None = None,
    kinds: str | Iterable[str] = (),
    conversation_id: str | None = None,
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    metadata: Mapping[str, Any] | None = None,
    user_id: str | None = None,
) -> Request[memories.MemoryPage]:
    """A page of memories, the newest first. `cursor`: `next` of the page before; the filters are those of `search`."""
    fields = {"limit": limit, "cursor": cursor} | _filter(kinds, conversation_id, since, until, metadata)
    return _tool_request(memories.LIST_MEMORIES_TOOL, fields, user_id=user_id)


def update(
    id: str,
    *,
    text: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    expires_at: datetime | str | None = None,
    idempotency_key: str | None = None,
    user_id: str | None = None,
) -> Request[memories.Memory]:
    """Correct the text of a memory, or all of its metadata; what it said before stays in its history.

    Args:
        expires_at: when it is to be forgotten; `"never"` lets it stay.
    """
    fields = {"id": id, "text": text, "metadata": None if metadata is None else dict(metadata), "expires_at": expires_at}
    return _tool_request(memories.UPDATE_MEMORY_TOOL, fields, idempotency_key, user_id=user_id)


def history(id: str, *, user_id: str | None = None) -> Request[memories.MemoryHistory]:
    """A memory, and what it said before it was changed, the newest first."""
    return _tool_request(memories.GET_HISTORY_TOOL, {"id": id}, user_id=user_id)


def delete(
    ids: str | Iterable[str], *, idempotency_key: str | None = None, user_id: str | None = None
) -> Request[memories.DeletedMemories]:
    """Delete up to 100 memories for good, by id or external id."""
    return _tool_request(memories.DELETE_MEMORIES_TOOL, {"ids": listed(ids)}, idempotency_key, user_id=user_id)


def context(
    query: str,
    *,
    budget_tokens: int = 1_000,
    kinds: str | Iterable[str] = (),
    conversation_id: str | None = None,
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    metadata: Mapping[str, Any] | None = None,
    user_id: str | None = None,
) -> Request[memories.MemoryContext]:
    """A block of text for a prompt with what memory holds on `query`, and its sources; the filters are those of `search`."""
    wanted = _filter(kinds, conversation_id, since, until, metadata)
    fields = {"query": query, "budget_tokens": budget_tokens} | wanted
    return _tool_request(memories.BUILD_CONTEXT_TOOL, fields, user_id=user_id)


def _filter(
    kinds: str | Iterable[str],
    conversation_id: str | None,
    since: datetime | str | None,
    until: datetime | str | None,
    metadata: Mapping[str, Any] | None,
) -> dict[str, Any]:
    return {
        "kinds": listed(kinds),
        "conversation_id": conversation_id,
        "since": since,
        "until": until,
        "metadata": dict(metadata or {}),
    }


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
    """What is known of the caller, the newest first; with `superseded`, what no longer holds too.

    Sentences that are kept as they were said are listed with the kind `note` alone.
    """
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
