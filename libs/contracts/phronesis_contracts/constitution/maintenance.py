"""Contracts of the constitutional graph's upkeep: its vectors' records, and its backups."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import AwareDatetime, Field

from ..errors import BadRequest, Conflict, Unavailable
from ..messages import Message, Nothing, Rpc
from ..principal import ADMINISTRATORS_ALONE
from ..tools import Effect, Risk, Tool
from .registry import Layer
from .values import READERS, Asked, Camel, ConstitutionLink, ConstitutionNode, absent


class EmbeddingRefused(Unavailable):
    """The embedding service refuses: its key or the text. The same again would be refused again."""

    code = "memory.embedding_refused"


class WrongConfirmation(BadRequest):
    """A restore without the word that `verify` gives for that very backup."""

    code = "memory.wrong_confirmation"


class BackupDamaged(Conflict):
    """The bytes of a backup are not those that were written."""

    code = "memory.backup_damaged"


class EmbeddingState(StrEnum):
    """Where the vector of a node stands."""

    CURRENT = "current"
    PENDING = "pending"
    FAILED = "failed"
    SKIPPED = "skipped"
    """There is no text to embed."""


class AskEmbeddings(Asked):
    """Records of vectors: of some nodes, or counted by type."""

    ids: tuple[str, ...] = Field(default=(), max_length=500)
    spot_check: int = Field(default=0, ge=0, le=50)
    """Vectors, drawn at random, that are looked at closely."""


class EmbeddingRecord(Camel):
    """One node's vector."""

    node_id: str
    layer: Layer
    type: str
    state: EmbeddingState
    model: str | None = absent()
    dimension: int | None = absent()
    text_hash: str | None = absent()
    tokens: int | None = absent()
    updated_at: AwareDatetime | None = absent()
    problem: str | None = absent()
    """The class of the last failure."""


class EmbeddingCount(Camel):
    """One type."""

    type: str
    layer: Layer
    tier: str
    states: dict[str, int]
    dimensions: dict[str, int]
    """How many vectors there are of each dimension."""


class IndexScope(Camel):
    """One logical scope of the vector index."""

    name: str
    layer: Layer
    vectors: int
    dimension: int
    similarity: str = "cosine"
    state: Literal["ONLINE", "POPULATING"] = "ONLINE"


class ScheduledRun(Camel):
    """A batch that is due by itself."""

    name: str
    tiers: tuple[str, ...]
    schedule: str
    next_at: AwareDatetime | None = absent()
    last_at: AwareDatetime | None = absent()


class SpotCheck(Camel):
    """One vector, looked at closely."""

    node_id: str
    dimension: int
    norm: float
    rank: int
    """Where the node itself stands when its vector is asked for: 1, beside twins too. 0 where it is not found."""


class EmbeddingsTold(Camel):
    """The records asked for, the counts, the scopes and the batches."""

    records: tuple[EmbeddingRecord, ...] = ()
    counts: tuple[EmbeddingCount, ...] = ()
    scopes: tuple[IndexScope, ...] = ()
    schedule: tuple[ScheduledRun, ...] = ()
    backlog: int = 0
    tokens: int = 0
    """Tokens of all texts that are embedded, for the cost."""
    spot_checks: tuple[SpotCheck, ...] = ()
    findings: tuple[str, ...] = ()
    """What is to be repaired before one relies on the vectors; none where all is well."""


class Regenerate(Asked):
    """Vectors to be made anew, or now and not at night."""

    ids: tuple[str, ...] = Field(default=(), max_length=500)
    """Every node where none is named."""
    layers: tuple[Layer, ...] = Field(default=(), max_length=7)
    force: bool = False
    """Even where the text is the same."""
    index_only: bool = False
    """The index anew from the vectors that are kept, without the model."""


class Regenerated(Camel):
    """What was done."""

    embedded: int
    unchanged: int
    skipped: int
    failed: int
    removed: int
    """Vectors of nodes that there are not."""


class BackupOrRestore(Asked):
    """A backup of the tenant's constitutional graph, or a restore from one."""

    operation: Literal["backup", "list", "verify", "restore"]
    backup_id: str | None = Field(default=None, max_length=64)
    confirmation: str | None = Field(default=None, max_length=200)
    """For a restore: the word that `verify` gave for this backup."""


class Backup(Camel):
    """One backup."""

    id: str
    created_at: AwareDatetime
    nodes: int
    relationships: int
    embeddings: int
    bytes: int
    digest: str


class BackupDone(Camel):
    """What there is, or what was done."""

    backups: tuple[Backup, ...] = ()
    confirmation: str | None = absent()
    restored_nodes: int = 0
    restored_relationships: int = 0
    restored_embeddings: int = 0
    removed_nodes: int = 0


class ChangedSince(Message):
    """Nodes of some types that changed since a time, for a follower that does not wait for the news of them."""

    at: AwareDatetime
    types: tuple[str, ...] = Field(min_length=1, max_length=35)


class ChangedNodes(Message):
    """Their versions by id; at most 5,000, those that changed last."""

    versions: dict[str, int]


class ChangesCounted(Message):
    """How many changes a tenant's graph has had: the `number` of the last one. 0 where there was none."""

    number: int


class WalkLinks(Message):
    """Every relationship, by the id of the node that it leads from and its own."""

    after_from: str = ""
    """Both of the last one of the page before."""
    after: str = ""
    limit: int = Field(default=500, ge=1, le=1_000)


class LinksRead(Message):
    """A page; none at the end."""

    relationships: tuple[ConstitutionLink, ...]


class RestoreGraph(Message):
    """One part of a graph as it is to be again; what stands in no part goes with the last."""

    restore_id: str
    nodes: tuple[ConstitutionNode, ...] = Field(default=(), max_length=500)
    relationships: tuple[ConstitutionLink, ...] = Field(default=(), max_length=1_000)
    last: bool = False


class GraphRestored(Message):
    """What changed."""

    nodes: int
    relationships: int
    removed_nodes: int = 0


EMBEDDINGS = Rpc("memory.v1.constitution.embeddings", AskEmbeddings, EmbeddingsTold, timeout=10.0)
REGENERATE = Rpc("memory.v1.constitution.regenerate", Regenerate, Regenerated, timeout=300.0)
BACKUP_RESTORE = Rpc("memory.v1.constitution.backup", BackupOrRestore, BackupDone, timeout=120.0)
RESTORE_GRAPH = Rpc("graph.v1.constitution.restore", RestoreGraph, GraphRestored, timeout=60.0, max_bytes=1_000_000)

CHANGED_SINCE = Rpc("graph.v1.constitution.since", ChangedSince, ChangedNodes)
COUNT_CHANGES = Rpc("graph.v1.constitution.changes", Nothing, ChangesCounted)
WALK_LINKS = Rpc("graph.v1.constitution.walk.links", WalkLinks, LinksRead, timeout=10.0)

EMBEDDINGS_TOOL = Tool(
    "embeddings.status.v1", "Vectors by type and state, their schedule and backlog.", EMBEDDINGS, agents=READERS
)
REGENERATE_TOOL = Tool(
    "embeddings.regenerate.v1",
    "Make vectors anew, or at once.",
    REGENERATE,
    risk=Risk.MEDIUM,
    kind=Effect.SPEND,
    agents=ADMINISTRATORS_ALONE,
)
BACKUP_RESTORE_TOOL = Tool(
    "backup.restore.v1",
    "Back up the constitutional graph, list and verify backups, or restore one (with the word that verify gives).",
    BACKUP_RESTORE,
    risk=Risk.HIGH,
    agents=ADMINISTRATORS_ALONE,
    irreversible=True,
)
