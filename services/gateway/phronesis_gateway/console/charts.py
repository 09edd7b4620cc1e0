"""Charts.

Each drawable type of the closed set becomes a figure of Plotly, as plain data; every text is escaped for it. Nothing here
knows a page.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from typing import Any

from phronesis_contracts.answers import Visualization, VisualizationType

Row = dict[str, Any]

_LONGEST_LABEL = 80


class NotDrawable(ValueError):
    """A chart that its own fields or rows do not allow; the text says why, for people."""


def configured_field(config: Row, key: str, rows: Sequence[Row]) -> str:
    """The field that `config` names under `key`. Raises `NotDrawable`: it names none, or no row has it."""
    name = config.get(key)
    if not isinstance(name, str) or not name:
        raise NotDrawable(f"`{key}` names no field")
    return existing_field(name, rows)


def existing_field(name: str, rows: Sequence[Row]) -> str:
    """The name of a field that at least one row has. Raises `NotDrawable`: none has it."""
    if not any(name in row for row in rows):
        raise NotDrawable(f"no row has the field {name!r}")
    return name


def number(value: object) -> int | float | None:
    """A number as it can be drawn; what is not one is a gap, and never zero."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:  # an integer that no float holds
        return None


def numbers(rows: Sequence[Row], field: str) -> list[int | float | None]:
    """The figures of a field, with gaps. Raises `NotDrawable`: there are gaps only."""
    found = [number(row.get(field)) for row in rows]
    if all(each is None for each in found):
        raise NotDrawable(f"there are no figures in {field!r}")
    return found


def escape_text(value: object) -> str:
    """A text for the library, escaped and of a length that fits."""
    whole = "unknown" if value is None else str(value)
    return html.escape(whole if len(whole) <= _LONGEST_LABEL else whole[: _LONGEST_LABEL - 1] + "…", quote=False)


def labels(rows: Sequence[Row], field: str) -> list[str]:
    """The rows' labels, each one once: the library would draw two rows with one label at one place."""
    taken: set[str] = set()
    return [_unique_label(escape_text(row.get(field)), taken) for row in rows]


def row_names(rows: Sequence[Row], measures: set[str]) -> list[str]:
    """What to call each row: its first text that is no measure, or its place."""
    return [
        next((escape_text(each) for key, each in row.items() if key not in measures and isinstance(each, str)), str(place))
        for place, row in enumerate(rows, 1)
    ]


def _unique_label(label: str, taken: set[str]) -> str:
    made = next(made for made in (label, *(f"{label} ({n})" for n in range(2, len(taken) + 3))) if made not in taken)
    taken.add(made)
    return made


Figure = dict[str, Any]

MOST = 1_000
"""Rows of one chart; nobody can read more."""
_LARGEST_BUBBLE = 40
"""Width of the largest bubble, in pixels."""
_YEARS = range(1900, 2200)


def build_figure(shown: Visualization) -> Figure:
    """The figure of a chart.

    Raises:
        NotDrawable: it is no chart, a field is not named or not there, or there is no figure to draw.
    """
    draw = _DRAWN.get(shown.type)
    if draw is None:
        raise NotDrawable(f"a {shown.type} is no chart")
    if isinstance(shown.data, str) or not shown.data:
        raise NotDrawable("there are no rows")
    made = draw(shown.config, shown.data[:MOST])
    made["layout"] = {"margin": {"t": 16, "r": 16}, "showlegend": len(made["data"]) > 1, **made["layout"]}
    return made


def column(config: Row, rows: Sequence[Row]) -> Figure:
    """Upright bars for categories."""
    x, y = configured_field(config, "xAxis", rows), configured_field(config, "yAxis", rows)
    bars = {"type": "bar", "x": labels(rows, x), "y": numbers(rows, y), "name": escape_text(y)}
    return {"data": [bars], "layout": {"xaxis": _named_axis(x), "yaxis": _axis(y)}}


def line(config: Row, rows: Sequence[Row]) -> Figure:
    """Points joined along an axis. Where that holds numbers, they keep their distance."""
    x, y = configured_field(config, "xAxis", rows), configured_field(config, "yAxis", rows)
    places = [number(row.get(x)) for row in rows]
    measured = all(place is not None for place in places)
    drawn = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": places if measured else labels(rows, x),
        "y": numbers(rows, y),
        "name": escape_text(y),
    }
    return {"data": [drawn], "layout": {"xaxis": _counted_axis(x, places) if measured else _named_axis(x), "yaxis": _axis(y)}}


