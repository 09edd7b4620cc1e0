"""How figures, lists and charts are put for people. No word of this is technical (N-055)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from phronesis_contracts.analysis import Visualization, VisualizationType

from ..charts import MAX_ROWS
from .measures import COLOURS

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


def joined(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return words[0] if len(words) == 1 else " and ".join((", ".join(words[:-1]), words[-1])) if words else ""


def in_years(years: Sequence[int]) -> str:
    """`In 2022`, `From 2020 to 2023`, `In 2020 and 2022`."""
    if len(years) > 2 and years[-1] - years[0] == len(years) - 1:
        return f"From {years[0]} to {years[-1]}"
    return f"In {joined([str(year) for year in years])}"


def reports_of(years: Sequence[int]) -> str:
    """`the report of 2021`, `the reports of 2020 to 2023`."""
    said = in_years(years).partition(" ")[2]
    return f"the report{'s' if len(years) > 1 else ''} of {said}"


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
    """Discrete things side by side (N-076)."""
    data = [row for row in rows if isinstance(row[y], int | float)]
    return Visualization(type=VisualizationType.COLUMN, title=title[:200], config={"xAxis": x, "yAxis": y}, data=data)


def line(title: str, x: str, y: str, rows: Sequence[dict[str, Any]]) -> Visualization:
    """A change over time."""
    data = [row for row in rows if isinstance(row[y], int | float)]
    return Visualization(type=VisualizationType.LINE, title=title[:200], config={"xAxis": x, "yAxis": y}, data=data)


def pie(title: str, label: str, value: str, rows: Sequence[dict[str, Any]]) -> Visualization:
    """Shares of a whole."""
    config = {"labelField": label, "valueField": value}
    return Visualization(type=VisualizationType.PIE, title=title[:200], config=config, data=list(rows))


def in_order(groups: Iterable[Any]) -> list[Any]:
    """Groups as people expect them: ratings from the worst, years and names upwards, what is not published last."""
    order = {colour: n for n, colour in enumerate(COLOURS)}
    return sorted(groups, key=lambda group: (group is None, order.get(group, 99), str(group)))


def crosses_scales(years: Sequence[int]) -> bool:
    """Whether a comparison of ratings over these years meets both scales."""
    return bool(years) and min(years) < 2022 <= max(years)


def confidence(coverage: float = 1.0, known: int = 1, unknown: int = 0, gaps: int = 0) -> float:
    """How far an answer is to be trusted.

    `coverage × known / (known + unknown) × 0.9` for each kind of gap met, at most three: the share of the question's words that
    were understood, the share of the things asked about whose figure is published, and what was found missing.

    Args:
        coverage: 0 to 1; answers are given from 1 on alone.
        known: things with the figure.
        unknown: things without.
        gaps: kinds of gaps.
    """
    share = known / (known + unknown) if known + unknown else 0.0
    return round(coverage * share * 0.9 ** min(gaps, 3), 3)
