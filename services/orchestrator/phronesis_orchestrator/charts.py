"""Charts: the closed set of nine, and what each type's configuration and data must be (N-071 to N-077)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from phronesis_contracts.analysis import Visualization, VisualizationType

from .markup import fragment, plain

MAX_ROWS = 500
"""Rows of one chart."""
_MOST_FIELDS = 30
"""Columns of a table, and dimensions of a radar."""
_LONGEST_TITLE = 200


class BadChart(ValueError):
    """A chart that is not shown; the text says why."""


@dataclass(frozen=True)
class _Fields:
    """The fields that a configuration names, by what stands in them."""

    any: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    many: str | None = None
    """Its one entry that is a list of fields."""


_SCHEMAS: Mapping[VisualizationType, _Fields] = {
    VisualizationType.COLUMN: _Fields(any=("xAxis",), numbers=("yAxis",)),
    VisualizationType.LINE: _Fields(any=("xAxis",), numbers=("yAxis",)),
    VisualizationType.PIE: _Fields(any=("labelField",), numbers=("valueField",)),
    VisualizationType.RADAR: _Fields(many="dimensions"),
    VisualizationType.SCATTER: _Fields(numbers=("xAxis", "yAxis")),
    VisualizationType.BUBBLE: _Fields(numbers=("xAxis", "yAxis", "sizeMetric")),
    VisualizationType.COMBO: _Fields(any=("xAxis",), numbers=("barField", "lineField")),
    VisualizationType.TABLE: _Fields(many="columns"),
}


def chart(given: Mapping[str, Any]) -> Visualization:
    """A chart as it may be shown.

    Args:
        given: type, title, config and data as a model wrote them.

    Raises:
        BadChart: it is not of the nine types, or its parts do not fit its type.
    """
    title = given.get("title")
    if not isinstance(title, str) or not title.strip():
        raise BadChart("it has no title")
    title = plain(title.strip())[:_LONGEST_TITLE]
    try:
        type = VisualizationType(str(given.get("type")))  # lower case alone (N-072)
    except ValueError as error:
        raise BadChart("its type is not one of the nine") from error
    if type is VisualizationType.HTML:
        return Visualization(type=type, title=title, config={}, data=_html(given.get("data")))
    config, data = given.get("config"), given.get("data")
    if not isinstance(config, dict):
        raise BadChart("it has no config")
    fields, numbers, kept = _fields(_SCHEMAS[type], config)
    if type is VisualizationType.RADAR:
        numbers = fields
    return Visualization(type=type, title=title, config=kept, data=_rows(data, fields, numbers, type))


def _fields(schema: _Fields, config: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, Any]]:
    """The fields that the data needs, those of them that are numbers, and the configuration without anything else."""
    if schema.many:
        named = config.get(schema.many)
        if not isinstance(named, list) or not 0 < len(named) <= _MOST_FIELDS or not all(_is_name(name) for name in named):
            raise BadChart(f"config.{schema.many} is no list of fields")
        return tuple(named), (), {schema.many: named}
    kept = {}
    for key in (*schema.any, *schema.numbers):
        if not _is_name(config.get(key)):
            raise BadChart(f"config.{key} is missing")
        kept[key] = config[key]
    return tuple(kept.values()), tuple(config[key] for key in schema.numbers), kept


def _is_name(name: object) -> bool:
    return isinstance(name, str) and 0 < len(name) <= 100


def _rows(data: object, fields: tuple[str, ...], numbers: tuple[str, ...], type: VisualizationType) -> list[dict[str, Any]]:
    if not isinstance(data, list) or not data or not all(isinstance(row, dict) for row in data):
        raise BadChart("its data is no list of records")
    for row in data[:MAX_ROWS]:
        if type is not VisualizationType.TABLE and (missing := [name for name in fields if name not in row]):
            raise BadChart(f"a record lacks {missing[0]}")
        if wrong := [name for name in numbers if not is_number(row.get(name))]:
            raise BadChart(f"{wrong[0]} is not a number in every record")
    if type is VisualizationType.TABLE and not any(name in row for row in data for name in fields):
        raise BadChart("no record has any of its columns")
    return data[:MAX_ROWS]


def is_number(value: object) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _html(data: object) -> str:
    html = fragment(data) if isinstance(data, str) else ""
    if not html:
        raise BadChart("its data is no HTML")
    return html
