"""What writes and lists of the constitutional graph need of a store.

Every method stays inside one tenant, and raises `Unavailable` where the store is down and `TimedOut` where it is too slow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from phronesis_bus import Call
from phronesis_contracts.constitution.lists import IndexState
from phronesis_contracts.constitution.maintenance import GraphRestored, RestoreGraph
from phronesis_contracts.constitution.registry import Layer, Lifecycle, NodeType
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode
from phronesis_contracts.constitution.writes import ConstitutionLoaded, NodeDeletedForGood, NodeWritten, Related, Unrelated
from phronesis_contracts.orchestrator import Audited


@dataclass(frozen=True)
class Order:
    """A write as it was called."""

    call: Call
    arguments: str
    """A digest of what was asked: the same key with another one is a conflict."""
    request_id: str | None = None
    """The caller's own id of the request, which makes a repeat the same write as well (O-108)."""


@dataclass(frozen=True)
class Ends:
    """The ends of a relationship to be made, as they are in the store."""

    source: NodeType
    target: NodeType


class ConstitutionNodes(Protocol):
    """Nodes of the constitutional graph."""

    async def create(self, order: Order, result: NodeWritten, audit: Audited) -> NodeWritten:
        """Write a new node.

        Raises:
            Conflict: the tenant has a node with its id.
            KeyReused: the call's key, or its request id, came before with other arguments.
            Unavailable: the store is down.
        """

    async def change(
        self,
        order: Order,
        id: str,
        decide: Callable[[ConstitutionNode], NodeWritten],
        audit: Callable[[NodeWritten], Audited],
    ) -> NodeWritten:
        """Write a node as `decide` says from what it is; nothing is written where that changes nothing.

        Raises:
            NotFound: the tenant has no such node.
            ServiceError: what `decide` raises.
            KeyReused: the call's key came before with other arguments.
            Unavailable: the store is down.
        """

    async def delete(
        self,
        order: Order,
        id: str,
        audit: Callable[[NodeDeletedForGood], Audited],
    ) -> NodeDeletedForGood:
        """Remove a node with its relationships.

        Raises:
            NotFound: the tenant has no such node.
            KeyReused: the call's key came before with other arguments.
            Unavailable: the store is down.
        """


class ConstitutionLinks(Protocol):
    """Relationships of the constitutional graph."""

    async def relate(
        self,
        order: Order,
        wanted: ConstitutionLink,
        check: Callable[[Ends], None],
        cycle: Callable[[Sequence[str]], None] | None,
        audit: Audited,
    ) -> Related:
        """Make a relationship, or give the one that there is.

        Args:
            order: the call.
            wanted: the relationship, with the id that it has if it is new.
            check: holds its ends against the registry and the caller's rights.
            cycle: given where its type takes no cycle; is told the titles of the chain that the relationship would close.
            audit: the entry.

        Raises:
            NotFound: an end is no node of the tenant; `field` names it.
            ServiceError: what `check` and `cycle` raise.
            KeyReused: the call's key came before with other arguments.
            Unavailable: the store is down.
        """

    async def unrelate(
        self, order: Order, id: str, check: Callable[[Layer], None], audit: Callable[[ConstitutionLink], Audited]
    ) -> Unrelated:
        """Remove a relationship; `check` holds the layer that it leads from against the caller's rights.

        Raises:
            NotFound: the tenant has no such relationship.
            ServiceError: what `check` raises.
            KeyReused: the call's key came before with other arguments.
            Unavailable: the store is down.
        """


class ConstitutionRules(Protocol):
    """Where the rules are read."""

    async def read(self, tenant: str) -> Sequence[ConstitutionNode]:
        """Active guardrails and principles, oldest first.

        Raises:
            Unavailable: the store is down.
        """


