"""What keeping the vectors of constitutional nodes needs from outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from phronesis_contracts import Principal
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode

from ..domain.values import Vector
from ..ports import Transaction
from .ports import Chosen, NodeHit


class NodeIndex(Protocol):
    """The index that finds the vectors of nodes; what it is made of stands in the service's own schema."""

    async def nearest(self, tenant: str, vector: Vector, chosen: Chosen, limit: int) -> list[NodeHit]:
        """See `NodeVectors`."""
        ...

    async def note(self, within: Transaction, tenant: str, ids: Sequence[str]) -> None:
        """In the transaction that writes or removes vectors or their filters: write down what `tell` is to do."""
        ...

    async def tell(self, tenant: str, ids: Sequence[str]) -> None:
        """Make a search find what was noted of these nodes, after the commit, if the index answers soon; raises nothing."""
        ...

    async def reconcile(self, tenant: str) -> tuple[int, int]:
        """Make the index what the schema says: how many vectors it lacked, and how many it had too many (O-362).

        Raises:
            Unavailable: it does not answer.
        """
        ...

    async def reindex(self, tenant: str) -> None:
        """Drop the tenant's part of the index and make it anew from the vectors that are kept (O-091). Raises as above."""
        ...

    async def clear(self) -> None:
        """Forget every vector of every tenant, and note that those in the schema are to be told anew.

        Raises:
            Unavailable: the index does not answer; it may be done in part, and may be done again.
        """
        ...


class ConstitutionGraph(Protocol):
    """What is asked of the graph service. An event acts for nobody, so memory asks for itself."""

    async def read(self, tenant: str, ids: Sequence[str]) -> dict[str, ConstitutionNode]:
        """Those of the nodes that there are, in full."""
        ...

    async def walk(self, tenant: str, after: str, limit: int) -> tuple[ConstitutionNode, ...]:
        """Nodes in the order of ids; none at the end."""
        ...

    async def walk_links(self, tenant: str, after: ConstitutionLink | None, limit: int) -> tuple[ConstitutionLink, ...]:
        """Relationships in an order of their own, from the one behind `after` on; none at the end."""
        ...

    async def changed_since(self, tenant: str, at: datetime) -> Mapping[str, int]:
        """Versions by id of the nodes that changed since then and are embedded at once; a bounded number, the latest."""
        ...

    async def restore(
        self,
        who: Principal,
        restore_id: str,
        nodes: Sequence[ConstitutionNode],
        links: Sequence[ConstitutionLink],
        *,
        last: bool,
    ) -> tuple[int, int, int]:
        """One part of a graph as it is to be again: nodes, relationships, and nodes that were removed."""
        ...


class Bucket(Protocol):
    """Where backups are kept."""

    async def put(self, name: str, data: bytes) -> None:
        """Store `data` under `name`."""
        ...

    async def get(self, name: str) -> bytes:
        """The bytes under `name`. Raises `NotFound`."""
        ...

    async def delete(self, name: str) -> None:
        """Remove `name`, if it is there."""
        ...

    async def names(self) -> list[str]:
        """Every name."""
        ...
