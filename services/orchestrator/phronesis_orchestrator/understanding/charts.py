"""Charts and tables of answers, from rows as readers see them."""

from __future__ import annotations

from collections.abc import Sequence

from phronesis_contracts.answers import Visualization, VisualizationType

from ..agents.presentation import MAX_ROWS
from .finding import Row

MOST_PARTS = 8
"""Parts of a pie."""


def table(title: str, rows: Sequence[Row]) -> Visualization:
    """Rows with the columns that any of them has."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return _drawn(VisualizationType.TABLE, title, {"columns": columns}, rows)


def column(title: str, x: str, y: str, rows: Sequence[Row]) -> Visualization:
    """Discrete things side by side."""
    return _drawn(VisualizationType.COLUMN, title, {"xAxis": x, "yAxis": y}, _figures(rows, y))


def line(title: str, x: str, y: str, rows: Sequence[Row]) -> Visualization:
    """A course over years."""
    return _drawn(VisualizationType.LINE, title, {"xAxis": x, "yAxis": y}, _figures(rows, y))


def pie(title: str, label: str, value: str, rows: Sequence[Row]) -> Visualization:
    """Parts of a whole."""
    return _drawn(VisualizationType.PIE, title, {"labelField": label, "valueField": value}, _figures(rows, value))


def _figures(rows: Sequence[Row], name: str) -> list[Row]:
    return [row for row in rows if isinstance(row.get(name), int | float)]


def _drawn(type: VisualizationType, title: str, config: Row, rows: Sequence[Row]) -> Visualization:
    return Visualization(type=type, title=title[:200], config=config, data=list(rows)[:MAX_ROWS])
