"""What the store is asked for figures: what is due, what was measured, what was decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from phronesis_contracts.constitution.paths import Outcomes
from phronesis_contracts.constitution.values import ConstitutionNode

from .walkable import Met
from .windows import Window


@dataclass(frozen=True)
class Due:
    """Open tasks of a window, and the figures of all of them."""

    tasks: Sequence[ConstitutionNode]
    by_status: dict[str, int]
    hours: float
    unestimated: int
    overdue: int


@dataclass(frozen=True)
class Measured:
    """A metric with its observations of a window, in the order of time: when and how much."""

    id: str
    title: str
    unit: str | None
    observations: Sequence[tuple[str, float]]


class FigureStore(Protocol):
    """One read for each question. All raise `Unavailable` where the store is down, and `TimedOut` where it is too slow."""

    async def due(self, tenant: str, window: Window, limit: int) -> Due:
        """Open tasks that are due in a window: `limit` of them by date, then the highest priority, and figures of all."""

    async def measured(self, tenant: str, window: Window, metrics: Sequence[str]) -> list[Measured]:
        """Metrics with what was observed of them, by title; the active ones where none is named.

        Raises:
            NotFound: one that is named is not there.
            TooLarge: more was observed than one answer is made from.
        """

    async def decisions(self, tenant: str, min_roi: float | None, window: Window | None, limit: int) -> list[ConstitutionNode]:
        """Active decisions, the best return first and those without one last."""

    async def outcomes(self, tenant: str, request: Outcomes) -> dict[str, list[Met]]:
        """By node that there is, those that a relationship leads to."""

    async def foundation(self, tenant: str, limit: int) -> list[tuple[ConstitutionNode, Sequence[tuple[str, str]]]]:
        """Active nodes of the foundation layer, each with type and target of its relationships to others of them."""
