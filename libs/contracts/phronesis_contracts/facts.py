"""Contracts of the memory that forms itself: facts known of a user, and forgetting for good."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AwareDatetime, ConfigDict, Field, StringConstraints

from .deletions import DeletionState, Purged
from .memory import WRITERS
from .messages import Event, Message, Rpc
from .origins import UNKNOWN, Kept, Label
from .tools import Risk, Tool

MAX_IMPORT_BYTES = 400_000
"""Bytes of one import."""
MAX_IMPORT_LINES = 500
"""Lines of one import; a longer file takes several."""


class FactKind(StrEnum):
    """What a fact is about."""

    FACT = "fact"
    PREFERENCE = "preference"
    ENTITY = "entity"
    RELATION = "relation"
    NOTE = "note"
    """A sentence of the user's, kept in its own words and quoted where it answers a question; nothing is concluded from it."""


class Origin(StrEnum):
    """Who said it. It alone decides how far a fact is trusted."""

    USER = "user"
    """The user, in a message."""
    IMPORT = "import"
    REPLY = "reply"
    """An agent's own reply."""
    MEDIA = "media"
    """A document, a picture or a recording."""
    TOOL = "tool"


class Statement(Message):
    """One thing that somebody said, as subject, predicate and object."""

    kind: FactKind = FactKind.FACT
    subject: str = Field(default="user", min_length=1, max_length=200)
    """Whom or what it is about; `user` for the one who spoke."""
    predicate: str = Field(min_length=1, max_length=100)
    object: str = Field(min_length=1, max_length=1_000)
    text: str = Field(min_length=1, max_length=2_000)
    """The same as a sentence."""
    negated: bool = False
    """Whether it says that this is not, or no longer, so."""
    origin: Origin = Origin.USER
    confidence: float = Field(default=0.8, ge=0.0, le=1.0)
    """How sure whoever drew it from the words is."""
    labels: tuple[Label, ...] = ()
    """Where it comes from: of a document, the document. What the user said needs none."""


class FactSource(Message):
    """Where a fact was said."""

    turn_id: str | None = None
    conversation_id: str | None = None
    origin: Origin
    said_at: datetime


class Fact(Message):
    """One fact, held or superseded. Nothing is overwritten: what no longer holds keeps the time in which it did."""

    id: str
    kind: FactKind
    subject: str
    predicate: str
    object: str
    text: str
    """The same as a sentence. What others say is told as what they say: `According to invoice.pdf: …`."""
    negated: bool = False
    held: bool
    valid_from: datetime
    valid_to: datetime | None = None
    """Exclusive; absent while it is held. Equal to `valid_from` for what was never held, since a better source spoke."""
    recorded_at: datetime
    superseded_by: str | None = None
    confidence: float
    """0 to 1; grows with each time it is said."""
    trust: float
    """0 to 1, by its most trusted source."""
    origin: Origin
    sources: tuple[FactSource, ...] = ()
    labels: tuple[Label, ...] = UNKNOWN
    """Where it comes from."""


class ListFacts(Message):
    """The caller's facts, the newest first."""

    model_config = ConfigDict(extra="forbid")

    subject: str | None = Field(default=None, min_length=1, max_length=200)
    kind: FactKind | None = None
    """Facts of one kind. Without it every kind but notes, which are no facts."""
    superseded: bool = False
    """Whether what no longer holds is listed too."""
    limit: int = Field(default=50, ge=1, le=200)
    offset: int = Field(default=0, ge=0, le=100_000)


class FactList(Message):
    """Facts, the newest first."""

    facts: tuple[Fact, ...]
    total: int
    """All that the question covers."""


class RecallFacts(Message):
    """A question to the caller's facts."""

    model_config = ConfigDict(extra="forbid")

    query: str = Field(min_length=1, max_length=4_000)
    limit: int = Field(default=10, ge=1, le=50)


class Why(Message):
    """What gave a recalled fact its score."""

    vector: float | None = None
    """Cosine of the two meanings; absent where that search did not answer."""
    text: float | None = None
    """BM25 of the shared words."""
    words: tuple[str, ...] = ()
    """The words of the question that stand in the fact, by their stems."""
    relevance: float
    """0 to 1: both searches together."""
    recency: float
    """0 to 1: halves every 90 days since it was last said."""
    trust: float
    confidence: float
    asked: bool = False
    """Whether it is what the question asks for, as far as its words tell."""


class RecalledFact(Message):
    """One fact found, with the reason."""

    fact: Fact
    score: float
    why: Why


class RecalledFacts(Message):
    """Held facts, best first."""

    facts: tuple[RecalledFact, ...]
    degraded: tuple[str, ...] = ()


