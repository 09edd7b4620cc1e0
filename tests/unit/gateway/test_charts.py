"""Charts: whatever rows an answer has, it makes a figure, or it is said why there is none."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from phronesis_contracts.answers import Visualization, VisualizationType
from phronesis_gateway.turns.charts import MOST, NotDrawable, build_figure

CONFIGS: dict[str, dict[str, Any]] = {
    "column": {"xAxis": "a", "yAxis": "b"},
    "line": {"xAxis": "a", "yAxis": "b"},
    "pie": {"labelField": "a", "valueField": "b"},
    "radar": {"dimensions": ["b", "c"]},
    "scatter": {"xAxis": "b", "yAxis": "c"},
    "bubble": {"xAxis": "b", "yAxis": "c", "sizeMetric": "d"},
    "combo": {"xAxis": "a", "barField": "b", "lineField": "c"},
}
ROWS: list[dict[str, Any]] = [
    {"a": "Rail", "b": 3, "c": 1.5, "d": 10},
    {"a": "Road", "b": 5, "c": None, "d": 40},
    {"a": "Rail", "b": 0, "c": 2.5, "d": None},
]
VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=100) | st.lists(st.integers(), max_size=2)
FIELDS = st.sampled_from("abcd")


def chart(type: str, rows: list[dict[str, Any]], config: dict[str, Any] | None = None) -> Visualization:
    fields = CONFIGS[type] if config is None else config
    return Visualization(type=VisualizationType(type), title="A chart", config=fields, data=rows)


def drawn(shown: Visualization) -> dict[str, Any] | None:
    """The figure, or nothing where it is said why there is none."""
    try:
        return build_figure(shown)
    except NotDrawable as error:
        return None if str(error) else {"data": "no reason was given"}


def texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts(each)


@pytest.mark.parametrize("type", CONFIGS)
@settings(max_examples=60)
@given(rows=st.lists(st.dictionaries(FIELDS, VALUES), max_size=8))
@example(rows=[{"a": None, "b": 0, "c": 0, "d": sys.float_info.max}])
def test_any_rows_make_a_figure_or_a_reason(type: str, rows: list[dict[str, Any]]) -> None:
    made = drawn(chart(type, rows))
    json.dumps(made, allow_nan=False)
    assert not [text for text in texts(made) if "<" in text]


@pytest.mark.parametrize("type", CONFIGS)
@settings(max_examples=30)
@given(config=st.dictionaries(st.sampled_from(sorted({key for c in CONFIGS.values() for key in c})), VALUES | FIELDS))
def test_any_config_makes_a_figure_or_a_reason(type: str, config: dict[str, Any]) -> None:
    json.dumps(drawn(chart(type, ROWS, config)), allow_nan=False)


def test_a_column_for_each_row_in_order_and_none_for_what_is_not_known() -> None:
    rows = [{"a": "Rail", "b": 3}, {"a": None, "b": None}, {"a": "Rail", "b": "much"}]
    (bars,) = build_figure(chart("column", rows))["data"]
    assert bars == {"type": "bar", "x": ["Rail", "unknown", "Rail (2)"], "y": [3, None, None], "name": "b"}


def test_years_on_a_line_keep_their_distance_and_are_written_as_years() -> None:
    made = build_figure(chart("line", [{"a": 2020, "b": 1}, {"a": 2023, "b": 2}]))
    assert made["data"][0]["x"] == [2020, 2023]
    assert made["layout"]["xaxis"] == {
        "title": {"text": "a"},
        "automargin": True,
        "type": "linear",
        "tickformat": "d",
        "dtick": 1,
    }


def test_names_on_a_line_are_places_without_a_distance() -> None:
    made = build_figure(chart("line", [{"a": "Q1", "b": 1}, {"a": "Q3", "b": 2}]))
    assert (made["data"][0]["x"], made["layout"]["xaxis"]["type"]) == (["Q1", "Q3"], "category")


@pytest.mark.parametrize("values", [[1, -1], [0, 0]])
def test_what_is_no_share_of_a_whole_is_no_pie(values: list[int]) -> None:
    with pytest.raises(NotDrawable, match="no shares of a whole"):
        build_figure(chart("pie", [{"a": "x", "b": value} for value in values]))


def test_a_radar_closes_each_shape_and_names_it() -> None:
    first, *_ = build_figure(chart("radar", ROWS))["data"]
    assert (first["r"], first["theta"], first["name"]) == ([3, 1.5, 3], ["b", "c", "b"], "Rail")


def test_a_bubble_without_a_size_is_left_out() -> None:
    (points,) = build_figure(chart("bubble", ROWS))["data"]
    assert (points["x"], points["marker"]["size"]) == ([3, 5], [10, 40])


def test_a_combo_has_an_axis_for_each_of_its_two_measures() -> None:
    made = build_figure(chart("combo", ROWS))
    assert [(each["type"], each.get("yaxis", "y"), each["y"]) for each in made["data"]] == [
        ("bar", "y", [3, 5, 0]),
        ("scatter", "y2", [1.5, None, 2.5]),
    ]
    assert made["layout"]["yaxis2"]["overlaying"] == "y"


def test_labels_cannot_be_links_or_markup_to_the_library() -> None:
    (bars,) = build_figure(chart("column", [{"a": '<a href="https://x.example">R&D</a>', "b": 1}]))["data"]
    assert bars["x"] == ['&lt;a href="https://x.example"&gt;R&amp;D&lt;/a&gt;']


def test_a_chart_is_bounded() -> None:
    (bars,) = build_figure(chart("column", [{"a": str(n), "b": n} for n in range(MOST + 1)]))["data"]
    assert len(bars["x"]) == MOST


@pytest.mark.parametrize("type", ["table", "html"])
def test_tables_and_reports_are_no_charts(type: str) -> None:
    with pytest.raises(NotDrawable):
        build_figure(chart(type, ROWS, {}))
