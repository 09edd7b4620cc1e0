"""BM25 in Postgres: an index over the items' words finds candidates, and exact figures are computed over those."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import asyncpg
import numpy as np

from phronesis.contracts.memory import ItemKind
from phronesis.postgres import Connection, Database

from ..domain.analysis import stems, term
from ..domain.ranking import Row, Weights, bm25, idf
from ..domain.values import Audience, TextHit

BUDGET = 2_000
"""Rows whose words are read for one search. Beyond it, words that many items hold choose no candidates; they still count
in the figures of those that rarer words, or vectors, have chosen."""
_WORDS = 32
"""Different stems of a query that are looked at: the first ones."""

_COLUMNS = "item_id, kind, family, length, array_send(terms) AS terms, counts"
_INSIDE = "tenant = $1 AND owner = ANY($2::text[]) AND kind = ANY($3::text[])"
_ANY = f"SELECT {_COLUMNS} FROM texts WHERE {_INSIDE} AND terms && $4::bigint[] LIMIT $5"  # noqa: S608
_ALL = f"SELECT {_COLUMNS} FROM texts WHERE {_INSIDE} AND terms @> $4::bigint[] LIMIT $5"  # noqa: S608
_THESE = f"SELECT {_COLUMNS} FROM texts WHERE {_INSIDE} AND item_id = ANY($4::uuid[])"  # noqa: S608
_SIZES = f"SELECT owner, kind, items, words FROM scopes WHERE {_INSIDE} AND items > 0"  # noqa: S608
_HOLDING = "SELECT term, items FROM words WHERE term = ANY($1::bigint[])"
_ELEMENT = np.dtype([("size", ">i4"), ("term", ">i8")])
_HEADER = 20
"""Bytes before the elements of a one-dimensional array, as the wire carries it."""


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
            rows = await _candidates(connection, audience, found)
        hits = sorted(_hits(found.weights, rows), key=lambda hit: (-hit.bm25, hit.id))
        return found.weights, hits[:limit]

    async def score(self, audience: Audience, weights: Weights, ids: Sequence[str]) -> list[TextHit]:
        """See `TextIndex`."""
        async with self._database.connection() as connection:
            rows = await connection.fetch(_THESE, *_filters(audience), list(ids))
        return _hits(weights, rows)


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
    rows: dict[Any, asyncpg.Record] = {}
    if chosen:
        # The budget is a sum over words, so it is never cut short here.
        rows |= _by_id(await connection.fetch(_ANY, *filters, chosen, BUDGET))
    for terms in crowded:
        together = min(3, len(terms))
        while together and len(rows) < BUDGET:
            rows |= _by_id(await connection.fetch(_ALL, *filters, terms[:together], BUDGET - len(rows)))
            together -= 1
    return list(rows.values())


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


def _hits(weights: Weights, rows: Sequence[asyncpg.Record]) -> list[TextHit]:
    figures = bm25(weights, [_row(row) for row in rows])
    return [
        TextHit(str(row["item_id"]), ItemKind(row["kind"]), score, share, row["family"])
        for row, (score, share) in zip(rows, figures, strict=True)
    ]


def _row(record: asyncpg.Record) -> Row:
    terms = np.frombuffer(record["terms"][_HEADER:], dtype=_ELEMENT)["term"].astype(np.int64)
    return Row(ItemKind(record["kind"]), record["length"], terms, np.frombuffer(record["counts"], dtype=np.uint8))


def _by_id(rows: Sequence[asyncpg.Record]) -> dict[Any, asyncpg.Record]:
    return {row["item_id"]: row for row in rows}


def _filters(audience: Audience) -> tuple[str, list[str], list[ItemKind]]:
    return audience.tenant, list(audience.owners), list(audience.kinds)
