"""Contracts of the memory service: profiles, knowledge items, retrieval, and memories by scope."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints

from .deletions import Purged
from .errors import Conflict, Unavailable
from .messages import Event, Message, Nothing, Rpc
from .origins import UNKNOWN, Kept, Label
from .principal import Agent, Principal
from .tools import Effect, Risk, Tool

WRITERS = frozenset(Agent) - {Agent.EDITOR}
SHARED = "*"
"""Owner of an item that the whole tenant may read; no user can have this name."""


class EmbeddingMismatch(Unavailable):
    """The stored vectors were made by another model, or have another dimension; they have to be made anew."""

    code = "memory.embedding_mismatch"


class ProfileChanged(Conflict):
    """The profile is no longer the version that was to be changed; read it again."""

    code = "memory.profile_changed"
    status = 412


class EntityType(StrEnum):
    """The two kinds of entity that hybrid retrieval hydrates."""

    MEMORY_UNIT = "MemoryUnit"
    CONCEPT = "Concept"


class ItemKind(StrEnum):
    """What a knowledge item is. `concept` and `node` are Concepts; the others are MemoryUnits."""

    FACT = "fact"
    NOTE = "note"
    EPISODE = "episode"
    MESSAGE = "message"
    """What somebody said in a conversation; found with what was said around it, by `memory.search` alone."""
    CONCEPT = "concept"
    NODE = "node"
    """A text of a graph node: a projection that the whole tenant may read, made by following the graph."""
    STYLE = "style"
    """A sample of how its owner writes; found by `memory_query` and by name alone."""
    STRATEGY = "strategy"
    """The goal of a task that went well, with what led there beside it; made by `strategies.record` alone."""
    PASSAGE = "passage"
    """A passage of a document; found in the conversation that it was attached to, by `documents.search` alone."""

    @property
    def entity_type(self) -> EntityType:
        """The entity type this kind is hydrated as."""
        return EntityType.CONCEPT if self in (ItemKind.CONCEPT, ItemKind.NODE) else EntityType.MEMORY_UNIT


class RememberItem(Message):
    """One thing to remember for the caller."""

    text: str = Field(min_length=1, max_length=20_000)
    external_id: str | None = Field(default=None, min_length=1, max_length=200)
    """The caller's own id; the same id again replaces the item."""
    title: str | None = Field(default=None, max_length=300)
    kind: ItemKind = ItemKind.FACT
    metadata: dict[str, Any] = Field(default_factory=dict)
    links: tuple[str, ...] = Field(default=(), max_length=50)
    """External ids of the caller's items that this one is related to."""
    sources: tuple[Annotated[str, StringConstraints(min_length=1, max_length=64)], ...] = Field(default=(), max_length=50)
    """Conversations that it was learnt from; it is forgotten with the last of them, and never where none is stated."""


class Remember(Kept):
    """Up to 500 items at once; all are stored, or none."""

    items: tuple[RememberItem, ...] = Field(min_length=1, max_length=500)


class RememberedItem(Message):
    """What became of one item: `created`, `updated` or `unchanged`."""

    id: str
    external_id: str | None = None
    status: str


class Remembered(Message):
    """The result of `remember`, in the order of the items."""

    items: tuple[RememberedItem, ...]


class Recall(Message):
    """A question to the caller's memory."""

    query: str = Field(min_length=1, max_length=4_000)
    limit: int = Field(default=10, ge=1, le=100)
    kinds: tuple[ItemKind, ...] = ()
    """Only these kinds; facts, notes, concepts and nodes when empty."""


class RecalledItem(Message):
    """One item found, with the reason."""

    id: str
    external_id: str | None = None
    kind: ItemKind
    title: str | None = None
    text: str
    score: float
    """0 to 1; the fusion of the two signals in `why`."""
    why: dict[str, float]
    """`vector` (cosine) and `text` (BM25), raw, where the item had them."""
    labels: tuple[Label, ...] = UNKNOWN
    """Where it comes from, and what it was formed from."""


class Recalled(Message):
    """Items, best first."""

    items: tuple[RecalledItem, ...]
    degraded: tuple[str, ...] = ()


class Retrieve(Message):
    """Hybrid retrieval of seed 004: vector and text search, 1 to 2 hops, hydration."""

    key_phrases: tuple[str, ...] = Field(min_length=1, max_length=8)
    budget_tokens: int = Field(default=2_000, ge=50, le=32_000)
    hops: int = Field(default=2, ge=1, le=2)


class Seed(Message):
    """An entity that search found, before the graph was asked."""

    id: str
    type: EntityType
    score: float
    phrase: str
    why: dict[str, float] = Field(default_factory=dict)
    """`vector` (cosine) and `text` (BM25), raw, where it had them."""


class ContextItem(Message):
    """One hydrated entity."""

    id: str
    external_id: str | None = None
    kind: ItemKind
    title: str
    text: str
    """Summary of a MemoryUnit, description of a Concept."""
    score: float
    hop: int
    """0 for what search found, 1 or 2 for what the graph added."""
    matched_phrase: str | None = None
    created_at: datetime | None = None
    labels: tuple[Label, ...] = UNKNOWN
    """Where it comes from, and what it was formed from."""
    why: dict[str, Any] | None = None
    """Of a fact of the user: `vector` and `text` where it was found by them, and `origin`, `trust` and `since`."""


