"""Contracts that walk the constitutional graph, and of graph algorithms over it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AwareDatetime, Field

from ..messages import Message, Rpc
from ..tools import Tool
from .registry import CONSTITUTIONAL, Layer, Lifecycle
from .values import READERS, Asked, Camel, ConstitutionLink, ConstitutionNode, ListStats, Mention, NodeId, absent

DEPTH = 5
"""Hops of the longest walk."""


class ClimbLadder(NodeId):
    """The goals and visions above a goal."""

    all_ladders: bool = False
    """Every ladder, and not the longest alone."""


class Ladder(Camel):
    """One way up, from the goal to its top."""

    rungs: tuple[Mention, ...]
    depth: int


class LadderClimbed(Camel):
    """The longest way up; ties by the top that changed last. No rung at all where the goal itself is not active."""

    ladder: tuple[Mention, ...]
    depth: int
    others: tuple[Ladder, ...] = ()
    """The next longest first."""
    token_estimate: int = 0
    truncated: bool = False
    """Whether there are more ladders than are told."""


class Step(Camel):
    """One step of a path: the node that it comes to, and the relationship that it takes."""

    node_id: str
    type: str
    title: str
    relationship: str | None = absent()
    """None for the node that the path begins at."""
    direction: Literal["out", "in"] | None = absent()
    """Whether the relationship leads to this node, or from it."""


class ExpandPath(NodeId):
    """Neighbours along given relationship types, over active nodes."""

    relationship_types: tuple[str, ...] = Field(default=(), max_length=20)
    """All where none is named."""
    direction: Literal["out", "in", "both"] = "both"
    depth: int = Field(default=1, ge=1, le=DEPTH)
    types: tuple[str, ...] = Field(default=(), max_length=35)
    """Types of the nodes that are told; those on the way to them may be of any type."""
    layers: tuple[Layer, ...] = Field(default=(), max_length=7)
    limit: int = Field(default=50, ge=1, le=500)


class Reached(Camel):
    """A node and the shortest way to it."""

    node: ConstitutionNode
    hops: int
    path: tuple[Step, ...]
    """One step for each hop, the last to the node itself; the node that was asked about stands in none."""


class PathExpanded(Camel):
    """What was reached, nearest first and then what changed last; nodes without their descriptions and free properties."""

    reached: tuple[Reached, ...]
    stats: ListStats
    truncated: bool = False


class Subgraph(Asked):
    """The active nodes around given nodes, and the relationships between them."""

    ids: tuple[str, ...] = Field(min_length=1, max_length=50)
    depth: int = Field(default=1, ge=0, le=DEPTH)
    limit: int = Field(default=100, ge=1, le=500)


class SubgraphFound(Camel):
    """Nodes, the given ones first, and every relationship between two of them; without descriptions and free properties."""

    nodes: tuple[ConstitutionNode, ...]
    relationships: tuple[ConstitutionLink, ...]
    stats: ListStats
    truncated: bool = False


class BridgeConcepts(Asked):
    """What joins two nodes."""

    from_id: str = Field(min_length=1, max_length=200)
    to_id: str = Field(min_length=1, max_length=200)
    max_depth: int = Field(default=4, ge=1, le=DEPTH)
    limit: int = Field(default=5, ge=1, le=20)
    """Paths at most, the shortest first."""


class BridgeFound(Camel):
    """The paths, and the nodes that stand on them, most often first."""

    paths: tuple[tuple[Step, ...], ...]
    between: tuple[Mention, ...]
    token_estimate: int = 0


class StrategiesForGoal(NodeId):
    """Strategies that serve a goal or align with it."""

    limit: int = Field(default=10, ge=1, le=50)
    max_hops: int = Field(default=2, ge=1, le=2)
    """2 finds those too that serve what serves the goal."""


class StrategyFound(Camel):
    """A strategy with the active initiatives that carry it."""

    strategy: ConstitutionNode
    hops: int
    initiatives: tuple[Mention, ...] = ()


class StrategiesFound(Camel):
    """The one changed last comes first."""

    strategies: tuple[StrategyFound, ...]
    stats: ListStats
    truncated: bool = False
    """Whether some were left out to keep to 15,000 tokens."""


class DueWork(Asked):
    """Tasks that are open and due in a window, both ends included."""

    start_date: str = Field(max_length=40)
    """ISO 8601, a day or a time."""
    end_date: str = Field(max_length=40)
    limit: int = Field(default=50, ge=0, le=50)
    """Tasks told; the figures are of all that are due."""


class DueFound(Camel):
    """Tasks by due date, then the highest priority first, and the figures of all of them."""

    items: tuple[ConstitutionNode, ...] = ()
    total: int = 0
    by_status: dict[str, int] = Field(default_factory=dict)
    total_effort_hours: float = 0.0
    unestimated: int = 0
    """Open tasks of the window without `effortHours`, which count as 0."""
    overdue: int = 0
    """Open tasks that were due before the window."""


class AggregateTrack(Asked):
    """Each metric's observations over a time, both ends included."""

    start_date: str = Field(max_length=40)
    end_date: str = Field(max_length=40)
    metric_ids: tuple[str, ...] = Field(default=(), max_length=100)
    """All active metrics where none is named."""
    points: int | None = Field(default=None, ge=0, le=1_000)
    """Points of each series at most; 24 where nothing is said, and fewer where the answer would pass 5,000 tokens."""


