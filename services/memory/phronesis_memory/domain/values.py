"""The values that the service's parts hand to each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from phronesis_contracts import Principal
from phronesis_contracts.memory import SHARED, ItemKind

from .analysis import Words
from .rooms import owner_of_facts

Vector: TypeAlias = npt.NDArray[np.float32]

EXPERIENCE = frozenset({ItemKind.EPISODE, ItemKind.STYLE, ItemKind.STRATEGY})
"""The kinds that are searched where they are named alone, and that the graph does not know."""
ORDINARY = tuple(kind for kind in ItemKind if kind not in EXPERIENCE)
"""The kinds that are searched unless the caller names some."""
MEMORY = ItemKind.FACT
"""The kind of what is kept in a scope; what tells it from a fact of a user is its owner, a room."""


@dataclass(frozen=True)
class Audience:
    """What a search may see: items of `tenant` that belong to one of `owners` and are of one of `kinds`."""

    tenant: str
    owners: tuple[str, ...]
    kinds: tuple[ItemKind, ...] = ORDINARY

    @classmethod
    def of(cls, who: Principal, kinds: Sequence[ItemKind] = ()) -> Audience:
        """The caller's own items and facts, and the tenant's shared items; the ordinary kinds unless some are named."""
        return cls(who.tenant, (who.user, SHARED, owner_of_facts(who.user)), tuple(dict.fromkeys(kinds)) or ORDINARY)


@dataclass(frozen=True)
class Draft:
    """An item as it is about to be stored."""

    kind: ItemKind
    text: str
    digest: bytes
    """Hash of everything that the item says; an equal one means that nothing is to be done."""
    external_id: str | None = None
    part: str = ""
    """Tells apart several items with one external id (the chunks of a node)."""
    family: str = ""
    """What the item is a version of (`type/id` of a node, whatever its year); empty for an item of its own."""
    title: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    """Conversations that it was learnt from."""
    words: Words | None = None
    vector: Vector | None = None
    passages: tuple[Vector, ...] = ()
    """The vectors of its passages, where it has several."""

    @property
    def whole(self) -> str:
        """What is searched: the title and the text."""
        return f"{self.title}. {self.text}" if self.title else self.text


@dataclass(frozen=True)
class Item:
    """A stored item."""

    id: str
    kind: ItemKind
    title: str | None
    text: str
    external_id: str | None
    family: str
    created_at: datetime
    updated_at: datetime
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class NodeState:
    """A graph node as it was when it was asked for."""

    key: str
    version: int
    gone: bool = False


@dataclass(frozen=True)
class VectorEntry:
    """One item's vector, with what a search filters by."""

    id: str
    tenant: str
    owner: str
    kind: ItemKind
    vector: Vector
    family: str = ""
    passages: tuple[Vector, ...] = ()


@dataclass(frozen=True)
class VectorHit:
    """An item near a vector."""

    id: str
    kind: ItemKind
    cosine: float
    family: str = ""


@dataclass(frozen=True)
class TextHit:
    """An item with words of a query."""

    id: str
    kind: ItemKind
    bm25: float
    coverage: float
    """0 to 1: how much of the query's weight stands in the item."""
    family: str = ""


class VectorMissing(Exception):
    """A draft that turned out to be new or changed carries no vector; the caller makes it and tries again."""
