"""Vectors made anew, and graph, records and index made to agree (O-321, O-362)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

from phronesis_contracts import TimedOut
from phronesis_contracts.constitution.keeping import Regenerate, Regenerated
from phronesis_contracts.constitution.kinds import Layer
from phronesis_contracts.constitution.values import ConstitutionNode

from ..adapters.constitution_told import NodeStanding
from .following import BATCH, Following
from .keeping import ConstitutionGraph, NodeIndex

_LONGEST = 290.0
"""Seconds that one order may take; what is on the queue by then is done all the same."""
_LOOK = 0.05
_PAGE = 200


class Regenerating:
    """Does what `embeddings.regenerate.v1` orders.

    Args:
        graph: the graph service.
        following: makes records of nodes.
        standing: what the records say.
        index: the index of the vectors.
        clock: the time.
    """

    def __init__(
        self,
        graph: ConstitutionGraph,
        following: Following,
        standing: NodeStanding,
        index: NodeIndex,
        clock: Callable[[], datetime],
    ) -> None:
        self._graph = graph
        self._following = following
        self._standing = standing
        self._index = index
        self._clock = clock

    async def regenerate(self, tenant: str, order: Regenerate) -> Regenerated:
        """Bring the records up to date with the graph, embed what is to be embedded, and tell the index.

        Raises:
            Unavailable: the graph, the store or the index does not answer.
            TimedOut: it takes longer than an order may; it goes on all the same.
        """
        if order.index_only:
            return await self._index_alone(tenant, order)
        began = self._clock()
        removed = await (self._some if order.ids else self._all)(tenant, order)
        try:
            async with asyncio.timeout(_LONGEST):
                while (outcome := await self._outcome(tenant, order, began))["waiting"]:  # noqa: ASYNC110  # others embed too
                    await asyncio.sleep(_LOOK)
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
        return await self._standing.outcome(tenant, order.layers or tuple(Layer), order.ids or None, began)

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
        lost = [id for id in await self._standing.ids(tenant, tuple(layers)) if id not in seen]
        return await self._following.refresh(tenant, lost)

    async def _keep(self, tenant: str, nodes: Sequence[ConstitutionNode], force: bool) -> None:
        for start in range(0, len(nodes), BATCH):
            await self._following.keep(tenant, nodes[start : start + BATCH], at_once=True, force=force)
