"""Deletions: of a conversation, of all that is held of a user, and of what a tenant keeps for some days alone."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from .messages import Message, Nothing, Rpc


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


class UserData(Message):
    """What a service holds of the caller: how many of what, and no content."""

    held: dict[str, int] = Field(default_factory=dict)
    """What an erasure removes, by kind."""
    kept: dict[str, int] = Field(default_factory=dict)
    """What stays behind it, such as entries of the audit, without anything that the user said."""


class PartErased(Message):
    """One step of the erasure of the caller's data in a service."""

    removed: dict[str, int] = Field(default_factory=dict)
    """How many of what this step removed."""
    done: bool
    """Whether nothing is left; otherwise the next step goes on."""


class Aged(StrEnum):
    """What a tenant may keep for some days alone."""

    MESSAGES = "messages"
    """Messages that were added to memory, by the time of adding."""
    EPISODES = "episodes"
    """What memory keeps of ended turns."""
    MEDIA = "media"
    """Files, by the time of their upload."""
    CONVERSATIONS = "conversations"
    """Conversations with agents, with their turns, by the time of the last activity."""
    TRACES = "traces"
    """How answers came about."""


OWNER_OF_AGED = {
    Aged.MESSAGES: "memory",
    Aged.EPISODES: "memory",
    Aged.MEDIA: "media",
    Aged.CONVERSATIONS: "orchestrator",
    Aged.TRACES: "orchestrator",
}
"""The service that holds each."""


class DropAged(Message):
    """Delete what is older than a tenant keeps it, in one bounded step."""

    what: Aged
    before: datetime
    """What is from before this moment goes."""


_HOLDERS = ("orchestrator", "memory", "instructions", "graph", "media")
USER_DATA = {name: Rpc(f"{name}.v1.user.data", Nothing, UserData, timeout=20.0) for name in _HOLDERS}
"""Count what a service holds of the caller."""
USER_ERASE = {name: Rpc(f"{name}.v1.user.erase", Nothing, PartErased, timeout=30.0) for name in _HOLDERS}
"""Erase a bounded part of what a service holds of the caller. It may be repeated, and is until it is done."""
AGED_DROP = {
    name: Rpc(f"{name}.v1.aged.drop", DropAged, PartErased, timeout=30.0) for name in sorted(set(OWNER_OF_AGED.values()))
}
"""Delete a bounded part of what a tenant does not keep any longer."""
