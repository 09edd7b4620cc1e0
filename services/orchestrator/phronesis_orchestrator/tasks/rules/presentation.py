"""How a task's report by rules puts figures, lists and charts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from phronesis_contracts.answers import Visualization, VisualizationType

from ...agents.presentation import MAX_ROWS

COLOURS = ("Red", "Amber/Red", "Amber", "Amber/Green", "Green")
"""The ratings, the worst first."""
SCALES = (
    "The scale of ratings changed in 2022 from five colours to three: Amber/Red and Amber/Green are used no more, so a project"
    " may bear another colour without having changed."
)
NOT_PUBLISHED = "not published"
MAX_LISTED = 60
"""Lines of a list that the answer itself shows; the table holds them all."""


def amount(value: float | None, unit: str = "") -> str:
    """A figure with its unit: £ million to the million from ten on, else to the penny's tenth of a million."""
    if value is None:
        return NOT_PUBLISHED
    if unit == "£m":
        sign = "-" if value < 0 else ""
        size = abs(value)
        return f"{sign}£{size:,.0f} million" if size >= 10 or size == int(size) else f"{sign}£{size:,.2f} million"
    text = f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"
    return f"{text} %" if unit == "%" else text


def counted(n: int, one: str, many: str) -> str:
    """`1 project`, `7 projects`."""
    return f"{n:,} {one if n == 1 else many}"


def percent(part: float, whole: float) -> str:
    """A share, to a tenth."""
    return f"{100 * part / whole:.1f} %" if whole else "0 %"


def lines(items: Iterable[str]) -> str:
    """A Markdown list, cut where it gets too long for reading."""
    every = list(items)
    shown = [f"- {item}" for item in every[:MAX_LISTED]]
    rest = len(every) - len(shown)
    return "\n".join([*shown, f"- and {rest} more, all of them in the table"] if rest else shown)


def table(title: str, rows: Sequence[dict[str, Any]]) -> Visualization:
    """Rows as a table with the columns of the first."""
    columns = list(rows[0]) if rows else []
    return Visualization(
        type=VisualizationType.TABLE, title=title[:200], config={"columns": columns}, data=list(rows)[:MAX_ROWS]
    )


def column(title: str, x: str, y: str, rows: Sequence[dict[str, Any]]) -> Visualization:
    """Discrete things side by side."""
    data = [row for row in rows if isinstance(row[y], int | float)]
    return Visualization(type=VisualizationType.COLUMN, title=title[:200], config={"xAxis": x, "yAxis": y}, data=data)


def line(title: str, x: str, y: str, rows: Sequence[dict[str, Any]]) -> Visualization:
    """A change over time."""
    data = [row for row in rows if isinstance(row[y], int | float)]
    return Visualization(type=VisualizationType.LINE, title=title[:200], config={"xAxis": x, "yAxis": y}, data=data)


def crosses_scales(years: Sequence[int]) -> bool:
    """Whether a comparison of ratings over these years meets both scales."""
    return bool(years) and min(years) < 2022 <= max(years)
