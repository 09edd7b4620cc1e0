"""BM25, and the fusion of the two signals."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phronesis_contracts.memory import ItemKind
from phronesis_memory.words.ranking import K1, Rows, Weights, bm25, fuse, idf, match_share

KINDS = st.sampled_from([ItemKind.FACT, ItemKind.NOTE])
COUNTS = st.dictionaries(st.integers(-5, 5), st.integers(1, 255), max_size=8)
Drawn: TypeAlias = list[tuple[ItemKind, dict[int, int]]]


def _rows(drawn: Drawn) -> Rows:
    pairs = [pair for _, counts in drawn for pair in counts.items()]
    return Rows(
        [ItemKind.NOTE, ItemKind.FACT, ItemKind.NODE, ItemKind.EPISODE],
        np.array([[ItemKind.NOTE, ItemKind.FACT, ItemKind.NODE, ItemKind.EPISODE].index(kind) for kind, _ in drawn], np.int64),
        np.array([sum(counts.values()) for _, counts in drawn], np.int64),
        np.array([len(counts) for _, counts in drawn], np.int64),
        np.array([t for t, _ in pairs], np.int64),
        np.array([n for _, n in pairs], np.uint8),
    )


def _by_hand(weights: Weights, kind: ItemKind, counts: dict[int, int]) -> float:
    b = 0.0 if kind is ItemKind.FACT else 0.75
    norm = 0.9 * (1 - b + b * sum(counts.values()) / weights.average[kind])
    return sum(weights.idf[t] * n * 1.9 / (n + norm) for t, n in counts.items() if t in weights.idf)


@settings(deadline=None)
@given(st.lists(st.tuples(KINDS, COUNTS), max_size=12), st.dictionaries(st.integers(-5, 5), st.floats(0.01, 9), max_size=6))
def test_bm25_is_the_formula(drawn: Drawn, idf_of: dict[int, float]) -> None:
    weights = Weights(idf_of, sum(idf_of.values()), {ItemKind.FACT: 4.0, ItemKind.NOTE: 7.5})
    assert bm25(weights, _rows(drawn))[0].tolist() == pytest.approx([_by_hand(weights, *one) for one in drawn])


@settings(deadline=None)
@given(st.lists(st.tuples(KINDS, COUNTS), max_size=12))
def test_coverage_is_the_share_of_the_weight_that_stands_in_the_item(drawn: Drawn) -> None:
    shares = bm25(Weights({1: 2.0, 2: 1.0}, 4.0, {}), _rows(drawn))[1].tolist()
    assert shares == [(2.0 * (1 in counts) + 1.0 * (2 in counts)) / 4.0 for _, counts in drawn]


@settings(deadline=None)
@given(st.integers(1, 10**6), st.integers(0, 10**6))
def test_a_rarer_word_never_weighs_less(items: int, holding: int) -> None:
    holding = min(holding, items)
    assert idf(items, holding) > 0
    assert idf(items, holding) >= idf(items, min(items, holding + 1))


def test_length_does_not_count_in_speech_and_counts_in_documents() -> None:
    weights = Weights({1: 1.0}, 1.0, {ItemKind.EPISODE: 10.0, ItemKind.NODE: 10.0})
    short, long = {1: 1}, {1: 1, 2: 60}
    speech = bm25(weights, _rows([(ItemKind.EPISODE, short), (ItemKind.EPISODE, long)]))[0]
    documents = bm25(weights, _rows([(ItemKind.NODE, short), (ItemKind.NODE, long)]))[0]
    assert speech[0] == speech[1]
    assert documents[0] > documents[1]


@settings(deadline=None)
@given(st.lists(st.tuples(KINDS, COUNTS), max_size=12), st.dictionaries(st.integers(-5, 5), st.floats(0.01, 9), min_size=1))
def test_no_item_matches_by_more_than_the_whole(drawn: Drawn, idf_of: dict[int, float]) -> None:
    weights = Weights(idf_of, sum(idf_of.values()), {ItemKind.FACT: 4.0, ItemKind.NOTE: 7.5})
    assert all(0.0 <= score / ((K1 + 1) * weights.total) <= 1.0 for score in bm25(weights, _rows(drawn))[0].tolist())


def test_a_match_is_the_share_of_the_greatest_bm25() -> None:
    assert match_share(1.9, Weights({1: 4.0}, 4.0, {})) == pytest.approx(0.25)
    assert match_share(0.0, Weights({}, 0.0, {})) == 0.0


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 1)), min_size=1, max_size=20))
def test_a_fused_score_is_within_0_and_1_and_no_better_candidate_scores_less(pairs: list[tuple[float, float]]) -> None:
    scores = fuse([a for a, _ in pairs], [b for _, b in pairs])
    assert all(0.0 <= score <= 1.0 for score in scores)
    for (a1, b1), s1 in zip(pairs, scores, strict=True):
        for (a2, b2), s2 in zip(pairs, scores, strict=True):
            if a1 <= a2 and b1 <= b2:
                assert s1 <= s2 or math.isclose(s1, s2)


def test_few_words_in_common_count_for_little_and_all_of_them_for_more_than_any_cosine() -> None:
    assert fuse([0.4, 0.0], [0.0, 0.2]) == pytest.approx([0.16, 0.024])
    assert fuse([1.0, 0.0], [0.0, 1.0]) == pytest.approx([0.4, 0.6])


def test_the_best_of_poor_matches_stays_poor() -> None:
    assert fuse([0.1], [0.1]) == pytest.approx([0.046])


def test_one_signal_alone_is_the_whole_score() -> None:
    assert fuse([0.9, -0.1], None) == [0.9, 0.0]
    assert fuse(None, [0.5, 0.0]) == [0.5, 0.0]
    assert fuse(None, None) == []
