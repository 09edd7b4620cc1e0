"""How found items are ordered: BM25 and cosine, each brought to 0..1 over the candidates, half and half."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phronesis.contracts.memory import ItemKind

K1 = 0.9
"""Saturation of a word's count (measured on long conversations: best at 0.9)."""
SPEECH = frozenset({ItemKind.EPISODE, ItemKind.FACT})
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
class Row:
    """The words of one item, as a store keeps them."""

    kind: ItemKind
    length: int
    terms: npt.NDArray[np.int64]
    counts: npt.NDArray[np.uint8]


def b_of(kind: ItemKind) -> float:
    """BM25's length normalisation for a kind."""
    return 0.0 if kind in SPEECH else 0.75


def idf(items: int, holding: int) -> float:
    """The weight of a word that `holding` of `items` items hold; never negative."""
    return math.log(1 + (items - holding + 0.5) / (holding + 0.5))


def bm25(weights: Weights, rows: Sequence[Row]) -> list[tuple[float, float]]:
    """BM25 of each row, and the share of the query's weight that stands in it."""
    if not rows or not weights.idf:
        return [(0.0, 0.0)] * len(rows)
    asked = np.array(sorted(weights.idf), dtype=np.int64)
    weight = np.array([weights.idf[int(t)] for t in asked])
    owner = np.repeat(np.arange(len(rows)), [len(row.terms) for row in rows])
    terms = np.concatenate([row.terms for row in rows])
    counts = np.concatenate([row.counts for row in rows]).astype(np.float64)
    place = np.minimum(np.searchsorted(asked, terms), len(asked) - 1)
    hit = asked[place] == terms
    owner, counts, weight = owner[hit], counts[hit], weight[place[hit]]
    norm = np.array([_norm(weights, row) for row in rows])[owner]
    parts = weight * counts * (K1 + 1) / (counts + norm)
    scores = np.bincount(owner, parts, len(rows))
    shares = np.bincount(owner, weight, len(rows)) / (weights.total or 1.0)
    return [(float(score), min(1.0, float(share))) for score, share in zip(scores, shares, strict=True)]


def _norm(weights: Weights, row: Row) -> float:
    b = b_of(row.kind)
    return K1 * (1 - b + b * row.length / (weights.average.get(row.kind) or 1.0))


def min_max(values: Sequence[float]) -> list[float]:
    """The values brought to 0..1. Where all are equal there is no worse one: each is 1, or 0 if there is nothing at all."""
    if not values:
        return []
    low, high = min(values), max(values)
    if high - low <= 1e-12:
        return [1.0 if high > 0 else 0.0] * len(values)
    return [(value - low) / (high - low) for value in values]


def fuse(cosine: Sequence[float] | None, text: Sequence[float] | None) -> list[float]:
    """One score in 0..1 for each candidate: half cosine, half BM25, or the one signal that there is."""
    if cosine is None or text is None:
        return min_max(cosine if cosine is not None else text or [])
    return [(a + b) / 2 for a, b in zip(min_max(cosine), min_max(text), strict=True)]
