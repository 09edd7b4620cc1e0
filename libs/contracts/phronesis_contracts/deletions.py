"""The deletion of a conversation, from the wish to what each service reports."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from .messages import Message


class DeleteConversation(Message):
    """A conversation to delete for good."""

    conversation_id: str


class DeletionRef(Message):
    """One deletion by id."""

    deletion_id: str


class DeletionState(StrEnum):
    """Whether every service has reported."""

    PENDING = "pending"
    COMPLETE = "complete"


class Deletion(Message):
    """A conversation's deletion. The conversation is out of sight from the start; `complete` means that nothing is left."""

    deletion_id: str
    """Its id, to look it up by."""
    conversation_id: str
    """The conversation that is deleted."""
    state: DeletionState
    """Whether every service has removed its part."""
    requested_at: datetime
    """When the deletion was asked for; the conversation is out of sight since then."""
    completed_at: datetime | None = None
    """When the last service was done; absent until then."""
    removed: dict[str, dict[str, int]] = Field(default_factory=dict)
    """What each service that has reported removed: how many of what."""


MAX_RELEASED = 1_000
"""Media in one event of a deletion."""


class ConversationDeleted(Message):
    """A conversation was deleted: followers remove what was derived from it, and report with `Purged`. Ids only."""

    deletion_id: str
    conversation_id: str
    user: str
    media: tuple[str, ...] = Field(default=(), max_length=MAX_RELEASED)
    """Media that no other turn of the user refers to."""
    part: int = 1
    parts: int = 1
    """A long list of media takes several events."""


class Purged(Message):
    """What a service removed for a deletion; it has reported once all `parts` of its report have come."""

    deletion_id: str
    removed: dict[str, int] = Field(default_factory=dict)
    """How many of what."""
    part: int = 1
    parts: int = 1
