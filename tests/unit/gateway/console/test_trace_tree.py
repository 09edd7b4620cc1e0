"""The tree of a trace: every span once, under what began it, whatever services remember."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from phronesis_contracts.service import Span
from phronesis_gateway.console.traces import Branch, build_tree

TRACE = "0" * 32


def span(id: str, parent: str | None = None, start: int = 0, end: int = 0, error: str | None = None) -> Span:
    times = {"start_ns": start, "end_ns": end}
    return Span(trace_id=TRACE, span_id=id, parent_id=parent, service="memory", name=id, error=error, **times)


IDS = st.sampled_from("abcdefgh")
TIMES = st.integers(min_value=0, max_value=10**18)
SPANS = st.lists(st.builds(span, IDS, st.none() | IDS | st.just("elsewhere"), TIMES, TIMES), max_size=10)


def test_spans_stand_under_their_parent_by_their_start_with_times_from_the_first() -> None:
    spans = [
        span("late", "root", 5_000_000, 6_000_000),
        span("root", None, 1_000_000, 9_000_000),
        span("inner", "early", 3_500_000, 3_750_000, error="not_found"),
        span("early", "root", 3_000_000, 4_000_000),
    ]
    assert build_tree(spans) == (
        Branch(0, "memory", "root", 0.0, 8.0, None),
        Branch(1, "memory", "early", 2.0, 1.0, None),
        Branch(2, "memory", "inner", 2.5, 0.25, "not_found"),
        Branch(1, "memory", "late", 4.0, 1.0, None),
    )


def test_a_span_whose_parent_is_forgotten_stands_at_the_top() -> None:
    assert [(each.name, each.depth) for each in build_tree([span("b", "gone", 2, 3), span("a", None, 1, 3)])] == [
        ("a", 0),
        ("b", 0),
    ]


def test_spans_that_name_each_other_are_shown_once() -> None:
    found = build_tree([span("a", "b", 1), span("b", "a", 2), span("c", "c", 3)])
    assert [(each.name, each.depth) for each in found] == [("a", 0), ("b", 1), ("c", 0)]


def test_nothing_is_an_empty_tree() -> None:
    assert build_tree([]) == ()


@given(SPANS)
def test_every_span_is_there_once_and_one_level_under_its_parent(spans: list[Span]) -> None:
    found = build_tree(spans)
    assert sorted(each.name for each in found) == sorted({each.span_id for each in spans})
    parents = {each.span_id: each.parent_id for each in spans}
    above: list[str] = []
    for each in found:
        assert each.depth <= len(above)
        assert each.depth == 0 or parents[each.name] == above[each.depth - 1]
        assert min(each.start_ms, each.ms) >= 0
        above = [*above[: each.depth], each.name]
