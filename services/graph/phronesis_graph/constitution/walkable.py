"""What walks need of the store: one tenant's nodes, met one hop after the other within one read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, TypeVar

from phronesis_contracts.constitution.kinds import Layer, Lifecycle
from phronesis_contracts.constitution.paths import Step
from phronesis_contracts.constitution.registry import TYPES
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode, Mention

T = TypeVar("T")
Direction = Literal["out", "in", "both"]

MOST_EDGES = 20_000
"""Relationships that one hop looks at in each direction; a hop that has more of them is cut."""


@dataclass(frozen=True)
class Met:
    """A node as a walk meets it: what names it, and what decides whether the walk goes on."""

    id: str
    type: str
    title: str
    status: str
    lifecycle: str
    updated_at: str
    """In the store's form, whose order is the order of time."""

    @property
    def layer(self) -> Layer:
        """Its layer, which its type decides."""
        return TYPES[self.type].layer

    @property
    def active(self) -> bool:
        """Whether walks go on from it."""
        return self.lifecycle == Lifecycle.ACTIVE

    def mention(self, relationship: str | None = None) -> Mention:
        """It in few words."""
        return Mention(id=self.id, type=self.type, title=self.title, status=self.status, relationship=relationship)

    def step(self, relationship: str | None = None, direction: Literal["out", "in"] | None = None) -> Step:
        """It as a step of a path."""
        return Step(node_id=self.id, type=self.type, title=self.title, relationship=relationship, direction=direction)

    def node(self) -> ConstitutionNode:
        """It as a node of which not more is told."""
        return ConstitutionNode(
            id=self.id,
            type=self.type,
            layer=self.layer,
            title=self.title,
            status=self.status,
            updated_at=datetime.fromisoformat(self.updated_at),
        )


@dataclass(frozen=True)
class Edge:
    """A relationship as a walk takes it, from a node that it has come to."""

    source: str
    """Id of the node that the walk comes from."""
    relationship: str
    out: bool
    """Whether the relationship leads the way that the walk takes."""
    node: Met

    @property
    def step(self) -> Step:
        """It as a step of a path."""
        return self.node.step(self.relationship, "out" if self.out else "in")


@dataclass(frozen=True)
class Follow:
    """Which relationships a walk takes."""

    names: tuple[str, ...] = ()
    """All where none is named."""
    direction: Direction = "both"
    lifecycles: tuple[Lifecycle, ...] = (Lifecycle.ACTIVE,)
    """Of the nodes that it meets."""


class Reader(Protocol):
    """One tenant's nodes within one read."""

    async def met(self, ids: Sequence[str]) -> dict[str, Met]:
        """Those of the nodes that there are, by id."""

    async def around(self, ids: Sequence[str], follow: Follow) -> list[Edge]:
        """The relationships from nodes to their neighbours, in no order, `MOST_EDGES` in each direction at most."""

    async def nodes(self, ids: Sequence[str], *, full: bool) -> list[ConstitutionNode]:
        """Those of the nodes that there are, in the order asked, without free properties; descriptions only with `full`."""

    async def links(self, ids: Sequence[str], most: int) -> list[ConstitutionLink]:
        """Relationships between two of the nodes, by id, `most` at most."""


class WalkStore(Protocol):
    """The store of the constitutional graph, for walks."""

    async def read(self, tenant: str, work: Callable[[Reader], Awaitable[T]]) -> T:
        """Do some work with a tenant's nodes in one read; it may be begun anew where a connection broke.

        Raises:
            Unavailable: the store is down.
            TimedOut: it did not answer in time.
        """
