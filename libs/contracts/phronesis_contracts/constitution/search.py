"""Contracts that find nodes of the constitutional graph, by meaning and by structure.

Their floors of similarity, and how they went.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..errors import NotFound, Unavailable
from ..messages import Rpc
from ..tools import Risk, Tool
from .paths import Step
from .registry import Layer
from .values import EVERY_LAYER, READERS, Asked, Camel, Chosen, ConstitutionLink, ConstitutionNode, Mention, absent


def to_cosine(index_score: float) -> float:
    """The cosine that an index score of the seed stands for: 2s - 1."""
    return round(2 * index_score - 1, 6)


SEMANTIC_FLOOR = to_cosine(0.7)
"""Floor of a semantic search: 0.4."""
GOAL_FLOOR = to_cosine(0.8)
"""Floor for the goal that somebody speaks of: 0.6."""
HYBRID_FLOOR = to_cosine(0.65)
"""Floor for what no path joins to the anchor: 0.3."""
EXECUTION_FLOOR = to_cosine(0.65)
"""Floor of a search in the execution layer: 0.3."""
PRECEDENT_FLOOR = to_cosine(0.6)
"""Floor for precedents: 0.2."""
INSIGHT_FLOOR = to_cosine(0.7)
"""Floor for insights: 0.4."""
DUPLICATE_COSINE = 0.9
"""Cosine above which two nodes are called near-duplicates; stated as a cosine in the seed."""
UNRELATED_COSINE = 0.4
"""Cosine below which unrelated texts stay; stated as a cosine in the seed."""
DRIFT_DISTANCE = 0.1
"""1 - cosine of an old and a new vector above which a node has drifted."""
COSINE_ROUNDING = 1e-6
"""How far below a floor a score may be by rounding alone."""

MAX_QUERY = 4_000
HITS = 50
"""Results of one search at most."""
SEARCH_TOKENS = 15_000
"""Tokens of one search's answer at most: less than any answer may have, since a talk holds several."""


class EmbeddingUnavailable(Unavailable):
    """The embedder does not answer; cached questions and everything without a question still work."""

    code = "memory.embedding_unavailable"


class NoSuchGoal(NotFound):
    """No goal is near enough to the words that were said of one."""

    code = "memory.no_such_goal"


class NoSuchRetrieval(NotFound):
    """There is no such retrieval, or its row has gone with its time."""

    code = "memory.no_such_retrieval"


class Sought(Chosen):
    """What every search takes."""

    query: str = Field(min_length=1, max_length=MAX_QUERY, pattern=r"\S")
    top_k: int = Field(default=10, ge=1, le=HITS)
    topic: str | None = Field(default=None, max_length=64)
    """Only nodes of this topic."""
    consistency: Literal["eventual", "strong"] = "eventual"
    """`strong` waits until every write that was answered before this question is embedded (P0 to P2)."""


class SemanticSearch(Sought):
    """A question by meaning."""

    min_similarity: float | None = Field(default=None, ge=0.0, le=1.0)
    """Cosine; 0 is no floor at all. Where none is given, the tenant's `semantic.minSimilarity` if it has set one, and what
    stands out from its nodes otherwise; 0.4 if the embedder cannot be measured.
    """
    include_relationships: bool = False
    include_query_embedding: bool = False


class SearchStats(Camel):
    """What a search came to."""

    total_results: int = 0
    avg_score: float = 0.0
    """0 for none."""
    token_estimate: int = 0


class Hit(Camel):
    """A node that was found, and how like the question it is."""

    node: ConstitutionNode
    score: float
    """Cosine."""
    relationships: tuple[ConstitutionLink, ...] | None = absent()


class SemanticFound(Camel):
    """Best first; of equals the one changed last, then by id."""

    results: tuple[Hit, ...]
    stats: SearchStats
    query_embedding: tuple[float, ...] | None = absent()
    retrieval_id: str = ""
    """What `retrieval.feedback.v1` names."""
    cached: bool = False
    truncated: bool = False
    """Results were left out at the end to keep to the greatest answer."""
    warnings: tuple[str, ...] = ()
    """Such as: the index is being filled, or part of the layers asked for is never embedded."""


class HybridSearch(Sought):
    """A question by meaning around a node."""

    anchor_node_id: str | None = Field(default=None, max_length=200)
    structural_weight: float | None = Field(default=None, ge=0.0, le=1.0)
    """The tenant's `hybrid.structuralWeight` where none is given: 0.6."""
    semantic_weight: float | None = Field(default=None, ge=0.0, le=1.0)
    """The tenant's `hybrid.semanticWeight`: 0.4. Both weights are divided by their sum where that is not 1."""
    max_depth: int = Field(default=2, ge=1, le=5)
    min_similarity: float | None = Field(default=None, ge=0.0, le=1.0)
    """Cosine that a node needs which no path joins to the anchor and which lacks words of the question. Where none is given,
    as in a semantic search, with `hybrid.minSimilarity`: 0.3."""
    rerank: bool = False
    """Order the best anew by the words that they share with the question (off unless asked for)."""