class ConstitutionLoads(Protocol):
    """Parts of a graph, many nodes at a time."""

    async def load(
        self,
        order: Order,
        remove: Sequence[str],
        ids: Sequence[str],
        decide: Callable[[Mapping[str, ConstitutionNode]], list[NodeWritten]],
        links: Sequence[ConstitutionLink],
        audit: Callable[[ConstitutionLoaded], Audited],
    ) -> ConstitutionLoaded:
        """Remove nodes, write nodes, join nodes: all of it or nothing.

        Args:
            order: the call.
            remove: ids of nodes to remove; unknown ones are passed over.
            ids: of the nodes to write.
            decide: what they are to be, from those of them that there are.
            links: relationships to make where there are none.
            audit: the entry, from what was done.

        Raises:
            RegistryRefused: a relationship does not lead between such ends, or closes a chain; or what `decide` raises.
            NotFound: an end of a relationship is no node of the tenant.
            KeyReused: the call's key came before with other arguments.
            Unavailable: the store is down.
        """


class ConstitutionRestores(Protocol):
    """A graph made to be again as it was."""

    async def restore(self, order: Order, part: RestoreGraph, audit: Callable[[GraphRestored], Audited]) -> GraphRestored:
        """Write one part, and with the last one remove what stood in none.

        Raises:
            BadRequest: an end of a relationship stands in no part so far.
            KeyReused: the call's key came before with other arguments.
            Unavailable: the store is down.
        """


LINKS_EACH = 10
"""Relationships of a layer that is read whole, for each of its nodes."""
LayerRow = dict[str, Any]
"""Columns of a node by their names in the store."""


@dataclass(frozen=True)
class NodeFilter:
    """Which nodes; what is empty or none narrows nothing."""

    layers: tuple[Layer, ...] = ()
    types: tuple[str, ...] = ()
    status: Lifecycle | None = None


@dataclass(frozen=True)
class Parent:
    """A relationship of the vision layer, and where it leads."""

    child: str
    relationship: str
    id: str
    type: str
    title: str
    active: bool


@dataclass(frozen=True)
class GraphCounts:
    """What there is in the graph."""

    types: Mapping[str, int]
    relationships: Mapping[str, int]
    bags: Sequence[tuple[str, str]]
    """Types of nodes, each with one of their bags of free properties, as JSON."""


class NodePages(Protocol):
    """Nodes and relationships, page by page."""

    async def nodes(self, tenant: str, wanted: NodeFilter, columns: Sequence[str], after: str, limit: int) -> list[LayerRow]:
        """Nodes in the order of their ids, from the one behind `after` on."""

    async def links(self, tenant: str, wanted: NodeFilter, after: tuple[str, str], limit: int) -> list[ConstitutionLink]:
        """Relationships between two such nodes, by the id of the node they lead from and their own, from behind `after` on."""

    async def read(self, tenant: str, ids: Sequence[str]) -> list[LayerRow]:
        """Nodes by id, with all their columns, in no order."""

    async def around(self, tenant: str, id: str, limit: int) -> list[ConstitutionLink]:
        """Relationships that lead from a node or to it, by their ids."""


class Layers(Protocol):
    """Layers that are listed whole."""

    async def foundation(
        self, tenant: str, status: Lifecycle, columns: Sequence[str], links: bool, limit: int
    ) -> tuple[list[LayerRow], list[ConstitutionLink]]:
        """Its nodes in that status, up to `limit`, and, if wanted, relationships between two of them, up to `LINKS_EACH` times
        as many; in no order."""

    async def vision(
        self, tenant: str, status: Lifecycle, columns: Sequence[str], parents: bool, limit: int
    ) -> tuple[list[LayerRow], list[Parent]]:
        """Its nodes in that status, up to `limit`, and, if wanted, their parents, active or not, up to `LINKS_EACH` times as
        many; in no order."""

    async def size(self, tenant: str) -> int:
        """How many nodes the graph has."""


class Survey(Protocol):
    """What there is."""

    async def counted(self, tenant: str, bags: int) -> GraphCounts:
        """Nodes by type, relationships by type, and up to so many bags of free properties."""

    async def indexes(self) -> list[IndexState]:
        """The store's indexes of the constitutional graph."""
