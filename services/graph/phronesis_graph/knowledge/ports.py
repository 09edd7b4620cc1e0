"""What keeping the agents' knowledge needs of a guard and of a store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from phronesis_bus import Call
from phronesis_contracts.knowledge_graph import FoundNode, NodeCreated, NodeDeleted, QueryExecuted, RelationshipCreated
from phronesis_contracts.orchestrator import Audited

from ..twin.ports import QueryStore, StatementResult
from .model import PropertyValue


@dataclass(frozen=True)
class NewRelationship:
    id: str
    source: str
    """Id of the node where it starts."""
    target: str
    """Id of the node where it ends."""
    type: str
    properties: Mapping[str, PropertyValue]


@dataclass(frozen=True)
class DeletedNode:
    """What went with a deleted node."""

    labels: tuple[str, ...]
    relationships: int


@dataclass(frozen=True)
class ChangeStatement:
    """A statement that the guard let through to change something."""

    statement: str
    parameters: Mapping[str, Any]
    digest: str
    """Of the statement and its parameters as the caller gave them."""
    token: str | None
    """What confirms it, where it is dangerous."""
    most: int
    """Rows that it may return."""


class KnowledgeStore(Protocol):
    """Nodes and relationships of the agents' own. Writes take effect once for each key of the caller's service.

    All raise `Unavailable` where the store is down, and writes `KeyReused` where a key came before with other arguments.
    """

    async def create(
        self, call: Call, arguments: str, node_id: str, label: str, properties: Mapping[str, PropertyValue], audit: Audited
    ) -> NodeCreated:
        """Create a node with its audit entry. Raises `BadRequest`: the label cannot be had."""

    async def join(self, call: Call, arguments: str, wanted: NewRelationship, audit: Audited) -> RelationshipCreated:
        """Create a relationship with its audit entry.

        Raises `BadRequest`: an end is no node of the agents of this tenant, or the type cannot be had.
        """

    async def delete(self, call: Call, arguments: str, node_id: str, audit: Callable[[DeletedNode], Audited]) -> NodeDeleted:
        """Delete a node of the agents with its relationships. Raises `NotFound`: there is none."""

    async def details(self, tenant: str, node_id: str) -> FoundNode | None:
        """One node, of the agents or of the twin."""

    async def search(
        self, tenant: str, label: str | None, wanted: Mapping[str, PropertyValue], limit: int
    ) -> Sequence[FoundNode]:
        """Nodes of a label that have all these values, in a stable order; those of the agents before the twin's."""


class ChangeStore(Protocol):
    """A store that runs changing statements. All raise as `KnowledgeStore` does."""

    async def run(
        self, call: Call, arguments: str, change: ChangeStatement, audit: Callable[[Mapping[str, int]], Audited]
    ) -> QueryExecuted:
        """Run a changing statement whole or not at all, with its audit entry, which says how much it changed.

        Raises `Conflict` (its token confirms nothing), `QueryRefused` (the store does not take it; the detail helps to repair
        it), `TimedOut` (it took too long), `Busy` (too many run already).
        """

    async def ask_to_confirm(self, call: Call, digest: str) -> str:
        """A token with which this caller may run the statement of that digest once, within ten minutes."""


@dataclass(frozen=True)
class KnowledgeStores:
    """What the six tools run on."""

    nodes: KnowledgeStore
    queries: QueryStore
    changes: ChangeStore


def query_envelope(found: StatementResult) -> QueryExecuted:
    """The envelope of a statement that was run."""
    rows = len(found.rows)
    message = "Query executed successfully."
    if found.truncated:
        message = f"Query executed; only the first {rows} rows are given. Return less, or page with LIMIT."
    return QueryExecuted(success=True, results=found.rows, message=message)
