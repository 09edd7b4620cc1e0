"""Contracts that keep the searches of the constitutional graph in order: their defaults, and how they went."""

from __future__ import annotations

from pydantic import Field

from ..messages import Rpc
from ..tools import Risk, Tool
from . import similarity
from .kinds import Layer
from .values import OWNERS, Asked, Camel, absent

TUNABLE: dict[str, float] = {
    "semantic.minSimilarity": similarity.SEMANTIC,
    "hybrid.minSimilarity": similarity.HYBRID,
    "hybrid.structuralWeight": 0.6,
    "hybrid.semanticWeight": 0.4,
    "insight.minSimilarity": similarity.INSIGHT,
    "insight.minConfidence": 0.6,
    "precedent.minSimilarity": similarity.PRECEDENT,
    "goal.minSimilarity": similarity.GOAL,
}
"""Defaults of the searches, which a tenant may change (O-366). Each is 0 to 1; floors are cosines."""


class TuneRetrieval(Asked):
    """Defaults of the tenant's searches to change; nothing named only tells them (O-366)."""

    values: dict[str, float | None] = Field(default_factory=dict, max_length=len(TUNABLE))
    """By name (`TUNABLE`); null puts back what the product ships with."""


class RetrievalTuned(Camel):
    """The defaults as they are from the next search on."""

    values: dict[str, float]
    changed: tuple[str, ...] = ()
    """Those that differ from what the product ships with."""


class ReportRetrieval(Asked):
    """How the tenant's searches went (O-364, O-365)."""

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
    """How many sessions found nodes of a layer, beside how many capacity is planned for (O-024). All are shares, 0 to 1."""

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
    """Share of ratings that say yes; absent without ratings (O-417)."""
    ratings: int = 0


TUNE_RETRIEVAL = Rpc("memory.v1.constitution.tune", TuneRetrieval, RetrievalTuned)
REPORT_RETRIEVAL = Rpc("memory.v1.constitution.retrievals", ReportRetrieval, RetrievalReported)

TUNE_RETRIEVAL_TOOL = Tool(
    "retrieval.tuning.v1",
    "Thresholds and weights of the searches: tell them, or change them from the next search on.",
    TUNE_RETRIEVAL,
    risk=Risk.MEDIUM,
    roles=OWNERS,
)
REPORT_RETRIEVAL_TOOL = Tool(
    "retrieval.report.v1", "How the searches went: times, tokens, layers, satisfaction.", REPORT_RETRIEVAL, roles=OWNERS
)
