"""Quotation marks, and slips of the pen in known words."""

from __future__ import annotations

from difflib import get_close_matches

from .lexicon import phrases
from .naming import quoted
from .reading import Reading


def with_quotes(reading: Reading, text: str) -> Reading:
    """The reading in which words in quotation marks are a name and nothing else."""
    spans = [(text.find(part), text.find(part) + len(part)) for part in quoted(text)]
    inside = {n for n, piece in enumerate(reading.pieces) for start, end in spans if start <= piece.start and piece.end <= end}
    kept = tuple(item for item in reading.items if not set(range(item.at, item.end)) & inside)
    return Reading(reading.pieces, kept, tuple(sorted({*reading.left, *inside})))


def spelt(reading: Reading) -> Reading:
    """The reading with slips of the pen in known words put right."""
    words = [key[0] for key in phrases() if len(key) == 1 and len(key[0]) > 5]
    for at in reading.left:
        said = reading.pieces[at].folded
        near = get_close_matches(said, words, n=1, cutoff=0.88) if len(said) > 5 else []
        if near and near[0][0] == said[0]:
            reading = reading.explaining(at, phrases()[(near[0],)][0])
    return reading
