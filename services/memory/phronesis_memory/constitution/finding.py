"""The searches as answers: what was found, cut to its greatest size, with its figures."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from statistics import fmean
from typing import TypeVar

from phronesis_contracts import Principal
from phronesis_contracts.constitution.kinds import Layer
from phronesis_contracts.constitution.search import (
    SEARCH_TOKENS,
    GoalFound,
    GoalSearch,
    Hit,
    HybridFound,
    HybridSearch,
    HybridStats,
    InsightSearch,
    NoSuchGoal,
    PrecedentSearch,
    SearchStats,
    SemanticFound,
    SemanticSearch,
    Sought,
    Supported,
    SupportedFound,
)

from ..domain.values import Vector
from .fitting import fitted, shown
from .hybrid import Hybrid
from .meaning import Meaning, Near, chosen_of
from .merging import weighing
from .ports import Chosen
from .supported import Precedents, Supports, day_or_time

USUAL = 12_000
"""Tokens that insights usually stay within; an answer above it says so (O-274)."""
_GOALS = Chosen(layers=frozenset({Layer.VISION}), types=frozenset({"goal"}))
T = TypeVar("T")


class Finding:
    """The searches of the constitutional graph. A request has its defaults filled in (`tuning.tuned`).

    Args:
        meaning: nodes by meaning.
    """

    def __init__(self, meaning: Meaning) -> None:
        self._meaning = meaning
        self._hybrid = Hybrid(meaning)
        self._supports = Supports(meaning)

    async def semantic(self, who: Principal, asked: SemanticSearch) -> SemanticFound:
        """Nodes by meaning (O-150 to O-168)."""
        chosen = await self._begun(who, asked)
        vector, warnings = await asyncio.gather(
            self._meaning.question(who.tenant, asked.query), self._meaning.warnings(who.tenant, chosen)
        )
        near = await self._meaning.near(who, vector, chosen, _given(asked.min_similarity), asked.top_k)
        found = (
            await self._linked(who, near)
            if asked.include_relationships
            else [Hit(node=shown(n.node), score=n.score) for n in near]
        )
        results, tokens, truncated = fitted(found, SEARCH_TOKENS)
        return SemanticFound(
            results=results,
            stats=SearchStats(
                total_results=len(results), avg_score=_mean([one.score for one in results]), token_estimate=tokens
            ),
            query_embedding=_numbers(vector) if asked.include_query_embedding else None,
            truncated=truncated,
            warnings=warnings,
        )

    async def hybrid(self, who: Principal, asked: HybridSearch) -> HybridFound:
        """Nodes by meaning and structure (O-169 to O-188)."""
        by = weighing(
            _given(asked.structural_weight),
            _given(asked.semantic_weight),
            _given(asked.min_similarity),
            asked.max_depth,
            asked.top_k,
            asked.rerank,
        )
        chosen = await self._begun(who, asked)
        (found, degraded), warnings = await asyncio.gather(
            self._hybrid.find(who, asked.query, asked.anchor_node_id, chosen, by),
            self._meaning.warnings(who.tenant, chosen),
        )
        results, tokens, truncated = fitted(found, SEARCH_TOKENS)
        stats = HybridStats(
            total_results=len(results),
            avg_structural_score=_mean([one.structural_score for one in results]),
            avg_semantic_score=_mean([one.semantic_score for one in results]),
            token_estimate=tokens,
        )
        return HybridFound(results=results, stats=stats, truncated=truncated, degraded=degraded, warnings=warnings)

    async def insights(self, who: Principal, asked: InsightSearch) -> SupportedFound:
        """Insights and patterns with their evidence (O-271 to O-274)."""
        floor, sure = _given(asked.min_similarity), _given(asked.min_confidence)
        return _supported(await self._supports.insights(who, asked.query, floor, sure, asked.top_k))

    async def precedents(self, who: Principal, asked: PrecedentSearch) -> SupportedFound:
        """Decisions like the one described, with their outcomes (O-281 to O-283)."""
        start = day_or_time(asked.start_date, "startDate")
        by = Precedents(_given(asked.min_similarity), asked.min_roi, start, asked.limit)
        return _supported(await self._supports.precedents(who, asked.query, by))

    async def goal(self, who: Principal, asked: GoalSearch, floor: float, weights: HybridSearch) -> GoalFound:
        """The goal that is spoken of, and what is around it (O-285 to O-288).

        Raises:
            NoSuchGoal: no goal is as near as the floor; nothing further is searched.
        """
        chosen_of(Sought(query=asked.query, types=asked.types))
        vector = await self._meaning.question(who.tenant, asked.query)
        goals = await self._meaning.near(who, vector, _GOALS, floor, 1)
        if not goals:
            raise NoSuchGoal("no goal matches these words", field="query")
        [goal] = goals
        around = weights.model_copy(
            update={"anchor_node_id": goal.node.id, "types": asked.types, "top_k": asked.top_k, "max_depth": 2}
        )
        return GoalFound(goal=shown(goal.node), goal_score=goal.score, found=await self.hybrid(who, around))

    async def _begun(self, who: Principal, asked: Sought) -> Chosen:
        chosen = chosen_of(asked, asked.topic)
        if asked.consistency == "strong":
            await self._meaning.vectors.settled(who.tenant)
        return chosen

    async def _linked(self, who: Principal, near: Sequence[Near]) -> list[Hit]:
        found = await self._meaning.structure.linked_nodes(who, [one.node.id for one in near])
        return [
            Hit(node=shown(found[one.node.id][0]), score=one.score, relationships=found[one.node.id][1])
            for one in near
            if one.node.id in found
        ]


def _supported(found: Sequence[Supported]) -> SupportedFound:
    results, tokens, truncated = fitted(found, SEARCH_TOKENS)
    return SupportedFound(
        results=results,
        stats=SearchStats(total_results=len(results), avg_score=_mean([one.score for one in results]), token_estimate=tokens),
        truncated=truncated,
        warnings=(f"over the usual {USUAL} tokens",) if tokens > USUAL else (),
    )


def _given(number: float | None) -> float:
    assert number is not None, "a request whose defaults are not filled in"
    return number


def _mean(numbers: Sequence[float]) -> float:
    """0 for none (C-40)."""
    return round(fmean(numbers), 6) if numbers else 0.0


def _numbers(vector: Vector) -> tuple[float, ...]:
    return tuple(round(float(number), 6) for number in vector)