class AugmentedMemoryContext(Message):
    """What hybrid retrieval hands back."""

    user_id: str
    key_phrases: tuple[str, ...]
    memory_units: tuple[ContextItem, ...] = ()
    concepts: tuple[ContextItem, ...] = ()
    seeds: tuple[Seed, ...] = ()
    missing_ids: tuple[str, ...] = ()
    dropped: int = 0
    degraded: tuple[str, ...] = ()
    """The parts that failed: `vector`, `text`, `graph`, `content`."""
    timings_ms: dict[str, float] = Field(default_factory=dict)


class Profile(Kept):
    """What is known of the user, as one JSON object; empty for a new user."""

    profile: dict[str, Any] = Field(default_factory=dict)
    """What is known of the user; the names of its members are free."""
    updated_at: datetime | None = None
    """When it was changed last; absent for a new user."""
    version: int | None = Field(default=None, ge=0)
    """Grows with each change; 0 where there is no profile. In a write: the version to replace, whatever it is if absent."""


class UpdateProfile(Kept):
    """A correction of the caller's profile."""

    patch: dict[str, Any]
    """JSON merge patch (RFC 7396): members replace, null removes."""
    version: int | None = Field(default=None, ge=0)
    """The version that is corrected, whatever it is if absent."""


class DeleteProfile(Message):
    """The wish that nothing be known of the caller."""

    version: int | None = Field(default=None, ge=0)
    """The version that is deleted, whatever it is if absent."""


class Forget(Message):
    """Items of the caller to remove for good."""

    ids: tuple[Annotated[str, StringConstraints(min_length=1, max_length=200)], ...] = Field(min_length=1, max_length=100)
    """Ids or external ids."""


class Forgotten(Message):
    """The items that there were."""

    count: int
    ids: tuple[str, ...] = ()


class KnowledgeLink(Message):
    """A link from a stored item to another item of the same owner."""

    source: str
    target: str
    type: str
    """`RELATED_TO` (stated) or `MENTIONS` (the text names the other's title)."""


class KnowledgeNode(Message):
    """The graph's copy of a stored item: its id and type, no content."""

    id: str
    type: EntityType


class KnowledgeStored(Message):
    """Items of one owner were stored, with the links between them."""

    owner: str
    version: int
    nodes: tuple[KnowledgeNode, ...]
    links: tuple[KnowledgeLink, ...] = ()


class ItemsForgotten(Message):
    """Items of one owner are gone for good. Ids only."""

    owner: str
    ids: tuple[str, ...] = Field(default=(), max_length=500)
    deletion_id: str | None = None
    """The deletion of a conversation that they went with; followers report to it with `Purged`."""
    part: int = 1
    parts: int = 1


REMEMBER = Rpc("memory.v1.remember", Remember, Remembered, timeout=20.0, max_bytes=1_000_000)
RECALL = Rpc("memory.v1.recall", Recall, Recalled)
RETRIEVE = Rpc("memory.v1.retrieve", Retrieve, AugmentedMemoryContext)
PROFILE_GET = Rpc("memory.v1.profile.get", Nothing, Profile)
PROFILE_PUT = Rpc("memory.v1.profile.put", Profile, Profile)
PROFILE_UPDATE = Rpc("memory.v1.profile.update", UpdateProfile, Profile)
PROFILE_DELETE = Rpc("memory.v1.profile.delete", DeleteProfile, Profile)
FORGET = Rpc("memory.v1.forget", Forget, Forgotten, timeout=10.0)
KNOWLEDGE_STORED = Event("memory.v1.item.stored", KnowledgeStored, followers=("graph",))
ITEMS_FORGOTTEN = Event("memory.v1.item.forgotten", ItemsForgotten, followers=("graph", "orchestrator"), hearers=("memory",))
MEMORY_PURGED = Event("memory.v1.conversation.purged", Purged, followers=("orchestrator",))

REMEMBER_TOOL = Tool(
    "remember",
    "Store facts, notes and concepts in the caller's long-term memory. The same external_id again replaces an item.",
    REMEMBER,
    risk=Risk.LOW,
    agents=WRITERS,
)
RECALL_TOOL = Tool(
    "recall",
    "Find what the caller's memory holds on a question, by meaning and by words, with a score and the reason for it.",
    RECALL,
)
FORGET_TOOL = Tool(
    "forget",
    "Remove items from the caller's memory for good, by id or external id.",
    FORGET,
    risk=Risk.MEDIUM,
    irreversible=True,
)
PROFILE_GET_TOOL = Tool("profile.get", "What is known of the caller, as one JSON object.", PROFILE_GET)
PROFILE_UPDATE_TOOL = Tool(
    "profile.update",
    "Correct what is known of the caller by a JSON merge patch: members replace, null removes.",
    PROFILE_UPDATE,
    risk=Risk.LOW,
)
PROFILE_DELETE_TOOL = Tool(
    "profile.delete",
    "Delete all that is known of the caller in the profile.",
    PROFILE_DELETE,
    risk=Risk.MEDIUM,
    irreversible=True,
)


