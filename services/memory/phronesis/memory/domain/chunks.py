"""Cutting long texts, at the ends of sentences where that is possible."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from .values import Vector

WORDS = 160
"""Words of a chunk at most: with a title before them they fit the local model's 256 tokens."""
_MOST = 24
"""Chunks of one item that its vector is made of; 20,000 characters are about as many."""
_SENTENCE = re.compile(r"(?<=[.!?;])\s+")


def chunks(text: str, limit: int = WORDS) -> list[str]:
    """`text` in pieces of at most `limit` words, in order; every word is in exactly one piece."""
    pieces: list[str] = []
    current: list[str] = []
    for sentence in _SENTENCE.split(text):
        words = sentence.split()
        while words:
            if current and len(current) + len(words) > limit:
                pieces.append(" ".join(current))
                current = []
            current += words[: limit - len(current)]
            words = words[limit:] if len(words) > limit else []
            if len(current) == limit:
                pieces.append(" ".join(current))
                current = []
    if current:
        pieces.append(" ".join(current))
    return pieces


def pieces(title: str | None, text: str) -> list[str]:
    """What is embedded for an item: its text in chunks, each after the title, so that it is found by it."""
    found = chunks(text)[:_MOST] or [""]
    return [f"{title}. {piece}" if title else piece for piece in found]


def pooled(vectors: Sequence[Vector]) -> Vector:
    """One vector of length 1 for all pieces of an item: their mean."""
    mean: Vector = np.mean(np.stack(vectors), axis=0, dtype=np.float32)
    return mean / np.float32(max(float(np.linalg.norm(mean)), 1e-12))
