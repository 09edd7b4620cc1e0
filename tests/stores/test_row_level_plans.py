"""How retrieval's statements are planned under row-level security: by the same indexes as without."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from phronesis_memory.vectors.pgvector import exact_search, hnsw_search
from phronesis_memory.words import store
from phronesis_postgres import Database, PostgresSettings
from phronesis_postgres.migrate import migrate
from tests.support.servers import PostgresServer

TENANT, OWNER = "t1", "u1"
_FILL = """
INSERT INTO items (id, tenant, owner, kind, body, content_hash, version)
SELECT gen_random_uuid(), 't' || n % 4, 'u' || n % 3, 'fact', '', '', 1 FROM generate_series(1, 12000) AS n;
INSERT INTO texts (item_id, tenant, owner, kind, family, length, terms, counts)
SELECT id, tenant, owner, kind, '', 20, (SELECT array_agg((random() * 5000)::bigint) FROM generate_series(1, 20)
    WHERE id IS NOT NULL), '' FROM items;
INSERT INTO vectors (item_id, tenant, owner, kind, family, model, dimension, embedding)
SELECT id, tenant, owner, kind, '', 'm', 384, (SELECT ('[' || string_agg((random() - 0.5)::text, ',') || ']')::halfvec
    FROM generate_series(1, 384) WHERE id IS NOT NULL) FROM items;
ANALYZE items, texts, vectors"""
_VECTOR = "[" + ",".join(["0.1"] * 384) + "]"


@pytest.fixture(scope="module")
async def where(postgres: PostgresServer) -> AsyncIterator[PostgresSettings]:
    async with postgres.fresh_schema("memory") as settings:
        async with postgres.session(settings, "memory") as owner:
            # Built over all rows at once, which takes a fraction of adding them one by one.
            [made] = await owner.fetch("SELECT indexdef FROM pg_indexes WHERE indexname = 'vectors_384'")
            await owner.execute("DROP INDEX vectors_384", timeout=60)
            await owner.execute(_FILL, timeout=120)
            await owner.execute(made["indexdef"], timeout=120)
        yield settings


@pytest.fixture
async def database(where: PostgresSettings) -> AsyncIterator[Database]:
    async with Database.open(where, "memory") as opened:
        yield opened


async def plan(database: Database, statement: str, *arguments: object, first: str | None = None) -> str:
    async with database.connection(TENANT) as connection:
        if first is not None:
            await connection.execute(first)
        return "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN {statement}", *arguments))


@pytest.mark.verify
async def test_words_are_found_by_their_index(database: Database) -> None:
    asked = (TENANT, [OWNER], ["fact"], [0], ["{17,999}"])
    found = await plan(database, store._ANY, *asked)
    assert "Bitmap Index Scan on texts_terms" in found
    assert "Seq Scan" not in found
    found = await plan(database, store._ALL, *asked, [None], [0], [100])
    assert "Bitmap Index Scan on texts_terms" in found


async def test_the_nearest_vectors_are_found_by_the_hnsw_index(database: Database) -> None:
    found = await plan(
        database, hnsw_search(384), [_VECTOR], TENANT, [OWNER], ["fact"], 20, first="SET LOCAL enable_sort = off"
    )
    assert "Index Scan using vectors_384" in found


async def test_an_exact_search_reads_its_scope_alone(database: Database) -> None:
    found = await plan(database, exact_search(1), [_VECTOR], TENANT, [OWNER], ["fact"], 20)
    assert "vectors_scope" in found
    assert "Seq Scan" not in found


async def test_the_policy_is_read_once_for_a_statement(database: Database) -> None:
    """As a function of each row it would be called for each."""
    found = await plan(database, "SELECT * FROM vectors")
    assert "Filter: ((tenant = (InitPlan 1).col1) OR ((InitPlan 2).col1 = '*'::text))" in found
    [filtered] = [line for line in (await plan(database, "SELECT * FROM items")).splitlines() if "Filter:" in line]
    assert "(owner = (InitPlan 1).col1)" in filtered
    assert "current_setting" not in filtered


async def test_a_database_that_was_restored_from_a_dump_gets_its_index_back_by_migrating(
    postgres: PostgresServer, where: PostgresSettings, database: Database
) -> None:
    """A dump does not say what is leakproof of the functions that come with the server."""
    asked = (TENANT, [OWNER], ["fact"], [0], ["{17,999}"])
    async with postgres.session(where) as owner:
        await _leaking(owner)
        assert "Seq Scan on texts" in await plan(database, store._ANY, *asked)
        await asyncio.to_thread(migrate, postgres.owner(where), ["memory"])
        assert "Bitmap Index Scan on texts_terms" in await plan(database, store._ANY, *asked)


async def _leaking(owner: asyncpg.Connection) -> None:
    for function in ("arrayoverlap", "arraycontains"):
        await owner.execute(f"ALTER FUNCTION pg_catalog.{function}(anyarray, anyarray) NOT LEAKPROOF")
