"""What each list leaves behind: a line in the log and figures (O-335)."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from phronesis_bus import Kind, Metric, Metrics
from phronesis_bus.metrics import TOKENS
from phronesis_contracts import Message
from phronesis_contracts.constitution.values import ListStats

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


@dataclass
class Came:
    """What a list came to, as whoever makes it says."""

    stats: ListStats = field(default_factory=ListStats)
    cached: bool = False
    """Whether it was kept."""


class Listed:
    """Enters lists in the log and the figures of a process."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    @contextmanager
    def call(self, tool: str, question: Message) -> Iterator[Came]:
        """Enter what a block does for a question of a tool's: one line for each, whatever comes of it (O-364).

        The line has a digest of the question, so that repeats can be told, and nothing of what was asked or answered.
        """
        began, came, outcome = time.perf_counter(), Came(), "ok"
        try:
            yield came
        except BaseException as error:
            outcome = getattr(error, "code", None) or type(error).__name__
            raise
        finally:
            self._enter(tool, question, came, outcome, time.perf_counter() - began)

    def _enter(self, tool: str, question: Message, came: Came, outcome: str, seconds: float) -> None:
        if outcome == "ok":
            self._metrics.observe(SECONDS, seconds, tool, "yes" if came.cached else "no")
            self._metrics.observe(LIST_TOKENS, came.stats.token_estimate, tool)
            self._metrics.observe(LIST_NODES, came.stats.total_nodes, tool)
        told = {
            "tool": tool,
            "arguments": hashlib.sha256(question.model_dump_json().encode()).hexdigest()[:16],
            "outcome": outcome,
            "tokens": came.stats.token_estimate,
            "nodes": came.stats.total_nodes,
            "cached": came.cached,
            "milliseconds": round(seconds * 1_000, 3),
        }
        log.info("a list was asked for", extra=told)
