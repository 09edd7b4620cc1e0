"""The projection that algorithms and reasons run over: every live node of a tenant, and relationships of some types.

Nodes are numbers, in the order of their ids; names and statuses are read from the store when an answer is told (C-53).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Protocol

from phronesis_contracts.constitution.kinds import Layer
from phronesis_contracts.constitution.registry import TYPES

Link = tuple[int, int, int]
"""From, to, and the place of its type in `names`."""
Turn = tuple[int, int, bool]
"""A step: the node that it comes to, the place of the relationship's type, and whether it leads that way."""


@dataclass(frozen=True)
class Projection:
    """Nodes and relationships as they were at one moment; nobody changes them."""

    ids: Sequence[str]
    types: Sequence[str]
    names: tuple[str, ...]
    """The relationship types."""
    links: Sequence[Link]
    at: datetime

    @cached_property
    def number(self) -> Mapping[str, int]:
        """The number of each node."""
        return {id: place for place, id in enumerate(self.ids)}

    @cached_property
    def around(self) -> Sequence[Sequence[Turn]]:
        """By node the steps to its neighbours, whatever the direction, in the order of their ids."""
        turns: list[list[Turn]] = [[] for _ in self.ids]
        for source, target, name in self.links:
            turns[source].append((target, name, True))
            turns[target].append((source, name, False))
        return [sorted(of, key=lambda turn: (turn[0], self.names[turn[1]], not turn[2])) for of in turns]

    @cached_property
    def up(self) -> Sequence[Sequence[Turn]]:
        """By node the steps to what it serves: see `leads_up`."""
        up: list[list[Turn]] = [[] for _ in self.ids]
        for source, target, name in self.links:
            match leads_up(self.types[source], self.names[name]):
                case "out":
                    up[source].append((target, name, True))
                case "in":
                    up[target].append((source, name, False))
        return [sorted(of) for of in up]

    @cached_property
    def down(self) -> Sequence[Sequence[int]]:
        """By node those that a step up from comes to it."""
        down: list[list[int]] = [[] for _ in self.ids]
        for node, turns in enumerate(self.up):
            for other, _, _ in turns:
                down[other].append(node)
        return down

    def of_layers(self, layers: Iterable[Layer]) -> Projection:
        """The part of it in some layers; all of it where none is named."""
        chosen = frozenset(layers)
        if not chosen:
            return self
        kept = [place for place, type in enumerate(self.types) if TYPES[type].layer in chosen]
        number = {old: new for new, old in enumerate(kept)}
        return Projection(
            ids=[self.ids[place] for place in kept],
            types=[self.types[place] for place in kept],
            names=self.names,
            links=[(number[a], number[b], name) for a, b, name in self.links if a in number and b in number],
            at=self.at,
        )


def leads_up(type: str, name: str) -> str | None:
    """Which way along a relationship leads upwards, to what its node is for: `out`, `in`, or neither.

    What serves, or aligns with, leads up. SUPPORTED_BY leads up from the vision layer; from a strategy it leads down to an
    initiative, and from an insight or a decision to what speaks for it, which is for neither (C-11). ENFORCED_BY leads from
    a value down to what enforces it.

    Args:
        type: type of the node that the relationship leads from.
        name: the relationship's type.
    """
    match name:
        case "SERVES" | "ALIGNS_WITH":
            return "out"
        case "ENFORCED_BY":
            return "in"
        case "SUPPORTED_BY" if TYPES[type].layer is Layer.VISION:
            return "out"
        case "SUPPORTED_BY" if type == "strategy":
            return "in"
    return None


def projection(
    types: Mapping[str, str], names: tuple[str, ...], links: Iterable[tuple[str, str, str]], at: datetime
) -> Projection:
    """A projection.

    Args:
        types: the type of each live node, by id.
        names: the relationship types.
        links: relationships: from, type, to. Those with an end that is not live are left out, and those to oneself.
        at: when all this was read.
    """
    ids = sorted(types)
    number = {id: place for place, id in enumerate(ids)}
    place = {name: at for at, name in enumerate(names)}
    kept = sorted((number[a], number[b], place[name]) for a, name, b in links if a != b and a in number and b in number)
    return Projection(ids, [types[id] for id in ids], names, kept, at)


class ProjectionStore(Protocol):
    """The store, for projections."""

    async def project(self, tenant: str, names: tuple[str, ...]) -> tuple[dict[str, str], list[tuple[str, str, str]]]:
        """The type of each live node by id, and the relationships of some types: from, type, to; in one read.

        Raises:
            TooLarge: there are more than are projected.
            Unavailable: the store is down.
            TimedOut: it did not answer in time.
        """
