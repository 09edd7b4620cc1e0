"""Counting and cutting by the models' own vocabulary."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phronesis_tokens import CUT, clean, count, cut, fits, load

UNITS = ("🙂", "👩‍👩‍👧‍👦", "語", "e\u0301", " ", "\n", "a", "word ", "\x00", "\U0010ffff")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("hello world", 2), ("Hello, world!", 4), ("語", 1), ("🙂", 1), (" " * 128, 1), ("<|endoftext|>", 7)],
)
def test_tokens_are_those_of_the_models_vocabulary(text: str, tokens: int) -> None:
    assert count(text, 1_000) == tokens


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.req("C-85")
def test_the_count_is_that_of_the_packages_own_face() -> None:
    from bpe_openai import get_encoding  # type: ignore[import-untyped]

    text = "A naïve café — 語言, 🙂 and\n\n1,234.5 of it. " * 9
    assert count(text, 10_000) == len(get_encoding("o200k_base").encode_ordinary(text))


def test_counting_stops_at_the_limit() -> None:
    assert [count("one two three", limit) for limit in (-1, 0, 2, 3, 9)] == [0, 1, 3, 3, 3]
    assert fits("one two three", 3)
    assert not fits("one two three", 2)


@settings(deadline=None)
@given(
    st.tuples(st.sampled_from(UNITS) | st.text(st.characters(codec="utf-8"), max_size=9), st.sampled_from((1, 9, 3_000))),
    st.integers(0, 400),
)
@pytest.mark.req("D-035")
def test_a_cut_text_keeps_to_its_tokens_says_so_and_ends_with_a_whole_character(some: tuple[str, int], limit: int) -> None:
    text = some[0] * some[1]
    short = cut(text, limit)
    assert count(short, limit) <= limit
    if short != text and short:
        assert short.endswith(CUT)
        assert text.startswith(short.removesuffix(CUT))


def test_a_cut_uses_the_room_it_has() -> None:
    assert cut(" one" * 1_000, 50) == " one" * (50 - count(CUT, 9)) + CUT


def test_half_surrogates_are_replaced_and_all_else_is_left() -> None:
    assert clean("a\ud83d🙂\udc00é") == "a?🙂?é"


def test_ten_megabytes_take_no_longer_than_what_can_matter() -> None:
    load()
    for unit in UNITS:
        began = time.perf_counter()
        cut(unit * (10_000_000 // len(unit.encode())), 2_000)
        # A tenth of a second at most when idle; the bound is for a busy machine, and below what 10 MB would take there.
        assert time.perf_counter() - began < 3
