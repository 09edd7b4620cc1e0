"""BM25 in Postgres: an index over the items' words finds candidates, and exact figures are computed over those."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import asyncpg
import numpy as np
import numpy.typing as npt

from phronesis_contracts.memory import ItemKind
from phronesis_postgres import Connection, Database

from ..values import Audience, TextHit
from .analysis import stems, term_number
from .ranking import Rows, Weights, bm25, idf

BUDGET = 1_000
"""Rows whose words are read for one search. Beyond it, words that many items hold choose no candidates; they still count
in the figures of those that rarer words, or vectors, have chosen."""
_WORDS = 32
"""Different stems of a query that are looked at: the first ones."""

_INSIDE = "tenant = $1 AND owner = ANY($2::text[]) AND kind = ANY($3::text[])"
# One row for all items, with their figures packed: thousands of rows would cost more to decode than to find.
_PACKED = """string_agg(uuid_send(item_id), ''::bytea) AS ids, array_agg(family) AS families,
        string_agg(int4send(array_position($3::text[], kind)), ''::bytea) AS kinds,
        string_agg(int4send(length), ''::bytea) AS lengths,
        string_agg(int4send(cardinality(terms)), ''::bytea) AS sizes,
        string_agg(substr(array_send(terms), 21), ''::bytea) AS terms,
        string_agg(counts, ''::bytea) AS counts"""
# For each query a search of its own in one statement; a query stands in it by its number.
_ANY = f"""
    WITH asked AS MATERIALIZED (SELECT n, terms::bigint[] AS terms FROM unnest($4::int[], $5::text[]) AS given (n, terms))
    SELECT n, packed.* FROM asked, LATERAL (
        SELECT {_PACKED} FROM (SELECT * FROM texts WHERE {_INSIDE} AND terms && asked.terms LIMIT {BUDGET}) found
    ) packed"""  # noqa: S608
# Steps of a query are taken in their order, while there is room for what they find.
_ALL = f"""
    WITH asked AS MATERIALIZED (
        SELECT n, step, terms::bigint[] AS terms, without::bigint[] AS without
        FROM unnest($4::int[], $5::text[], $6::text[]) WITH ORDINALITY AS given (n, terms, without, step)
    )
    SELECT n, packed.* FROM unnest($7::int[], $8::int[]) AS query (n, room), LATERAL (
        SELECT {_PACKED} FROM (
            SELECT step, held.* FROM asked, LATERAL (
                SELECT * FROM texts WHERE {_INSIDE} AND terms @> asked.terms AND (terms @> asked.without) IS NOT TRUE
                LIMIT query.room
            ) held WHERE asked.n = query.n LIMIT query.room
        ) found GROUP BY step ORDER BY step
    ) packed"""  # noqa: S608
# The offset has each item looked up by its id: with old statistics the planner walks all texts, and that for each of them.
_THESE = f"""
    SELECT n, {_PACKED} FROM unnest($4::int[], $5::uuid[]) AS wanted (n, id), LATERAL (
        SELECT * FROM texts WHERE item_id = id AND {_INSIDE} OFFSET 0
    ) found GROUP BY n"""  # noqa: S608
# How large the scopes are, and in how many items each word stands.
_SIZES = f"""
    SELECT owner, kind, items, words, NULL::bigint AS term FROM scopes WHERE {_INSIDE} AND items > 0
    UNION ALL SELECT NULL, NULL, items, NULL, term FROM words WHERE term = ANY($4::bigint[])"""  # noqa: S608
_ID = 16
"""Bytes of an item's id."""
_ELEMENT = np.dtype([("size", ">i4"), ("term", ">i8")])
"""An element of an array as the wire carries it; 20 bytes stand before the first."""


@dataclass(frozen=True)
class _Query:
    """A query's terms inside one audience."""

    weights: Weights
    scopes: tuple[tuple[tuple[int, int], ...], ...]
    """For each scope its terms as (items holding it, term), rarest first."""


class PostgresTexts:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def search(self, audience: Audience, queries: Sequence[str], limit: int) -> list[tuple[Weights, list[TextHit]]]:
        asked = [list(dict.fromkeys(stems(query)))[:_WORDS] for query in queries]
        if not any(asked):
            return [(Weights({}, 0.0, {}), []) for _ in queries]
        async with self._database.connection(audience.tenant) as connection:
            found = await _weigh_queries(connection, audience, asked)
            batches = await _candidates(connection, audience, found)
        return [(one.weights, _best(audience, one.weights, of_one, limit)) for one, of_one in zip(found, batches, strict=True)]

    async def score(self, audience: Audience, weights: Sequence[Weights], ids: Sequence[Sequence[str]]) -> list[list[TextHit]]:
        wanted = [(n, id) for n, of_query in enumerate(ids) for id in of_query]
        async with self._database.connection(audience.tenant) as connection:
            rows = await connection.fetch(_THESE, *_filters(audience), [n for n, _ in wanted], [id for _, id in wanted])
        batches = {row["n"]: row for row in rows}
        return [
            _hits(audience, of_query, batches.get(n), len(some))
            for n, (of_query, some) in enumerate(zip(weights, ids, strict=True))
        ]


