"""Contracts of memory as other programs use it: messages and texts are added, found, read, changed and deleted."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BeforeValidator, ConfigDict, Field, StringConstraints

from .memory import WRITERS, ItemKind
from .messages import Message, Rpc
from .origins import UNKNOWN, Kept, Label
from .tools import Risk, Tool

MemoryId = Annotated[str, StringConstraints(min_length=1, max_length=200)]
"""An id, or the caller's own external id."""
Metadata = dict[str, str | int | float | bool | None]
"""Values of the caller's own by name: plain ones, so that a search can filter by them and every client has a type for them."""


def _no_number(value: Any) -> Any:
    if isinstance(value, int | float) or (isinstance(value, str) and re.fullmatch(r"[+-]?[0-9.]+", value)):
        raise ValueError("a moment is wanted, as 2026-03-04T12:00:00Z")
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_no_number)]
"""A moment as ISO 8601 writes it, with its time zone; no number of seconds is one."""
SearchedKind = Literal[ItemKind.FACT, ItemKind.NOTE, ItemKind.CONCEPT, ItemKind.MESSAGE, ItemKind.EPISODE]


class Described(Message):
    """Base of what is described field by field, for whoever reads a schema instead of this file."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class NewMemory(Described):
    """One message of a conversation, or one text."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(min_length=1, max_length=20_000)
    """What was said or written."""
    speaker: str | None = Field(default=None, min_length=1, max_length=200)
    """Who said it, by name or as `user` or `assistant`."""
    occurred_at: Moment | None = None
    """When it was said, with its time zone; the moment of adding it by default."""
    external_id: str | None = Field(default=None, min_length=1, max_length=200)
    """Your own id for it. The same id again replaces the memory."""
    metadata: Metadata = Field(default_factory=dict)
    """Your own values, such as `{"channel": "email"}`; a search can filter by them."""
    expires_at: Moment | None = None
    """When it is to be forgotten, a moment still to come, with its time zone. From then on nothing finds it, and shortly after
    it is deleted for good; without one it stays."""


class AddMemories(Described, Kept):
    """Up to 500 memories in the order in which they were said; all are stored, or none."""

    model_config = ConfigDict(extra="forbid")

    memories: tuple[NewMemory, ...] = Field(min_length=1, max_length=500)
    """What to remember."""
    conversation_id: str | None = Field(default=None, min_length=1, max_length=200)
    """The conversation that the messages belong to; a message is found by what was said around it too."""
    wait: Annotated[bool, Field(strict=True)] = False
    """Whether to answer only once they are found by their meaning. Otherwise the answer comes once they are stored: they are
    found by their words at once, and by their meaning a moment later."""


class AddedMemory(Described):
    """What became of one memory."""

    id: str
    """Its id."""
    external_id: str | None = None
    """Your own id for it."""
    status: Literal["created", "updated", "unchanged"]
    """Whether it is new, took the place of the one with this external id, or was there as it is."""


class AddedMemories(Described):
    """The memories in the order in which they were given. They are stored, and found by their words."""

    memories: tuple[AddedMemory, ...]
    """What became of each."""


class Memory(Described):
    """One thing that is remembered for a user."""

    id: str
    """Its id."""
    external_id: str | None = None
    """Your own id for it."""
    kind: ItemKind
    """`message` of a conversation, `note` for a text, `fact` for what was learnt of the user, `concept` or `episode`."""
    text: str
    """What was said or written."""
    speaker: str | None = None
    """Who said it."""
    conversation_id: str | None = None
    """The conversation that it belongs to."""
    position: int | None = None
    """Its place among the messages of its conversation: a later one has a greater one."""
    occurred_at: datetime
    """When it was said; when it was added where that was not stated."""
    created_at: datetime
    """When it was added."""
    updated_at: datetime
    """When it was changed last."""
    metadata: Metadata = Field(default_factory=dict)
    """Your own values."""
    expires_at: datetime | None = None
    """When it is forgotten; absent where it stays."""
    labels: tuple[Label, ...] = UNKNOWN
    """Where it comes from, and what it was formed from."""


class MemoryFilter(Described):
    """What memories have to be, beside what they say."""

    kinds: tuple[SearchedKind, ...] = ()
    """Only these kinds; all of them when empty."""
    conversation_id: str | None = Field(default=None, min_length=1, max_length=200)
    """Only messages of this conversation."""
    since: Moment | None = None
    """Only what was said at this moment or later."""
    until: Moment | None = None
    """Only what was said before this moment."""
    metadata: Metadata = Field(default_factory=dict)
    """Only what holds all of these values in its metadata."""


class SearchMemories(MemoryFilter):
    """What to look for in the caller's memory."""

    model_config = ConfigDict(extra="forbid")

    query: str = Field(min_length=1, max_length=4_000)
    """A question, or a few words."""
    limit: int = Field(default=10, ge=1, le=100)
    """Memories at most."""
    as_of: Moment | None = None
    """As memory was at this moment: what was added later is left out, and what was changed later is told as it was."""


class FoundMemory(Memory):
    """A memory that a search found, and why."""

    score: float
    """0 to 1, comparable between searches: how near it is in meaning and in words."""
    why: dict[str, float]
    """`vector` (cosine), `text` (BM25) and `neighbour` (the weighted scores of the messages around it), where it has them."""


class FoundMemories(Described):
    """Memories, best first. What has nothing to do with the query is not among them."""

    memories: tuple[FoundMemory, ...]
    """The memories found."""
    degraded: tuple[str, ...] = ()
    """Parts of the search that failed: `vector`, `text`; `size` where metadata leaves no room for more memories."""


