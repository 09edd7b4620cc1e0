"""Order and size of a retrieval's context."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phronesis.contracts.memory import ContextItem, ItemKind
from phronesis.memory.domain.context import fitted, name_of, ordered, tokens

NOW = datetime(2024, 1, 1, tzinfo=UTC)


def _item(id: str, score: float = 1.0, hop: int = 0, age: int = 0, text: str = "x") -> ContextItem:
    created = NOW - timedelta(days=age)
    return ContextItem(id=id, kind=ItemKind.FACT, title="t", text=text, score=score, hop=hop, created_at=created)


@pytest.mark.req("D-098")
def test_the_order_is_by_score_then_hop_then_newest() -> None:
    items = [_item("old", 0.5, 1, 9), _item("far", 0.5, 2, 0), _item("new", 0.5, 1, 1), _item("best", 0.9, 2, 9)]
    assert [item.id for item in ordered(items)] == ["best", "new", "old", "far"]


@pytest.mark.req("D-099")
@settings(deadline=None)
@given(st.lists(st.integers(0, 400), max_size=60), st.integers(50, 2000))
def test_what_is_kept_fits_the_budget_and_is_the_beginning_of_the_order(sizes: list[int], budget: int) -> None:
    items = [_item(str(n), text="x" * size) for n, size in enumerate(sizes)]
    kept, dropped = fitted(items, budget)
    assert [item.id for item in kept] == [item.id for item in items[: len(kept)]]
    assert dropped == len(items) - len(kept)
    assert sum(tokens(item.title) + tokens(item.text) for item in kept) <= budget
    assert kept or not items


@pytest.mark.req("D-099")
def test_of_500_items_the_lowest_ranks_are_dropped_and_counted() -> None:
    kept, dropped = fitted([_item(str(n), text="x" * 76) for n in range(500)], 2_000)
    assert ([item.id for item in kept], dropped) == ([str(n) for n in range(100)], 400)


def test_the_best_item_is_kept_in_any_case_cut_to_the_budget() -> None:
    kept, dropped = fitted([_item("1", text="x" * 10_000), _item("2")], 100)
    assert (kept[0].text, len(kept), dropped) == ("x" * 395 + "…", 1, 1)


def test_an_item_without_a_title_is_named_by_the_beginning_of_its_text() -> None:
    assert name_of(None, "a  b\nc") == "a b c"
    assert name_of(None, "x" * 100) == "x" * 79 + "…"
    assert name_of("title", "x") == "title"