async def _weigh_queries(connection: Connection, audience: Audience, asked: list[list[str]]) -> list[_Query]:
    known = sorted({stem for of_query in asked for stem in of_query})
    all_scopes = [(owner, kind) for owner in audience.owners for kind in audience.kinds]
    terms = {(*scope, stem): term_number(audience.tenant, *scope, stem) for scope in all_scopes for stem in known}
    rows = await connection.fetch(_SIZES, *_filters(audience), list(terms.values()))
    sizes = [row for row in rows if row["term"] is None]
    holding = {row["term"]: row["items"] for row in rows if row["term"] is not None}
    items, averages = sum(row["items"] for row in sizes), _averages(sizes)
    scopes = [(row["owner"], row["kind"]) for row in sizes]

    def weighed(stems: list[str]) -> _Query:
        of_scopes = [[terms[*scope, stem] for stem in stems] for scope in scopes]
        weight = [idf(items, sum(holding.get(t, 0) for t in same)) for same in zip(*of_scopes, strict=True)]
        idfs = {t: weight[i] for of_scope in of_scopes for i, t in enumerate(of_scope) if t in holding}
        ranked = tuple(tuple(sorted((holding[t], t) for t in of_scope if t in holding)) for of_scope in of_scopes)
        return _Query(Weights(idfs, sum(weight), averages), ranked)

    return [weighed(of_query) for of_query in asked]


async def _candidates(connection: Connection, audience: Audience, queries: list[_Query]) -> list[list[asyncpg.Record]]:
    """For each query items of the rarest words first, while they fit the budget; in scopes where even the rarest word is
    common, the items that hold the two or three rarest of them together, and then some that hold the rarest."""
    filters = _filters(audience)
    batches: list[list[asyncpg.Record]] = [[] for _ in queries]
    picked = [_choose_terms(query.scopes) for query in queries]

    async def more(statement: str, *arguments: object) -> None:
        for row in await connection.fetch(statement, *filters, *arguments):
            if row["ids"]:
                batches[row["n"]].append(row)

    if chosen := [(n, _array_literal(terms)) for n, (terms, _) in enumerate(picked) if terms]:
        # The budget is a sum over words, so that nothing is cut short here.
        await more(_ANY, *_columns(chosen))
    room = [BUDGET - sum(len(row["ids"]) // _ID for row in of_query) for of_query in batches]
    steps = [
        (n, _array_literal(terms[:together]), _array_literal(terms[: together + 1]) if together < min(3, len(terms)) else None)
        for n, (_, crowded) in enumerate(picked)
        for terms in crowded
        for together in range(min(3, len(terms)), 0, -1)
        if room[n] > 0
    ]
    if steps:
        await more(_ALL, *_columns(steps), *_columns(list(enumerate(room))))
    return batches


def _choose_terms(scopes: Collection[tuple[tuple[int, int], ...]]) -> tuple[list[int], list[list[int]]]:
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


def _best(audience: Audience, weights: Weights, batches: Sequence[asyncpg.Record], limit: int) -> list[TextHit]:
    hits = [hit for batch in batches for hit in _hits(audience, weights, batch, limit)]
    return sorted(hits, key=lambda hit: (-hit.bm25, hit.id))[:limit]


def _hits(audience: Audience, weights: Weights, batch: asyncpg.Record | None, limit: int) -> list[TextHit]:
    if batch is None or not batch["ids"]:
        return []
    rows = Rows(
        audience.kinds,
        _unpack_numbers(batch["kinds"]) - 1,
        _unpack_numbers(batch["lengths"]),
        _unpack_numbers(batch["sizes"]),
        np.frombuffer(batch["terms"], dtype=_ELEMENT)["term"].astype(np.int64),
        np.frombuffer(batch["counts"], dtype=np.uint8),
    )
    scores, shares = bm25(weights, rows)
    best = np.argsort(-scores, kind="stable")[:limit].tolist()
    ids = [str(UUID(bytes=batch["ids"][_ID * i : _ID * (i + 1)])) for i in best]
    return [
        TextHit(id, audience.kinds[rows.kind[i]], float(scores[i]), float(shares[i]), batch["families"][i])
        for id, i in zip(ids, best, strict=True)
    ]


def _unpack_numbers(packed: bytes) -> npt.NDArray[np.int64]:
    return np.frombuffer(packed, dtype=">i4").astype(np.int64)


def _filters(audience: Audience) -> tuple[str, list[str], list[ItemKind]]:
    return audience.tenant, list(audience.owners), list(audience.kinds)


def _columns(rows: Sequence[tuple[object, ...]]) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _array_literal(terms: Sequence[int]) -> str:
    return "{" + ",".join(map(str, terms)) + "}"
