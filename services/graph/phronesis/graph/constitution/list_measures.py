"""What each list leaves behind: a line in the log and figures (O-335)."""

from __future__ import annotations

import logging
import time

from phronesis.bus import Kind, Metric, Metrics
from phronesis.bus.metrics import TOKENS
from phronesis.contracts.constitution.values import ListStats

log = logging.getLogger(__name__)

SECONDS = Metric(
    "phronesis_constitution_list_seconds",
    Kind.HISTOGRAM,
    "Time of lists of the constitutional graph, those that were kept apart from those that were read.",
    ("tool", "cached"),
)
LIST_TOKENS = Metric(
    "phronesis_constitution_list_tokens", Kind.HISTOGRAM, "Tokens of lists of the constitutional graph.", ("tool",), TOKENS
)
LIST_NODES = Metric(
    "phronesis_constitution_list_nodes", Kind.HISTOGRAM, "Nodes of lists of the constitutional graph.", ("tool",), TOKENS
)


class Listed:
    """Enters lists in the log and the figures of a process."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def enter(self, tool: str, stats: ListStats, began: float, cached: bool = False) -> None:
        """Enter one list.

        Args:
            tool: name of the tool.
            stats: what it came to.
            began: when it was asked for, by `time.perf_counter`.
            cached: whether it was kept.
        """
        seconds = time.perf_counter() - began
        self._metrics.observe(SECONDS, seconds, tool, "yes" if cached else "no")
        self._metrics.observe(LIST_TOKENS, stats.token_estimate, tool)
        self._metrics.observe(LIST_NODES, stats.total_nodes, tool)
        told = {
            "tool": tool,
            "tokens": stats.token_estimate,
            "nodes": stats.total_nodes,
            "cached": cached,
            "milliseconds": round(seconds * 1_000, 3),
        }
        log.info("a list was told", extra=told)
