"""Contracts of forgetting for good: what is to go, what would go, and what went, in which service."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints

from .deletions import DeletionState, Purged
from .facts import Fact
from .messages import Event, Message, Rpc
from .tools import Risk, Tool

Id = Annotated[str, StringConstraints(min_length=1, max_length=200)]
MOST = 500
"""Facts and items that go at once."""
_SHOWN = 50


class ForgetFor(Message):
    """What to forget: one of the three."""

    model_config = ConfigDict(extra="forbid")

    ids: tuple[Id, ...] = Field(default=(), max_length=100)
    """Ids of facts, or ids or external ids of stored items."""
    subject: str | None = Field(default=None, min_length=1, max_length=200)
    """All facts about this subject, told with any capitals."""
    conversation_id: str | None = Field(default=None, min_length=1, max_length=64)
    """All that was learnt from this conversation."""


class ForgettingPreview(Message):
    """What would go. Nothing is changed."""

    facts: tuple[Fact, ...] = Field(default=(), max_length=_SHOWN)
    """The newest of the facts."""
    turns: tuple[str, ...] = ()
    """Turns whose texts would go, since something was said there that goes."""
    removed: dict[str, int]
    """How many of what this service would remove."""


class ForgettingRef(Message):
    """One forgetting by id."""

    forgetting_id: str


class Forgetting(Message):
    """A forgetting. What memory holds is gone from the start; `complete` once every service has reported."""

    forgetting_id: str
    state: DeletionState
    requested_at: datetime
    completed_at: datetime | None = None
    removed: dict[str, dict[str, int]] = Field(default_factory=dict)
    """What each service that has reported removed: how many of what."""


class MemoryForgotten(Message):
    """Something was forgotten: followers remove every copy of it, and report. Ids only."""

    forgetting_id: str
    owner: str
    ids: tuple[str, ...] = Field(default=(), max_length=2 * MOST)
    """Facts and items as replies cite them."""
    turns: tuple[str, ...] = Field(default=(), max_length=MOST)
    """Turns in which it was said."""
    found_by: tuple[str, ...] = Field(default=(), max_length=MOST)
    """Items by which the facts were found: what a tool gave names those."""


class CopiesPurged(Purged):
    """What the orchestrator removed for a forgetting."""

    turns: tuple[str, ...] = Field(default=(), max_length=10_000)
    """Turns that hold no text any more: what memory keeps of them goes too."""


FORGET_FOR_GOOD = Rpc("memory.v1.forgetting.begin", ForgetFor, Forgetting, timeout=20.0)
PREVIEW_FORGETTING = Rpc("memory.v1.forgetting.preview", ForgetFor, ForgettingPreview)
GET_FORGETTING = Rpc("memory.v1.forgetting.get", ForgettingRef, Forgetting)
MEMORY_FORGOTTEN = Event("memory.v1.forgetting.begun", MemoryForgotten, followers=("orchestrator",))
COPIES_PURGED = Event("orchestrator.v1.forgetting.purged", CopiesPurged, followers=("memory",), hearers=("orchestrator",))

FORGET_FOR_GOOD_TOOL = Tool(
    "memory.forget",
    "Forget facts or stored items of the caller for good: what was derived from them, their vectors and links, and the texts of"
    " the turns in which they were said or cited. The result tells what went, service by service.",
    FORGET_FOR_GOOD,
    risk=Risk.HIGH,
    irreversible=True,
)
PREVIEW_FORGETTING_TOOL = Tool(
    "memory.forget.preview", "What a forgetting would remove, without removing it.", PREVIEW_FORGETTING
)
GET_FORGETTING_TOOL = Tool("memory.forgetting", "How far a forgetting is, and what it removed so far.", GET_FORGETTING)
