"""Order and size of a retrieval's context."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phronesis_contracts.memory import ContextItem, ItemKind
from phronesis_memory.items.search import fit_budget, item_name, sort_items
from phronesis_tokens import count, cut

NOW = datetime(2024, 1, 1, tzinfo=UTC)


def _item(id: str, score: float = 1.0, hop: int = 0, age: int = 0, text: str = "x") -> ContextItem:
    created = NOW - timedelta(days=age)
    return ContextItem(id=id, kind=ItemKind.FACT, title="t", text=text, score=score, hop=hop, created_at=created)


@pytest.mark.req("D-098")
def test_the_order_is_by_score_then_hop_then_newest() -> None:
    items = [_item("old", 0.5, 1, 9), _item("far", 0.5, 2, 0), _item("new", 0.5, 1, 1), _item("best", 0.9, 2, 9)]
    assert [item.id for item in sort_items(items)] == ["best", "new", "old", "far"]


@pytest.mark.req("D-099")
@settings(deadline=None)
@given(
    st.lists(st.text(max_size=400) | st.sampled_from(["語" * 400, "👩‍👩‍👧" * 90, " " * 9_000]), max_size=40),
    st.integers(50, 2000),
)
def test_what_is_kept_fits_the_budget_and_is_the_beginning_of_the_order(texts: list[str], budget: int) -> None:
    items = [_item(str(n), text=text) for n, text in enumerate(texts)]
    kept, dropped = fit_budget(items, budget)
    assert [item.id for item in kept] == [item.id for item in items[: len(kept)]]
    assert dropped == len(items) - len(kept)
    assert sum(count(item.title, budget) + count(item.text, budget) for item in kept) <= budget
    assert kept or not items


@pytest.mark.req("D-099")
def test_of_500_items_the_lowest_ranks_are_dropped_and_counted() -> None:
    kept, dropped = fit_budget([_item(str(n), text=" one" * 19) for n in range(500)], 2_000)
    assert ([item.id for item in kept], dropped) == ([str(n) for n in range(100)], 400)


def test_the_best_item_is_kept_in_any_case_cut_to_the_budget() -> None:
    kept, dropped = fit_budget([_item("1", text=" one" * 10_000), _item("2")], 100)
    assert (kept[0].text, len(kept), dropped) == (" one" * 98 + "…", 1, 1)


def test_a_long_title_leaves_room_for_the_text() -> None:
    long = _item("1", text=" one" * 1_000).model_copy(update={"title": " two" * 1_000})
    ((kept,), _) = fit_budget([long], 50)
    assert (kept.title, kept.text) == (" two" * 24 + "…", " one" * 24 + "…")


@settings(deadline=None)
@given(st.text() | st.sampled_from([" " * 50_000, "e\u0301" * 9_000, "🙂" * 9_000]), st.integers(1, 300))
def test_a_text_that_is_cut_keeps_to_its_tokens_and_says_so(text: str, limit: int) -> None:
    short = cut(text, limit, "…")
    assert count(short, limit) <= limit
    assert short in ("", text) or (short.endswith("…") and text.startswith(short[:-1]))


def test_an_item_without_a_title_is_named_by_the_beginning_of_its_text() -> None:
    assert item_name(None, "a  b\nc") == "a b c"
    assert item_name(None, "x" * 100) == "x" * 79 + "…"
    assert item_name("title", "x") == "title"
