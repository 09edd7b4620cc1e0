"""Following the constitutional graph: records are made what it says now. A repeat, in any order, changes nothing (O-317)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_contracts.constitution.writes import ConstitutionChanged, NodeNews

from ..adapters.constitution_records import NodeRecords
from ..adapters.constitution_told import NodeStanding
from .keeping import ConstitutionGraph, NodeIndex
from .texts import facts_of

BATCH = 50
"""Nodes that are read and written together."""
_OVERLAP = timedelta(seconds=60)
"""How far before the last change that memory knows of it asks for changes: news of two may come in another order."""
_News = Mapping[str, Sequence[NodeNews]]


class Following:
    """Makes records of nodes.

    Args:
        graph: the graph service.
        records: the store.
        standing: what the store says.
        index: what is told of changed filters.
        wake: called when something may be due.
        clock: the time.
    """

    def __init__(
        self,
        graph: ConstitutionGraph,
        records: NodeRecords,
        standing: NodeStanding,
        index: NodeIndex,
        wake: Callable[[], None],
        clock: Callable[[], datetime],
    ) -> None:
        self._graph = graph
        self._records = records
        self._standing = standing
        self._index = index
        self._wake = wake
        self._clock = clock

    async def follow(self, tenant: str, event: ConstitutionChanged) -> None:
        """Bring the records of changed nodes up to date.

        Raises:
            Unavailable: the graph or the store does not answer; what is done stays done.
        """
        news: dict[str, list[NodeNews]] = {}
        for one in event.nodes:
            news.setdefault(one.id, []).append(one)
        await self.refresh(tenant, list(news), news, event.actor)

    async def catch_up(self, tenant: str) -> None:
        """Bring up to date what the graph has changed and memory has not heard of yet, of what is embedded at once.

        Raises:
            Unavailable: the graph or the store does not answer.
        """
        latest = await self._standing.latest(tenant)
        changed = await self._graph.changed_since(tenant, latest - _OVERLAP)
        versions = await self._standing.versions(tenant, list(changed))
        await self.refresh(tenant, [id for id, version in changed.items() if versions.get(id, 0) < version])

    async def refresh(
        self,
        tenant: str,
        ids: Sequence[str],
        news: _News | None = None,
        actor: str = "",
        *,
        at_once: bool = False,
        force: bool = False,
    ) -> int:
        """Read nodes and make records of them, or forget those that are gone; how many were. Raises as `follow` does."""
        removed = 0
        for start in range(0, len(ids), BATCH):
            batch = list(ids[start : start + BATCH])
            found = await self._graph.read(tenant, batch)
            await self.keep(tenant, list(found.values()), news, actor, at_once=at_once, force=force)
            if gone := [id for id in batch if id not in found]:
                removed += await self._forget(tenant, gone, news or {}, actor)
        return removed

    async def keep(
        self,
        tenant: str,
        nodes: Sequence[ConstitutionNode],
        news: _News | None = None,
        actor: str = "",
        *,
        at_once: bool = False,
        force: bool = False,
        trusted: bool = False,
    ) -> None:
        """Make records of nodes that were read just now. Arguments as `NodeRecords.put` has them."""
        if not nodes:
            return
        read = [facts_of(node) for node in nodes]
        noted = await self._records.put(
            tenant, read, news or {}, actor, self._clock(), at_once=at_once, force=force, trusted=trusted
        )
        self._wake()
        await self._index.tell(tenant, noted)

    async def _forget(self, tenant: str, gone: Sequence[str], news: _News, actor: str) -> int:
        removed = await self._records.remove(tenant, gone, news, actor, self._clock())
        await self._index.tell(tenant, removed)
        # One that was made anew meanwhile, and whose news another handler has dealt with, would be lost otherwise.
        again = await self._graph.read(tenant, gone)
        await self.keep(tenant, list(again.values()), news, actor)
        return len([id for id in removed if id not in again])
