"""Which concepts a text names."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from phronesis_memory.items.links import MAX_MENTIONS, Titles


def test_a_title_counts_as_whole_words_whatever_its_case() -> None:
    titles = Titles({"1": "Heat Networks", "2": "net", "3": "Café"})
    assert titles.named_in("The HEAT networks, by the café: networking") == ["1", "3"]


def test_titles_that_lie_in_each_other_are_both_named() -> None:
    assert Titles({"1": "smart meter", "2": "smart meter programme"}).named_in("a smart meter programme") == ["1", "2"]


def test_a_title_without_words_is_never_named() -> None:
    assert Titles({"1": " -- "}).named_in("-- a -- b") == []


def test_one_text_names_a_bounded_number_of_concepts() -> None:
    titles = Titles({str(n): f"c{n}" for n in range(500)})
    assert len(titles.named_in(" ".join(f"c{n}" for n in range(500)))) == MAX_MENTIONS


@settings(deadline=None)
@given(st.lists(st.sampled_from(["red", "blue", "green"]), max_size=12), st.lists(st.sampled_from(["red", "blue"]), max_size=3))
def test_a_title_is_named_exactly_where_its_words_stand_in_a_row(text: list[str], title: list[str]) -> None:
    stands = bool(title) and any(text[i : i + len(title)] == title for i in range(len(text)))
    assert Titles({"1": " ".join(title)}).named_in(" ".join(text)) == (["1"] if stands else [])
