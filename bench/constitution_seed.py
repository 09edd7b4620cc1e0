"""The seed's numbers for the constitutional graph (section 37 of its list), and whether a figure keeps to them."""

from __future__ import annotations

from dataclasses import dataclass

from phronesis_contracts.constitution.registry import Layer


@dataclass(frozen=True)
class Operation:
    """One row of the first table."""

    name: str
    tool: str
    median_s: float
    p99_s: float
    by_size_s: tuple[float, ...] = ()
    """Ceilings of the median at `SIZES`, from the second table."""


SIZES = (45, 500, 1_000, 5_000)
LARGEST = 50_000
"""Beyond the seed's table: the size at which the same is measured once more."""
OPERATIONS = (
    Operation("Session start, full context", "session.start.v1", 5.0, 8.0, (3.0, 5.0, 6.0, 8.0)),
    Operation("foundation.list.v2", "foundation.list.v2", 2.0, 3.0, (1.0, 2.0, 2.5, 3.0)),
    Operation("vision.list.v2", "vision.list.v2", 1.0, 2.0, (0.5, 1.0, 1.0, 1.5)),
    Operation("Semantic search, topK=10", "semantic.search.v1", 1.5, 3.0, (1.0, 1.5, 2.0, 3.0)),
    Operation("Hybrid search, topK=10", "hybrid.search.v1", 2.5, 4.0, (1.5, 2.5, 3.0, 4.0)),
    Operation("workload.assess.v1", "workload.assess.v1", 2.0, 3.0),
)
AIMS_MS = {"session.start.v1": 300.0, "semantic.search.v1": 60.0, "hybrid.search.v1": 100.0}
"""Our own aims for the 95th percentile at 5,000 nodes: an order of magnitude under the seed's."""
TOKENS: dict[str, tuple[int, ...]] = {
    "Foundation": (15_000, 17_000, 18_000, 20_000),
    "Vision": (2_000, 9_000, 10_000, 10_000),
    "Workload": (2_000, 2_000, 2_000, 2_000),
    "Total session": (19_000, 28_000, 30_000, 32_000),
}
"""Ceilings of a session's start at `SIZES`."""
CONVERSATION = (136_000, 127_000, 125_000, 123_000)
"""What is left of the window for the conversation at `SIZES`: 200,000 - 45,000 - session (C-100)."""
BUDGET: dict[str, tuple[int, int]] = {
    "System prompt": (30_000, 30_000),
    "MCP tools": (15_000, 15_000),
    "Session context": (44_000, 25_000),
    "of it, foundation": (44_000, 15_000),
    "of it, vision": (0, 8_000),
    "of it, workload": (0, 2_000),
    "Conversation": (111_000, 130_000),
    "Total": (200_000, 200_000),
}
"""The window's budget: as it was, and as it is to be."""
GROWTH: dict[Layer, tuple[int, int, int]] = {
    Layer.FOUNDATION: (45, 60, 80),
    Layer.VISION: (0, 15, 25),
    Layer.STRATEGY: (0, 50, 100),
    Layer.TACTICS: (0, 80, 150),
    Layer.EXECUTION: (0, 250, 2_000),
    Layer.TRACK: (0, 500, 2_000),
    Layer.MIND: (0, 100, 500),
}
"""Nodes of each layer now, in 6 months and in a year."""
SEARCHES = {500: (10, 12_000), 5_000: (15, 15_000)}
"""By size: results of a search, and the tokens that they may have at most (section 7.3 of the seed)."""
PRECISION_SEMANTIC, PRECISION_HYBRID = 0.80, 0.85
FALSE_POSITIVES = 0.10
"""Irrelevant nodes found of all irrelevant ones (C-96)."""
DUPLICATES, UNRELATED, SILHOUETTE = 0.9, 0.4, 0.5
ALGORITHMS_S = 5.0
"""Seconds of one algorithm at 1,000 nodes."""


NO = "**no**"
"""Stands in a row that does not keep to its number."""


def verdict(kept: bool) -> str:
    """One word for a cell."""
    return "yes" if kept else NO