class HybridHit(Camel):
    """A node with both of its scores."""

    node: ConstitutionNode
    structural_score: float
    """1 / hops of the shortest path, 0 without one."""
    semantic_score: float
    """Cosine, not below 0."""
    final_score: float
    path: tuple[Step, ...] | None = absent()


class HybridStats(Camel):
    """What a hybrid search came to."""

    total_results: int = 0
    avg_structural_score: float = 0.0
    avg_semantic_score: float = 0.0
    token_estimate: int = 0


class HybridFound(Camel):
    """Best first by the final score."""

    results: tuple[HybridHit, ...]
    stats: HybridStats
    retrieval_id: str = ""
    cached: bool = False
    truncated: bool = False
    degraded: tuple[str, ...] = ()
    """`semantic` where the answer is by structure alone, `structural` where it is by meaning alone."""
    warnings: tuple[str, ...] = ()


class InsightSearch(Asked):
    """Insights and patterns, the surest first."""

    query: str = Field(min_length=1, max_length=MAX_QUERY, pattern=r"\S")
    min_confidence: float | None = Field(default=None, ge=0.0, le=1.0)
    """The tenant's `insight.minConfidence` where none is given: 0.6."""
    min_similarity: float | None = Field(default=None, ge=0.0, le=1.0)
    """Cosine; where none is given, as in a semantic search, with `insight.minSimilarity`: 0.4."""
    top_k: int = Field(default=10, ge=1, le=HITS)


class PrecedentSearch(Asked):
    """Decisions like one that is described, the best return first."""

    query: str = Field(min_length=1, max_length=MAX_QUERY, pattern=r"\S")
    min_roi: float | None = None
    """Decisions without a return are left out only where this is given."""
    start_date: str | None = Field(default=None, max_length=40)
    min_similarity: float | None = Field(default=None, ge=0.0, le=1.0)
    """Cosine; where none is given, as in a semantic search, with `precedent.minSimilarity`: 0.2."""
    limit: int = Field(default=10, ge=1, le=HITS)


class Supported(Camel):
    """A node with what it led to, or what it rests on."""

    node: ConstitutionNode
    score: float
    linked: tuple[Mention, ...] = ()


class SupportedFound(Camel):
    """Insights with their evidence, or decisions with their outcomes."""

    results: tuple[Supported, ...]
    stats: SearchStats
    retrieval_id: str = ""
    cached: bool = False
    truncated: bool = False
    warnings: tuple[str, ...] = ()


class GoalSearch(Asked):
    """Strategies for a goal that is named in words."""

    query: str = Field(min_length=1, max_length=MAX_QUERY, pattern=r"\S")
    types: tuple[str, ...] = Field(default=("strategy",), max_length=35)
    top_k: int = Field(default=10, ge=1, le=HITS)


class GoalFound(Camel):
    """The goal, and what is around it."""

    goal: ConstitutionNode
    goal_score: float
    found: HybridFound


class RateRetrieval(Asked):
    """Whether what a search found was of use."""

    retrieval_id: str = Field(min_length=1, max_length=64)
    relevant: bool
    node_id: str | None = Field(default=None, max_length=200)
    """One result of it; the whole answer where none is named."""


class RetrievalRated(Camel):
    """The share of ratings that say yes, over the time that ratings are kept."""

    satisfaction: float
    ratings: int


SEMANTIC_SEARCH = Rpc("memory.v1.constitution.semantic", SemanticSearch, SemanticFound, timeout=10.0)
HYBRID_SEARCH = Rpc("memory.v1.constitution.hybrid", HybridSearch, HybridFound, timeout=10.0)
INSIGHT_SEARCH = Rpc("memory.v1.constitution.insights", InsightSearch, SupportedFound, timeout=10.0)
PRECEDENT_SEARCH = Rpc("memory.v1.constitution.precedents", PrecedentSearch, SupportedFound, timeout=10.0)
GOAL_SEARCH = Rpc("memory.v1.constitution.goal", GoalSearch, GoalFound, timeout=10.0)
RATE_RETRIEVAL = Rpc("memory.v1.constitution.rate", RateRetrieval, RetrievalRated)

