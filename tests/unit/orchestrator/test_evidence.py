"""Which figures follow from what was read, and how sure an answer is."""

from __future__ import annotations

from typing import Any

import pytest

from phronesis_contracts.answers import Visualization, VisualizationType
from phronesis_orchestrator.agents.check import Evidence, column_figures, confidence, confidence_without_data, coverage
from phronesis_orchestrator.agents.findings import Findings, TwinRead
from tests.support.cases import for_each

ROWS = (
    {"department": "Health", "year": 2021, "cost": 10.5, "open": True},
    {"department": "Health", "year": 2022, "cost": 30.0, "open": True},
    {"department": "Transport", "year": 2022, "cost": 59.5, "open": False},
    {"department": "Justice", "year": 2022, "cost": None, "open": False},
)


def read(*rows: dict[str, Any], **parameters: Any) -> Findings:
    return Findings(reads=[TwinRead("MATCH", parameters, rows, truncated=False)])


@for_each("figure", [10.5, 30, 59.5, 100, 33.33, 33.3, 33, 40.5, 40.5 / 2, 4, 3, 2, 1, 50, 25, 59.5 / 100 * 100, 2022, 2019])
def test_a_figure_that_was_read_or_follows_is_held(figure: float) -> None:
    assert Evidence(read(*ROWS, since=2019)).holds(figure)


@pytest.mark.parametrize("figure", [11, 41.7, 1_000, -30, 0.7, 99])
def test_a_figure_that_does_not_follow_is_not(figure: float) -> None:
    assert not Evidence(read(*ROWS)).holds(figure)


def test_nothing_read_holds_nothing() -> None:
    assert not Evidence(Findings()).holds(1)


def test_figures_of_a_report_are_held_too_but_not_years_and_small_numbers() -> None:
    report = {"type": VisualizationType.HTML, "title": "R"}
    evidence = Evidence(read(*ROWS))
    good = Visualization(**report, data="<p>In 2023 the 3 cost £100.0m, 59.5 of it for one.</p>")
    assert evidence.unfounded(good) is None
    assert evidence.unfounded(Visualization(**report, data="<p>It cost £1,234.5m.</p>")) == 1234.5


def test_the_share_of_an_answers_figures_that_are_held_is_its_agreement() -> None:
    evidence = Evidence(read(*ROWS))
    assert evidence.agreement("In 2022 it cost 100, or 77 as some say.") == 0.5
    assert evidence.agreement("It is late.") == 1.0


@pytest.mark.req("N-064")
def test_the_statistics_count_and_leave_what_is_unknown_out() -> None:
    assert column_figures(read(*ROWS)) == {
        "rows": 4,
        "reads": 1,
        "columns": {
            "year": {"count": 4, "min": 2021, "max": 2022},
            "cost": {"count": 3, "min": 10.5, "max": 59.5, "sum": 100.0, "mean": 33.333333},
        },
    }
    assert column_figures(Findings()) == {}


def test_coverage_counts_answered_empty_and_unanswered_questions() -> None:
    empty = TwinRead("MATCH", {}, (), truncated=False)
    assert coverage(Findings()) == 0.2
    assert coverage(read(*ROWS)) == 1.0
    assert coverage(Findings(reads=[empty])) == 0.6
    half = read(*ROWS)
    half.unanswered = 2
    assert coverage(half) == 0.6


@pytest.mark.req("N-043")
def test_the_model_can_lower_the_confidence_and_never_raise_it() -> None:
    found = read(*ROWS)
    assert confidence(found, 0, 0, 1.0, 0, None) == 1.0
    assert confidence(found, 0, 0, 1.0, 0, 0.5) == 0.75
    assert confidence(found, 1, 2, 1.0, 0, 1.0) == 0.75
    assert confidence(found, 9, 2, 1.0, 0, 1.0) == 0.5
    assert confidence(found, 0, 0, 0.0, 1, 1.0) == 0.45
    assert (confidence_without_data(1.0), confidence_without_data(0.3), confidence_without_data(None)) == (0.9, 0.3, 0.5)