class GetMemory(Described):
    """One memory by its id."""

    model_config = ConfigDict(extra="forbid")

    id: MemoryId
    """Its id, or your own external id."""


class ListMemories(MemoryFilter):
    """Memories of the caller, the newest first."""

    model_config = ConfigDict(extra="forbid")

    limit: int = Field(default=50, ge=1, le=200)
    """Memories of a page."""
    cursor: str | None = Field(default=None, min_length=1, max_length=200)
    """`next` of the page before."""


class MemoryPage(Described):
    """Memories, the newest first."""

    memories: tuple[Memory, ...]
    """The memories of the page: fewer than asked for where their metadata leaves no room for more."""
    next: str | None = None
    """The cursor of the next page; absent on the last one."""


class UpdateMemory(Described, Kept):
    """A correction of one memory; what is not given stays."""

    model_config = ConfigDict(extra="forbid")

    id: MemoryId
    """Its id, or your own external id."""
    text: str | None = Field(default=None, min_length=1, max_length=20_000)
    """The new text."""
    metadata: Metadata | None = None
    """All of the new metadata."""
    expires_at: Moment | Literal["never"] | None = None
    """When it is to be forgotten, or `never`."""


class MemoryVersion(Described):
    """What a memory said before it was changed."""

    text: str
    """What it said."""
    metadata: Metadata = Field(default_factory=dict)
    """The metadata that it had."""
    since: datetime
    """When it was said so."""
    until: datetime
    """When it was changed."""
    labels: tuple[Label, ...] = UNKNOWN
    """Where that comes from."""


class MemoryHistory(Described):
    """A memory as it is, and what it said before, the newest first: up to 50 versions."""

    memory: Memory
    """The memory as it is."""
    versions: tuple[MemoryVersion, ...] = ()
    """What it said before, the newest first."""


class DeleteMemories(Described):
    """Memories of the caller to delete for good, with their history."""

    model_config = ConfigDict(extra="forbid")

    ids: tuple[MemoryId, ...] = Field(min_length=1, max_length=100)
    """Their ids, or your own external ids."""


class DeletedMemories(Described):
    """Ids of the memories that there were."""

    ids: tuple[str, ...] = ()
    """The ids of what was deleted."""


class BuildContext(MemoryFilter):
    """A block of text for a prompt, made of what memory holds on a query."""

    model_config = ConfigDict(extra="forbid")

    query: str = Field(min_length=1, max_length=4_000)
    """A question, or a few words."""
    budget_tokens: int = Field(default=1_000, ge=50, le=32_000)
    """Tokens that the block may have."""


class MemoryContext(Described):
    """A block of text with a line for each memory, and the memories that it holds."""

    text: str
    """Lines such as `[1] 2026-03-04 Ada: …`, in the order in which they were said; empty where nothing was found."""
    memories: tuple[FoundMemory, ...] = ()
    """The sources of the lines, in the same order."""
    degraded: tuple[str, ...] = ()
    """Parts of the search that failed: `vector`, `text`; `size` where metadata leaves no room for more memories."""


ADD_MEMORIES = Rpc("memory.v1.memories.add", AddMemories, AddedMemories, timeout=20.0, max_bytes=1_000_000)
SEARCH_MEMORIES = Rpc("memory.v1.memories.search", SearchMemories, FoundMemories)
GET_MEMORY = Rpc("memory.v1.memories.get", GetMemory, Memory)
LIST_MEMORIES = Rpc("memory.v1.memories.list", ListMemories, MemoryPage)
UPDATE_MEMORY = Rpc("memory.v1.memories.update", UpdateMemory, Memory, timeout=10.0)
GET_HISTORY = Rpc("memory.v1.memories.history", GetMemory, MemoryHistory)
DELETE_MEMORIES = Rpc("memory.v1.memories.delete", DeleteMemories, DeletedMemories, timeout=10.0)
BUILD_CONTEXT = Rpc("memory.v1.memories.context", BuildContext, MemoryContext)

ADD_MEMORIES_TOOL = Tool(
    "memory.add",
    "Remember messages of a conversation, or texts, for the user. The same external_id again replaces a memory.",
    ADD_MEMORIES,
    risk=Risk.LOW,
    agents=WRITERS,
)
SEARCH_MEMORIES_TOOL = Tool(
    "memory.search",
    "Find what the user's memory holds on a question: what was said in conversations, texts and facts, best first.",
    SEARCH_MEMORIES,
)
GET_MEMORY_TOOL = Tool("memory.get", "Read one memory by its id.", GET_MEMORY)
LIST_MEMORIES_TOOL = Tool("memory.list", "List the user's memories, the newest first.", LIST_MEMORIES)
UPDATE_MEMORY_TOOL = Tool(
    "memory.update",
    "Correct the text, the metadata or the time of expiry of one memory; what it said before stays in its history.",
    UPDATE_MEMORY,
    risk=Risk.LOW,
    agents=WRITERS,
)
GET_HISTORY_TOOL = Tool("memory.history", "Show what a memory said before it was changed.", GET_HISTORY)
DELETE_MEMORIES_TOOL = Tool(
    "memory.delete",
    "Delete memories of the user for good, by id or external id.",
    DELETE_MEMORIES,
    risk=Risk.MEDIUM,
    irreversible=True,
)
BUILD_CONTEXT_TOOL = Tool(
    "memory.context",
    "A block of text for a prompt, with what memory holds on a question, within a token budget.",
    BUILD_CONTEXT,
)