class MetricSummary(Camel):
    """One metric. Its figures are absent where nothing was observed."""

    id: str
    title: str
    unit: str | None = absent()
    count: int
    average: float | None = absent()
    minimum: float | None = absent()
    maximum: float | None = absent()
    series: tuple[tuple[AwareDatetime, float], ...] = ()


class TrackAggregated(Camel):
    """The metrics by title."""

    metrics: tuple[MetricSummary, ...]
    token_estimate: int = 0
    truncated: bool = False
    """Whether metrics were left out to keep to the greatest answer; a thinned series is none."""


class Near(Message):
    """Nodes around an anchor, for a search that weighs distance, over active ones."""

    id: str
    max_depth: int = Field(default=2, ge=1, le=DEPTH)
    layers: tuple[Layer, ...] = ()
    types: tuple[str, ...] = ()
    status: Lifecycle = Lifecycle.ACTIVE
    """Of the nodes told; the way to them is active in any case."""
    limit: int = Field(default=200, ge=1, le=2_000)


class NearFound(Message):
    """Each with its shortest path from the anchor, nearest first and then what changed last.

    Of a node its names, its status and when it changed; whoever shows it reads the rest (`graph.v1.constitution.read`).
    """

    reached: tuple[Reached, ...]


class Outcomes(Message):
    """What decisions led to, or what insights rest on, for many nodes at once."""

    ids: tuple[str, ...] = Field(min_length=1, max_length=100)
    relationship: str
    types: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()


class OutcomesFound(Message):
    """By node that was asked about, those that the relationship leads to; none for a node that there is not."""

    found: dict[str, tuple[Mention, ...]]


class DecisionsSince(Asked):
    """Decisions by what they paid off."""

    min_roi: float | None = None
    start_date: str | None = Field(default=None, max_length=40)
    end_date: str | None = Field(default=None, max_length=40)
    limit: int = Field(default=10, ge=1, le=50)


class DecisionsFound(Camel):
    """Decisions, the best return first and those without one last, each with its done tasks."""

    decisions: tuple[ConstitutionNode, ...]
    outcomes: dict[str, tuple[Mention, ...]] = Field(default_factory=dict)
    stats: ListStats
    truncated: bool = False
    """Whether some were left out to keep to 15,000 tokens."""


class RelateFoundation(Asked):
    """The foundation as a graph: each node with what it leads to within the layer."""


