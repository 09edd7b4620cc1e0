"""Wiring of the constitutional graph: writes, lists, walks, figures, algorithms, reasons, and what the memory service asks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from phronesis_bus import Bus, Call, Kind, Metric, News, follow, serve
from phronesis_bus.streams import record_refusal
from phronesis_contracts import Nothing
from phronesis_contracts.constitution import insight, lists, maintenance, paths, writes
from phronesis_contracts.constitution import paths as contract
from phronesis_contracts.constitution.maintenance import ChangedNodes, ChangedSince, ChangesCounted, LinksRead, WalkLinks
from phronesis_contracts.constitution.registry import TYPES

from ..bolt.driver import Bolt
from ..bolt.schema import Schema
from ..knowledge.store import StoreNames
from .algorithms import AlgorithmHandlers
from .engine import Algorithm, AlgorithmOutput, Engine
from .figures import FigureHandlers
from .guardrails import RuleCache
from .layers import AnswerCache, WholeLayers
from .list_store import BoltLists, BoltSurvey
from .lists import InventoryHandlers, ListHandlers, ListMeasures, WholeLayerHandlers
from .load_store import BoltLoads
from .ports import NodeFilter, NodePages
from .projection import ProjectionCache
from .reasons import ReasonHandlers
from .routes import ShortestPathHandlers
from .store import BoltChanges, BoltConstitution, BoltLinks, BoltRules, WriteTurns
from .walk_store import BoltFigures, BoltProjection, BoltWalks
from .walks import WalkHandlers
from .writes import LoadHandlers, NodeHandlers, PolicyHandlers, RelationshipHandlers


async def serve_lists(bus: Bus, bolt: Bolt, schema: Schema) -> AnswerCache:
    """Answer lists, single nodes and the inventory; gives the kept answers, which want to hear of every change.

    When the broker was away, changes may have been missed, and all of them are dropped.
    """
    store, kept, listed = BoltLists(bolt, schema), AnswerCache(), ListMeasures(bus.tracing.metrics)
    pages, essentials = ListHandlers(store, listed), WholeLayerHandlers(WholeLayers(store), kept, listed)
    bus.on_reconnect(kept.clear)
    for layer, tool in lists.LISTS.items():
        await serve(bus, tool, partial(pages.layer, layer))
    await serve(bus, lists.LIST_FOUNDATION_TOOL, essentials.foundation)
    await serve(bus, lists.LIST_VISION_TOOL, essentials.vision)
    await serve(bus, lists.GET_ALL_TOOL, pages.get_all)
    await serve(bus, lists.GET_NODE_TOOL, pages.node)
    await serve(bus, lists.READ_NODES, pages.read_nodes)
    await serve(bus, lists.WALK_NODES, pages.walk_nodes)
    await serve(bus, lists.INVENTORY_TOOL, InventoryHandlers(BoltSurvey(bolt, schema)).inventory)
    return kept


ALGORITHM_SECONDS = Metric(
    "phronesis_graph_algorithm_seconds",
    Kind.HISTOGRAM,
    "Time of computations of graph algorithms; what was cached is none.",
    ("algorithm", "engine"),
)
PROJECTION_NODES = Metric(
    "phronesis_graph_projection_nodes", Kind.GAUGE, "Nodes that an algorithm ran over last.", ("algorithm",)
)
ALGORITHM_BYTES = Metric(
    "phronesis_graph_algorithm_bytes", Kind.GAUGE, "Memory that the last computation took at most.", ("algorithm",)
)
_now = partial(datetime.now, UTC)


async def serve_walks(bus: Bus, bolt: Bolt, engine: Engine) -> ProjectionCache:
    """Answer every contract of `paths` and `algorithms`, and why and what if.

    Gives the projections: whoever hears of changes tells them.
    """
    store = BoltWalks(bolt)
    walks, figures = WalkHandlers(store), FigureHandlers(BoltFigures(bolt), store)
    projections = ProjectionCache(BoltProjection(bolt), _now)
    computing = AlgorithmHandlers(projections, engine, store, _now, partial(_observe_algorithm, bus))
    alignment, reasons = ShortestPathHandlers(projections, store, _now), ReasonHandlers(projections, store)
    bus.on_reconnect(projections.drop_all)
    await serve(bus, paths.CLIMB_LADDER_TOOL, walks.ladder)
    await serve(bus, paths.EXPAND_PATH_TOOL, walks.expand)
    await serve(bus, paths.SUBGRAPH_TOOL, walks.subgraph)
    await serve(bus, paths.BRIDGE_TOOL, walks.bridge)
    await serve(bus, paths.NEAR, walks.near)
    await serve(bus, paths.STRATEGIES_TOOL, figures.strategies)
    await serve(bus, paths.DUE_WORK_TOOL, figures.due)
    await serve(bus, paths.AGGREGATE_TRACK_TOOL, figures.aggregate)
    await serve(bus, paths.DECISIONS_SINCE_TOOL, figures.decisions)
    await serve(bus, paths.OUTCOMES, figures.outcomes)
    await serve(bus, paths.RELATE_FOUNDATION_TOOL, figures.foundation)
    await serve(bus, contract.PAGERANK_TOOL, computing.pagerank)
    await serve(bus, contract.BETWEENNESS_TOOL, computing.betweenness)
    await serve(bus, contract.COMMUNITIES_TOOL, computing.communities)
    await serve(bus, contract.SHORTEST_PATH_TOOL, alignment.shortest_path)
    await serve(bus, insight.WHY_TOOL, reasons.why)
    await serve(bus, insight.WITHOUT_TOOL, reasons.without)
    return projections


def _observe_algorithm(
    bus: Bus, algorithm: Algorithm, engine: str, seconds: float, nodes: int, computed: AlgorithmOutput
) -> None:
    metrics = bus.tracing.metrics
    metrics.observe(ALGORITHM_SECONDS, seconds, algorithm.value, engine)
    metrics.set(PROJECTION_NODES, nodes, algorithm.value)
    if computed.kilobytes:
        metrics.set(ALGORITHM_BYTES, computed.kilobytes * 1024, algorithm.value)


_MOST = 5_000


class SyncHandlers:
    """Answers services that follow the graph."""

    def __init__(self, changes: BoltChanges, nodes: NodePages) -> None:
        self._changes, self._nodes = changes, nodes

    async def changed_since(self, call: Call, request: ChangedSince) -> ChangedNodes:
        return ChangedNodes(versions=await self._changes.since(call.who.tenant, request.at, request.types, _MOST))

    async def count_changes(self, call: Call, request: Nothing) -> ChangesCounted:
        return ChangesCounted(number=await self._changes.count(call.who.tenant))

    async def walk_links(self, call: Call, request: WalkLinks) -> LinksRead:
        after = (request.after_from, request.after)
        return LinksRead(relationships=tuple(await self._nodes.links(call.who.tenant, NodeFilter(), after, request.limit)))


async def serve_constitution(
    bus: Bus, bolt: Bolt, schema: Schema, names: StoreNames, engine: Engine, wake: Callable[[], None]
) -> None:
    """Answer the messages of the constitutional graph. `schema`: has to stand before anything is written."""
    turn = await _serve_writes(bus, bolt, schema, names, wake)
    kept = await serve_lists(bus, bolt, schema)
    turn.subscribe(kept.changed)
    projections = await serve_walks(bus, bolt, engine)
    turn.subscribe(projections.changed)
    asked = SyncHandlers(BoltChanges(bolt, schema), BoltLists(bolt, schema))
    await serve(bus, maintenance.CHANGED_SINCE, asked.changed_since)
    await serve(bus, maintenance.COUNT_CHANGES, asked.count_changes)
    await serve(bus, maintenance.WALK_LINKS, asked.walk_links)


async def _serve_writes(bus: Bus, bolt: Bolt, schema: Schema, names: StoreNames, wake: Callable[[], None]) -> WriteTurns:
    turn, ruling = WriteTurns(schema), RuleCache(BoltRules(bolt, schema))
    writing = NodeHandlers(BoltConstitution(bolt, turn, names), ruling, partial(record_refusal, bus), wake)
    relating = RelationshipHandlers(BoltLinks(bolt, turn, names), wake)
    for name, kind in TYPES.items():
        await serve(bus, writes.CREATE[name], partial(writing.create, kind))
        await serve(bus, writes.UPDATE[name], partial(writing.update, kind))
    await serve(bus, writes.UPDATE_NODE_TOOL, writing.update_node)
    await serve(bus, writes.DELETE_CONSTITUTION_NODE_TOOL, writing.delete_node)
    await serve(bus, writes.RELATE_TOOL, relating.relate)
    await serve(bus, writes.UNRELATE_TOOL, relating.unrelate)
    await serve(bus, insight.CHECK_POLICY_TOOL, PolicyHandlers(ruling).check_policy)
    loading = LoadHandlers(BoltLoads(bolt, turn, names), ruling, wake)
    await serve(bus, maintenance.RESTORE_GRAPH, loading.restore)
    await serve(bus, writes.LOAD_TOOL, loading.load)
    bus.on_reconnect(ruling.drop_all)
    bus.on_stop(ruling.close)

    async def on_changed(news: News, event: writes.ConstitutionChanged) -> None:
        turn.notify(news.tenant, event)
        await ruling.on_constitution_changed(news, event)

    await follow(bus, writes.CONSTITUTION_CHANGED, on_changed, every_copy=True)
    return turn
