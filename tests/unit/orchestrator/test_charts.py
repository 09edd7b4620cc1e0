"""Charts: what each of the nine types must have."""

from __future__ import annotations

from typing import Any

import pytest

from phronesis_contracts.answers import VisualizationType
from phronesis_orchestrator.agents.presentation import BadChart, build_chart

ROWS = [{"name": "a", "count": 1, "share": 2.5, "size": 3}, {"name": "b", "count": 4, "share": 5, "size": 6}]
CONFIGS: dict[str, dict[str, Any]] = {
    "column": {"xAxis": "name", "yAxis": "count"},
    "line": {"xAxis": "name", "yAxis": "count"},
    "pie": {"labelField": "name", "valueField": "count"},
    "radar": {"dimensions": ["count", "share"]},
    "scatter": {"xAxis": "count", "yAxis": "share"},
    "bubble": {"xAxis": "count", "yAxis": "share", "sizeMetric": "size"},
    "combo": {"xAxis": "name", "barField": "count", "lineField": "share"},
    "table": {"columns": ["name", "count"]},
}


def given(type: str, /, **changes: Any) -> dict[str, Any]:
    return {"type": type, "title": "T", "config": CONFIGS.get(type, {}), "data": ROWS} | changes


@pytest.mark.parametrize("type", CONFIGS)
@pytest.mark.req("N-071", "N-073", "N-074", "T-009")
def test_each_type_of_rows_is_taken_as_it_is(type: str) -> None:
    made = build_chart(given(type))
    assert (made.type.value, made.title, made.config, made.data) == (type, "T", CONFIGS[type], ROWS)


@pytest.mark.req("N-071", "NC-031")
def test_there_are_nine_types_and_html_is_one_fragment() -> None:
    assert len(VisualizationType) == 9
    assert build_chart(given("html", data="<p>x</p>")).data == "<p>x</p>"


@pytest.mark.parametrize("type", ["network", "bar", "area", "Column", "COLUMN", "", None, 7, ["column"]])
@pytest.mark.req("N-071", "N-072")
def test_any_other_type_is_refused(type: Any) -> None:
    with pytest.raises(BadChart, match="nine"):
        build_chart(given("column", type=type))


@pytest.mark.parametrize("type", CONFIGS)
@pytest.mark.req("N-073", "N-074", "NC-033")
def test_every_field_of_a_configuration_is_needed(type: str) -> None:
    for key in CONFIGS[type]:
        for wrong in ({}, {key: None}, {key: 7}, {key: []}):
            kept = {name: value for name, value in CONFIGS[type].items() if name != key}
            with pytest.raises(BadChart):
                build_chart(given(type, config=kept | wrong))


@pytest.mark.parametrize(
    "changes",
    [
        {"title": None},
        {"title": " "},
        {"config": None},
        {"config": []},
        {"data": None},
        {"data": []},
        {"data": "x"},
        {"data": [1]},
    ],
)
@pytest.mark.req("N-073")
def test_a_chart_without_one_of_its_parts_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(BadChart):
        build_chart(given("column", **changes))


@pytest.mark.parametrize("value", ["12", None, True, float("nan"), float("inf"), [1]])
@pytest.mark.req("N-075")
def test_a_value_that_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(BadChart, match="count"):
        build_chart(given("column", data=[{"name": "a", "count": value}]))


@pytest.mark.req("N-075")
def test_a_record_that_lacks_a_field_is_refused() -> None:
    with pytest.raises(BadChart, match="lacks count"):
        build_chart(given("column", data=[*ROWS, {"name": "c"}]))


def test_a_tables_record_may_lack_a_column_but_not_all() -> None:
    assert build_chart(given("table", data=[{"name": "a"}])).data == [{"name": "a"}]
    with pytest.raises(BadChart):
        build_chart(given("table", data=[{"other": "a"}]))