class LeadsTo(Camel):
    """A relationship from the node that it is listed with."""

    target_id: str
    type: str


class FoundationNode(Camel):
    """An active node of the foundation."""

    id: str
    type: str
    title: str
    summary: str | None = absent()
    description: str | None = absent()
    links: tuple[LeadsTo, ...] = ()
    """To other active nodes of the layer."""


class FoundationRelated(Camel):
    """The nodes by type in the registry's order, then by title."""

    items: tuple[FoundationNode, ...]
    token_estimate: int = 0
    truncated: bool = False


CLIMB_LADDER = Rpc("graph.v1.constitution.ladder", ClimbLadder, LadderClimbed, timeout=10.0)
EXPAND_PATH = Rpc("graph.v1.constitution.expand", ExpandPath, PathExpanded, timeout=10.0)
SUBGRAPH = Rpc("graph.v1.constitution.subgraph", Subgraph, SubgraphFound, timeout=10.0)
BRIDGE = Rpc("graph.v1.constitution.bridge", BridgeConcepts, BridgeFound, timeout=10.0)
STRATEGIES = Rpc("graph.v1.constitution.strategies", StrategiesForGoal, StrategiesFound, timeout=10.0)
DUE_WORK = Rpc("graph.v1.constitution.due", DueWork, DueFound, timeout=10.0)
AGGREGATE_TRACK = Rpc("graph.v1.constitution.track.aggregate", AggregateTrack, TrackAggregated, timeout=10.0)
DECISIONS_SINCE = Rpc("graph.v1.constitution.decisions", DecisionsSince, DecisionsFound, timeout=10.0)
NEAR = Rpc("graph.v1.constitution.near", Near, NearFound, timeout=5.0)
RELATE_FOUNDATION = Rpc("graph.v1.constitution.foundation.related", RelateFoundation, FoundationRelated, timeout=10.0)
OUTCOMES = Rpc("graph.v1.constitution.outcomes", Outcomes, OutcomesFound, timeout=5.0)


def _tool(name: str, description: str, rpc: Rpc[Any, Any]) -> Tool[Any, Any]:
    return Tool(name, description, rpc, agents=READERS)


CLIMB_LADDER_TOOL = _tool("discuss_goal_ladder", "What a goal serves: the goals and visions above it.", CLIMB_LADDER)
EXPAND_PATH_TOOL = _tool("discuss_expand_path", "Neighbours of a node along relationship types, to a depth.", EXPAND_PATH)
SUBGRAPH_TOOL = _tool("discuss_subgraph_nodes", "The nodes and relationships around given nodes.", SUBGRAPH)
BRIDGE_TOOL = _tool("discuss_concept_bridge", "The paths that join two nodes.", BRIDGE)
STRATEGIES_TOOL = _tool("goal.strategies.v1", "Strategies for a goal, each with its initiatives.", STRATEGIES)
DUE_WORK_TOOL = _tool("tasks.due.v1", "Open tasks that are due between two dates, and their hours.", DUE_WORK)
AGGREGATE_TRACK_TOOL = _tool("track.aggregate.v1", "Metrics over a time: count, average, range, series.", AGGREGATE_TRACK)
DECISIONS_SINCE_TOOL = _tool("decisions.list.v1", "Decisions by return and date, with what was done.", DECISIONS_SINCE)
RELATE_FOUNDATION_TOOL = _tool(
    "foundation.relationships.v1", "The foundation's nodes, each with its relationships to others of it.", RELATE_FOUNDATION
)


class Projected(Asked):
    """What every algorithm takes."""

    layers: tuple[Layer, ...] = Field(default=(), max_length=7)
    """Layers whose nodes it runs over; `foundation` and `vision` are the constitution in the narrow sense."""
    types: tuple[str, ...] = Field(default=(), max_length=35)
    """Types that are told; the algorithm runs over all."""
    relationship_types: tuple[str, ...] = Field(default=CONSTITUTIONAL, min_length=1, max_length=20)
    limit: int = Field(default=10, ge=1, le=500)
    refresh: bool = False
    """Compute anew, whatever is cached."""


