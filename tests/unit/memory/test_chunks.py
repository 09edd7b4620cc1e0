"""Cutting texts."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from phronesis_memory.embedding.chunks import pool, split_chunks, split_passages, split_pieces

TEXTS = st.lists(st.sampled_from(["one", "two.", "three!", "four;", "five\n", "six?"]), max_size=400).map(" ".join)


@settings(deadline=None)
@given(TEXTS, st.integers(1, 50))
def test_every_word_is_in_exactly_one_chunk_and_no_chunk_is_too_long(text: str, limit: int) -> None:
    cut = split_chunks(text, limit)
    assert " ".join(cut).split() == text.split()
    assert all(0 < len(chunk.split()) <= limit for chunk in cut)


def test_sentences_stay_whole_where_they_fit() -> None:
    assert split_chunks("One two three. Four five. Six seven eight nine.", 5) == [
        "One two three. Four five.",
        "Six seven eight nine.",
    ]


def test_a_sentence_longer_than_a_chunk_is_cut() -> None:
    assert split_chunks("a b c d e f g", 3) == ["a b c", "d e f", "g"]


def test_pieces_carry_the_title_and_are_never_none() -> None:
    assert split_pieces("Name", "text") == ["Name. text"]
    assert split_pieces(None, "   ") == [""]


def test_a_very_long_text_has_a_bounded_number_of_pieces() -> None:
    assert len(split_pieces(None, "word " * 20_000)) == 24


def test_passages_are_sentences_with_short_ones_joined() -> None:
    text = "One two three four five six. Seven eight nine ten.\nEleven is a sentence of its own and long enough here. The end."
    assert split_passages("Name", text) == [
        "Name. One two three four five six. Seven eight nine ten.",
        "Name. Eleven is a sentence of its own and long enough here. The end.",
    ]


def test_an_item_of_one_passage_has_none() -> None:
    assert split_passages("Name", "Short. Also short.") == split_passages(None, "") == []


@settings(deadline=None)
@given(TEXTS)
def test_the_passages_of_any_text_are_bounded(text: str) -> None:
    found = split_passages(None, text)
    assert len(found) <= 12
    assert all(5 <= len(passage.split()) <= 60 for passage in found)


@settings(deadline=None)
@given(st.lists(st.lists(st.floats(-1, 1, width=32), min_size=4, max_size=4).filter(any), min_size=1, max_size=6))
def test_a_pooled_vector_has_length_1_or_no_direction(rows: list[list[float]]) -> None:
    mean = np.mean(np.array(rows, np.float32), axis=0)
    length = float(np.linalg.norm(pool([np.array(row, np.float32) for row in rows])))
    assert np.linalg.norm(mean) < 1e-6 or abs(length - 1) < 1e-3
