"""Which strategies were for which goals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from phronesis_contracts import Principal
from phronesis_contracts.constitution.values import Mention

from .structure import Structure

FOR_A_GOAL = ("SERVES", "ALIGNS_WITH")
"""Relationships that lead from a strategy to its goal (O-070, O-071)."""


async def goals_of(structure: Structure, who: Principal, strategies: Sequence[str]) -> dict[str, tuple[Mention, ...]]:
    """By strategy the goals that it serves or aligns with, whatever their status."""
    found: defaultdict[str, dict[str, Mention]] = defaultdict(dict)
    for relationship in FOR_A_GOAL if strategies else ():
        for strategy, goals in (await structure.ends(who, strategies, relationship, ("goal",))).items():
            found[strategy] |= {goal.id: goal for goal in goals}
    return {strategy: tuple(goals.values()) for strategy, goals in found.items()}
