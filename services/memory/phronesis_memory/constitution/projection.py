"""Records and vectors as the graph says now: following its news, and making them anew."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from phronesis_contracts import ServiceError, TimedOut, Unavailable
from phronesis_contracts.constitution.maintenance import Regenerate, Regenerated
from phronesis_contracts.constitution.registry import Layer
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_contracts.constitution.writes import ConstitutionChanged, NodeNews

from .nodes import snapshot_of
from .pgvector import PgNodeVectors
from .ports import ConstitutionGraph
from .queue import NodeQueue
from .store import NodeRecords, RecordReader

log = logging.getLogger(__name__)

BATCH = 50
"""Nodes that are read and written together."""
_OVERLAP = timedelta(seconds=60)
"""How far before the last change that memory knows of it asks for changes: news of two may come in another order."""
_News = Mapping[str, Sequence[NodeNews]]


class GraphFollower:
    def __init__(
        self,
        graph: ConstitutionGraph,
        records: NodeRecords,
        reader: RecordReader,
        index: PgNodeVectors,
        wake: Callable[[], None],
        clock: Callable[[], datetime],
    ) -> None:
        self._graph, self._records, self._reader = graph, records, reader
        self._index, self._wake, self._clock = index, wake, clock

    async def follow(self, tenant: str, event: ConstitutionChanged) -> None:
        """Bring the records of changed nodes up to date. Raises `Unavailable`."""
        news: dict[str, list[NodeNews]] = {}
        for one in event.nodes:
            news.setdefault(one.id, []).append(one)
        await self.refresh(tenant, list(news), news, event.actor)

    async def count_changes(self, tenant: str) -> int:
        """How many changes the tenant's graph has had. Raises `Unavailable`."""
        return await self._graph.count_changes(tenant)

    async def catch_up(self, tenant: str) -> None:
        """Bring up to date what the graph changed unheard, of what is embedded at once. Raises `Unavailable`."""
        latest = await self._reader.latest(tenant)
        changed = await self._graph.changed_since(tenant, latest - _OVERLAP)
        versions = await self._reader.versions(tenant, list(changed))
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
        read = [snapshot_of(node) for node in nodes]
        noted = await self._records.put(
            tenant, read, news or {}, actor, self._clock(), at_once=at_once, force=force, trusted=trusted
        )
        self._wake()
        await self._index.settle(tenant, noted)

    async def _forget(self, tenant: str, gone: Sequence[str], news: _News, actor: str) -> int:
        removed = await self._records.remove(tenant, gone, news, actor, self._clock())
        await self._index.settle(tenant, removed)
        # One that was made anew meanwhile, and whose news another handler has dealt with, would be lost otherwise.
        again = await self._graph.read(tenant, gone)
        await self.keep(tenant, list(again.values()), news, actor)
        return len([id for id in removed if id not in again])


_LONGEST = 290.0
"""Seconds that one order may take; what is on the queue by then is done all the same."""
_REGENERATION_LOOK = 0.05
_PAGE = 200


class Regeneration:
    """Does what `embeddings.regenerate.v1` orders."""

    def __init__(
        self,
        graph: ConstitutionGraph,
        following: GraphFollower,
        reader: RecordReader,
        index: PgNodeVectors,
        clock: Callable[[], datetime],
    ) -> None:
        self._graph, self._following, self._reader = graph, following, reader
        self._index, self._clock = index, clock

    async def regenerate(self, tenant: str, order: Regenerate) -> Regenerated:
        """Bring the records up to date with the graph, embed what is to be embedded, and tell the index.

        Raises `Unavailable` (the graph, the store or the index does not answer), `TimedOut` (it takes longer than an order may;
        it goes on all the same).
        """
        if order.index_only:
            return await self._index_alone(tenant, order)
        began = self._clock()
        removed = await (self._some if order.ids else self._all)(tenant, order)
        try:
            async with asyncio.timeout(_LONGEST):
                while (outcome := await self._outcome(tenant, order, began))["waiting"]:  # noqa: ASYNC110  # others embed too
                    await asyncio.sleep(_REGENERATION_LOOK)
        except TimeoutError as error:
            raise TimedOut("the nodes are being embedded still") from error
        _, orphans = await self._index.reconcile(tenant)
        done = {name: outcome[name] for name in ("embedded", "unchanged", "skipped", "failed")}
        return Regenerated(**done, removed=removed + orphans)

    async def _index_alone(self, tenant: str, order: Regenerate) -> Regenerated:
        await self._index.reindex(tenant)
        _, orphans = await self._index.reconcile(tenant)
        outcome = await self._outcome(tenant, order, self._clock())
        unchanged = outcome["embedded"] + outcome["unchanged"]
        return Regenerated(
            embedded=0, unchanged=unchanged, skipped=outcome["skipped"], failed=outcome["failed"], removed=orphans
        )

    async def _outcome(self, tenant: str, order: Regenerate, began: datetime) -> dict[str, int]:
        return await self._reader.outcome(tenant, order.layers or tuple(Layer), order.ids or None, began)

    async def _some(self, tenant: str, order: Regenerate) -> int:
        return await self._following.refresh(tenant, order.ids, at_once=True, force=order.force)

    async def _all(self, tenant: str, order: Regenerate) -> int:
        layers = frozenset(order.layers or Layer)
        seen: set[str] = set()
        last = ""
        while page := await self._graph.walk(tenant, last, _PAGE):
            last = page[-1].id
            mine = [node for node in page if node.layer in layers]
            seen |= {node.id for node in mine}
            await self._keep(tenant, mine, order.force)
        # One that was written since it was walked past is there when it is read, and stays.
        lost = [id for id in await self._reader.ids(tenant, tuple(layers)) if id not in seen]
        return await self._following.refresh(tenant, lost)

    async def _keep(self, tenant: str, nodes: Sequence[ConstitutionNode], force: bool) -> None:
        for start in range(0, len(nodes), BATCH):
            await self._following.keep(tenant, nodes[start : start + BATCH], at_once=True, force=force)


