"""The searches: meaning and structure side by side, merged by node, and cut to an answer's greatest size."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import fmean
from types import MappingProxyType
from typing import TypeVar

from phronesis_contracts import BadRequest, NotFound, Principal, ServiceError
from phronesis_contracts.constitution import search
from phronesis_contracts.constitution.paths import Near, Reached, Step
from phronesis_contracts.constitution.registry import Layer
from phronesis_contracts.constitution.values import ConstitutionNode

from ..values import Vector
from ..words.analysis import count_words
from ..words.ranking import K1, Weights, fuse, idf, match_share
from .ports import NodeFilter, NodeHit
from .semantic import (
    SPARE,
    NearNode,
    PrecedentCriteria,
    SemanticFinder,
    SupportFinder,
    filter_of_request,
    fit_results,
    normalize_time,
    round_cosine,
    without_provenance,
)


def rerank_by_words(question: str, nodes: Sequence[ConstitutionNode], scores: Sequence[float]) -> list[int]:
    """The places of the nodes in their new order: by their score and the square of what their words match (`fuse`)."""
    found = [count_words(" ".join(filter(None, (node.title, node.summary, node.description)))).counts for node in nodes]
    weight = {stem: idf(len(nodes), sum(stem in counts for counts in found)) for stem in count_words(question).counts}
    total = Weights({}, sum(weight.values()), {})
    # Nodes are short texts of their own wording: their length says nothing of them (b = 0).
    bm25 = [sum(w * counts[s] * (K1 + 1) / (counts[s] + K1) for s, w in weight.items() if s in counts) for counts in found]
    fused = fuse(scores, [match_share(one, total) for one in bm25])
    return sorted(range(len(nodes)), key=lambda place: (-fused[place], place))


_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class HybridWeights:
    """What a hybrid search goes by."""

    structural: float
    semantic: float
    floor: float
    """Cosine that a node needs which no path joins to the anchor, unless `shipped` is set."""
    max_depth: int = 2
    top_k: int = 10
    rerank: bool = False
    shipped: bool = False
    """Whether nobody asked for the floor, so that it follows from the question."""


@dataclass(frozen=True)
class Candidate:
    """A node that one of the halves found."""

    id: str
    structural: float
    semantic: float
    final: float
    updated_at: datetime
    reached: Reached | None = None


def make_weights(structural: float, semantic: float, floor: float, max_depth: int, top_k: int, rerank: bool) -> HybridWeights:
    """The weights divided by their sum where that is not 1. Raises `BadRequest`: both are 0."""
    total = structural + semantic
    if total <= 0:
        raise BadRequest("one of the weights has to be above 0", field="semanticWeight")
    if abs(total - 1) > search.COSINE_ROUNDING:
        structural, semantic = structural / total, semantic / total
    return HybridWeights(structural, semantic, floor, max_depth, top_k, rerank)


def merge_halves(
    reached: Sequence[Reached],
    near: dict[str, NodeHit],
    cosines: dict[str, float],
    by: HybridWeights,
    worded: Mapping[str, NodeHit] = MappingProxyType({}),
) -> list[Candidate]:
    """One candidate for each node that a half found, best first; equals as in a semantic search.

    Args:
        reached: nodes with a path from the anchor; the floor is not for them.
        worded: nodes that hold every word of the question; it is not for them, either.
    """
    found: list[Candidate] = []
    for one in reached:
        hit = near.get(one.node.id)
        semantic = round_cosine(hit.cosine if hit else cosines.get(one.node.id, 0.0))
        found.append(_to_candidate(one.node.id, 1 / one.hops, semantic, by, one.node.updated_at or _LONG_AGO, one))
    linked = {one.node.id for one in reached}
    for id, hit in (dict(worded) | near).items():
        if id not in near:
            hit = replace(hit, cosine=cosines.get(id, 0.0))
        passes = id in worded or by.floor <= 0 or hit.cosine >= by.floor - search.COSINE_ROUNDING
        if id not in linked and passes:
            found.append(_to_candidate(id, 0.0, round_cosine(hit.cosine), by, hit.updated_at))
    return sorted(found, key=lambda one: (-one.final, -one.updated_at.timestamp(), one.id))


def _to_candidate(
    id: str, structural: float, semantic: float, by: HybridWeights, updated_at: datetime, reached: Reached | None = None
) -> Candidate:
    final = min(1.0, round(by.structural * structural + by.semantic * semantic, 6))
    return Candidate(id, structural, semantic, final, updated_at, reached)


log = logging.getLogger(__name__)
T = TypeVar("T")

STRUCTURAL = 200
"""Nodes around the anchor that are weighed, the nearest and then what changed last."""
_RERANK_FACTOR = 3
"""How many times the wanted nodes are looked at where words order them anew."""


class HybridFinder:
    """Finds nodes by meaning around an anchor."""

    def __init__(self, meaning: SemanticFinder) -> None:
        self._meaning = meaning

    async def find(
        self, who: Principal, question: str, anchor: str | None, chosen: NodeFilter, by: HybridWeights
    ) -> tuple[list[search.HybridHit], tuple[str, ...]]:
        """The nodes, best first, and the halves that failed.

        Raises `NotFound` (there is no such anchor), `ServiceError` (what the half that is needed failed with: meaning where
        there is no anchor, both where there is).
        """
        near, (vector, hits), held = await asyncio.gather(
            _result_or_error(self._near(who, anchor, chosen, by)),
            _semantic_or_error(self._semantic(who, question, chosen, by)),
            _result_or_error(self._meaning.vectors.worded(who.tenant, question, chosen, by.top_k + SPARE)),
        )
        if isinstance(near, NotFound):
            raise near
        failed = [one for one in (near, hits) if isinstance(one, ServiceError)]
        if len(failed) == 2 or (anchor is None and failed):
            raise failed[-1]
        degraded = [name for name, one in (("structural", near), ("semantic", hits)) if isinstance(one, ServiceError)]
        reached = [] if isinstance(near, ServiceError) else [one for one in near if one.node.id != anchor]
        known = {} if isinstance(hits, ServiceError) else {hit.id: hit for hit in hits if hit.id != anchor}
        worded = {} if isinstance(held, ServiceError) else {hit.id: hit for hit in held if hit.id != anchor}
        others = list(dict.fromkeys(id for id in (*(one.node.id for one in reached), *worded) if id not in known))
        cosines = await self._cosines(who.tenant, vector, others, degraded)
        if vector is not None:
            floor = await self._meaning.floors.of(who.tenant, vector, by.floor, shipped=by.shipped)
            # Around an anchor, structure orders what is found, so that the noise is floor enough.
            best = max((hit.cosine for hit in known.values()), default=0.0)
            by = replace(by, floor=floor.at(best) if anchor is None else floor.least)
        candidates = merge_halves(reached, known, cosines, by, worded)
        return await self._hydrated(who, question, candidates, chosen, by), tuple(degraded)

    async def _near(self, who: Principal, anchor: str | None, chosen: NodeFilter, by: HybridWeights) -> Sequence[Reached]:
        if anchor is None:
            return ()
        request = Near(
            id=anchor,
            max_depth=by.max_depth,
            layers=tuple(sorted(chosen.layers)),
            types=tuple(sorted(chosen.types)),
            status=chosen.lifecycle or Near.model_fields["status"].default,
            limit=STRUCTURAL,
        )
        reached = await self._meaning.structure.near(who, request)
        if chosen.topic is None or not reached:
            return reached
        of_topic = {one.id async for one in self._meaning.vectors.scan(who.tenant, _narrow_filter(chosen, reached))}
        return [one for one in reached if one.node.id in of_topic]

    async def _semantic(
        self, who: Principal, question: str, chosen: NodeFilter, by: HybridWeights
    ) -> tuple[Vector, Sequence[NodeHit]]:
        vector = await self._meaning.question(who.tenant, question)
        limit = by.top_k * (_RERANK_FACTOR if by.rerank else 1) + SPARE
        return vector, await self._meaning.vectors.nearest(who.tenant, vector, chosen, limit)

    async def _cosines(self, tenant: str, vector: Vector | None, ids: Sequence[str], degraded: list[str]) -> dict[str, float]:
        if vector is None or not ids or "semantic" in degraded:
            return {}
        found = await _result_or_error(self._meaning.vectors.cosines(tenant, vector, ids))
        if isinstance(found, ServiceError):
            degraded.append("semantic")
            return {}
        return found

    async def _hydrated(
        self, who: Principal, question: str, candidates: Sequence[Candidate], chosen: NodeFilter, by: HybridWeights
    ) -> list[search.HybridHit]:
        best = by.top_k * (_RERANK_FACTOR if by.rerank else 1)
        # A walk tells nodes by their names alone. Those beyond the best are read only in place of what has gone.
        nodes = await self._meaning.live(who, [one.id for one in candidates[:best]], chosen.lifecycle)
        if len(nodes) < min(best, len(candidates)):
            spare = [one.id for one in candidates[best : best + SPARE]]
            nodes |= await self._meaning.live(who, spare, chosen.lifecycle)
        live = [one for one in candidates if one.id in nodes]
        if by.rerank:
            order = rerank_by_words(question, [nodes[one.id] for one in live], [one.final for one in live])
            live = [live[place] for place in order]
        return [_to_hybrid_hit(one, nodes[one.id]) for one in live[: by.top_k]]


def _to_hybrid_hit(one: Candidate, node: ConstitutionNode) -> search.HybridHit:
    return search.HybridHit(
        node=without_provenance(node),
        structural_score=one.structural,
        semantic_score=one.semantic,
        final_score=one.final,
        path=_steps(one.reached) if one.reached else None,
    )


def _steps(reached: Reached) -> tuple[Step, ...]:
    """The steps from the anchor, without the anchor itself: as many as there are hops."""
    return tuple(step for step in reached.path if step.relationship is not None)


def _narrow_filter(chosen: NodeFilter, reached: Sequence[Reached]) -> NodeFilter:
    ids = frozenset(one.node.id for one in reached)
    return NodeFilter(chosen.layers, chosen.types, chosen.lifecycle, ids, chosen.topic)


async def _result_or_error(work: Awaitable[T]) -> T | ServiceError:
    try:
        return await work
    except ServiceError as error:
        log.warning("a half of a hybrid search failed: %s", error.code)
        return error


async def _semantic_or_error(
    work: Awaitable[tuple[Vector, Sequence[NodeHit]]],
) -> tuple[Vector | None, Sequence[NodeHit] | ServiceError]:
    found = await _result_or_error(work)
    return (None, found) if isinstance(found, ServiceError) else found


DEFAULT_TOKENS = 12_000
"""Tokens that insights usually stay within; an answer above it says so."""
_GOALS = NodeFilter(layers=frozenset({Layer.VISION}), types=frozenset({"goal"}))


class NodeSearch:
    """The searches of the constitutional graph. A request has its defaults filled in (`apply_defaults`)."""

    def __init__(self, meaning: SemanticFinder) -> None:
        self._meaning = meaning
        self._hybrid = HybridFinder(meaning)
        self._supports = SupportFinder(meaning)

    async def caught_up(self, tenant: str) -> int | None:
        """Wait a moment for writes that were answered before; the number of the last one (`NodeVectors.caught_up`)."""
        return await self._meaning.vectors.caught_up(tenant)

    async def semantic(self, who: Principal, request: search.SemanticSearch, *, shipped: bool = False) -> search.SemanticFound:
        chosen = await self._begun(who, request)
        vector, warnings = await asyncio.gather(
            self._meaning.question(who.tenant, request.query), self._meaning.warnings(who.tenant, chosen)
        )
        stated = _number_or_zero(request.min_similarity)
        floor = await self._meaning.floors.of(who.tenant, vector, stated, shipped=shipped)
        near = await self._meaning.near(who, vector, chosen, floor, request.top_k)
        found = (
            await self._linked(who, near)
            if request.include_relationships
            else [search.Hit(node=without_provenance(n.node), score=n.score) for n in near]
        )
        results, tokens, truncated = fit_results(found, search.SEARCH_TOKENS)
        return search.SemanticFound(
            results=results,
            stats=search.SearchStats(
                total_results=len(results), avg_score=_mean([one.score for one in results]), token_estimate=tokens
            ),
            query_embedding=_to_numbers(vector) if request.include_query_embedding else None,
            truncated=truncated,
            warnings=warnings,
        )

    async def hybrid(self, who: Principal, request: search.HybridSearch, *, shipped: bool = False) -> search.HybridFound:
        by = make_weights(
            _number_or_zero(request.structural_weight),
            _number_or_zero(request.semantic_weight),
            _number_or_zero(request.min_similarity),
            request.max_depth,
            request.top_k,
            request.rerank,
        )
        by = replace(by, shipped=shipped)
        chosen = await self._begun(who, request)
        (found, degraded), warnings = await asyncio.gather(
            self._hybrid.find(who, request.query, request.anchor_node_id, chosen, by),
            self._meaning.warnings(who.tenant, chosen),
        )
        results, tokens, truncated = fit_results(found, search.SEARCH_TOKENS)
        stats = search.HybridStats(
            total_results=len(results),
            avg_structural_score=_mean([one.structural_score for one in results]),
            avg_semantic_score=_mean([one.semantic_score for one in results]),
            token_estimate=tokens,
        )
        return search.HybridFound(results=results, stats=stats, truncated=truncated, degraded=degraded, warnings=warnings)

    async def insights(self, who: Principal, request: search.InsightSearch, *, shipped: bool = False) -> search.SupportedFound:
        least, sure = _number_or_zero(request.min_similarity), _number_or_zero(request.min_confidence)
        found = await self._supports.insights(who, request.query, least, sure, request.top_k, shipped=shipped)
        return _to_supported_found(found)

    async def precedents(
        self, who: Principal, request: search.PrecedentSearch, *, shipped: bool = False
    ) -> search.SupportedFound:
        start = normalize_time(request.start_date, "startDate")
        by = PrecedentCriteria(_number_or_zero(request.min_similarity), request.min_roi, start, request.limit, shipped)
        return _to_supported_found(await self._supports.precedents(who, request.query, by))

    async def goal(
        self, who: Principal, request: search.GoalSearch, least: float, weights: search.HybridSearch, *, shipped: bool = False
    ) -> search.GoalFound:
        """The goal that is spoken of, and what is around it. Raises `NoSuchGoal`: none is as near as the floor."""
        filter_of_request(search.Sought(query=request.query, types=request.types))
        vector = await self._meaning.question(who.tenant, request.query)
        floor = await self._meaning.floors.of(who.tenant, vector, least, shipped=shipped)
        goals = await self._meaning.near(who, vector, _GOALS, floor, 1)
        if not goals:
            raise search.NoSuchGoal("no goal matches these words", field="query")
        [goal] = goals
        around = weights.model_copy(
            update={"anchor_node_id": goal.node.id, "types": request.types, "top_k": request.top_k, "max_depth": 2}
        )
        return search.GoalFound(goal=without_provenance(goal.node), goal_score=goal.score, found=await self.hybrid(who, around))

    async def _begun(self, who: Principal, request: search.Sought) -> NodeFilter:
        chosen = filter_of_request(request, request.topic)
        if request.consistency == "strong":
            await self._meaning.vectors.settled(who.tenant)
        return chosen

    async def _linked(self, who: Principal, near: Sequence[NearNode]) -> list[search.Hit]:
        found = await self._meaning.structure.linked_nodes(who, [one.node.id for one in near])
        return [
            search.Hit(node=without_provenance(found[one.node.id][0]), score=one.score, relationships=found[one.node.id][1])
            for one in near
            if one.node.id in found
        ]


def _to_supported_found(found: Sequence[search.Supported]) -> search.SupportedFound:
    results, tokens, truncated = fit_results(found, search.SEARCH_TOKENS)
    return search.SupportedFound(
        results=results,
        stats=search.SearchStats(
            total_results=len(results), avg_score=_mean([one.score for one in results]), token_estimate=tokens
        ),
        truncated=truncated,
        warnings=(f"over the usual {DEFAULT_TOKENS} tokens",) if tokens > DEFAULT_TOKENS else (),
    )


def _number_or_zero(number: float | None) -> float:
    assert number is not None, "a request whose defaults are not filled in"
    return number


def _mean(numbers: Sequence[float]) -> float:
    """0 for none."""
    return round(fmean(numbers), 6) if numbers else 0.0


def _to_numbers(vector: Vector) -> tuple[float, ...]:
    return tuple(round(float(number), 6) for number in vector)
