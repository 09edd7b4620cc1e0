"""Weighing what a search found: how near it is counts most, then who said it, how sure it is, and how long ago."""

from __future__ import annotations

from datetime import datetime

from phronesis_contracts.facts import Why

from ..domain.analysis import stems
from ..search import Candidate
from .values import Kept

HALF = 90.0
"""Days after which a fact that was not said again counts half as recent."""
_RELEVANCE, _TRUST, _CONFIDENCE, _RECENCY = 0.7, 0.15, 0.1, 0.05


def why(query: str, candidate: Candidate, fact: Kept, now: datetime) -> Why:
    """What gives a fact its score.

    Args:
        query: the question.
        candidate: how the searches found it.
        fact: the fact.
        now: the time.
    """
    said = max(one.said_at for one in fact.evidence)
    age = max(0.0, (now - said).total_seconds() / 86_400)
    own = set(stems(fact.text))
    return Why(
        vector=candidate.cosine,
        text=candidate.bm25,
        words=tuple(word for word in dict.fromkeys(stems(query)) if word in own),
        relevance=round(min(1.0, max(0.0, candidate.score)), 4),
        recency=round(0.5 ** (age / HALF), 4),
        trust=fact.trust,
        confidence=fact.confidence,
    )


def score(reason: Why) -> float:
    """0 to 1: the one figure that facts are ordered by."""
    parts = (
        _RELEVANCE * reason.relevance,
        _TRUST * reason.trust,
        _CONFIDENCE * reason.confidence,
        _RECENCY * reason.recency,
    )
    return round(sum(parts), 4)
