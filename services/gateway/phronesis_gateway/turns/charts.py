"""Charts.

Each drawable type of the closed set becomes a figure in the form of Plotly, as plain data, and for paper a drawing; every text
is escaped for it. Nothing here knows a page.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


_COLOURS = ("#1f4e79", "#c55a11", "#548235", "#7b3f8c", "#a67c00", "#00798c", "#8c1c13", "#5f6368")
"""Told apart by most eyes, and dark enough for thin lines on paper."""
_WIDTH, _HEIGHT = 640, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 24, 16, 52
_LETTER = 5.6
"""Width of a letter of a label, about, in the drawing's units."""
_MOST_LABELS = 40
_MOST_SLICES = 12
_FIGURES_SHOWN = 16
"""Bars at most for each of them to have its figure over it."""
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def draw_svg(shown: Visualization) -> str:
    """A chart as one SVG element that stands alone: no script, no style, no address, its texts escaped.

    Raises:
        NotDrawable: as `build_figure`, or its figures are too far apart for an axis.
    """
    figure = build_figure(shown)
    kind = figure["data"][0]["type"]
    inside = {"pie": _draw_pie, "scatterpolar": _draw_radar}.get(kind, _draw_axes)(figure)
    title = html.escape(" ".join(shown.title.split()))
    drawn = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
        f' role="img" aria-label="{title}" font-family="Libertinus Serif, DejaVu Sans, sans-serif" font-size="11" fill="#222">'
        f"<title>{title}</title>{inside}</svg>"
    )
    return _UNPRINTABLE.sub("", drawn)


@dataclass(frozen=True)
class _Scale:
    """Where the figures of an axis lie between two places of the drawing."""

    low: float
    high: float
    start: float
    end: float
    step: float
    whole: bool = False
    """Whether it counts years, which have no thousands set apart."""

    def at(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self) -> list[tuple[float, str]]:
        count = min(40, round((self.high - self.low) / self.step) + 1)
        return [(value, self._text(value)) for value in (self.low + at * self.step for at in range(count))]

    def _text(self, value: float) -> str:
        if self.whole:
            return f"{value:.0f}"
        if max(abs(self.low), abs(self.high)) >= 1e9 or self.step < 1e-4:
            return f"{value:.4g}"
        return f"{value:,.{max(0, -math.floor(math.log10(self.step)))}f}"


def _scale(
    values: Sequence[int | float | None], start: float, end: float, *, zero: bool, whole: bool = False, wide: bool = False
) -> _Scale:
    there = [float(value) for value in values if value is not None]
    low, high = min([*there, *([0.0] if zero else [])]), max([*there, *([0.0] if zero else [])])
    if not math.isfinite(high - low) or high - low < max(abs(low), abs(high), 1e-300) * 1e-9:
        low, high = low - max(1.0, abs(low) / 10), high + max(1.0, abs(high) / 10)
    if not math.isfinite(high - low):
        raise NotDrawable("its figures are too far apart for an axis")
    if whole and high - low <= 20:
        return _Scale(math.floor(low), math.ceil(high), start, end, 1.0, True)
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * size for size in (1, 2, 5, 10) if power * size >= rough * 0.999)
    low, high = math.floor(low / step) * step, math.ceil(high / step) * step
    if not math.isfinite(high - low):
        raise NotDrawable("its figures are too far apart for an axis")
    return _Scale(low - wide * step, high + wide * step, start, end, step, whole)