_SETTLE_WAIT = 5.0
"""Seconds that a search waits for what was written before it."""
_CATCH_UP_WAIT, _LOOK_AGAIN = 3.0, 0.2
"""Seconds that a search waits which did not ask to, and that those wait which come after one that waited in vain."""
_TENANTS = 5_000
"""Tenants of which it is known up to which change they were looked at."""
_SETTLE_LOOK, _INDEX_LOOK = 0.01, 0.25
"""Seconds between two looks at what is to be embedded, and between two tries of an index that has not taken everything."""


class ConstitutionVectors:
    """`NodeVectors` on the index, with waiting for what was written."""

    def __init__(self, index: PgNodeVectors, records: NodeRecords, queue: NodeQueue, following: GraphFollower) -> None:
        self._index = index
        self.nearest, self.worded, self.cosines = index.nearest, index.worded, index.cosines
        self.scan, self.sample, self.state, self.populating = index.scan, index.sample, index.state, index.populating
        self._records, self._queue, self._following = records, queue, following
        self._looked: OrderedDict[str, tuple[int, bool]] = OrderedDict()
        """By tenant: the last change that was waited for, and whether it was found."""

    async def caught_up(self, tenant: str) -> int | None:
        """The graph is asked how many changes there were; only those since this process looked last are waited for."""
        try:
            number = await self._following.count_changes(tenant)
        except ServiceError as error:
            log.warning("a search may lack what was written just now: %s", error.code)
            return None
        looked, found = self._looked.get(tenant, (-1, False))
        if looked == number and found:
            return number
        try:
            # One search waits for a change, and those after it look again only.
            async with asyncio.timeout(_LOOK_AGAIN if looked == number else _CATCH_UP_WAIT):
                await self._settle(tenant)
            found = True
        except (ServiceError, TimeoutError) as error:
            log.info("a search may lack what was written just now: %s", getattr(error, "code", "timed_out"))
            found = False
        self._looked[tenant] = (number, found)
        self._looked.move_to_end(tenant)
        if len(self._looked) > _TENANTS:
            self._looked.popitem(last=False)
        return number if found else None

    async def settled(self, tenant: str) -> None:
        """The graph is asked what changed: its news may still be on the way."""
        try:
            async with asyncio.timeout(_SETTLE_WAIT):
                await self._settle(tenant)
        except TimeoutError as error:
            raise Unavailable("what was written just now is not embedded yet", retry_after=1) from error

    async def _settle(self, tenant: str) -> None:
        await self._following.catch_up(tenant)
        waiting = await self._queue.hurrying(tenant)
        while waiting:
            await asyncio.sleep(_SETTLE_LOOK)
            waiting = await self._queue.hurrying(tenant, waiting)
        # Also what the worker has embedded already, and has not brought to the index yet.
        while not await self._index.settle_all(tenant):  # noqa: ASYNC110  # a slow index is waited for, or it is said
            await asyncio.sleep(_INDEX_LOOK)

    async def assign(self, tenant: str, topics: Mapping[str, str | None]) -> None:
        await self._index.settle(tenant, await self._records.assign(tenant, topics))
