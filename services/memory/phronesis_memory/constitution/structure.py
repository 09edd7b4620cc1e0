"""What the searches ask of the graph service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from phronesis_contracts import Principal
from phronesis_contracts.constitution.paths import Near, Reached
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode, Mention


class Structure(Protocol):
    """The graph, asked as the caller whose search it is. Each method raises `Unavailable` where the graph is away."""

    async def nodes(self, who: Principal, ids: Sequence[str]) -> dict[str, ConstitutionNode]:
        """Those of the nodes that there are, whole."""
        ...

    async def linked_nodes(
        self, who: Principal, ids: Sequence[str]
    ) -> dict[str, tuple[ConstitutionNode, tuple[ConstitutionLink, ...]]]:
        """Those of the nodes that there are, each with its relationships."""
        ...

    async def near(self, who: Principal, near: Near) -> tuple[Reached, ...]:
        """Nodes around an anchor, nearest first.

        Raises:
            NotFound: there is no such anchor.
        """
        ...

    async def ends(
        self, who: Principal, ids: Sequence[str], relationship: str, types: Sequence[str] = (), statuses: Sequence[str] = ()
    ) -> dict[str, tuple[Mention, ...]]:
        """By node, what a relationship of one type leads to from it."""
        ...

    async def create(self, who: Principal, type: str, fields: Mapping[str, Any]) -> ConstitutionNode:
        """Make a node; the same `requestId` again is the node that was made then."""
        ...

    async def relate(self, who: Principal, from_id: str, type: str, to_id: str) -> None:
        """Join two nodes; once more changes nothing."""
        ...
