"""What figures an answer may state: those that were read, and their counts, sums, means, extremes and shares."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from phronesis_contracts.analysis import Visualization

from .charts import is_number
from .findings import Findings
from .markup import visible

_COLUMNS = 12
"""Columns whose groups are looked at."""
_GROUPS = 200
"""Groups of one column."""
_ROWS = 2_000
_NUMBER = re.compile(r"(?<![\w.,-])-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|(?<![\w.])-?\d+(?:\.\d+)?")
_SAME = 1e-9
"""How far a figure may be from one of them, as a share of it: sums of fractions end in noise."""
_SMALL = 10
"""Whole numbers up to it are words of a sentence as often as figures, and are not held against the rows."""


class Evidence:
    """The figures of an inquiry.

    Args:
        findings: what was read.
    """

    def __init__(self, findings: Findings) -> None:
        self._values: set[float] = set()
        for read in findings.reads:
            self._add(_numbers(read.parameters))
            self._rows(read.rows[:_ROWS])
        if len(findings.reads) > 1:
            self._rows(findings.rows[:_ROWS])
        self._sorted = sorted(self._values)
        self._rounded = {digits: {round(value, digits) for value in self._values} for digits in (0, 1, 2)}

    def holds(self, value: float) -> bool:
        """Whether a figure is one of them, as it is or rounded to at most two places."""
        at = bisect_left(self._sorted, value)
        near = self._sorted[max(0, at - 1) : at + 1]
        if any(abs(value - known) <= _SAME * max(abs(known), 1.0) for known in near):
            return True
        return any(round(value, digits) == value and value in self._rounded[digits] for digits in self._rounded)

    def unfounded(self, chart: Visualization) -> float | None:
        """A figure of a chart that was not read and does not follow from what was; `None` where there is none."""
        figures = _figures(visible(chart.data)) if isinstance(chart.data, str) else _numbers(chart.data)
        return next((figure for figure in figures if not self.holds(figure)), None)

    def agreement(self, text: str) -> float:
        """The share of the figures in a text that are in the evidence; 1 where it states none."""
        figures = list(_figures(visible(text)))
        return sum(map(self.holds, figures)) / len(figures) if figures else 1.0

    def _add(self, values: Iterable[float]) -> None:
        self._values.update(float(value) for value in values)

    def _rows(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._add([len(rows), *_numbers(rows)])
        columns = list(dict.fromkeys(key for row in rows for key in row))[:_COLUMNS]
        for column in columns:
            self._column([row[column] for row in rows if is_number(row.get(column))])
            groups = defaultdict(list)
            for row in rows:
                if isinstance(value := row.get(column), str | int | bool):
                    groups[value].append(row)
            if len(groups) <= _GROUPS:
                self._grouped(list(groups.values()), columns, len(rows))

    def _grouped(self, groups: list[list[Mapping[str, Any]]], columns: list[str], total: int) -> None:
        self._add([len(groups), *(len(group) for group in groups), *(100 * len(group) / total for group in groups)])
        for column in columns:
            sums = []
            for group in groups:
                values = [row[column] for row in group if is_number(row.get(column))]
                self._column(values)
                sums.append(sum(values))
            if whole := sum(sums):
                self._add(100 * each / whole for each in sums)

    def _column(self, values: list[float]) -> None:
        if values:
            self._add([len(values), len(set(values)), sum(values), sum(values) / len(values), min(values), max(values)])


def stats(findings: Findings) -> dict[str, Any]:
    """Figures over the rows, by code: how many there are, and for each column of numbers its count, extremes, sum and mean.

    A year is no quantity: it has extremes alone.
    """
    if not findings.reads:
        return {}
    rows = findings.rows
    found: dict[str, Any] = {"rows": len(rows), "reads": len(findings.reads)}
    if any(read.truncated for read in findings.reads):
        found["truncated"] = True
    columns: dict[str, Any] = {}
    for column in dict.fromkeys(key for row in rows for key in row):
        values = [row[column] for row in rows if is_number(row.get(column))]
        if values:
            columns[column] = {"count": len(values), "min": min(values), "max": max(values)}
            if not column.lower().endswith("year"):
                columns[column] |= {"sum": round(sum(values), 6), "mean": round(sum(values) / len(values), 6)}
    return found | ({"columns": columns} if columns else {})


def _numbers(value: object) -> Iterator[float]:
    """Every number inside a value."""
    if is_number(value):
        yield float(value)  # type: ignore[arg-type]  # is_number has looked
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _numbers(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _numbers(one)


def _figures(text: str) -> Iterator[float]:
    """The figures that a text states; small whole numbers and years are none."""
    for match in _NUMBER.finditer(text):
        value = float(match[0].replace(",", ""))
        whole = value.is_integer() and "." not in match[0]
        if not (whole and (abs(value) <= _SMALL or 1900 <= value <= 2200)):
            yield value
