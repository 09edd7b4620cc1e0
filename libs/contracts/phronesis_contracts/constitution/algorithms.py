"""Contracts of graph algorithms over the constitutional projection: every live node, four relationship types (O-211)."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime, Field

from ..messages import Rpc
from ..tools import Tool
from .kinds import Layer
from .paths import Step
from .relationships import CONSTITUTIONAL
from .values import READERS, Asked, Camel, Mention, absent


class Projected(Asked):
    """What every algorithm takes."""

    layers: tuple[Layer, ...] = Field(default=(), max_length=7)
    """Layers whose nodes it runs over; `foundation` and `vision` are the constitution in the narrow sense (C-52)."""
    types: tuple[str, ...] = Field(default=(), max_length=35)
    """Types that are told; the algorithm runs over all (O-221)."""
    relationship_types: tuple[str, ...] = Field(default=CONSTITUTIONAL, min_length=1, max_length=20)
    limit: int = Field(default=10, ge=1, le=500)
    refresh: bool = False
    """Compute anew, whatever is cached."""


class RankNodes(Projected):
    """The nodes that most rests on: PageRank, damping 0.85 (Page et al. 1999)."""


class FindBridges(Projected):
    """Nodes that stand between others: betweenness by Brandes (2001), edges without direction."""


class FindCommunities(Projected):
    """Clusters by the Louvain method (Blondel et al. 2008), edges without direction."""


class AlgorithmStats(Camel):
    """What an answer was computed from."""

    node_count: int
    relationship_count: int
    computed_at: AwareDatetime
    projected_at: AwareDatetime
    """When the graph that it was computed from was read (O-218)."""
    cached: bool
    engine: Literal["gds", "igraph", "service"]
    """What computed it; `service` where the graph service walked it itself."""
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
    """How a node is aligned with another: the shortest chain, whatever the direction of its relationships (C-50)."""

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

PAGERANK_TOOL = Tool("graph.pagerank.v1", "The nodes that most of the graph rests on.", PAGERANK, roles=READERS)
COMMUNITIES_TOOL = Tool("graph.communities.v1", "Clusters of nodes that belong together.", COMMUNITIES, roles=READERS)
BETWEENNESS_TOOL = Tool("graph.betweenness.v1", "Nodes that join parts of the graph.", BETWEENNESS, roles=READERS)
SHORTEST_PATH_TOOL = Tool(
    "graph.shortest_path.v1", "How one node is joined to another, such as a task to a value.", SHORTEST_PATH, roles=READERS
)
DISCUSS_PAGERANK_TOOL = Tool("discuss_graph_pagerank", "The same as graph.pagerank.v1.", PAGERANK, roles=READERS)
DISCUSS_COMMUNITIES_TOOL = Tool("discuss_graph_communities", "The same as graph.communities.v1.", COMMUNITIES, roles=READERS)
