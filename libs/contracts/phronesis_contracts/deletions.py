"""Deletions: of a conversation, of all that is held of a user, and of what a tenant keeps for some days alone."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field

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


Counts = dict[str, dict[str, int]]
"""How many of what, by service."""


class UserPreview(Message):
    """What an erasure would remove, and what would stay."""

    user: str
    """The user, as they are named inside the tenant."""
    held: Counts
    """What would be erased: how many of what, by service."""
    kept: Counts
    """What would stay: entries without content, such as that something was done and when."""


class Erasure(Message):
    """The erasure of a user. Once it is complete, this is its proof; it holds counts and no content."""

    erasure_id: str
    """Its id, to look it up by."""
    user: str
    """The user who is erased, as they are named inside the tenant."""
    state: DeletionState
    """Whether two scans in a row found nothing of the user any more."""
    requested_by: str
    """Who asked for it."""
    requested_at: datetime
    """When it was asked for; the user's keys open nothing since then."""
    completed_at: datetime | None = None
    """When it was complete; absent until then."""
    before: Counts = Field(default_factory=dict)
    """What there was when it began: how many of what, by service."""
    after: Counts = Field(default_factory=dict)
    """What the last scan found, by service: nothing, once it is complete."""
    kept: Counts = Field(default_factory=dict)
    """What stays: entries without content, such as that something was done and when."""
    digest: str | None = None
    """SHA-256 of the proof, which the audit holds too; absent until it is complete."""


class ErasureList(Message):
    """Erasures, the newest first."""

    erasures: tuple[Erasure, ...]
    """The erasures, the newest first."""


Days = Annotated[int | None, Field(ge=1, le=36_500, strict=True)]


class Retention(Message):
    """For how many days a tenant keeps what; what is left out is kept for ever."""

    model_config = ConfigDict(extra="forbid")

    messages: Days = None
    """Days for messages that were added to memory, from their adding on."""
    episodes: Days = None
    """Days for what memory keeps of ended turns."""
    media: Days = None
    """Days for files, from their upload on."""
    conversations: Days = None
    """Days for conversations with agents, with their turns, from the last activity on."""
    traces: Days = None
    """Days for how answers came about."""


_HOLDERS = ("orchestrator", "memory", "instructions", "graph", "media")
USER_DATA = {name: Rpc(f"{name}.v1.user.data", Nothing, UserData, timeout=20.0) for name in _HOLDERS}
"""Count what a service holds of the caller."""
USER_ERASE = {name: Rpc(f"{name}.v1.user.erase", Nothing, PartErased, timeout=30.0) for name in _HOLDERS}
"""Erase a bounded part of what a service holds of the caller. It may be repeated, and is until it is done."""
AGED_DROP = {
    name: Rpc(f"{name}.v1.aged.drop", DropAged, PartErased, timeout=30.0) for name in sorted(set(OWNER_OF_AGED.values()))
}
"""Delete a bounded part of what a tenant does not keep any longer."""
