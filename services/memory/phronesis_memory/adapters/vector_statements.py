"""The statements of the vector index. Each takes several asked vectors, as texts in `$1`."""

from __future__ import annotations

from functools import cache

# The asked vectors are read once each, and not for each row.
_ASKED = """
    WITH asked AS MATERIALIZED (
        SELECT n, vector::halfvec AS vector FROM unnest($1::text[]) WITH ORDINALITY AS given (vector, n)
    )"""
SIMILARITY = f"""{_ASKED}
    SELECT n, item_id, 1 - least(
        embedding <=> asked.vector, (SELECT min(passage <=> asked.vector) FROM unnest(passages) AS passage)
    ) AS cosine FROM unnest($5::int[], $6::uuid[]) AS wanted (n, id) JOIN asked USING (n) JOIN vectors ON item_id = id
    WHERE tenant = $2 AND owner = ANY($3::text[]) AND kind = ANY($4::text[])"""  # noqa: S608
SIZE = """
    SELECT count(*) FROM (
        SELECT FROM vectors WHERE tenant = $1 AND owner = $2 AND kind = ANY($3::text[]) LIMIT $4
    ) counted"""
PAGE = """
    SELECT item_id, tenant, owner, kind, family, embedding::text, passages::text[] FROM vectors
    WHERE item_id > $1 ORDER BY item_id LIMIT $2"""
UPSERT = """
    INSERT INTO vectors (item_id, tenant, owner, kind, family, model, dimension, embedding, passages)
    SELECT e.id, e.tenant, e.owner, e.kind, e.family, $7, $8, e.embedding::halfvec, e.passages::halfvec[]
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $9::text[])
        AS e (id, tenant, owner, kind, family, embedding, passages)
    ON CONFLICT (item_id) DO UPDATE SET kind = excluded.kind, family = excluded.family, model = excluded.model,
        dimension = excluded.dimension, embedding = excluded.embedding, passages = excluded.passages
    WHERE vectors.tenant = excluded.tenant AND vectors.owner = excluded.owner"""
# Without sorting, only the index that yields rows in order of distance is left. All of it ends with the transaction.
PREFER_HNSW = """
    SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', $1, true),
        set_config('hnsw.max_scan_tuples', $2, true), set_config('enable_sort', 'off', true)"""


@cache
def exact(vectors: int) -> str:
    """An exact search by so many vectors. Their distances are computed side by side: to read a row costs many times more.

    The sums keep the planner from the HNSW index, whose filter comes after its limit.
    """
    every = range(1, vectors + 1)
    distances = ", ".join(f"(embedding <=> (SELECT ($1::text[])[{n}]::halfvec)) + 0.0 AS d{n}" for n in every)
    nearest = " UNION ALL ".join(
        f"(SELECT {n} AS n, item_id, kind, family, 1 - d{n} AS cosine FROM near ORDER BY d{n} LIMIT $5)"  # noqa: S608
        for n in every
    )
    return f"""
    WITH near AS (
        SELECT item_id, kind, family, {distances} FROM vectors
        WHERE tenant = $2 AND owner = ANY($3::text[]) AND kind = ANY($4::text[])
    ) {nearest}"""  # noqa: S608


def nearest(dimension: int) -> str:
    """A search by the HNSW index of a dimension, in one owner's scope."""
    vector = f"halfvec({dimension})"
    return f"""{_ASKED}
    SELECT n, item_id, kind, family, 1 - distance AS cosine FROM asked, LATERAL (
        SELECT item_id, kind, family, embedding::{vector} <=> asked.vector AS distance FROM vectors
        WHERE dimension = {dimension} AND tenant = $2 AND owner = $3 AND kind = ANY($4::text[])
        ORDER BY embedding::{vector} <=> asked.vector LIMIT $5
    ) found"""  # noqa: S608
