"""Drawings of charts for pages and paper: whatever rows there are, well-formed, harmless and within their frame."""

from __future__ import annotations

import re
import sys
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from phronesis_contracts.answers import Visualization, VisualizationType
from phronesis_gateway.turns.charts import NotDrawable, draw_svg

from .test_charts import CONFIGS, FIELDS, ROWS, VALUES, chart

SVG = "{http://www.w3.org/2000/svg}"
DRAWN = {f"{SVG}{name}" for name in ("svg", "title", "text", "rect", "line", "circle", "path", "polyline", "polygon")}


def parsed(shown: Visualization) -> ElementTree.Element:
    return ElementTree.fromstring(draw_svg(shown))


@pytest.mark.parametrize("type", CONFIGS)
@settings(max_examples=60)
@given(rows=st.lists(st.dictionaries(FIELDS, VALUES), max_size=8), title=st.text(min_size=1, max_size=50))
@example(rows=[{"a": None, "b": 0, "c": 0, "d": sys.float_info.max}], title="\x00<script>")
@example(
    rows=[{"a": "x", "b": -sys.float_info.max, "c": 5e-324, "d": 1}, {"a": "y", "b": sys.float_info.max, "c": 0, "d": 2}],
    title="t",
)
@example(rows=[{"a": "x", "b": 10**17, "c": 10**17 + 1, "d": 1}, {"a": "y", "b": 10**17 + 2, "c": 3, "d": 2}], title="t")
def test_any_rows_make_a_drawing_that_holds_nothing_but_shapes_and_texts(
    type: str, rows: list[dict[str, Any]], title: str
) -> None:
    shown = Visualization(type=VisualizationType(type), title=title, config=CONFIGS[type], data=rows)
    try:
        drawing = parsed(shown)
    except NotDrawable:
        return
    assert {one.tag for one in drawing.iter()} <= DRAWN
    attributes = {(name, value) for one in drawing.iter() for name, value in one.attrib.items() if name != "aria-label"}
    assert not [one for one in attributes if one[0].startswith(("on", "style", "href")) or "nan" in one[1] or "inf" in one[1]]


@pytest.mark.parametrize("type", CONFIGS)
def test_a_drawing_names_itself_and_stays_within_its_frame(type: str) -> None:
    drawing = parsed(chart(type, ROWS))
    assert drawing.attrib["aria-label"] == "A chart"
    left, top, width, height = map(float, drawing.attrib["viewBox"].split())
    for shape in drawing.iter():
        for across, down in (("x", "y"), ("cx", "cy"), ("x1", "y1"), ("x2", "y2")):
            if across in shape.attrib:
                assert left <= float(shape.attrib[across]) <= width
                assert top <= float(shape.attrib[down]) <= height
        for x, y in re.findall(r"([-\d.]+),([-\d.]+)", shape.attrib.get("points", "")):
            assert left <= float(x) <= width
            assert top <= float(y) <= height


def test_a_column_has_its_name_its_figure_and_a_height_in_proportion() -> None:
    drawing = parsed(chart("column", [{"a": "Rail & Road", "b": 2}, {"a": "Air", "b": 4}]))
    bars = [float(one.attrib["height"]) for one in drawing.iter(f"{SVG}rect")]
    texts = [one.text for one in drawing.iter(f"{SVG}text")]
    assert bars[1] == pytest.approx(2 * bars[0], abs=0.2)
    assert {"Rail & Road", "Air", "2", "4", "a", "b"} <= set(texts)


def test_years_have_no_thousands_set_apart_and_each_has_its_place() -> None:
    drawing = parsed(chart("line", [{"a": 2021, "b": 5}, {"a": 2022, "b": None}, {"a": 2023, "b": 15_000}]))
    texts = [one.text for one in drawing.iter(f"{SVG}text")]
    assert [text for text in texts if text in ("2021", "2022", "2023")] == ["2021", "2022", "2023"]
    assert "15,000" in texts
    # A year without a figure parts the line: there is nothing to join.
    assert list(drawing.iter(f"{SVG}polyline")) == []


def test_a_pie_of_many_shares_shows_the_smallest_together() -> None:
    drawing = parsed(chart("pie", [{"a": f"Part {n}", "b": 1} for n in range(40)]))
    texts = [one.text or "" for one in drawing.iter(f"{SVG}text")]
    assert len(texts) == 12
    assert texts[-1] == "29 others: 72.5%"
