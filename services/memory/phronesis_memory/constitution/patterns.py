"""What repeats: goals that failed alike, decisions that paid off alike, strategies that worked alike (O-391 to O-393)."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from phronesis_contracts import Principal
from phronesis_contracts.constitution.values import ConstitutionNode

from .clusters import OUTSIDE, Labels, alike, load
from .keywords import keywords
from .matrix import Gathered, gathered
from .outcomes import Ended, ended
from .ports import Chosen, NodeVectors
from .structure import Structure
from .supported import return_of
from .supporting import goals_of

Kind: TypeAlias = Literal["recurring_failure", "high_roi_decision", "strategy_archetype"]
KINDS: tuple[Kind, ...] = ("recurring_failure", "high_roi_decision", "strategy_archetype")
TYPE: Mapping[Kind, str] = {"recurring_failure": "goal", "high_roi_decision": "decision", "strategy_archetype": "strategy"}
"""What each kind is found among."""
ALIKE = 0.4
"""Cosine that the members of a pattern have on average; the floor from which texts speak of the same."""
_NODES = 3_000
_QUARTER = 75
"""Percentile of the returns above which one is high, where the caller names no figure."""
_TITLES: Mapping[Kind, str] = {
    "recurring_failure": "Goals that were not reached",
    "high_roi_decision": "Decisions that paid off",
    "strategy_archetype": "Strategies whose goals were reached",
}


@dataclass(frozen=True)
class Pattern:
    """What repeats, with the nodes that show it."""

    kind: Kind
    title: str
    text: str
    confidence: float
    """Laplace's rule over the nodes of its kind that are alike: (those that show it + 1) / (all + 2)."""
    nodes: tuple[ConstitutionNode, ...]
    against: int

    @property
    def ids(self) -> tuple[str, ...]:
        """The nodes that show it, in order."""
        return tuple(sorted(node.id for node in self.nodes))

    @property
    def digest(self) -> str:
        """The same for the same kind and nodes."""
        return hashlib.sha256("\n".join((self.kind, *self.ids)).encode()).hexdigest()[:24]


class Patterns:
    """Detects patterns.

    Args:
        vectors: the index.
        structure: the graph.
    """

    def __init__(self, vectors: NodeVectors, structure: Structure) -> None:
        self._vectors = vectors
        self._structure = structure

    async def detect(self, who: Principal, kinds: Sequence[Kind], min_roi: float | None) -> list[Pattern]:
        """The patterns of some kinds, the surest first."""
        found: list[Pattern] = []
        for kind in kinds:
            chosen = Chosen(types=frozenset({TYPE[kind]}), lifecycle=None)
            those = await gathered(self._vectors, who.tenant, chosen, _NODES)
            nodes = await self._structure.nodes(who, those.ids) if those.ids else {}
            shows = await self._shows(who, kind, nodes, min_roi)
            await load()
            found += await asyncio.to_thread(patterns, kind, those, nodes, shows)
        return sorted(found, key=lambda one: (-one.confidence, -len(one.nodes), one.kind, one.ids))

    async def _shows(
        self, who: Principal, kind: Kind, nodes: Mapping[str, ConstitutionNode], min_roi: float | None
    ) -> dict[str, bool]:
        """Which nodes show what is looked for (true), and which the contrary; the others say nothing."""
        if kind == "high_roi_decision":
            return high(nodes, min_roi)
        if kind == "recurring_failure":
            return _judged({id: (ended(node),) for id, node in nodes.items()}, Ended.FAILED, Ended.ACHIEVED)
        served = await goals_of(self._structure, who, tuple(nodes))
        goals = (
            await self._structure.nodes(who, sorted({goal.id for some in served.values() for goal in some})) if served else {}
        )
        ends = {id: tuple(ended(goals[goal.id]) for goal in some if goal.id in goals) for id, some in served.items()}
        return _judged(ends, Ended.ACHIEVED, Ended.FAILED)


def high(nodes: Mapping[str, ConstitutionNode], min_roi: float | None) -> dict[str, bool]:
    """By decision whose return is known, whether it is high: `min_roi` or more, or in the upper quarter and above 0."""
    returns = {id: roi for id, node in nodes.items() if (roi := return_of(node)) is not None}
    if not returns:
        return {}
    least = min_roi if min_roi is not None else float(np.percentile(list(returns.values()), _QUARTER))
    return {id: roi >= least and (min_roi is not None or roi > 0) for id, roi in returns.items()}


def patterns(kind: Kind, those: Gathered, nodes: Mapping[str, ConstitutionNode], shows: Mapping[str, bool]) -> list[Pattern]:
    """The groups of like nodes that show the same.

    Args:
        kind: what is looked for.
        those: all nodes of the type, with their vectors.
        nodes: the same, whole.
        shows: which of them show it, and which the contrary.
    """
    rows = [row for row, id in enumerate(those.ids) if shows.get(id) and id in nodes]
    others = [row for row, id in enumerate(those.ids) if shows.get(id) is False]
    labels = alike(those.points[rows], ALIKE)
    groups = {str(name): [row for row, label in zip(rows, labels, strict=True) if label == name] for name in _names(labels)}
    texts = {name: [_text(nodes[those.ids[row]]) for row in group] for name, group in groups.items()}
    # What the others of the type say is the background that the group's own words stand out from.
    background = [_text(nodes[those.ids[row]]) for row in others if those.ids[row] in nodes]
    words = keywords(texts | ({"": background} if background else {}), 5)
    return [
        _pattern(kind, [nodes[those.ids[row]] for row in group], words[name], _against(those, group, others))
        for name, group in groups.items()
    ]


def _pattern(kind: Kind, nodes: Sequence[ConstitutionNode], words: Sequence[str], against: int) -> Pattern:
    ordered = tuple(sorted(nodes, key=lambda node: node.id))
    confidence = round((len(nodes) + 1) / (len(nodes) + against + 2), 4)
    about = f": {', '.join(words)}" if words else ""
    counted = f"{len(nodes)} that are alike show it, {against} like them show the contrary."
    named = "; ".join(node.title for node in ordered)
    return Pattern(kind, f"{_TITLES[kind]}{about}"[:500], f"{_TITLES[kind]}. {counted} {named}.", confidence, ordered, against)


def _against(those: Gathered, group: Sequence[int], others: Sequence[int]) -> int:
    """How many of the others are as like the group as its members are to each other."""
    if not others:
        return 0
    return int(np.count_nonzero((those.points[others] @ those.points[group].T).mean(axis=1) >= ALIKE))


def _judged(ends: Mapping[str, Sequence[Ended]], wanted: Ended, contrary: Ended) -> dict[str, bool]:
    found = {id: True for id, some in ends.items() if wanted in some}
    return found | {id: False for id, some in ends.items() if id not in found and contrary in some}


def _names(labels: Labels) -> list[int]:
    return sorted({int(label) for label in labels if label != OUTSIDE})


def _text(node: ConstitutionNode) -> str:
    return " ".join(filter(None, (node.title, node.summary, node.description)))
