"""How found items are ordered: by cosine, and by the square of how well the words match."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phronesis_contracts.memory import ItemKind

K1 = 0.9
"""Saturation of a word's count (measured on long conversations: best at 0.9)."""
TEXT = 1.5
"""Weight of the words' square beside the cosine's 1. Squared, a word or two in common count for little, and a question's
whole wording for more than any cosine (docs/generated/recall-quality.md)."""
SPEECH = frozenset({ItemKind.EPISODE, ItemKind.FACT, ItemKind.MESSAGE})
"""Kinds whose length says nothing of their relevance (b = 0); all others are documents (b = 0.75)."""


@dataclass(frozen=True)
class Weights:
    """How the words of one query weigh in one audience."""

    idf: Mapping[int, float]
    """By term; terms of several scopes that stand for the same stem weigh the same."""
    total: float
    """What all stems of the query weigh together, those that stand nowhere included."""
    average: Mapping[ItemKind, float]
    """Mean length of an item, in words."""


@dataclass(frozen=True)
class Rows:
    """The words of some items, one after the other: a few thousand items are scored at once, and have to be quick."""

    kinds: Sequence[ItemKind]
    """The kinds there are."""
    kind: npt.NDArray[np.int64]
    """Of each item, its place in `kinds`."""
    lengths: npt.NDArray[np.int64]
    """Of each item, its words, repeated ones included."""
    sizes: npt.NDArray[np.int64]
    """Of each item, how many of the terms are its own."""
    terms: npt.NDArray[np.int64]
    counts: npt.NDArray[np.uint8]
    """How often each term stands in its item."""


def length_weight(kind: ItemKind) -> float:
    """BM25's length normalisation for a kind."""
    return 0.0 if kind in SPEECH else 0.75


def idf(items: int, holding: int) -> float:
    """The weight of a word that `holding` of `items` items hold; never negative."""
    return math.log(1 + (items - holding + 0.5) / (holding + 0.5))


def bm25(weights: Weights, rows: Rows) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """BM25 of each item, and the share of the query's weight that stands in it."""
    items = len(rows.sizes)
    if not items or not weights.idf:
        return np.zeros(items), np.zeros(items)
    terms = np.array(sorted(weights.idf), dtype=np.int64)
    weight = np.array([weights.idf[int(t)] for t in terms])
    place = np.minimum(np.searchsorted(terms, rows.terms), len(terms) - 1)
    hit = np.flatnonzero(terms[place] == rows.terms)
    item = np.repeat(np.arange(items), rows.sizes)[hit]
    found, counts = weight[place[hit]], rows.counts[hit].astype(np.float64)
    parts = found * counts * (K1 + 1) / (counts + _norms(weights, rows)[item])
    scores = np.bincount(item, parts, items).astype(np.float64)
    shares = np.bincount(item, found, items).astype(np.float64) / (weights.total or 1.0)
    return scores, np.minimum(shares, 1.0)


def _norms(weights: Weights, rows: Rows) -> npt.NDArray[np.float64]:
    b = np.array([length_weight(kind) for kind in rows.kinds])[rows.kind]
    average = np.array([weights.average.get(kind) or 1.0 for kind in rows.kinds])[rows.kind]
    norms: npt.NDArray[np.float64] = K1 * (1 - b + b * rows.lengths / average)
    return norms


def match_share(text: float, weights: Weights) -> float:
    """BM25 as a share, in 0..1, of what an item would have that says nothing but the query's words, over and over."""
    return min(1.0, text / ((K1 + 1) * weights.total)) if weights.total > 0 else 0.0


def fuse(cosine: Sequence[float] | None, text: Sequence[float] | None) -> list[float]:
    """One score in 0..1 for each candidate, or the one signal that there is.

    Neither signal is stretched over the candidates: the best of poor matches stays poor, and a question that shares no
    words with its answer is left to the vectors.

    Args:
        cosine: the cosines; below 0 counts as 0.
    """
    near = None if cosine is None else [min(1.0, max(0.0, value)) for value in cosine]
    if near is None or text is None:
        return near if near is not None else list(text or [])
    return [(a + TEXT * b * b) / (1 + TEXT) for a, b in zip(near, text, strict=True)]
