"""Cutting long texts, at the ends of sentences where that is possible."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ..values import Vector

WORDS = 160
"""Words of a chunk at most: with a title before them they fit the local model's 256 tokens."""
_MOST = 24
"""Chunks of one item that its vector is made of; 20,000 characters are about as many."""
_LINE = re.compile(r"(?<=[.!?;])\s+|\n")
_PASSAGE = 10
"""Words that a passage has at least, but the last one, which has five."""
_REST = 5
_PASSAGE_MOST = 60
_PASSAGES = 12
"""Passages of an item, and words of a passage, that are looked at."""
_SENTENCE = re.compile(r"(?<=[.!?;])\s+")


def split_chunks(text: str, limit: int = WORDS) -> list[str]:
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


def split_pieces(title: str | None, text: str) -> list[str]:
    """What is embedded for an item: its text in chunks, each after the title, so that it is found by it."""
    found = split_chunks(text)[:_MOST] or [""]
    return [f"{title}. {piece}" if title else piece for piece in found]


def split_passages(title: str | None, text: str) -> list[str]:
    """The passages of an item, each after the title: sentences, short ones joined. None where it is one passage."""
    found: list[list[str]] = []
    for sentence in _LINE.split(text):
        words = sentence.split()
        if found and len(found[-1]) < _PASSAGE:
            found[-1] += words
        elif words:
            found.append(words)
    if len(found) > 1 and len(found[-1]) < _REST:
        rest = found.pop()
        found[-1] += rest
    cut = [" ".join(words[:_PASSAGE_MOST]) for words in found[:_PASSAGES]]
    return [f"{title}. {passage}" if title else passage for passage in cut] if len(cut) > 1 else []


def pool(vectors: Sequence[Vector]) -> Vector:
    """One vector of length 1 for all pieces of an item: their mean."""
    mean: Vector = np.mean(np.stack(vectors), axis=0, dtype=np.float32)
    return mean / np.float32(max(float(np.linalg.norm(mean)), 1e-12))
