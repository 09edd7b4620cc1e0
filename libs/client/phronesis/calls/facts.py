"""Facts known of the caller, their import, and forgetting for good."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import uuid4

from phronesis.request import Request
from phronesis_contracts.facts import (
    FactKind,
    FactList,
    ImportedMemory,
    ImportMemory,
    ListFacts,
    RecalledFacts,
    RecallFacts,
)
from phronesis_contracts.forgetting import ForgetFor, Forgetting, ForgettingPreview, ForgettingRef

from .parts import checked
from .tools import tool


def list_facts(
    subject: str | None = None, kind: FactKind | str | None = None, superseded: bool = False, limit: int = 50, offset: int = 0
) -> Request[FactList]:
    """What is known of the caller, the newest first; with `superseded`, what no longer holds too."""
    given = {"subject": subject, "kind": kind, "superseded": superseded, "limit": limit, "offset": offset}
    body = checked(ListFacts, given).model_dump(mode="json", exclude_none=True)
    return tool("facts.list", body, FactList.model_validate, reads=True)


def recall_facts(query: str, limit: int = 10) -> Request[RecalledFacts]:
    """Facts that bear on `query`, best first, each with what gave it its score."""
    body = checked(RecallFacts, {"query": query, "limit": limit}).model_dump(mode="json")
    return tool("facts.recall", body, RecalledFacts.model_validate, reads=True)


def import_memory(lines: str, idempotency_key: str | None = None) -> Request[ImportedMemory]:
    """Take facts in from JSON Lines: at most 500 lines and 400,000 bytes, all or none."""
    body = checked(ImportMemory, {"lines": lines}).model_dump(mode="json")
    return tool("facts.import", body, ImportedMemory.model_validate, key=idempotency_key or uuid4().hex)


def preview_forgetting(
    ids: Iterable[str] = (), subject: str | None = None, conversation_id: str | None = None
) -> Request[ForgettingPreview]:
    """What a forgetting would remove: facts or items by id, all about a subject, or all that a conversation taught."""
    body = _what(ids, subject, conversation_id)
    return tool("memory.forget.preview", body, ForgettingPreview.model_validate, reads=True)


def forget_for_good(
    ids: Iterable[str] = (),
    subject: str | None = None,
    conversation_id: str | None = None,
    idempotency_key: str | None = None,
) -> Request[Forgetting]:
    """Forget, wherever a copy is; `forgetting` tells how far it is."""
    body = _what(ids, subject, conversation_id)
    return tool("memory.forget", body, Forgetting.model_validate, key=idempotency_key or uuid4().hex)


def forgetting(forgetting_id: str) -> Request[Forgetting]:
    """How far a forgetting is, and what went, service by service."""
    body = checked(ForgettingRef, {"forgetting_id": forgetting_id}).model_dump(mode="json")
    return tool("memory.forgetting", body, Forgetting.model_validate, reads=True)


def _what(ids: Iterable[str], subject: str | None, conversation_id: str | None) -> dict[str, object]:
    given = {"ids": tuple(ids), "subject": subject, "conversation_id": conversation_id}
    return checked(ForgetFor, given).model_dump(mode="json", exclude_none=True)