class Scope(StrEnum):
    """Whose a memory is."""

    PERSONAL = "personal"
    DEPARTMENTAL = "departmental"
    MINISTRY = "ministry"
    GLOBAL = "global"
    CSUITE = "csuite"
    SECRETS = "secrets"


RECALLED: Mapping[Agent, frozenset[Scope]] = {
    Agent.NOOR: frozenset({Scope.PERSONAL, Scope.DEPARTMENTAL, Scope.MINISTRY, Scope.GLOBAL}),
    Agent.MAESTRO: frozenset(Scope),
}
"""What each agent may recall; an agent that is not here, nothing."""


def scopes_recalled(who: Principal) -> frozenset[Scope]:
    """The scopes that a caller may recall: those of all its agents, and for an administrator every scope."""
    if who.administers:
        return frozenset(Scope)
    return frozenset[Scope]().union(*(RECALLED.get(agent, ()) for agent in who.agents))


class RecallMemory(Message):
    """A question to one scope."""

    model_config = ConfigDict(extra="forbid")

    scope: str
    """A scope that the caller may recall. It is no enumeration: a barred one and an unknown one are two refusals."""
    query_summary: str = Field(min_length=1, max_length=4_000)
    """What is looked for, in plain words."""
    limit: int = Field(default=5, ge=1, le=50, strict=True)
    """Snippets at most."""


class Snippet(Message):
    """One memory found."""

    key: str
    content: str
    confidence: float
    """0 to 1: how sure whoever kept it was."""
    score: float
    """Cosine to the question."""
    labels: tuple[Label, ...] = UNKNOWN
    """Where it comes from, and what it was formed from."""


class RecalledMemories(Message):
    """Snippets, best first."""

    snippets: tuple[Snippet, ...]
    scope: Scope
    """Where they come from: `global` where a department had none."""
    degraded: tuple[str, ...] = ()


class KeepMemory(Kept):
    """One memory to keep in a scope; the same key again replaces it."""

    model_config = ConfigDict(extra="forbid")

    scope: Scope
    """The caller's own for `personal`, `departmental` and `ministry`; the tenant's for the others."""
    key: str = Field(min_length=1, max_length=200)
    """Its name in that scope."""
    content: str = Field(min_length=1, max_length=20_000)
    confidence: float = Field(default=1.0, ge=0.0, le=1.0)
    """How sure whoever keeps it is."""


class KeptMemory(Message):
    """What became of it."""

    id: str
    status: Literal["created", "updated", "unchanged"]


class ForgetMemory(Message):
    """One memory of a scope to remove for good."""

    model_config = ConfigDict(extra="forbid")

    scope: Scope
    key: str = Field(min_length=1, max_length=200)


class ForgottenMemory(Message):
    """What was removed."""

    id: str | None = None
    """Of the memory; `None` where there was none with that key."""


@dataclass(frozen=True)
class RecallTool(Tool[RecallMemory, RecalledMemories]):
    """The tool that recalls, as models see it for several agents."""

    def function(self, who: Principal | None = None) -> dict[str, Any]:
        """The tool as a model's function, with the scopes that a model may name for a caller.

        Args:
            who: the caller; somebody who may act as `noor` alone where it is left out. For such a caller there is no `global`,
                which it gets as a fallback alone.
        """
        function = super().function()
        named = RECALLED[Agent.NOOR] if who is None else scopes_recalled(who)
        if named == RECALLED[Agent.NOOR]:
            named -= {Scope.GLOBAL}
        function["parameters"]["properties"]["scope"]["enum"] = [str(scope) for scope in Scope if scope in named]
        return function


RECALL_MEMORY = Rpc("memory.v1.scoped.recall", RecallMemory, RecalledMemories)
KEEP_MEMORY = Rpc("memory.v1.scoped.keep", KeepMemory, KeptMemory, timeout=10.0)
FORGET_MEMORY = Rpc("memory.v1.scoped.forget", ForgetMemory, ForgottenMemory, timeout=10.0)

RECALL_MEMORY_TOOL = RecallTool(
    "recall_memory",
    "Step 0, remember: find memories by meaning in one scope: personal, departmental or ministry. Reads only; what is kept for"
    " the executive circle, and secrets, are barred.",
    RECALL_MEMORY,
    agents=frozenset(RECALLED),
)
KEEP_MEMORY_TOOL = Tool(
    "keep_memory",
    "Keep a memory in a scope; the same key again replaces it.",
    KEEP_MEMORY,
    risk=Risk.MEDIUM,
    kind=Effect.MESSAGE,
    agents=frozenset({Agent.MAESTRO}),
)
FORGET_MEMORY_TOOL = Tool(
    "forget_memory",
    "Remove a memory from a scope for good, by its key.",
    FORGET_MEMORY,
    risk=Risk.MEDIUM,
    agents=frozenset({Agent.MAESTRO}),
    irreversible=True,
)