def _text(x: float, y: float, text: str, anchor: str = "middle", more: str = "") -> str:
    """A text that is escaped already."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{text}</text>'


def _short(label: str, letters: int) -> str:
    """An escaped label of at most so many letters."""
    plain = html.unescape(label)
    return label if len(plain) <= letters else f"{html.escape(plain[: max(1, letters - 1)], quote=False)}…"


def _draw_axes(figure: Figure) -> str:
    """Bars, lines and points over an axis of categories or of numbers."""
    traces, layout = figure["data"], figure["layout"]
    bars = [trace for trace in traces if trace["type"] == "bar"]
    second, wide = "yaxis2" in layout, "marker" in traces[0]
    right, named = _WIDTH - (_LEFT if second else _RIGHT), layout["xaxis"].get("type") == "category"
    categories: list[str] = traces[0]["x"] if named else []
    slanted = named and any(len(html.unescape(one)) * _LETTER > (right - _LEFT) / max(1, len(categories)) for one in categories)
    bottom = _HEIGHT - _BOTTOM - (44 if slanted else 0)
    top = _TOP + (18 if len(traces) > 1 else 0)
    scales = {
        axis: _scale(
            [y for trace in traces if trace.get("yaxis", "y") == axis for y in trace["y"]],
            bottom,
            top,
            zero=bool(bars),
            wide=wide,
        )
        for axis in (("y", "y2") if second else ("y",))
    }
    parts = [_draw_scale(scales["y"], layout["yaxis"], right), _draw_legend(traces) if len(traces) > 1 else ""]
    if second:
        parts.append(_draw_second(scales["y2"], layout["yaxis2"], right))
    if named:
        width = (right - _LEFT) / max(1, len(categories))
        places: list[float | None] = [_LEFT + width * (at + 0.5) for at in range(len(categories))]
        parts.append(_draw_labels(categories, places, width, bottom, slanted=slanted))
    else:
        counted = layout["xaxis"].get("tickformat") == "d"
        across = _scale(traces[0]["x"], _LEFT + 8, right - 8, zero=False, whole=counted, wide=wide)
        places = [None if x is None else across.at(float(x)) for x in traces[0]["x"]]
        width = 0.0
        parts += [_text(across.at(value), bottom + 15, said) for value, said in across.ticks()]
    title = _short(layout["xaxis"]["title"]["text"], 80)
    parts.append(_text((_LEFT + right) / 2, _HEIGHT - 8, title, more=' font-style="italic"'))
    for at, trace in enumerate(traces):
        scale, colour = scales[trace.get("yaxis", "y")], _COLOURS[at % len(_COLOURS)]
        heights = [None if y is None else scale.at(float(y)) for y in trace["y"]]
        if trace["type"] == "bar":
            parts.append(_draw_bars(places, heights, trace["y"], scale.at(0.0), width, colour))
        else:
            parts.append(_draw_points(trace, places, heights, colour))
    return "".join(parts)


def _draw_scale(scale: _Scale, axis: Figure, right: float) -> str:
    lines = []
    for value, said in scale.ticks():
        y = f"{scale.at(value):.1f}"
        lines.append(f'<line x1="{_LEFT}" y1="{y}" x2="{right}" y2="{y}" stroke="#ccc" stroke-width="0.6"/>')
        lines.append(_text(_LEFT - 6, scale.at(value) + 4, said, "end"))
    middle = (scale.start + scale.end) / 2
    turned = f' font-style="italic" transform="rotate(-90 14 {middle:.1f})"'
    return "".join(lines) + _text(14, middle, _short(axis["title"]["text"], 42), more=turned)


def _draw_second(scale: _Scale, axis: Figure, right: float) -> str:
    middle, edge = (scale.start + scale.end) / 2, _WIDTH - 12
    turned = f' font-style="italic" transform="rotate(90 {edge} {middle:.1f})"'
    ticks = "".join(_text(right + 6, scale.at(value) + 4, said, "start") for value, said in scale.ticks())
    return ticks + _text(edge, middle, _short(axis["title"]["text"], 42), more=turned)


def _draw_labels(labels_: list[str], places: Sequence[float | None], width: float, bottom: float, *, slanted: bool) -> str:
    every = math.ceil(len(labels_) / _MOST_LABELS)
    drawn = []
    for x, label in list(zip(places, labels_, strict=True))[::every]:
        assert x is not None
        if slanted:
            drawn.append(
                _text(x, bottom + 12, _short(label, 14), "end", f' font-size="9" transform="rotate(-40 {x:.1f} {bottom + 12})"')
            )
        else:
            drawn.append(_text(x, bottom + 15, label))
    return "".join(drawn)


def _draw_legend(traces: Sequence[Figure]) -> str:
    drawn, x = [], float(_LEFT)
    for at, trace in enumerate(traces):
        name = _short(str(trace.get("name", "")), 28)
        if x + len(name) * _LETTER + 20 > _WIDTH:
            break
        drawn.append(f'<rect x="{x:.1f}" y="6" width="10" height="10" fill="{_COLOURS[at % len(_COLOURS)]}"/>')
        drawn.append(_text(x + 14, 15, name, "start"))
        x += 30 + len(html.unescape(name)) * _LETTER
    return "".join(drawn)


def _draw_bars(
    places: Sequence[float | None],
    heights: Sequence[float | None],
    values: Sequence[int | float | None],
    base: float,
    width: float,
    colour: str,
) -> str:
    drawn = []
    for x, y, value in zip(places, heights, values, strict=True):
        if x is None or y is None or value is None:
            continue
        top, size = min(y, base), abs(y - base)
        drawn.append(
            f'<rect x="{x - width * 0.35:.1f}" y="{top:.1f}" width="{width * 0.7:.1f}" height="{size:.1f}" fill="{colour}"/>'
        )
        if len(values) <= _FIGURES_SHOWN:
            said = f"{value:,.4g}" if isinstance(value, float) or abs(value) >= 1e9 else f"{value:,}"
            drawn.append(_text(x, top - 3 if value >= 0 else y + 10, said, more=' font-size="9"'))
    return "".join(drawn)


def _draw_points(trace: Figure, places: Sequence[float | None], heights: Sequence[float | None], colour: str) -> str:
    marker, drawn, run = trace.get("marker", {}), list[str](), list[str]()
    sizes = marker.get("size")
    for at, (x, y) in enumerate([*zip(places, heights, strict=True), (None, None)]):
        if x is not None and y is not None:
            radius = 3.0 if sizes is None else max(3.0, math.sqrt(sizes[at]) / math.sqrt(marker["sizeref"]) / math.sqrt(2))
            clear = ' fill-opacity="0.6"' if sizes is not None else ""
            drawn.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{colour}"{clear}/>')
            run.append(f"{x:.1f},{y:.1f}")
        else:
            if len(run) > 1 and "lines" in trace["mode"]:
                drawn.append(f'<polyline points="{" ".join(run)}" fill="none" stroke="{colour}" stroke-width="2"/>')
            run = []
    return "".join(drawn)


def _draw_pie(figure: Figure) -> str:
    [trace] = figure["data"]
    greatest = max(value for value in trace["values"] if value is not None)
    shares = [(label, (value or 0) / greatest) for label, value in zip(trace["labels"], trace["values"], strict=True)]
    whole = sum(share for _, share in shares)
    if len(shares) > _MOST_SLICES:
        rest = sum(share for _, share in shares[_MOST_SLICES - 1 :])
        shares = [*shares[: _MOST_SLICES - 1], (f"{len(shares) - _MOST_SLICES + 1} others", rest)]
    x, y, radius, turn, drawn = 170.0, _HEIGHT / 2, 130.0, -math.pi / 2, list[str]()
    for at, (label, share) in enumerate(shares):
        part, colour = share / whole, _COLOURS[at % len(_COLOURS)]
        clear = f' fill-opacity="{1 - 0.35 * (at // len(_COLOURS)):.2f}" stroke="#fff"'
        if part > 0.9999:
            drawn.append(f'<circle cx="{x}" cy="{y}" r="{radius}" fill="{colour}"{clear}/>')
        elif part > 0:
            end = turn + part * 2 * math.pi
            one, other = ((x + radius * math.cos(angle), y + radius * math.sin(angle)) for angle in (turn, end))
            drawn.append(
                f'<path d="M{x},{y} L{one[0]:.2f},{one[1]:.2f} A{radius},{radius} 0 {int(part > 0.5)} 1'
                f' {other[0]:.2f},{other[1]:.2f} Z" fill="{colour}"{clear}/>'
            )
            turn = end
        row = 30 + at * 22
        drawn.append(f'<rect x="340" y="{row}" width="11" height="11" fill="{colour}"{clear}/>')
        drawn.append(_text(357, row + 10, f"{_short(label, 36)}: {part:.1%}", "start"))
    return "".join(drawn)


def _draw_radar(figure: Figure) -> str:
    traces = figure["data"]
    values = [value for trace in traces for value in trace["r"]]
    x, y, radius = _WIDTH / 2, _HEIGHT / 2 + 10, 115.0
    scale, around = _scale(values, 0.0, radius, zero=True), traces[0]["theta"][:-1]

    def place(at: int, distance: float) -> tuple[float, float]:
        angle = 2 * math.pi * at / len(around) - math.pi / 2
        return x + distance * math.cos(angle), y + distance * math.sin(angle)

    drawn = [f'<circle cx="{x}" cy="{y}" r="{scale.at(value):.1f}" fill="none" stroke="#ddd"/>' for value, _ in scale.ticks()]
    for at, name in enumerate(around[:_MOST_LABELS]):
        (x2, y2), (away, down) = place(at, radius), place(at, radius + 12)
        anchor = "middle" if abs(away - x) < 5 else "start" if away > x else "end"
        drawn.append(f'<line x1="{x}" y1="{y}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#ddd"/>')
        drawn.append(_text(away, down + 4, _short(name, 24), anchor))
    drawn += [
        _text(x + 4, y - scale.at(value) - 2, said, "start", ' font-size="8" fill="#666"') for value, said in scale.ticks()
    ]
    for at, trace in enumerate(traces):
        colour = _COLOURS[at % len(_COLOURS)]
        there = [place(spoke, scale.at(float(value))) for spoke, value in enumerate(trace["r"][:-1]) if value is not None]
        points = " ".join(f"{px:.1f},{py:.1f}" for px, py in there)
        drawn.append(f'<polygon points="{points}" fill="{colour}" fill-opacity="0.15" stroke="{colour}" stroke-width="1.5"/>')
    return "".join(drawn) + _draw_legend(traces)
