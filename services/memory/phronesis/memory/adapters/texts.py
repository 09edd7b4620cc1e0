"""BM25 in Postgres: an index over the items' words finds candidates, and exact figures are computed over those."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import asyncpg
import numpy as np
import numpy.typing as npt

from phronesis.contracts.memory import ItemKind
from phronesis.postgres import Connection, Database

from ..domain.analysis import stems, term
from ..domain.ranking import Rows, Weights, bm25, idf
from ..domain.values import Audience, TextHit

BUDGET = 1_000
"""Rows whose words are read for one search. Beyond it, words that many items hold choose no candidates; they still count
in the figures of those that rarer words, or vectors, have chosen."""
_WORDS = 32
"""Different stems of a query that are looked at: the first ones."""

_INSIDE = "tenant = $1 AND owner = ANY($2::text[]) AND kind = ANY($3::text[])"
# One row for all items, with their figures packed: thousands of rows would cost more to decode than to find.
_PACKED = """
    SELECT array_agg(item_id) AS ids, array_agg(family) AS families,
        string_agg(int4send(array_position($3::text[], kind)), ''::bytea) AS kinds,
        string_agg(int4send(length), ''::bytea) AS lengths,
        string_agg(int4send(cardinality(terms)), ''::bytea) AS sizes,
        string_agg(substr(array_send(terms), 21), ''::bytea) AS terms,
        string_agg(counts, ''::bytea) AS counts
    FROM ({some}) found"""
_SOME = f"SELECT * FROM texts WHERE {_INSIDE} AND "  # noqa: S608
_ANY = _PACKED.format(some=_SOME + "terms && $4::bigint[] LIMIT $5")
_ALL = _PACKED.format(some=_SOME + "terms @> $4::bigint[] AND item_id <> ALL($6::uuid[]) LIMIT $5")
_THESE = _PACKED.format(some=_SOME + "item_id = ANY($4::uuid[])")
_SIZES = f"SELECT owner, kind, items, words FROM scopes WHERE {_INSIDE} AND items > 0"  # noqa: S608
_HOLDING = "SELECT term, items FROM words WHERE term = ANY($1::bigint[])"
_ELEMENT = np.dtype([("size", ">i4"), ("term", ">i8")])
"""An element of an array as the wire carries it; 20 bytes stand before the first."""


@dataclass(frozen=True)
class _Query:
    """A query's terms inside one audience."""

    weights: Weights
    scopes: tuple[tuple[tuple[int, int], ...], ...]
    """For each scope its terms as (items holding it, term), rarest first."""


