"""The measure of likeness: raw cosine, everywhere. The seed's thresholds are translated here, once.

The seed states them for an index whose score is (1 + cosine) / 2 (C-38); what is stored, compared and told here is the cosine.
"""

from __future__ import annotations


def cosine(index_score: float) -> float:
    """The cosine that an index score of the seed stands for: 2s - 1."""
    return round(2 * index_score - 1, 6)


SEMANTIC = cosine(0.7)
"""Floor of a semantic search (O-154): 0.4."""
GOAL = cosine(0.8)
"""Floor for the goal that somebody speaks of (O-285): 0.6."""
HYBRID = cosine(0.65)
"""Floor for what no path joins to the anchor (O-175): 0.3."""
EXECUTION = cosine(0.65)
"""Floor of a search in the execution layer (O-263): 0.3."""
PRECEDENT = cosine(0.6)
"""Floor for precedents (O-281): 0.2."""
INSIGHT = cosine(0.7)
"""Floor for insights (O-271): 0.4."""
DUPLICATE = 0.9
"""Cosine above which two nodes are called near-duplicates (O-413); stated as a cosine in the seed."""
UNRELATED = 0.4
"""Cosine below which unrelated texts stay (O-414); stated as a cosine in the seed."""
DRIFT = 0.1
"""1 - cosine of an old and a new vector above which a node has drifted (O-320)."""
ROUNDING = 1e-6
"""How far below a floor a score may be by rounding alone (O-159)."""
