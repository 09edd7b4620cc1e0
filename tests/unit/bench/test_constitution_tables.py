"""The tables of the constitutional graph's bench: the list's numbers, and the verdict that each figure gets."""

from __future__ import annotations

import re

import pytest

from bench import constitution_quality as quality
from bench import constitution_times as times
from bench import constitution_tokens as tokens
from bench.constitution_graph import at
from bench.constitution_seed import CONVERSATION, GROWTH, NO, OPERATIONS, SIZES, TOKENS
from bench.load import Timed
from phronesis_contracts.constitution.registry import Layer


def took(size: int, seconds: float, **other: float) -> times.Times:
    """Figures of one size: every call took so long, but for the named tools."""
    by_tool = {one.tool: Timed((seconds,) * 100, 100 * seconds) for one in OPERATIONS}
    for name, slow in other.items():
        by_tool[name.replace("_", ".")] = Timed((slow,) * 100, 100 * slow)
    by_tool[f"session.start.v1 {times.TOUCHED}"] = by_tool["session.start.v1"]
    return times.Times(size, by_tool)


@pytest.mark.req("O-336", "O-457", "O-458", "C-87", "C-99")
def test_the_table_of_operations_holds_median_and_99th_percentile_against_the_lists_numbers() -> None:
    rows = times.operations(took(500, 0.1, hybrid_search_v1=2.6))
    assert [row for row in rows if NO in row] == ["| Hybrid search, topK=10 | 2.5 | 2.600 | 4.0 | 2.600 | **no** |"]
    assert len(rows) == 2 + 6


@pytest.mark.req("O-337", "O-457", "O-459", "C-01", "C-05", "C-99")
def test_the_table_of_sizes_has_a_verdict_in_every_cell_of_the_list_and_none_beyond_it() -> None:
    rows = times.by_size([took(45, 0.6), took(500, 0.6), took(1_000, 0.6), took(5_000, 0.6), took(50_000, 0.6)])
    assert len(re.findall(r"\d (?:yes|\*\*no\*\*)", "\n".join(rows))) == 5 * len(SIZES)
    assert "| 0.5, 0.600 **no** |" in rows[2]
    assert NO not in "".join(rows[3:])
    assert rows[-1].count("—") == 5


@pytest.mark.req("O-340", "O-341", "O-457", "O-460", "C-01")
def test_the_table_of_tokens_holds_each_part_of_a_session_against_its_ceiling() -> None:
    def of(size: int, foundation: int) -> tokens.Tokens:
        parts = {"Foundation": foundation, "Vision": 1_000, "Workload": 2_000, "Total session": foundation + 3_000}
        return tokens.Tokens(size, parts, (10, 13_000) if size == 500 else None, ())

    rows = tokens.by_size([of(size, 16_000) for size in SIZES])
    assert [row.count(NO) for row in rows[2:]] == [1, 0, 0, 0, 0]
    assert rows[2].startswith("| Foundation | 15,000, 16,000 **no** | 17,000, 16,000 yes |")
    assert tokens.searches([of(500, 1)])[2] == "| 500 | 10 | 12,000 | 13,000 | **no** |"


@pytest.mark.req("O-461")
def test_the_budget_and_the_growth_are_printed_beside_what_was_measured() -> None:
    session = {"Foundation": 9_000, "Vision": 500, "Workload": 2_000, "Total session": 11_500}
    usage = ({"component": "session context", "budget": 25_000, "used": 11_500},)
    rows = tokens.budget([tokens.Tokens(45, session, None, usage)])
    assert "| Session context | 44,000 | 25,000 | 11,500 | 11,500 |" in rows
    assert "| Conversation | 111,000 | 130,000 | 143,500 | 143,500 |" in rows
    assert tokens.growth([1_055])[-1] == "| total | 45 | 1,055 | 4,855 | 1,055 |"


@pytest.mark.req("C-88", "C-100")
def test_the_lists_numbers_add_up() -> None:
    assert [sum(TOKENS[name][n] for name in ("Foundation", "Vision", "Workload")) for n in range(4)] == list(
        TOKENS["Total session"]
    )
    assert [200_000 - 45_000 - total for total in TOKENS["Total session"]] == list(CONVERSATION)
    assert set(GROWTH) == set(Layer)


@pytest.mark.req("O-410", "O-411", "O-412", "O-413", "O-414", "O-415")
def test_quality_is_held_against_each_threshold() -> None:
    good = quality.Quality(5_000, 100, 50, 0.9, 0.95, 0.88, 0.97, 0.001, (0.97, 0.95), (0.2, 0.3), 0.8, "a model")
    assert [row for row in quality.table(good) if NO in row] == []
    bad = quality.Quality(5_000, 100, 50, 0.8, 0.8, 0.8, 0.7, 0.2, (0.8,), (0.5,), 0.4, "a model")
    assert len([row for row in quality.table(bad) if NO in row]) == 8


@pytest.mark.parametrize(("percent", "value"), [(50, 50), (99, 99), (100, 100), (5, 5)])
def test_a_percentile_is_a_value_that_was_measured(percent: int, value: int) -> None:
    assert at(list(range(100, 0, -1)), percent) == value