class PostgresTexts:
    """`TextIndex` on the tables `texts`, `words` and `scopes`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def search(self, audience: Audience, query: str, limit: int) -> tuple[Weights, list[TextHit]]:
        """See `TextIndex`."""
        asked = list(dict.fromkeys(stems(query)))[:_WORDS]
        if not asked:
            return Weights({}, 0.0, {}), []
        async with self._database.connection() as connection:
            found = await _weigh(connection, audience, asked)
            batches = await _candidates(connection, audience, found)
        hits = [hit for batch in batches for hit in _hits(audience, found.weights, batch, limit)]
        return found.weights, sorted(hits, key=lambda hit: (-hit.bm25, hit.id))[:limit]

    async def score(self, audience: Audience, weights: Weights, ids: Sequence[str]) -> list[TextHit]:
        """See `TextIndex`."""
        async with self._database.connection() as connection:
            batch = await connection.fetchrow(_THESE, *_filters(audience), list(ids))
        return _hits(audience, weights, batch, len(ids))


async def _weigh(connection: Connection, audience: Audience, asked: list[str]) -> _Query:
    sizes = await connection.fetch(_SIZES, *_filters(audience))
    scopes = [(row["owner"], row["kind"]) for row in sizes]
    terms = {scope: [term(audience.tenant, *scope, stem) for stem in asked] for scope in scopes}
    flat = [t for of_scope in terms.values() for t in of_scope]
    holding = {row["term"]: row["items"] for row in await connection.fetch(_HOLDING, flat)} if flat else {}
    items = sum(row["items"] for row in sizes)
    weight = [idf(items, sum(holding.get(of_scope[i], 0) for of_scope in terms.values())) for i in range(len(asked))]
    weights = Weights(
        {t: weight[i] for of_scope in terms.values() for i, t in enumerate(of_scope) if t in holding},
        sum(weight),
        _averages(sizes),
    )
    ranked = tuple(tuple(sorted((holding[t], t) for t in of_scope if t in holding)) for of_scope in terms.values())
    return _Query(weights, ranked)


async def _candidates(connection: Connection, audience: Audience, query: _Query) -> list[asyncpg.Record]:
    """Items of the rarest words first, while they fit the budget; in scopes where even the rarest word is common, the
    items that hold the two or three rarest of them together, and then some that hold the rarest."""
    filters = _filters(audience)
    chosen, crowded = _chosen(query.scopes)
    batches: list[asyncpg.Record] = []
    seen: list[Any] = []

    async def more(statement: str, terms: list[int], *others: object) -> None:
        batch = await connection.fetchrow(statement, *filters, terms, BUDGET - len(seen), *others)
        if batch is not None and batch["ids"]:
            batches.append(batch)
            seen.extend(batch["ids"])

    if chosen:
        # The budget is a sum over words, so that nothing is cut short here.
        await more(_ANY, chosen)
    for terms in crowded:
        for together in range(min(3, len(terms)), 0, -1):
            if len(seen) < BUDGET:
                await more(_ALL, terms[:together], seen)
    return batches


def _chosen(scopes: Collection[tuple[tuple[int, int], ...]]) -> tuple[list[int], list[list[int]]]:
    left = BUDGET
    chosen: list[int] = []
    crowded: list[list[int]] = []
    taken: set[int] = set()
    for holding, t, scope in sorted((h, t, i) for i, of_scope in enumerate(scopes) for h, t in of_scope):
        if holding <= left:
            left -= holding
            chosen.append(t)
            taken.add(scope)
    for i, of_scope in enumerate(scopes):
        if of_scope and i not in taken:
            crowded.append([t for _, t in of_scope])
    return chosen, crowded


def _averages(sizes: Sequence[asyncpg.Record]) -> Mapping[ItemKind, float]:
    items: dict[ItemKind, int] = {}
    words: dict[ItemKind, int] = {}
    for row in sizes:
        kind = ItemKind(row["kind"])
        items[kind] = items.get(kind, 0) + row["items"]
        words[kind] = words.get(kind, 0) + row["words"]
    return {kind: words[kind] / items[kind] for kind in items}


def _hits(audience: Audience, weights: Weights, batch: asyncpg.Record | None, limit: int) -> list[TextHit]:
    """The best of a batch."""
    if batch is None or not batch["ids"]:
        return []
    rows = Rows(
        audience.kinds,
        _numbers(batch["kinds"]) - 1,
        _numbers(batch["lengths"]),
        _numbers(batch["sizes"]),
        np.frombuffer(batch["terms"], dtype=_ELEMENT)["term"].astype(np.int64),
        np.frombuffer(batch["counts"], dtype=np.uint8),
    )
    scores, shares = bm25(weights, rows)
    best = np.argsort(-scores, kind="stable")[:limit]
    return [
        TextHit(str(batch["ids"][i]), audience.kinds[rows.kind[i]], float(scores[i]), float(shares[i]), batch["families"][i])
        for i in best.tolist()
    ]


def _numbers(packed: bytes) -> npt.NDArray[np.int64]:
    return np.frombuffer(packed, dtype=">i4").astype(np.int64)


def _filters(audience: Audience) -> tuple[str, list[str], list[ItemKind]]:
    return audience.tenant, list(audience.owners), list(audience.kinds)