class RankNodes(Projected):
    """The nodes that most rests on: PageRank, damping 0.85 (Page et al. 1999)."""


class FindBridges(Projected):
    """Nodes that stand between others: betweenness by Brandes (2001), edges without direction."""


class FindCommunities(Projected):
    """Clusters by the Leiden method (Traag et al. 2019), edges without direction."""


class AlgorithmStats(Camel):
    """What an answer was computed from."""

    node_count: int
    relationship_count: int
    computed_at: AwareDatetime
    projected_at: AwareDatetime
    """When the graph that it was computed from was read."""
    cached: bool
    engine: Literal["gds", "igraph", "service"]
    """What computed it: `service` is the graph service itself; `igraph` is no longer told."""
    milliseconds: float
    """Of the computation; 0 where it was cached."""
    pivots: int | None = absent()
    """Nodes that betweenness was estimated from (Brandes and Pich 2007); absent where it is exact."""


class Ranked(Camel):
    """A node and its figure."""

    id: str
    type: str
    title: str
    score: float


class NodesRanked(Camel):
    """The highest first; of equals by id."""

    rows: tuple[Ranked, ...]
    stats: AlgorithmStats


class Community(Camel):
    """One cluster: its nodes, the one with most neighbours in it first."""

    id: int
    size: int
    """Nodes of every type."""
    nodes: tuple[Mention, ...]
    """Those of the types asked for, 25 at most."""


class CommunitiesFound(Camel):
    """The largest first."""

    rows: tuple[Community, ...]
    modularity: float
    stats: AlgorithmStats


class FindShortestPath(Asked):
    """How a node is aligned with another: the shortest chain, whatever the direction of its relationships."""

    from_id: str = Field(min_length=1, max_length=200)
    to_id: str = Field(min_length=1, max_length=200)
    max_depth: int = Field(default=10, ge=1, le=20)
    relationship_types: tuple[str, ...] = Field(default=CONSTITUTIONAL, min_length=1, max_length=20)
    refresh: bool = False


class ShortestPathFound(Camel):
    """The chain, each step with its direction; empty where there is none."""

    path: tuple[Step, ...]
    hops: int
    stats: AlgorithmStats


PAGERANK = Rpc("graph.v1.constitution.pagerank", RankNodes, NodesRanked, timeout=30.0)
COMMUNITIES = Rpc("graph.v1.constitution.communities", FindCommunities, CommunitiesFound, timeout=60.0)
BETWEENNESS = Rpc("graph.v1.constitution.betweenness", FindBridges, NodesRanked, timeout=60.0)
SHORTEST_PATH = Rpc("graph.v1.constitution.path", FindShortestPath, ShortestPathFound, timeout=30.0)

PAGERANK_TOOL = Tool("graph.pagerank.v1", "The nodes that most of the graph rests on.", PAGERANK, agents=READERS)
COMMUNITIES_TOOL = Tool("graph.communities.v1", "Clusters of nodes that belong together.", COMMUNITIES, agents=READERS)
BETWEENNESS_TOOL = Tool("graph.betweenness.v1", "Nodes that join parts of the graph.", BETWEENNESS, agents=READERS)
SHORTEST_PATH_TOOL = Tool(
    "graph.shortest_path.v1", "How one node is joined to another, such as a task to a value.", SHORTEST_PATH, agents=READERS
)
DISCUSS_PAGERANK_TOOL = Tool("discuss_graph_pagerank", "The same as graph.pagerank.v1.", PAGERANK, agents=READERS)
DISCUSS_COMMUNITIES_TOOL = Tool("discuss_graph_communities", "The same as graph.communities.v1.", COMMUNITIES, agents=READERS)
