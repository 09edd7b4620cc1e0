"""How well the words of a question stand in the texts that were found for it, for ordering the best anew."""

from __future__ import annotations

from collections.abc import Sequence

from phronesis_contracts.constitution.values import ConstitutionNode

from ..domain.analysis import words
from ..domain.ranking import K1, Weights, fuse, idf, matched


def reranked(question: str, nodes: Sequence[ConstitutionNode], scores: Sequence[float]) -> list[int]:
    """The places of the nodes in their new order: by their score and the square of what their words match (`fuse`).

    Args:
        question: the words.
        nodes: what was found.
        scores: 0 to 1, of each.
    """
    found = [words(" ".join(filter(None, (node.title, node.summary, node.description)))).counts for node in nodes]
    weight = {stem: idf(len(nodes), sum(stem in counts for counts in found)) for stem in words(question).counts}
    total = Weights({}, sum(weight.values()), {})
    # Nodes are short texts of their own wording: their length says nothing of them (b = 0).
    bm25 = [sum(w * counts[s] * (K1 + 1) / (counts[s] + K1) for s, w in weight.items() if s in counts) for counts in found]
    fused = fuse(scores, [matched(one, total) for one in bm25])
    return sorted(range(len(nodes)), key=lambda place: (-fused[place], place))