def pie(config: Row, rows: Sequence[Row]) -> Figure:
    """Shares of a whole."""
    label, value = configured_field(config, "labelField", rows), configured_field(config, "valueField", rows)
    values = numbers(rows, value)
    if any(each is not None and each < 0 for each in values) or not any(values):
        raise NotDrawable(f"the figures of {value!r} are no shares of a whole")
    drawn = {"type": "pie", "labels": labels(rows, label), "values": values, "sort": False, "textinfo": "label+percent"}
    return {"data": [drawn], "layout": {"showlegend": False}}


def radar(config: Row, rows: Sequence[Row]) -> Figure:
    """One shape for each row, over several measures."""
    named = config.get("dimensions")
    if not isinstance(named, list) or not named or not all(isinstance(each, str) for each in named):
        raise NotDrawable("`dimensions` names no fields")
    for each in named:
        existing_field(each, rows)
    around = [escape_text(each) for each in [*named, named[0]]]
    values = [[number(row.get(each)) for each in named] for row in rows]
    if not any(each is not None for shape in values for each in shape):
        raise NotDrawable("there are no figures in the dimensions")
    drawn = [
        {"type": "scatterpolar", "r": [*shape, shape[0]], "theta": around, "name": name, "fill": "toself", "opacity": 0.6}
        for shape, name in zip(values, row_names(rows, set(named)), strict=True)
    ]
    return {"data": drawn, "layout": {"polar": {"radialaxis": {"visible": True}}}}


def scatter(config: Row, rows: Sequence[Row]) -> Figure:
    """Two measures against each other."""
    x, y = configured_field(config, "xAxis", rows), configured_field(config, "yAxis", rows)
    drawn = {
        "type": "scatter",
        "mode": "markers",
        "x": numbers(rows, x),
        "y": numbers(rows, y),
        "text": row_names(rows, {x, y}),
        "hoverinfo": "text+x+y",
    }
    return {"data": [drawn], "layout": {"xaxis": _axis(x), "yaxis": _axis(y)}}


def bubble(config: Row, rows: Sequence[Row]) -> Figure:
    """Two measures against each other, and a third as the area of the point."""
    size = configured_field(config, "sizeMetric", rows)
    sizes = [each for each in numbers(rows, size) if each is not None]
    if min(sizes) < 0 or max(sizes) == 0:
        raise NotDrawable(f"the figures of {size!r} are no sizes")
    made = scatter(config, [row for row in rows if number(row.get(size)) is not None])
    made["data"][0]["marker"] = {
        "size": sizes,
        "sizemode": "area",
        "sizeref": max(sizes) / _LARGEST_BUBBLE**2 * 2,  # twice the greatest float is infinite
        "sizemin": 3,
        "opacity": 0.7,
    }
    return made


def combo(config: Row, rows: Sequence[Row]) -> Figure:
    """Bars with a line over them, each with an axis of its own."""
    x = configured_field(config, "xAxis", rows)
    bar, over = configured_field(config, "barField", rows), configured_field(config, "lineField", rows)
    places = labels(rows, x)
    drawn = [
        {"type": "bar", "x": places, "y": numbers(rows, bar), "name": escape_text(bar)},
        {
            "type": "scatter",
            "mode": "lines+markers",
            "x": places,
            "y": numbers(rows, over),
            "name": escape_text(over),
            "yaxis": "y2",
        },
    ]
    second = {**_axis(over), "overlaying": "y", "side": "right", "showgrid": False}
    layout = {"xaxis": _named_axis(x), "yaxis": _axis(bar), "yaxis2": second, "legend": {"orientation": "h", "y": 1.1}}
    return {"data": drawn, "layout": layout}


_DRAWN: dict[VisualizationType, Callable[[Row, Sequence[Row]], Figure]] = {
    VisualizationType.COLUMN: column,
    VisualizationType.LINE: line,
    VisualizationType.PIE: pie,
    VisualizationType.RADAR: radar,
    VisualizationType.SCATTER: scatter,
    VisualizationType.BUBBLE: bubble,
    VisualizationType.COMBO: combo,
}


def _axis(name: str) -> Figure:
    return {"title": {"text": escape_text(name)}, "automargin": True}


def _named_axis(name: str) -> Figure:
    # Else the library guesses from the labels, and takes `2022` or `3-4` for what they are not.
    return {**_axis(name), "type": "category"}


def _counted_axis(name: str, places: Sequence[int | float | None]) -> Figure:
    years = all(place in _YEARS for place in places)
    return {**_axis(name), "type": "linear"} | ({"tickformat": "d", "dtick": 1} if years and len(places) <= 30 else {})
