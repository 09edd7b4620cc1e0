"""Nodes by meaning: a question's vector, what is near to it, and the nodes themselves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from phronesis_contracts import BadRequest, Principal, ServiceError, Unavailable
from phronesis_contracts.constitution import similarity
from phronesis_contracts.constitution import values as contract
from phronesis_contracts.constitution.kinds import Layer, Lifecycle, lifecycle
from phronesis_contracts.constitution.registry import node_type, of_layer
from phronesis_contracts.constitution.search import EmbeddingUnavailable
from phronesis_contracts.constitution.values import ConstitutionNode

from ..cache import QueryVectors
from ..domain.values import Vector
from .ports import Chosen, NodeHit, NodeVectors
from .structure import Structure

log = logging.getLogger(__name__)

SPARE = 8
"""Hits beyond the limit that are looked at: for those whose node has gone, and for the order of equals at the cut."""
LOOKED_AT = 100
"""Nearest nodes that are read where a figure of theirs decides, which is no filter of the index."""
_READ = 40
"""Of these, how many are read at once."""
FILLING = "the index is being filled"
"""How the warning begins that results may be missing for now."""


@dataclass(frozen=True)
class Near:
    """A node and its cosine, from 0 to 1."""

    node: ConstitutionNode
    score: float


class Meaning:
    """Finds nodes by meaning.

    Args:
        vectors: the index.
        structure: the graph, which the nodes themselves come from.
        queries: the vectors of questions.
        seconds: time that the vector of a question may take.
    """

    def __init__(self, vectors: NodeVectors, structure: Structure, queries: QueryVectors, seconds: float = 4.0) -> None:
        self.vectors = vectors
        self.structure = structure
        self._queries = queries
        self._seconds = seconds

    async def question(self, tenant: str, text: str) -> Vector:
        """The vector of a question, by one call of the model at most (O-164).

        Raises:
            EmbeddingUnavailable: the model does not answer, and the question is not kept from before (O-168).
        """
        try:
            async with asyncio.timeout(self._seconds):
                return (await self._queries.of(tenant, [text]))[text]
        except (Unavailable, TimeoutError, KeyError) as error:
            log.warning("a question could not be embedded: %s", getattr(error, "code", type(error).__name__))
            raise EmbeddingUnavailable("the question cannot be embedded now", retry_after=1) from error

    async def near(
        self,
        who: Principal,
        vector: Vector,
        chosen: Chosen,
        floor: float,
        limit: int,
        fits: Callable[[ConstitutionNode], bool] | None = None,
    ) -> list[Near]:
        """The chosen nodes of a floor or above, best first; of equals the one changed last, then by id (O-160).

        Args:
            who: the caller.
            vector: what is asked.
            chosen: filters of the index.
            floor: the cosine that is needed; 0 is no floor.
            limit: nodes at most.
            fits: what a node has to be as well, where the index cannot say that: the nearest `LOOKED_AT` are asked for it.
        """
        most = limit + SPARE if fits is None else max(LOOKED_AT, limit)
        hits = ranked(await self.vectors.nearest(who.tenant, vector, chosen, most), floor)
        found: list[Near] = []
        step = limit if fits is None else max(_READ, limit)
        for at in range(0, len(hits), step):
            part = hits[at : at + step]
            nodes = await self.live(who, [hit.id for hit in part], chosen.lifecycle)
            there = [hit for hit in part if hit.id in nodes and (fits is None or fits(nodes[hit.id]))]
            found += [Near(nodes[hit.id], share(hit.cosine)) for hit in there]
            if len(found) >= limit:
                break
        return found[:limit]

    async def live(self, who: Principal, ids: Sequence[str], wanted: Lifecycle | None) -> dict[str, ConstitutionNode]:
        """The nodes as the graph has them; hits whose node has gone, or is in another status by now, are left out (O-166)."""
        found = await self.structure.nodes(who, ids) if ids else {}
        live = {id: node for id, node in found.items() if wanted is None or lifecycle(node.status or "") is wanted}
        if stale := [id for id in ids if id not in live]:
            log.info("stale hits of the index: %s", ", ".join(stale))
        return live

    async def warnings(self, tenant: str, chosen: Chosen) -> tuple[str, ...]:
        """What a caller should know of the index: it is being filled (O-361), or part of the choice is never in it (O-086)."""
        found = [_never(chosen)] if _never(chosen) else []
        try:
            filling = sorted(await self.vectors.populating(tenant))
        except ServiceError as error:
            log.warning("the state of the index is not known: %s", error.code)
            return tuple(found)
        if lacking := [layer for layer in filling if not chosen.layers or layer in chosen.layers]:
            found.append(f"{FILLING} ({', '.join(lacking)}): results may be missing")
        return tuple(found)


def chosen_of(asked: contract.Chosen, topic: str | None = None) -> Chosen:
    """The filters of a request.

    Raises:
        BadRequest: there is no such type.
    """
    types: set[str] = set()
    for given in asked.types:
        kind = node_type(given)
        if kind is None:
            raise BadRequest(f"there is no type {given!r}; schema.inventory.v1 lists them", field="types")
        types.add(kind.name)
    return Chosen(frozenset(asked.layers), frozenset(types), asked.status, topic=topic)


def ranked(hits: Sequence[NodeHit], floor: float) -> list[NodeHit]:
    """Hits of the floor or above in their order; a floor of 0 is none, since a cosine may be below it."""
    passed = [hit for hit in hits if floor <= 0 or hit.cosine >= floor - similarity.ROUNDING]
    return sorted(passed, key=lambda hit: (-share(hit.cosine), -hit.updated_at.timestamp(), hit.id))


def share(cosine: float) -> float:
    """A cosine as it is told: 0 to 1 (O-157), and six digits, so that equals are equal on both stores."""
    return round(min(1.0, max(0.0, cosine)), 6)


def _never(chosen: Chosen) -> str:
    asked = [kind for layer in chosen.layers or tuple(Layer) for kind in of_layer(layer)]
    named = chosen.types or (frozenset(kind.name for kind in asked) if chosen.layers else frozenset())
    never = [kind.name for kind in asked if kind.name in named and kind.tier is None]
    return f"never embedded, and so not found by meaning: {', '.join(never)}" if never else ""
