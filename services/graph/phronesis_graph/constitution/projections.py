"""Projections, kept until news comes that changes them, for an hour at most."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from zlib import crc32

from phronesis_contracts.constitution.writes import ConstitutionChanged, Operation

from .projection import Projection, ProjectionStore, projection

AGE = timedelta(hours=1)
"""After which what was computed is computed anew, even where no news came: hearing it is not promised (O-214)."""
_MOST_NODES = 300_000
"""Nodes of all projections together; beyond, those go that were not used for the longest time (O-217)."""
_MOST_KEPT = 64
_LOCKS = 64
_MOST_RESULTS = 12

Key = tuple[str, tuple[str, ...]]
"""Tenant, and the relationship types in order."""


class Turns:
    """One after the other, those who would do the same: the second finds what the first has done."""

    def __init__(self) -> None:
        self._locks = tuple(asyncio.Lock() for _ in range(_LOCKS))

    def of(self, *what: str) -> asyncio.Lock:
        """What is held by whoever does it. Strangers share a lock now and then."""
        return self._locks[crc32("/".join(what).encode()) % _LOCKS]


@dataclass
class Kept:
    """A projection with what was computed from it."""

    projection: Projection
    results: OrderedDict[Any, Any] = field(default_factory=OrderedDict)
    """By what was computed; they go with the projection."""

    def keep(self, what: Any, result: Any) -> None:
        """Keep a result, and no more of them than a few."""
        self.results[what] = result
        self.results.move_to_end(what)
        if len(self.results) > _MOST_RESULTS:
            self.results.popitem(last=False)


class Projections:
    """The projections of this process.

    Args:
        store: where they are read.
        now: the time.
    """

    def __init__(self, store: ProjectionStore, now: Callable[[], datetime]) -> None:
        self._store = store
        self._now = now
        self._kept: OrderedDict[Key, Kept] = OrderedDict()
        self._turns = Turns()
        self._reading: Counter[str] = Counter()
        self._changed: set[str] = set()

    def kept(self, tenant: str, names: tuple[str, ...]) -> Kept | None:
        """The projection that is kept, whatever its age."""
        return self._kept.get((tenant, names))

    async def fresh(self, tenant: str, names: tuple[str, ...], *, refresh: bool = False) -> Kept:
        """A projection that is less than an hour old, and read after now where `refresh` says so.

        Raises:
            TooLarge: the graph is larger than is projected.
            Unavailable: the store is down.
            TimedOut: it did not answer in time.
        """
        async with self._turns.of(tenant):
            held = self._kept.get((tenant, names))
            if held is not None and not refresh and self._now() - held.projection.at < AGE:
                self._kept.move_to_end((tenant, names))
                return held
            # What was computed less than an hour ago holds its hour; whoever wants it anew has asked for all of it.
            results = OrderedDict() if held is None or refresh else held.results
            kept = Kept(await self._read(tenant, names), results)
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
            return await asyncio.to_thread(projection, types, names, links, at)
        finally:
            self._reading[tenant] -= 1
            if not self._reading[tenant]:
                del self._reading[tenant]

    def _keep(self, key: Key, kept: Kept) -> None:
        self._kept[key] = kept
        self._kept.move_to_end(key)
        while len(self._kept) > 1 and (len(self._kept) > _MOST_KEPT or self._size() > _MOST_NODES):
            self._kept.popitem(last=False)

    def _size(self) -> int:
        return sum(len(one.projection.ids) for one in self._kept.values())
