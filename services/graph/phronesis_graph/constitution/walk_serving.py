"""What the graph service answers to walks, figures, algorithms and reasons."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

from phronesis_bus import Bus, Kind, Metric, serve
from phronesis_contracts.constitution import algorithms as contract
from phronesis_contracts.constitution import insight, paths

from ..adapters.bolt import Bolt
from ..adapters.constitution_figures import BoltFigures
from ..adapters.constitution_projection import BoltProjection
from ..adapters.constitution_walks import BoltWalks
from .algorithms import Algorithms
from .alignment import Alignment
from .engines import Algorithm, Computed, Engine
from .figures import Figures
from .projections import Projections
from .reasons import Reasons
from .walks import Walks

SECONDS = Metric(
    "phronesis_graph_algorithm_seconds",
    Kind.HISTOGRAM,
    "Time of computations of graph algorithms; what was cached is none.",
    ("algorithm", "engine"),
)
NODES = Metric("phronesis_graph_projection_nodes", Kind.GAUGE, "Nodes that an algorithm ran over last.", ("algorithm",))
MEMORY = Metric("phronesis_graph_algorithm_bytes", Kind.GAUGE, "Memory that the last computation took at most.", ("algorithm",))
_now = partial(datetime.now, UTC)


async def serve_walks(bus: Bus, bolt: Bolt, engine: Engine) -> Projections:
    """Answer every contract of `paths` and `algorithms`, and why and what if.

    Gives the projections: whoever hears of changes tells them.
    """
    store = BoltWalks(bolt)
    walks, figures = Walks(store), Figures(BoltFigures(bolt), store)
    projections = Projections(BoltProjection(bolt), _now)
    computing = Algorithms(projections, engine, store, _now, partial(_watch, bus))
    alignment, reasons = Alignment(projections, store, _now), Reasons(projections, store)
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


def _watch(bus: Bus, algorithm: Algorithm, engine: str, seconds: float, nodes: int, computed: Computed) -> None:
    metrics = bus.tracing.metrics
    metrics.observe(SECONDS, seconds, algorithm.value, engine)
    metrics.set(NODES, nodes, algorithm.value)
    if computed.kilobytes:
        metrics.set(MEMORY, computed.kilobytes * 1024, algorithm.value)
