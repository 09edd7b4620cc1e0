"""Conversations: listed, read and deleted."""

from __future__ import annotations

from uuid import uuid4

from phronesis.request import Request
from phronesis_contracts.deletions import Deletion
from phronesis_contracts.orchestrator import Conversation, ConversationPage

from .parts import segment

CONVERSATIONS = "/api/v1/conversations"


def list_conversations(limit: int = 20, cursor: str | None = None) -> Request[ConversationPage]:
    """A page of the caller's conversations, newest activity first.

    Args:
        limit: 1 to 100.
        cursor: `next` of the page before.
    """
    params: dict[str, str | int] = {"limit": limit}
    if cursor is not None:
        params["cursor"] = cursor
    return Request("GET", CONVERSATIONS, ConversationPage.model_validate, params=params, reads=True)


def get_conversation(conversation_id: str, limit: int = 50, before: int | None = None) -> Request[Conversation]:
    """A conversation with its newest `limit` messages, before sequence `before` where stated."""
    params: dict[str, str | int] = {"limit": limit}
    if before is not None:
        params["before"] = before
    return Request("GET", _path(conversation_id), Conversation.model_validate, params=params, reads=True)


def delete_conversation(conversation_id: str) -> Request[Deletion]:
    """Delete a conversation for good, with what was learnt from it alone; `deletion` tells when nothing is left.

    A repeat is harmless: it answers with the same deletion.
    """
    return Request("DELETE", _path(conversation_id), Deletion.model_validate, key=uuid4().hex)


def get_deletion(deletion_id: str) -> Request[Deletion]:
    """How far a deletion is, and what each service removed."""
    path = f"/api/v1/deletions/{segment(deletion_id, 'deletion_id')}"
    return Request("GET", path, Deletion.model_validate, reads=True)


def _path(conversation_id: str) -> str:
    return f"{CONVERSATIONS}/{segment(conversation_id, 'conversation_id')}"
