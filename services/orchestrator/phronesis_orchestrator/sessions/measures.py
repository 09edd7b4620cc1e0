"""What is counted of sessions."""

from __future__ import annotations

from phronesis_bus import Kind, Metric

STARTS = Metric(
    "phronesis_session_starts",
    Kind.COUNTER,
    "Starts of sessions: `full` with every part, `partial` without one or two, `failed` with none (O-416).",
    ("outcome",),
)
