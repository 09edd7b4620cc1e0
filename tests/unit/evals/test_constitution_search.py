"""The figures of the quality of searches, and the labelled sets they are taken on."""

from __future__ import annotations

from pathlib import Path

import pytest

from evals.constitution_search import SETS, Asked, judge, read
from phronesis_contracts.constitution.registry import TYPES


def asked(relevant: str, found: str) -> Asked:
    return Asked("?", frozenset(relevant), tuple(found))


def test_precision_is_over_as_many_results_as_there_are_relevant_nodes() -> None:
    assert judge([asked("ab", "axb"), asked("a", "ax")]).r_precision == 0.75


def test_from_ten_relevant_nodes_on_precision_is_over_ten_results() -> None:
    figures = judge([asked("abcdefghijkl", "abcdefghxy")])
    assert (figures.precision_at_10, figures.r_precision) == (0.8, None)


def test_an_empty_answer_has_no_precision() -> None:
    assert judge([asked("a", ""), asked("a", "a")]).r_precision == 0.5


def test_the_irrelevant_are_a_share_of_what_was_returned() -> None:
    assert judge([asked("a", "abc"), asked("d", "d")]).irrelevant == 0.5


def test_nonsense_counts_where_nothing_came_back() -> None:
    assert judge([asked("", ""), asked("", "a"), asked("a", "a")]).nonsense_empty == 0.5


@pytest.mark.parametrize("path", sorted(SETS.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_set_has_the_size_and_the_types_that_are_asked_for(path: Path) -> None:
    domain = read(path)
    assert 30 <= len(domain.nodes) <= 60
    assert (len(domain.queries) >= 15, len(domain.nonsense) >= 10) == (True, True)
    assert {node["type"] for node in domain.nodes} <= set(TYPES)
