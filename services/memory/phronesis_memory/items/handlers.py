"""The handlers of items, and following the graph, whose node texts are shared items."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from phronesis_bus import Bus, Call, News, ask
from phronesis_contracts import Agent, BadRequest, Internal, Principal, TooLarge, memory
from phronesis_contracts.deletions import ConversationDeleted
from phronesis_contracts.orchestrator import TurnEndedNews, TurnStatus
from phronesis_contracts.twin import EXPAND, NODES, ChangedNode, Expand, Neighbour, Node, NodeChanged, NodeKeys

from ..ports import Graph, Knowledge
from ..values import Audience, Item, NodeState, check_batch, is_storable, labels_of_call, shorten
from .drafts import Drafter, draft_from_item, draft_from_turn, drafts_from_node
from .rows import ItemRemover
from .search import Candidate, HybridSearch, Retrieval

NODE_BATCH = 20
"""Nodes of one question: their texts, with room to spare, fit the greatest message."""


class NodeTextProjection:
    """Makes the shared items of changed nodes what the graph says now. A repeat, in any order, changes nothing."""

    def __init__(self, graph: Graph, knowledge: Knowledge, drafting: Drafter) -> None:
        self._graph, self._knowledge, self._drafting = graph, knowledge, drafting

    async def follow(self, tenant: str, changed: Sequence[ChangedNode]) -> None:
        """Bring the items of `changed` up to date. Raises `Unavailable`."""
        versions: dict[str, int] = {}
        for node in changed:
            versions[node.key] = max(node.version, versions.get(node.key, 0))
        passed = await self._knowledge.passed(tenant, versions)
        keys = [key for key in versions if key not in passed]
        for start in range(0, len(keys), NODE_BATCH):
            batch = keys[start : start + NODE_BATCH]
            await self._project(tenant, {key: versions[key] for key in batch}, await self._nodes(tenant, batch))

    async def _nodes(self, tenant: str, keys: list[str]) -> dict[str, Node]:
        try:
            return {node.key: node for node in await self._graph.nodes(tenant, keys)}
        except (Internal, TooLarge):
            # The texts of many nodes can be more than one message holds.
            if len(keys) == 1:
                raise
            half = len(keys) // 2
            return await self._nodes(tenant, keys[:half]) | await self._nodes(tenant, keys[half:])

    async def _project(self, tenant: str, versions: dict[str, int], nodes: dict[str, Node]) -> None:
        drafts = {key: drafts_from_node(nodes[key]) if key in nodes else [] for key in versions}
        known = await self._knowledge.digests(tenant, memory.SHARED, list(versions))
        # All nodes' texts are embedded together, in full batches, and then each node is written by itself.
        flat = await self._drafting.complete([draft for of_key in drafts.values() for draft in of_key], known)
        start = 0
        for key, version in versions.items():
            ready = flat[start : start + len(drafts[key])]
            start += len(drafts[key])
            node = nodes.get(key)
            state = NodeState(key, version, gone=True) if node is None else NodeState(key, node.version)
            await self._drafting.store(ready, known, partial(self._knowledge.project, tenant, state))


_EPISODE_STATUSES = frozenset({TurnStatus.COMPLETED, TurnStatus.FAILED, TurnStatus.PARKED})
"""Ends of turns that leave an episode."""
_MAKER_OF_KIND = {
    memory.ItemKind.NODE: "the graph",
    memory.ItemKind.MESSAGE: "`memory.add`",
    memory.ItemKind.STRATEGY: "a task",
    memory.ItemKind.PASSAGE: "an attachment",
}
"""Kinds that nobody stores by hand, and what makes them."""


class ItemHandlers:
    def __init__(
        self,
        knowledge: Knowledge,
        forgetting: ItemRemover,
        search: HybridSearch,
        retrieval: Retrieval,
        drafting: Drafter,
        nodes: NodeTextProjection,
    ) -> None:
        self._knowledge, self._forgetting, self._search = knowledge, forgetting, search
        self._retrieval, self._drafting, self._nodes = retrieval, drafting, nodes

    async def remember(self, call: Call, request: memory.Remember) -> memory.Remembered:
        """Store the caller's items, all or none, once for the call's key."""
        _check_items(request)
        who = call.who
        external_ids = [item.external_id for item in request.items if item.external_id is not None]
        known = await self._knowledge.digests(who.tenant, who.user, external_ids)
        labels = labels_of_call(call, request.labels)
        drafts = [draft_from_item(item, labels) for item in request.items]
        return await self._drafting.store(drafts, known, partial(self._knowledge.remember, call, request))

    async def recall(self, call: Call, request: memory.Recall) -> memory.Recalled:
        """What the caller's memory, and the tenant's, hold on a question."""
        async with self._knowledge.reading(call.who.tenant):
            return await self._recall(Audience.of(call.who, request.kinds), request)

    async def _recall(self, audience: Audience, request: memory.Recall) -> memory.Recalled:
        [found] = await self._search.find(audience, [request.query], request.limit)
        best = found.candidates[: request.limit]
        items = await self._read(audience, best)
        if len(items) < len(best) < len(found.candidates):
            # Some have expired, and are swept out of the indexes in a moment: the next best take their places.
            items |= await self._read(audience, found.candidates[request.limit :])
            best = tuple(one for one in found.candidates if one.id in items)[: request.limit]
        return memory.Recalled(
            items=tuple(
                memory.RecalledItem(
                    id=one.id,
                    external_id=items[one.id].external_id,
                    kind=one.kind,
                    title=items[one.id].title,
                    text=shorten(items[one.id].told, len(best)),
                    score=one.score,
                    why=one.why,
                    labels=items[one.id].labels,
                )
                for one in best
                if one.id in items
            ),
            degraded=tuple(sorted(found.degraded)),
        )

    async def _read(self, audience: Audience, found: Sequence[Candidate]) -> dict[str, Item]:
        if not found:
            return {}
        return {item.id: item for item in await self._knowledge.items(audience, [one.id for one in found])}

    async def retrieve(self, call: Call, request: memory.Retrieve) -> memory.AugmentedMemoryContext:
        return await self._retrieval.retrieve(call.who, request)

    async def forget(self, call: Call, request: memory.Forget) -> memory.Forgotten:
        """Remove items of the caller for good; what is another's is not there."""
        for number, id in enumerate(request.ids):
            if not is_storable(id):
                raise BadRequest("an id holds no NUL characters", field=f"ids.{number}")
        return await self._forgetting.forget(call, request)

    async def on_conversation_deleted(self, news: News, event: ConversationDeleted) -> None:
        """Remove what was learnt from a deleted conversation; the parts behind the first list media alone."""
        if event.part == 1:
            await self._forgetting.forget_conversation(news.tenant, event)

    async def on_node_changed(self, news: News, event: NodeChanged) -> None:
        """Bring the shared items of changed nodes up to date."""
        await self._nodes.follow(news.tenant, event.nodes)

    async def on_turn_ended(self, news: News, event: TurnEndedNews) -> None:
        """Keep a turn as an episode of its user, with what came of its tools, once; one that was cancelled leaves none."""
        if event.status not in _EPISODE_STATUSES or not (event.user_text.strip() or event.reply_text.strip()):
            return
        draft = draft_from_turn(event)
        known = await self._knowledge.digests(news.tenant, event.user, [draft.external_id or ""])
        if not known:
            ready = await self._drafting.complete([draft], {})
            await self._knowledge.record(news.tenant, event.user, ready[0], event.tools)


def _check_items(request: memory.Remember) -> None:
    for number, item in enumerate(request.items):
        if item.kind in _MAKER_OF_KIND:
            raise BadRequest(f"a {item.kind} is made by {_MAKER_OF_KIND[item.kind]} alone", field=f"items.{number}.kind")
    check_batch(request.items, "items")


class BusGraph:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def expand(self, who: Principal, ids: Sequence[str], hops: int, limit: int) -> tuple[Neighbour, ...]:
        return (await ask(self._bus, who, EXPAND, Expand(ids=tuple(ids), hops=hops, limit=limit))).items

    async def nodes(self, tenant: str, keys: Sequence[str]) -> tuple[Node, ...]:
        """An event acts for nobody, so memory asks for itself."""
        who = Principal(tenant=tenant, user="memory", agents=(Agent.MAESTRO,))
        return (await ask(self._bus, who, NODES, NodeKeys(keys=tuple(keys)))).nodes
