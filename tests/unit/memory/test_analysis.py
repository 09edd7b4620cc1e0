"""The analyzer."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from phronesis_memory.words.analysis import count_words, stems, term_number


def test_stop_words_fall_and_stems_stand() -> None:
    assert stems("The programmes were running, and a Café's cafe ran") == ["programm", "run", "cafe", "cafe", "ran"]


def test_apostrophes_of_either_kind_make_the_same_words() -> None:
    assert stems("don't the project’s") == stems("don’t the project's") == ["project"]


@settings(deadline=None)
@given(st.text(max_size=300))
def test_case_does_not_matter(text: str) -> None:
    assert stems(text.casefold()) == stems(text.casefold().casefold())


@settings(deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_taken_and_its_length_is_the_sum_of_its_counts(text: str) -> None:
    found = count_words(text)
    assert found.length == sum(found.counts.values()) == len(stems(text))
    assert all(stem and len(stem) <= 64 for stem in found.counts)


@settings(deadline=None)
@given(st.lists(st.text(alphabet="abcdefghij", min_size=3, max_size=8), max_size=20))
def test_what_is_asked_is_analysed_like_what_is_stored(tokens: list[str]) -> None:
    assert stems(" ".join(tokens)) == [stem for token in tokens for stem in stems(token)]


@settings(deadline=None)
@given(st.text(max_size=20), st.sampled_from([("a", "b", "fact"), ("a", "c", "fact"), ("d", "b", "fact"), ("a", "b", "note")]))
def test_a_term_stands_for_a_stem_inside_one_scope(stem: str, other: tuple[str, str, str]) -> None:
    mine = term_number("a", "b", "fact", stem)
    assert -(2**63) <= mine < 2**63
    assert (mine == term_number(*other, stem)) == (other == ("a", "b", "fact"))
