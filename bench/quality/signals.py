"""Each signal alone, the two together as the product ranks them, and other ways to join them."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from phronesis_bus import Call
from phronesis_contracts import Principal
from phronesis_contracts.memory import ItemKind, Recall
from phronesis_memory.items.handlers import ItemHandlers
from phronesis_memory.ports import Embedder, VectorIndex
from phronesis_memory.values import Audience, TextHit, VectorHit
from phronesis_memory.words.ranking import match_share
from phronesis_memory.words.store import PostgresTexts
from phronesis_postgres import Database

from .labels import Question
from .metrics import rank

KINDS = tuple(ItemKind)
MOST = 25
DEPTH = 50
"""Items that each signal hands to the fusion, as the service's settings have it."""
_CLOSEST = """
    SELECT item_id, 1 - least(
        embedding <=> $1::text::halfvec, (SELECT min(passage <=> $1::text::halfvec) FROM unnest(passages) AS passage)
    ) AS closest, 1 - (embedding <=> $1::text::halfvec) AS cosine
    FROM vectors WHERE tenant = $2"""
Join = Callable[[Sequence[float], Sequence[float]], list[float]]
"""Cosines and words' matches of all candidates to their scores."""


@dataclass
class Asked:
    """What came of one question."""

    ranks: dict[str, int | None] = field(default_factory=dict)
    milliseconds: dict[str, float] = field(default_factory=dict)


class Signals:
    """Asks questions of everything that `who` may see.

    Args:
        handlers: the memory service.
        vectors: its vector index.
        texts: its text index.
        embedder: its model.
        database: its store.
        who: the caller.
        external: the external id of each item.
    """

    def __init__(
        self,
        handlers: ItemHandlers,
        vectors: VectorIndex,
        texts: PostgresTexts,
        embedder: Embedder,
        database: Database,
        who: Principal,
        external: Mapping[str, str],
    ) -> None:
        self._handlers = handlers
        self._vectors = vectors
        self._texts = texts
        self._embedder = embedder
        self._database = database
        self._who = who
        self._audience = Audience.of(who, KINDS)
        self._external = external

    async def ask(self, question: Question) -> Asked:
        """The ranks of the first right item, and the time that each way took, the embedding of the question included."""
        asked = Asked()

        async def timed(name: str, work: Awaitable[Sequence[str]]) -> None:
            began = time.perf_counter()
            found = await work
            asked.milliseconds[name] = (time.perf_counter() - began) * 1000
            asked.ranks[name] = rank(found, question.answers)

        await timed("fused", self._recall(question.text))
        await timed("vector", self._by_vector(question.text))
        await timed("text", self._by_text(question.text))
        for name, found in (await self._joined(question.text)).items():
            asked.ranks[name] = rank(found, question.answers)
        return asked

    async def _recall(self, text: str) -> list[str]:
        request = Recall(query=text, limit=MOST, kinds=KINDS)
        found = await self._handlers.recall(Call(self._who, "orchestrator"), request)
        assert not found.degraded, found.degraded
        return [item.external_id or "" for item in found.items]

    async def _by_vector(self, text: str) -> list[str]:
        [vector] = await self._embedder.embed_queries([text])
        [near] = await self._vectors.search(self._audience, [vector], MOST)
        return self._named(near)

    async def _by_text(self, text: str) -> list[str]:
        [(_, worded)] = await self._texts.search(self._audience, [text], MOST)
        return self._named(worded)

    async def _joined(self, text: str) -> dict[str, list[str]]:
        """Items in the order of the vectors of items and passages, and the product's candidates joined in other ways."""
        [vector] = await self._embedder.embed_queries([text])
        [near] = await self._vectors.search(self._audience, [vector], DEPTH)
        [(weights, worded)] = await self._texts.search(self._audience, [text], DEPTH)
        async with self._database.connection(self._who.tenant) as connection:
            rows = await connection.fetch(_CLOSEST, str(vector.tolist()), self._who.tenant)
        closest = {str(row["item_id"]): float(row["closest"]) for row in rows}
        cosine = {str(row["item_id"]): float(row["cosine"]) for row in rows}
        ids = list(dict.fromkeys([*(hit.id for hit in near), *(hit.id for hit in worded)]))
        [scored] = await self._texts.score(self._audience, [weights], [ids])
        figures = {hit.id: hit.bm25 for hit in scored}
        match = [match_share(figures.get(id, 0.0), weights) for id in ids]
        found = {"closest": sorted(closest, key=lambda id: -closest[id])[:MOST]}
        for name, (cosines, join) in JOINS.items():
            of = closest if cosines == "closest" else cosine
            found[name] = [ids[i] for i in _best(join([of[id] for id in ids], match))]
        return {name: [self._external[id] for id in some] for name, some in found.items()}

    def _named(self, hits: Sequence[VectorHit | TextHit]) -> list[str]:
        return [self._external[hit.id] for hit in hits]


def _best(scores: Sequence[float]) -> list[int]:
    return sorted(range(len(scores)), key=lambda i: -scores[i])[:MOST]


def _stretched(values: Sequence[float]) -> list[float]:
    low, high = min(values), max(values)
    return [(value - low) / (high - low) if high > low else 1.0 for value in values]


def _halves(cosine: Sequence[float], text: Sequence[float]) -> list[float]:
    return [a + b for a, b in zip(_stretched(cosine), _stretched(text), strict=True)]


def _reciprocal(cosine: Sequence[float], text: Sequence[float]) -> list[float]:
    scores = [0.0] * len(cosine)
    for values in (cosine, text):
        for place, i in enumerate(sorted(range(len(values)), key=lambda i: -values[i]), 1):
            if values is cosine or values[i] > 0:
                scores[i] += 1 / (60 + place)
    return scores


def _powered(weight: float, power: float) -> Join:
    return lambda cosine, text: [a + weight * b**power for a, b in zip(cosine, text, strict=True)]


JOINS: dict[str, tuple[str, Join]] = {
    "vector and words, each stretched to 0..1 over the candidates, half and half": ("item", _halves),
    "vector and words, reciprocal ranks, k = 60": ("item", _reciprocal),
    "vector + 0.5 of the match": ("item", _powered(0.5, 1)),
    "vector + 1.5 of the match": ("item", _powered(1.5, 1)),
    "vector + 1.5 of the match squared": ("item", _powered(1.5, 2)),
    "nearest of vector and passages + 1.5 of the match squared (the product's)": ("closest", _powered(1.5, 2)),
    "nearest of vector and passages + 0.75 of the match squared": ("closest", _powered(0.75, 2)),
    "nearest of vector and passages + 3 of the match squared": ("closest", _powered(3.0, 2)),
}
"""By name: which cosine they take, the `item`'s or the `closest` of item and passages, and how they join it with the words."""
