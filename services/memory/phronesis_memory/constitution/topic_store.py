"""Topics as they are kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from phronesis_contracts.constitution.kinds import Layer


@dataclass(frozen=True)
class Member:
    """A node of a topic."""

    id: str
    type: str
    layer: str
    closeness: float
    """Cosine to the middle of the topic."""


@dataclass(frozen=True)
class Found:
    """One topic; its members, those nearest to its middle first."""

    id: str
    keywords: tuple[str, ...]
    members: tuple[Member, ...]


@dataclass(frozen=True)
class Run:
    """Topics as they were found at one time."""

    computed_at: datetime
    silhouette: float
    unassigned: int
    topics: tuple[Found, ...] = ()


@dataclass(frozen=True)
class Listed:
    """A topic in a list: how many of its nodes are of the layers asked for, and the nearest of those."""

    id: str
    keywords: tuple[str, ...]
    size: int
    nearest: tuple[str, ...]


class TopicStore(Protocol):
    """Where topics are kept. Each method raises `Unavailable` where the store is away."""

    async def run(self, tenant: str) -> Run | None:
        """When the topics were found last and how well they stand apart, without them."""
        ...

    async def listed(self, tenant: str, layers: frozenset[Layer], nearest: int) -> list[Listed]:
        """The topics with nodes of these layers (of all where none is named), the largest first."""
        ...

    async def members(self, tenant: str, topic_id: str, limit: int) -> tuple[list[str], int] | None:
        """The nodes of a topic that are nearest to its middle, and how many it has; `None` where there is no such topic."""
        ...

    async def all(self, tenant: str) -> dict[str, frozenset[str]]:
        """The nodes of every topic."""
        ...

    async def replace(self, tenant: str, run: Run) -> None:
        """Keep these topics in place of the former ones."""
        ...
