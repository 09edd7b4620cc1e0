"""Truths about any set of tables: one for each type, one row for each thing and year, an empty cell is unknown."""

from __future__ import annotations

import csv
import io
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from typing import Any

Row = dict[str, Any]


def read(ontology: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, list[Row]]:
    """The rows of each type, with figures, dates and lists of target ids in place of texts."""
    return {key: [_row(raw, ontology, key) for raw in csv.DictReader(io.StringIO(text))] for key, text in files.items()}


def _row(raw: Mapping[str, str], ontology: Mapping[str, Any], key: str) -> Row:
    row: Row = {"id": raw["id"], "name": raw["name"], "year": int(raw["year"]) if raw.get("year") else None}
    for name, declared in ontology["nodes"][key]["properties"].items():
        text = raw[name].strip()
        kind = declared["type"]
        row[name] = (
            None if not text else float(text) if kind == "number" else date.fromisoformat(text) if kind == "date" else text
        )
    for name, declared in ontology["relationships"].items():
        if key in declared["from"]:
            row[name] = [one for one in raw[name].split(";") if one]
    return row


def of(rows: Iterable[Row], year: int | None, where: Callable[[Row], bool] = lambda row: True) -> list[Row]:
    """The rows of a year that fit."""
    return [row for row in rows if row["year"] == year and where(row)]


def values(rows: Iterable[Row], field: str) -> list[float]:
    """What is known of a field."""
    return [row[field] for row in rows if row[field] is not None]


def extreme(rows: Iterable[Row], field: str, count: int = 1, least: bool = False) -> list[Row] | None:
    """The rows with the greatest values, or the least; none where a tie makes the order or the end of it unclear."""
    ordered = sorted((row for row in rows if row[field] is not None), key=lambda row: row[field], reverse=not least)
    first = [row[field] for row in ordered[: count + 1]]
    return ordered[:count] if len(ordered) >= count and len(set(first)) == len(first) else None


def counts(rows: Iterable[Row], field: str) -> dict[str, int]:
    """How many of each known value."""
    return dict(Counter(row[field] for row in rows if row[field] is not None))


def figures(rows: Iterable[Row], group: str, field: str, how: Callable[[list[float]], float]) -> dict[str, float]:
    """A figure over the known values of a field, for each known value of another."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if row[group] is not None and row[field] is not None:
            found.setdefault(row[group], []).append(row[field])
    return {key: how(some) for key, some in found.items()}


def mean(some: list[float]) -> float:
    """The arithmetic mean."""
    return statistics.fmean(some)


def median(some: list[float]) -> float:
    """The middle value."""
    return statistics.median(some)


def linked(rows: Iterable[Row], name: str, target: str) -> list[Row]:
    """The rows that are joined to a target's id by a relationship."""
    return [row for row in rows if target in row[name]]


def by_target(rows: Iterable[Row], name: str, targets: Iterable[Row]) -> dict[str, int]:
    """How many rows each target has, by its name; targets without any are left out."""
    names = {row["id"]: row["name"] for row in targets}
    return dict(Counter(names[one] for row in rows for one in row[name] if one in names))
