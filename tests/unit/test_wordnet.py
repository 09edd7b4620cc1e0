"""WordNet's relations as they are packaged."""

from __future__ import annotations

import pytest

from phronesis_embedding.wordnet import WordNet, load_wordnet


@pytest.mark.parametrize(
    ("one", "kind", "surely"),
    [
        ("loaf", "bread", True),
        ("loaves", "bread", True),
        ("bread", "loaf", False),
        ("trombone", "dog", False),
        ("xyzzy", "dog", False),
    ],
)
def test_a_word_is_a_kind_of_what_stands_above_it(one: str, kind: str, surely: bool) -> None:
    assert (load_wordnet().is_a(one, kind) > 0.9) is surely


def test_opposites_go_both_ways() -> None:
    net = load_wordnet()
    assert "cheap" in net.antonyms("expensive")
    assert "expensive" in net.antonyms("cheap")


def test_what_is_made_of_a_word_is_known() -> None:
    assert "advertising" in load_wordnet().derived("advertise")


def test_kinds_of_one_narrow_thing_are_siblings_and_synonyms_are_not() -> None:
    net = load_wordnet()
    assert net.are_siblings("english", "german")
    assert not net.are_siblings("ad", "advertisement")
    assert net.are_synonyms("ad", "advertisement")


def test_forms_of_a_word_are_read_as_the_word() -> None:
    net = load_wordnet()
    assert [net.plain(word) for word in ("children", "bought", "planning", "xyzzies")] == [
        "child",
        "buy",
        "planning",
        "xyzzies",
    ]


def test_other_data_is_refused() -> None:
    with pytest.raises(ValueError):
        WordNet(b"no data")
