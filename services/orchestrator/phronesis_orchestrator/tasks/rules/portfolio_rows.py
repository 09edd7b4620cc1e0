"""The rows of a portfolio as the steps of its risk report gave them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from ..ports import StepResult
from .portfolio import GAPS, Asked

Row = dict[str, Any]


@dataclass(frozen=True)
class Read:
    """What the steps gave."""

    by_year: dict[int, list[Row]]
    gaps: dict[str, dict[int, int]]
    everyone: Counter[tuple[int, str | None]]
    missing: tuple[str, ...]
    """What could not be read."""


def read_of(asked: Asked, given: dict[str, StepResult], failed: tuple[StepResult, ...]) -> Read:
    """What the results of the steps hold.

    Args:
        asked: what the report covers.
        given: results by the ids of their steps.
        failed: steps that gave nothing.
    """

    def rows(id: str) -> list[Row]:
        result = given.get(id)
        return list((result.outcome.answer or {}).get("rows", ())) if result is not None else []

    return Read(
        {year: rows(f"projects.{year}") for year in asked.years if f"projects.{year}" in given},
        {
            name: {int(row["group"]): int(row["value"]) for row in rows(f"without.{name}")}
            for name in GAPS
            if f"without.{name}" in given
        },
        Counter({(int(row["group"]), row.get("group2")): int(row["value"]) for row in rows("all.ratings")}),
        tuple(one.step.description for one in failed if not one.step.optional),
    )
