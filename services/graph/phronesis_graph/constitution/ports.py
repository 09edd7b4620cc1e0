"""What writes and lists of the constitutional graph need of a store.

Every method stays inside one tenant, and raises `Unavailable` where the store is down and `TimedOut` where it is too slow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from phronesis_bus import Call
from phronesis_contracts.constitution.lists import IndexState
from phronesis_contracts.constitution.registry import Layer, Lifecycle, NodeType
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode


@dataclass(frozen=True)
class Order:
    call: Call
    arguments: str
    """A digest of what was asked: the same key with another one is a conflict."""
    request_id: str | None = None
    """The caller's own id of the request, which makes a repeat the same write as well."""


@dataclass(frozen=True)
class Ends:
    """The ends of a relationship to be made, as they are in the store."""

    source: NodeType
    target: NodeType


class ConstitutionRules(Protocol):
    async def read(self, tenant: str) -> Sequence[ConstitutionNode]:
        """Active guardrails and principles, oldest first. Raises `Unavailable`."""


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
