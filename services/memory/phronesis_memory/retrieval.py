"""Hybrid retrieval: search finds seeds, the graph adds their neighbours, the store fills in their texts (D-067)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from phronesis_contracts import Principal, ServiceError
from phronesis_contracts.memory import AugmentedMemoryContext, ContextItem, EntityType, ItemKind, Retrieve, Seed

from .domain.context import DECAY, fitted, name_of, ordered
from .domain.values import Audience, Item
from .ports import Graph, Knowledge
from .search import Candidate, Found, HybridSearch, best_of_family

log = logging.getLogger(__name__)

MOST_OF_FAMILY = 4
"""Seeds of one node, whatever year and chunk: room for its several texts, and yet not for it alone among a phrase's five."""
NEIGHBOURS = 100
"""Items that the walk may return, seeds included (D-089)."""
COVERAGE = 0.5
"""Share of a phrase's weight that an item must hold to be a seed without being near in meaning."""
_PARTS = ("vector", "text", "graph", "content")


@dataclass(frozen=True)
class _Place:
    """Where an item stands: what it scores, how far from a seed, and which phrase found it."""

    score: float
    hop: int
    phrase: str | None = None
    signals: Mapping[str, float] = field(default_factory=dict)
    """What the searches said of a seed."""


class Retrieval:
    """Answers `Retrieve`.

    Args:
        search: hybrid search.
        graph: the graph service.
        knowledge: the store of items.
        floor: the cosine below which texts are unrelated, as the embedder says (D-079).
        per_phrase: seeds of one phrase.
        most: seeds of all phrases.
        seconds: time that each stage may take.
    """

    def __init__(
        self,
        search: HybridSearch,
        graph: Graph,
        knowledge: Knowledge,
        *,
        floor: float | None,
        per_phrase: int,
        most: int,
        seconds: float,
    ) -> None:
        self._search = search
        self._graph = graph
        self._knowledge = knowledge
        self._floor = floor
        self._per_phrase = per_phrase
        self._most = most
        self._seconds = seconds

    async def retrieve(self, who: Principal, request: Retrieve) -> AugmentedMemoryContext:
        """The context for the caller's phrases. Whatever fails is named in `degraded`; what is left is still returned."""
        began = time.perf_counter()
        degraded: set[str] = set()
        seeds = await self._seeds(who, request.key_phrases, degraded)
        searched = time.perf_counter()
        context = AugmentedMemoryContext(
            user_id=who.user, key_phrases=request.key_phrases, seeds=tuple(seeds), timings_ms={"vector": _ms(began, searched)}
        )
        if not seeds:
            return context.model_copy(update={"degraded": _named(degraded)})
        types, places = await self._walk(who, seeds, request.hops, degraded)
        walked = time.perf_counter()
        items, missing = await self._hydrate(who, types, places, degraded)
        kept, dropped = fitted(ordered(items), request.budget_tokens)
        timings = context.timings_ms | {"graph": _ms(searched, walked), "content": _ms(walked, time.perf_counter())}
        return context.model_copy(
            update={
                "memory_units": _of_type(kept, EntityType.MEMORY_UNIT),
                "concepts": _of_type(kept, EntityType.CONCEPT),
                "missing_ids": tuple(missing),
                "dropped": dropped,
                "degraded": _named(degraded),
                "timings_ms": timings,
            }
        )

    async def _seeds(self, who: Principal, phrases: Sequence[str], degraded: set[str]) -> list[Seed]:
        distinct = list(dict.fromkeys(phrases))
        best: dict[str, tuple[Candidate, str]] = {}
        for phrase, found in zip(distinct, await self._found(Audience.of(who), distinct), strict=True):
            degraded |= found.degraded
            relevant = [candidate for candidate in found.candidates if self._relevant(candidate)]
            for candidate in best_of_family(relevant, MOST_OF_FAMILY)[: self._per_phrase]:
                known = best.get(candidate.id)
                if known is None or candidate.score > known[0].score:
                    best[candidate.id] = (candidate, phrase)
        ranked = sorted((candidate for candidate, _ in best.values()), key=lambda c: (-c.score, c.id))
        return [
            Seed(id=c.id, type=c.kind.entity_type, score=c.score, phrase=best[c.id][1], why=best[c.id][0].why)
            for c in best_of_family(ranked, MOST_OF_FAMILY)[: self._most]
        ]

    async def _found(self, audience: Audience, phrases: Sequence[str]) -> list[Found]:
        try:
            return await self._search.find(audience, phrases)
        except ServiceError as error:
            log.warning("the phrases could not be searched: %s", error.code)
            return [Found(degraded=frozenset({"vector", "text"}))] * len(phrases)

    def _relevant(self, candidate: Candidate) -> bool:
        if candidate.coverage >= COVERAGE:
            return True
        return candidate.cosine is not None and (self._floor is None or candidate.cosine >= self._floor)

    async def _walk(
        self, who: Principal, seeds: Sequence[Seed], hops: int, degraded: set[str]
    ) -> tuple[dict[str, str], dict[str, _Place]]:
        """The type and the place of every entity: the seeds, and what the graph found around them."""
        types: dict[str, str] = {seed.id: seed.type for seed in seeds}
        places = {seed.id: _Place(seed.score, 0, seed.phrase, seed.why) for seed in seeds}
        try:
            async with asyncio.timeout(self._seconds):
                found = await self._graph.expand(who, [seed.id for seed in seeds], hops, NEIGHBOURS)
        except (ServiceError, TimeoutError) as error:
            log.warning("the graph could not be walked: %s", getattr(error, "code", "timed_out"))
            degraded.add("graph")
            return types, places
        for neighbour in found:
            if neighbour.id not in places:
                types[neighbour.id] = neighbour.type
                places[neighbour.id] = _Place(seeds[0].score * DECAY**neighbour.hop, neighbour.hop)
        return types, places

    async def _hydrate(
        self, who: Principal, types: Mapping[str, str], places: Mapping[str, _Place], degraded: set[str]
    ) -> tuple[list[ContextItem], list[str]]:
        """The items of the places, one statement for each entity type (D-093), and the ids without an item."""
        wanted = {t: [id for id, of in types.items() if of == t and _is_uuid(id)] for t in EntityType}
        try:
            async with asyncio.timeout(self._seconds):
                batches = await asyncio.gather(
                    *(self._knowledge.items(Audience.of(who, _kinds(t)), ids) for t, ids in wanted.items() if ids)
                )
        except (ServiceError, TimeoutError) as error:
            log.warning("items could not be read: %s", getattr(error, "code", "timed_out"))
            degraded.add("content")
            return [], []
        items = {item.id: item for batch in batches for item in batch}
        missing = [id for id in types if id not in items]
        return [_context_item(items[id], place) for id, place in places.items() if id in items], missing


def _context_item(item: Item, place: _Place) -> ContextItem:
    return ContextItem(
        id=item.id,
        external_id=item.external_id,
        kind=item.kind,
        title=name_of(item.title, item.text),
        text=item.text,
        score=place.score,
        hop=place.hop,
        matched_phrase=place.phrase,
        created_at=item.created_at,
        why=_why(item, place),
    )


def _why(item: Item, place: _Place) -> dict[str, object] | None:
    """Why a fact of the user stands in a context; other items say it by their phrase and hop alone."""
    return {**place.signals, **item.metadata} if item.family.startswith("fact/") else None


def _of_type(items: Sequence[ContextItem], type: EntityType) -> tuple[ContextItem, ...]:
    return tuple(item for item in items if item.kind.entity_type is type)


def _kinds(type: EntityType) -> list[ItemKind]:
    return [kind for kind in ItemKind if kind.entity_type is type]


def _named(degraded: set[str]) -> tuple[str, ...]:
    return tuple(part for part in _PARTS if part in degraded)


def _ms(start: float, end: float) -> float:
    return round((end - start) * 1000, 3)


def _is_uuid(id: str) -> bool:
    try:
        UUID(id)
    except ValueError:
        return False
    return True