class ImportMemory(Kept):
    """Facts to take in, as JSON Lines: one object a line with `text` and, where known, the other fields of a statement and
    `at`, the time since which it holds. A line with `text` alone is read as a sentence of the user. All lines, or none."""

    model_config = ConfigDict(extra="forbid")

    lines: str = Field(min_length=1, max_length=MAX_IMPORT_BYTES)


class ImportedMemory(Message):
    """What became of the lines."""

    lines: int
    added: int
    confirmed: int
    superseded: int
    """Facts that newer lines took the place of."""
    skipped: int
    """Lines that hold a secret, or nothing that a fact can be made of."""
    skipped_lines: tuple[int, ...] = ()
    """Their numbers, from 1."""


class Learn(Message):
    """A turn to learn from, at hand or ended. What is learnt of a turn is learnt once, however often it is sent."""

    turn_id: str = Field(min_length=1, max_length=64)
    conversation_id: str = Field(min_length=1, max_length=64)
    said: str = Field(default="", max_length=100_000)
    """The user's own words. Where no statements are given, rules draw them from here."""
    said_at: AwareDatetime
    statements: tuple[Statement, ...] | None = Field(default=None, max_length=50)
    """What a model drew from the turn; absent where none was asked."""
    language: str | None = Field(default=None, max_length=35)
    """Code of the user's language, such as `en`; without it the words tell."""


class ReplacedFact(Message):
    """What no longer holds since something else was said."""

    id: str
    text: str
    words: str
    """The same as a sentence to the user."""


class LearntFact(Message):
    """What became of one statement."""

    id: str
    status: Literal["added", "confirmed", "kept"]
    """`kept`: told by a less trusted source than what is held, so that it is on record and not held."""
    text: str | None = None
    """The fact as memory keeps it."""
    words: str | None = None
    """The fact as a sentence to the user, in the language of the turn."""
    replaced: tuple[ReplacedFact, ...] = ()
    """What it took the place of."""


class Learnt(Message):
    """What a turn taught."""

    facts: tuple[LearntFact, ...] = ()
    superseded: int = 0
    refused: int = 0
    """Statements that hold a secret, or that their origin may not make."""
    correction: Literal["made", "unclear"] | None = None
    """Whether the turn corrects what was said before in its conversation; `unclear` where it does not tell what."""


class AskFacts(Message):
    """A question about the caller, or about somebody of theirs. Words such as `forget my address` are read as one too."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(min_length=1, max_length=4_000)
    language: str | None = Field(default=None, max_length=35)
    """Code of the user's language, such as `en`; without it the words tell."""
    as_of: AwareDatetime | None = None
    """The time at which the facts held; now without it."""
    limit: int = Field(default=10, ge=1, le=50)


class AnsweringFact(Message):
    """One fact that answers a question."""

    fact: Fact
    words: str
    """The fact as a sentence to the user, in the language of the question."""
    confidence: float
    """0 to 1: how sure the fact is, and that it answers."""


class AnsweredFacts(Message):
    """What answers a question, surest first. A fact that only lies near it is not among them."""

    facts: tuple[AnsweringFact, ...] = ()
    known: bool
    """Whether there is an answer."""
    understood: bool
    """Whether the question asks for something that facts are kept of; where it does not, nothing was looked for."""
    subject: str | None = None
    """Whom it asks about: `user`, `user's wife`, or a name."""
    near: tuple[AnsweringFact, ...] = ()
    """What comes nearest where nothing answers; it may be something else."""
    predicates: tuple[str, ...] = ()
    """What it asks for, such as `works at`; empty where it was looked for by its words."""


LEARN = Rpc("memory.v1.facts.learn", Learn, Learnt, timeout=15.0)
ASK_FACTS = Rpc("memory.v1.facts.ask", AskFacts, AnsweredFacts)
LIST_FACTS = Rpc("memory.v1.facts.list", ListFacts, FactList)
RECALL_FACTS = Rpc("memory.v1.facts.recall", RecallFacts, RecalledFacts)
IMPORT_MEMORY = Rpc("memory.v1.facts.import", ImportMemory, ImportedMemory, timeout=30.0, max_bytes=900_000)

LIST_FACTS_TOOL = Tool(
    "facts.list",
    "What is known of the caller as single facts, each with its sources and the time in which it held.",
    LIST_FACTS,
)
RECALL_FACTS_TOOL = Tool(
    "facts.recall", "Find facts known of the caller that bear on a question, each with what gave it its score.", RECALL_FACTS
)
IMPORT_MEMORY_TOOL = Tool(
    "facts.import",
    "Take facts of the caller in from JSON Lines, all or none; a bad line is named by its number.",
    IMPORT_MEMORY,
    risk=Risk.LOW,
    agents=WRITERS,
)

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
