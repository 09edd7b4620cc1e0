"""What each of the six capabilities takes (V-010)."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from phronesis_bus import Kind, Metric, Tracing

from ..timing import Outcome, timed

PLANNING = "planning"
MEMORY_QUERY = "memory_query"
REASONING = "reasoning"
PREFLIGHT = "preflight"
STRATEGIES = "strategies"
HISTORY = "history"
CAPABILITIES = (PLANNING, MEMORY_QUERY, REASONING, PREFLIGHT, STRATEGIES, HISTORY)
"""Planning of background tasks, the memory tool, the reasoning context, the look ahead, strategies, weighted history."""
COGNITION = Metric(
    "phronesis_cognition_seconds",
    Kind.HISTOGRAM,
    "Time that each capability adds to a turn (V-010).",
    ("capability", "outcome"),
    (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10),
)


def capability(tracing: Tracing, name: str) -> AbstractContextManager[Outcome]:
    """A span for one capability, and its time.

    Args:
        tracing: where they go.
        name: one of `CAPABILITIES`.
    """
    return timed(tracing, COGNITION, f"cognition {name}", name)


def of_tool(tracing: Tracing, tool: str) -> AbstractContextManager[Outcome | None]:
    """The same for a tool that is a capability; nothing for any other tool (V-004)."""
    return capability(tracing, MEMORY_QUERY) if tool == MEMORY_QUERY else nullcontext()
