"""Meaning and structure together: both halves are asked at once, and merged by node (C-42)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from phronesis_contracts import NotFound, Principal, ServiceError
from phronesis_contracts.constitution.paths import Near, Reached, Step
from phronesis_contracts.constitution.search import HybridHit
from phronesis_contracts.constitution.values import ConstitutionNode

from ..domain.values import Vector
from .fitting import shown
from .meaning import SPARE, Meaning
from .merging import Candidate, Weighing, merged
from .ports import Chosen, NodeHit
from .words import reranked

log = logging.getLogger(__name__)
T = TypeVar("T")

STRUCTURAL = 200
"""Nodes around the anchor that are weighed, the nearest and then what changed last (C-60)."""
_RERANKED = 3
"""How many times the wanted nodes are looked at where words order them anew."""


class Hybrid:
    """Finds nodes by meaning around an anchor."""

    def __init__(self, meaning: Meaning) -> None:
        self._meaning = meaning

    async def find(
        self, who: Principal, question: str, anchor: str | None, chosen: Chosen, by: Weighing
    ) -> tuple[list[HybridHit], tuple[str, ...]]:
        """The nodes, best first, and the halves that failed.

        Raises:
            NotFound: there is no such anchor.
            ServiceError: what the half that is needed failed with: meaning where there is no anchor, both where there is.
        """
        near, (vector, hits) = await asyncio.gather(
            _half(self._near(who, anchor, chosen, by)), _semantic(self._semantic(who, question, chosen, by))
        )
        if isinstance(near, NotFound):
            raise near
        failed = [one for one in (near, hits) if isinstance(one, ServiceError)]
        if len(failed) == 2 or (anchor is None and failed):
            raise failed[-1]
        degraded = [name for name, one in (("structural", near), ("semantic", hits)) if isinstance(one, ServiceError)]
        reached = [] if isinstance(near, ServiceError) else [one for one in near if one.node.id != anchor]
        known = {} if isinstance(hits, ServiceError) else {hit.id: hit for hit in hits if hit.id != anchor}
        others = [one.node.id for one in reached if one.node.id not in known]
        cosines = await self._cosines(who.tenant, vector, others, degraded)
        candidates = merged(reached, known, cosines, by)
        return await self._hydrated(who, question, candidates, chosen, by), tuple(degraded)

    async def _near(self, who: Principal, anchor: str | None, chosen: Chosen, by: Weighing) -> Sequence[Reached]:
        if anchor is None:
            return ()
        asked = Near(
            id=anchor,
            max_depth=by.max_depth,
            layers=tuple(sorted(chosen.layers)),
            types=tuple(sorted(chosen.types)),
            status=chosen.lifecycle or Near.model_fields["status"].default,
            limit=STRUCTURAL,
        )
        reached = await self._meaning.structure.near(who, asked)
        if chosen.topic is None or not reached:
            return reached
        of_topic = {one.id async for one in self._meaning.vectors.scan(who.tenant, _among(chosen, reached))}
        return [one for one in reached if one.node.id in of_topic]

    async def _semantic(self, who: Principal, question: str, chosen: Chosen, by: Weighing) -> tuple[Vector, Sequence[NodeHit]]:
        vector = await self._meaning.question(who.tenant, question)
        limit = by.top_k * (_RERANKED if by.rerank else 1) + SPARE
        return vector, await self._meaning.vectors.nearest(who.tenant, vector, chosen, limit)

    async def _cosines(self, tenant: str, vector: Vector | None, ids: Sequence[str], degraded: list[str]) -> dict[str, float]:
        if vector is None or not ids or "semantic" in degraded:
            return {}
        found = await _half(self._meaning.vectors.cosines(tenant, vector, ids))
        if isinstance(found, ServiceError):
            degraded.append("semantic")
            return {}
        return found

    async def _hydrated(
        self, who: Principal, question: str, candidates: Sequence[Candidate], chosen: Chosen, by: Weighing
    ) -> list[HybridHit]:
        best = by.top_k * (_RERANKED if by.rerank else 1)
        # A walk tells nodes by their names alone. Those beyond the best are read only in place of what has gone.
        nodes = await self._meaning.live(who, [one.id for one in candidates[:best]], chosen.lifecycle)
        if len(nodes) < min(best, len(candidates)):
            spare = [one.id for one in candidates[best : best + SPARE]]
            nodes |= await self._meaning.live(who, spare, chosen.lifecycle)
        live = [one for one in candidates if one.id in nodes]
        if by.rerank:
            order = reranked(question, [nodes[one.id] for one in live], [one.final for one in live])
            live = [live[place] for place in order]
        return [_hit(one, nodes[one.id]) for one in live[: by.top_k]]


def _hit(one: Candidate, node: ConstitutionNode) -> HybridHit:
    return HybridHit(
        node=shown(node),
        structural_score=one.structural,
        semantic_score=one.semantic,
        final_score=one.final,
        path=_steps(one.reached) if one.reached else None,
    )


def _steps(reached: Reached) -> tuple[Step, ...]:
    """The steps from the anchor, without the anchor itself: as many as there are hops (O-177)."""
    return tuple(step for step in reached.path if step.relationship is not None)


def _among(chosen: Chosen, reached: Sequence[Reached]) -> Chosen:
    ids = frozenset(one.node.id for one in reached)
    return Chosen(chosen.layers, chosen.types, chosen.lifecycle, ids, chosen.topic)


async def _half(work: Awaitable[T]) -> T | ServiceError:
    try:
        return await work
    except ServiceError as error:
        log.warning("a half of a hybrid search failed: %s", error.code)
        return error


async def _semantic(
    work: Awaitable[tuple[Vector, Sequence[NodeHit]]],
) -> tuple[Vector | None, Sequence[NodeHit] | ServiceError]:
    found = await _half(work)
    return (None, found) if isinstance(found, ServiceError) else found
