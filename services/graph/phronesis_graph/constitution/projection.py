"""The projection that algorithms and reasons run over: a tenant's live nodes, cached until an event changes it, or an hour."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Protocol
from zlib import crc32

from phronesis_contracts.constitution.registry import TYPES, Layer
from phronesis_contracts.constitution.writes import ConstitutionChanged, Operation

Link = tuple[int, int, int]
"""From, to, and the place of its type in `names`."""
Neighbour = tuple[int, int, bool]
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
        return {id: place for place, id in enumerate(self.ids)}

    @cached_property
    def around(self) -> Sequence[Sequence[Neighbour]]:
        """By node the steps to its neighbours, whatever the direction, in the order of their ids."""
        turns: list[list[Neighbour]] = [[] for _ in self.ids]
        for source, target, name in self.links:
            turns[source].append((target, name, True))
            turns[target].append((source, name, False))
        return [sorted(of, key=lambda turn: (turn[0], self.names[turn[1]], not turn[2])) for of in turns]

    @cached_property
    def up(self) -> Sequence[Sequence[Neighbour]]:
        """By node the steps to what it serves: see `upward_direction`."""
        up: list[list[Neighbour]] = [[] for _ in self.ids]
        for source, target, name in self.links:
            match upward_direction(self.types[source], self.names[name]):
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


def upward_direction(type: str, name: str) -> str | None:
    """Which way along a relationship leads upwards, to what its node is for: `out`, `in`, or neither.

    What serves, or aligns with, leads up. SUPPORTED_BY leads up from the vision layer; from a strategy it leads down to an
    initiative, and from an insight or a decision to what speaks for it, which is for neither. ENFORCED_BY leads from
    a value down to what enforces it.

    Args:
        type: type of the node that the relationship leads from.
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


def build_projection(
    types: Mapping[str, str], names: tuple[str, ...], links: Iterable[tuple[str, str, str]], at: datetime
) -> Projection:
    """A projection.

    Args:
        types: the type of each live node, by id.
        links: relationships: from, type, to. Those with an end that is not live are left out, and those to oneself.
    """
    ids = sorted(types)
    number = {id: place for place, id in enumerate(ids)}
    place = {name: at for at, name in enumerate(names)}
    kept = sorted((number[a], number[b], place[name]) for a, name, b in links if a != b and a in number and b in number)
    return Projection(ids, [types[id] for id in ids], names, kept, at)


class ProjectionStore(Protocol):
    async def project(self, tenant: str, names: tuple[str, ...]) -> tuple[dict[str, str], list[tuple[str, str, str]]]:
        """The type of each live node by id, and the relationships of some types: from, type, to; in one read.

        Raises:
            TooLarge: there are more than are projected.
            Unavailable: the store is down.
            TimedOut: it did not answer in time.
        """


MAX_AGE = timedelta(hours=1)
"""After which what was computed is computed anew, even where no news came: hearing it is not promised."""
_MOST_NODES = 300_000
"""Nodes of all projections together; beyond, those go that were not used for the longest time."""
_MOST_CACHED = 64
_LOCKS = 64
_MOST_RESULTS = 12

ProjectionKey = tuple[str, tuple[str, ...]]
"""Tenant, and the relationship types in order."""


class SingleFlight:
    """One after the other, those who would do the same: the second finds what the first has done."""

    def __init__(self) -> None:
        self._locks = tuple(asyncio.Lock() for _ in range(_LOCKS))

    def of(self, *what: str) -> asyncio.Lock:
        """What is held by whoever does it. Strangers share a lock now and then."""
        return self._locks[crc32("/".join(what).encode()) % _LOCKS]


@dataclass
class CachedProjection:
    """A projection with what was computed from it."""

    projection: Projection
    results: OrderedDict[Any, Any] = field(default_factory=OrderedDict)
    """By what was computed; they go with the projection."""

    def keep(self, what: Any, result: Any) -> None:
        self.results[what] = result
        self.results.move_to_end(what)
        if len(self.results) > _MOST_RESULTS:
            self.results.popitem(last=False)


class ProjectionCache:
    def __init__(self, store: ProjectionStore, now: Callable[[], datetime]) -> None:
        self._store, self._now = store, now
        self._kept: OrderedDict[ProjectionKey, CachedProjection] = OrderedDict()
        self._turns = SingleFlight()
        self._reading: Counter[str] = Counter()
        self._changed: set[str] = set()

    def kept(self, tenant: str, names: tuple[str, ...]) -> CachedProjection | None:
        return self._kept.get((tenant, names))

    async def fresh(self, tenant: str, names: tuple[str, ...], *, refresh: bool = False) -> CachedProjection:
        """A projection under an hour old, or read now with `refresh`. Raises `TooLarge`, `Unavailable`, `TimedOut`."""
        async with self._turns.of(tenant):
            held = self._kept.get((tenant, names))
            if held is not None and not refresh and self._now() - held.projection.at < MAX_AGE:
                self._kept.move_to_end((tenant, names))
                return held
            # What was computed less than an hour ago holds its hour; whoever wants it anew has asked for all of it.
            results = OrderedDict() if held is None or refresh else held.results
            kept = CachedProjection(await self._read(tenant, names), results)
            if tenant not in self._changed:
                self._keep((tenant, names), kept)
            return kept

    def changed(self, tenant: str, event: ConstitutionChanged) -> None:
        """Drop what a change has made wrong: of a node that came, went or got another status, or of a relationship."""
        nodes = any(one.operation is not Operation.UPDATE or "status" in one.changed for one in event.nodes)
        names = {one.type for one in event.relationships}
        if not nodes and not names:
            return
        if self._reading[tenant]:
            self._changed.add(tenant)
        for key in [key for key in self._kept if key[0] == tenant and (nodes or not names.isdisjoint(key[1]))]:
            del self._kept[key]

    def drop_all(self) -> None:
        """Drop everything: news was missed, perhaps."""
        self._changed.update(self._reading)
        self._kept.clear()

    async def _read(self, tenant: str, names: tuple[str, ...]) -> Projection:
        """Read a projection; news that comes meanwhile may or may not be in it, so it is not kept then."""
        if not self._reading[tenant]:
            self._changed.discard(tenant)
        self._reading[tenant] += 1
        try:
            at = self._now()
            types, links = await self._store.project(tenant, names)
            return await asyncio.to_thread(build_projection, types, names, links, at)
        finally:
            self._reading[tenant] -= 1
            if not self._reading[tenant]:
                del self._reading[tenant]

    def _keep(self, key: ProjectionKey, kept: CachedProjection) -> None:
        self._kept[key] = kept
        self._kept.move_to_end(key)
        while len(self._kept) > 1 and (len(self._kept) > _MOST_CACHED or self._size() > _MOST_NODES):
            self._kept.popitem(last=False)

    def _size(self) -> int:
        return sum(len(one.projection.ids) for one in self._kept.values())
