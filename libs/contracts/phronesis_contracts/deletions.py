"""Deletions: of a conversation, of all that came of a source, of a user's data, and of what a tenant keeps for some days."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field

from .messages import WRITTEN_AS_NUMBER, Message, Nothing, Rpc
from .origins import OriginKind


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


Days = Annotated[int, Field(ge=1, le=36_500), WRITTEN_AS_NUMBER] | None


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


class OriginRef(Message):
    """One origin of texts, or all of a kind."""

    model_config = ConfigDict(extra="forbid")

    kind: OriginKind
    """The kind. What the user said themselves, and what was formed from that, is no origin that can be forgotten."""
    id: str = Field(default="", max_length=200)
    """The medium, the tool, the server or the turn, as labels name it; all of the kind without it."""


def label_patterns(media: Iterable[str], origin: OriginRef | None) -> list[str]:
    """What the labels of a text contain that comes of one of these files, or of an origin: JSON, one for each."""
    patterns = [{"id": id} for id in media]
    if origin is not None:
        patterns.append({"kind": origin.kind.value} | ({"id": origin.id} if origin.id else {}))
    return [json.dumps([pattern]) for pattern in patterns]


class ForgetSource(Message):
    """A source to forget with all that came of it, in the memory and the conversations of the caller: one of the three."""

    model_config = ConfigDict(extra="forbid")

    document: str | None = Field(default=None, min_length=1, max_length=255)
    """A document, a picture or a recording: its id, or the name of a file that was attached to a conversation. Where several
    have that name, all of them."""
    conversation_id: str | None = Field(default=None, min_length=1, max_length=64)
    """A conversation, as far as it has come."""
    origin: OriginRef | None = None
    """An origin, by the labels that texts carry."""


class PreviewSource(ForgetSource):
    """A source, and which page of what came of it to list."""

    limit: int = Field(default=50, ge=1, le=200)
    """Things on the page."""
    offset: int = Field(default=0, ge=0, le=100_000)
    """Things that are passed over."""


class DerivedThing(Message):
    """One thing that came of a source."""

    kind: str
    """What it is: `fact`, `note`, `episode`, `strategy`, `memory`, `document`, `media` or `turn`."""
    id: str
    """Its id."""
    text: str = ""
    """What it says, cut where it is long; of a file, its name."""


class SourcePreview(Message):
    """What a forgetting would remove. Nothing is changed."""

    media: tuple[str, ...] = ()
    """Ids of the files that would go."""
    held: Counts
    """How many of what would go, by service."""
    detached: int = 0
    """Facts that stay, since the user said them too, and lose this source alone."""
    things: tuple[DerivedThing, ...] = ()
    """A page of what would go."""
    total: int
    """Things on all pages together."""
    more: bool = False
    """Whether there is more than is counted here: it goes all the same, in several rounds."""


class SourceForgetting(Message):
    """The forgetting of a source. Once it is complete, this is its proof; it holds ids and counts, and no content."""

    forgetting_id: str
    """Its id, to look it up by."""
    state: DeletionState
    """Whether two scans in a row found nothing that came of the source any more."""
    media: tuple[str, ...] = ()
    """The files that are forgotten, by id."""
    conversation_id: str | None = None
    """The conversation that is forgotten."""
    origin: OriginRef | None = None
    """The origin that is forgotten."""
    requested_at: datetime
    """When it was asked for."""
    completed_at: datetime | None = None
    """When it was complete; absent until then."""
    before: Counts = Field(default_factory=dict)
    """What there was when it began: how many of what, by service."""
    after: Counts = Field(default_factory=dict)
    """What the last scan found, by service: nothing, once it is complete."""
    digest: str | None = None
    """SHA-256 of the proof, which the audit holds too; absent until it is complete."""


class SourceForgettingRef(Message):
    """One forgetting of a source by id."""

    forgetting_id: str


class ListSourceForgettings(Message):
    """The caller's forgettings of sources, the newest first."""

    limit: int = Field(default=50, ge=1, le=200)


class SourceForgettings(Message):
    """Forgettings of sources, the newest first."""

    forgettings: tuple[SourceForgetting, ...]
    """The forgettings, the newest first."""


MAX_DERIVED = 2_000
"""Turns of one question for what was derived from them."""
MAX_FORGOTTEN_MEDIA = 100
"""Files that one forgetting covers."""


class Span(Message):
    """A stretch of time."""

    begin: datetime
    end: datetime


class FindDerived(Message):
    """What memory formed of turns of the caller and of a source. Of a source that is not stated, nothing."""

    turns: tuple[str, ...] = Field(default=(), max_length=MAX_DERIVED)
    spans: tuple[Span, ...] = Field(default=(), max_length=MAX_DERIVED)
    """When those turns were at work: what was searched for meanwhile, and kept, goes too."""
    media: tuple[str, ...] = Field(default=(), max_length=MAX_FORGOTTEN_MEDIA)
    name: str | None = Field(default=None, max_length=255)
    """Name of a file that was attached; its ids are added to `media`."""
    conversation_id: str | None = Field(default=None, max_length=64)
    origin: OriginRef | None = None


class Derived(Message):
    """What memory formed of it: ids and counts, and what each thing says."""

    ids: tuple[str, ...] = ()
    """The facts, items and files, as replies cite them and as memory puts them before a turn."""
    linked: tuple[str, ...] = ()
    """Those of them that the graph may know."""
    media: tuple[str, ...] = ()
    """Files that are part of the source."""
    counts: dict[str, int] = Field(default_factory=dict)
    """How many of what goes; nothing that is none."""
    detached: int = 0
    """Facts that stay, less their sources here."""
    things: tuple[DerivedThing, ...] = ()
    more: bool = False
    """Whether there is more than one answer holds."""


_HOLDERS = ("orchestrator", "memory", "instructions", "graph", "media")
USER_DATA = {name: Rpc(f"{name}.v1.user.data", Nothing, UserData, timeout=20.0) for name in _HOLDERS}
"""Count what a service holds of the caller."""
USER_ERASE = {name: Rpc(f"{name}.v1.user.erase", Nothing, PartErased, timeout=30.0) for name in _HOLDERS}
"""Erase a bounded part of what a service holds of the caller. It may be repeated, and is until it is done."""
AGED_DROP = {
    name: Rpc(f"{name}.v1.aged.drop", DropAged, PartErased, timeout=30.0) for name in sorted(set(OWNER_OF_AGED.values()))
}
"""Delete a bounded part of what a tenant does not keep any longer."""
FORGET_SOURCE = Rpc("orchestrator.v1.source.forget", ForgetSource, SourceForgetting, timeout=30.0)
PREVIEW_SOURCE = Rpc("orchestrator.v1.source.preview", PreviewSource, SourcePreview, timeout=30.0)
GET_SOURCE_FORGETTING = Rpc("orchestrator.v1.source.forgetting", SourceForgettingRef, SourceForgetting)
LIST_SOURCE_FORGETTINGS = Rpc("orchestrator.v1.source.forgettings", ListSourceForgettings, SourceForgettings)
FIND_DERIVED = Rpc("memory.v1.derived.find", FindDerived, Derived, timeout=15.0, max_bytes=1_000_000)
ERASE_DERIVED = Rpc("memory.v1.derived.erase", FindDerived, PartErased, timeout=30.0)
"""Erase a bounded part of it, and let late news of those turns bring nothing back; it is repeated until it is done."""