SEMANTIC_SEARCH_TOOL = Tool(
    "semantic.search.v1", "Nodes by meaning, with filters by layer, type and status.", SEMANTIC_SEARCH, agents=READERS
)
HYBRID_SEARCH_TOOL = Tool(
    "hybrid.search.v1",
    "Nodes by meaning and by their distance from an anchor node, each with its path.",
    HYBRID_SEARCH,
    agents=READERS,
)
INSIGHT_SEARCH_TOOL = Tool(
    "insight.search.v1",
    "Insights and patterns by meaning, the surest first, with their evidence.",
    INSIGHT_SEARCH,
    agents=READERS,
)
PRECEDENT_SEARCH_TOOL = Tool(
    "decision.precedents.v1",
    "Past decisions like this one, the best return first, with what came of them.",
    PRECEDENT_SEARCH,
    agents=READERS,
)
GOAL_SEARCH_TOOL = Tool(
    "goal.search.v1", "Find a goal by its words, and the strategies around it.", GOAL_SEARCH, agents=READERS
)
RATE_RETRIEVAL_TOOL = Tool(
    "retrieval.feedback.v1", "Say whether a search found what was of use.", RATE_RETRIEVAL, risk=Risk.LOW, agents=READERS
)
DISCUSS_SEMANTIC_TOOL = Tool(
    "discuss_semantic_search", "Nodes by meaning (the same as semantic.search.v1).", SEMANTIC_SEARCH, agents=READERS
)
DISCUSS_HYBRID_TOOL = Tool(
    "discuss_hybrid_search", "Nodes by meaning and structure (the same as hybrid.search.v1).", HYBRID_SEARCH, agents=READERS
)

TUNABLE: dict[str, float] = {
    "semantic.minSimilarity": SEMANTIC_FLOOR,
    "hybrid.minSimilarity": HYBRID_FLOOR,
    "hybrid.structuralWeight": 0.6,
    "hybrid.semanticWeight": 0.4,
    "insight.minSimilarity": INSIGHT_FLOOR,
    "insight.minConfidence": 0.6,
    "precedent.minSimilarity": PRECEDENT_FLOOR,
    "goal.minSimilarity": GOAL_FLOOR,
}
"""Defaults of the searches, which a tenant may change. Each is 0 to 1; floors are cosines."""


class TuneRetrieval(Asked):
    """Defaults of the tenant's searches to change; nothing named only tells them."""

    values: dict[str, float | None] = Field(default_factory=dict, max_length=len(TUNABLE))
    """By name (`TUNABLE`); null puts back what the product ships with."""


class RetrievalTuned(Camel):
    """The defaults as they are from the next search on."""

    values: dict[str, float]
    changed: tuple[str, ...] = ()
    """Those that differ from what the product ships with."""


class ReportRetrieval(Asked):
    """How the tenant's searches went."""

    days: int = Field(default=7, ge=1, le=365)


class ToolUse(Camel):
    """One tool's calls. Times are of its calls, cached ones too."""

    tool: str
    calls: int
    failed: int
    cached: int
    empty: int
    p50_milliseconds: float
    p95_milliseconds: float
    average_tokens: float


class LayerAccess(Camel):
    """How many sessions found nodes of a layer, beside how many capacity is planned for. All are shares, 0 to 1."""

    layer: Layer
    expected_least: float
    expected_most: float
    measured: float | None = absent()
    """Absent where nobody searched."""


class RetrievalReported(Camel):
    """The tools by name, the share of each layer among the nodes that were found, and what people said."""

    tools: tuple[ToolUse, ...]
    layers: dict[Layer, float]
    sessions: int = 0
    """Calls tell no session: it is what one user searched for on one day (UTC). The foundation that a session begins with is no
    search, and not counted."""
    access: tuple[LayerAccess, ...] = ()
    """The layers with an expected share."""
    satisfaction: float | None = absent()
    """Share of ratings that say yes; absent without ratings."""
    ratings: int = 0


TUNE_RETRIEVAL = Rpc("memory.v1.constitution.tune", TuneRetrieval, RetrievalTuned)
REPORT_RETRIEVAL = Rpc("memory.v1.constitution.retrievals", ReportRetrieval, RetrievalReported)

TUNE_RETRIEVAL_TOOL = Tool(
    "retrieval.tuning.v1",
    "Thresholds and weights of the searches: tell them, or change them from the next search on.",
    TUNE_RETRIEVAL,
    risk=Risk.MEDIUM,
    agents=EVERY_LAYER,
)
REPORT_RETRIEVAL_TOOL = Tool(
    "retrieval.report.v1", "How the searches went: times, tokens, layers, satisfaction.", REPORT_RETRIEVAL, agents=EVERY_LAYER
)
