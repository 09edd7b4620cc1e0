"""What an answer is made of, before it is put into its final form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from phronesis_contracts.analysis import Visualization


@dataclass(frozen=True)
class Findings:
    """Sentences, insights, rows, and what the confidence rests on."""

    answer: str
    insights: tuple[str, ...] = ()
    rows: tuple[dict[str, Any], ...] = ()
    stats: dict[str, Any] = field(default_factory=dict)
    charts: tuple[Visualization, ...] = ()
    known: int = 1
    unknown: int = 0
    gaps: int = 0
    several_steps: bool = False
    """Whether it took more than one hop, or looked for gaps: mode B in place of A."""
