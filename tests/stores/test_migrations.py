"""Migrations go forward and back with data in place: what both versions know stays, and the way makes no difference."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, TypeAlias
from uuid import uuid4

import asyncpg
import pytest
from pydantic import SecretStr

from phronesis_postgres import PostgresSettings
from phronesis_postgres.migrate import go_back, losses, migrate
from phronesis_postgres.schemas import Schema, UnknownMigration
from tests.stores.migration_rows import REMOVED_BY_GOING_BACK, ROWS
from tests.support.personas import Persona
from tests.support.servers import PostgresServer

pytestmark = pytest.mark.verify

Rows: TypeAlias = dict[str, list[dict[str, Any]]]

_COLUMNS = """
SELECT table_name, column_name, data_type, udt_name, is_nullable, column_default, is_identity FROM information_schema.columns
WHERE table_schema = $1::text AND table_name !~ 'yoyo' ORDER BY table_name, ordinal_position"""
_THINGS = """
SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE connamespace = $1::text::regnamespace AND conrelid::regclass::text !~ 'yoyo' AND contype <> 'n'
UNION ALL SELECT 'index', tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = $1::text AND tablename !~ 'yoyo'
UNION ALL SELECT 'policy', tablename, policyname, concat_ws(' ', permissive, roles, cmd, qual, with_check) FROM pg_policies
WHERE schemaname = $1::text
UNION ALL SELECT 'relation', relname, relkind::text, concat_ws(' ', relrowsecurity, relforcerowsecurity, reloptions,
    (SELECT string_agg(one::text, ',' ORDER BY one::text) FROM unnest(relacl) AS one))
FROM pg_class WHERE relnamespace = $1::text::regnamespace AND relname !~ 'yoyo'
UNION ALL SELECT 'trigger', tgrelid::regclass::text, tgname, pg_get_triggerdef(pg_trigger.oid) FROM pg_trigger
JOIN pg_class ON pg_class.oid = tgrelid WHERE relnamespace = $1::text::regnamespace AND NOT tgisinternal
UNION ALL SELECT 'function', proname, '', pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = $1::text::regnamespace
ORDER BY 1, 2, 3"""


class Walk:
    """One service's schema in a database of its own, moved step by step."""

    def __init__(self, settings: PostgresSettings, service: str, connection: asyncpg.Connection) -> None:
        self.settings = settings
        self.service = service
        self.connection = connection

    async def up(self, to: str | None = None) -> None:
        await asyncio.to_thread(self._move, "up", to)

    async def down(self, to: str | None) -> None:
        await asyncio.to_thread(self._move, "down", to)

    def _move(self, way: str, to: str | None) -> None:
        with Schema.open(self.settings, self.service) as schema:
            getattr(schema, way)(to)

    async def shape(self) -> list[tuple[Any, ...]]:
        """Everything that the catalog says of the schema."""
        found = [*await self.connection.fetch(_COLUMNS, self.service), *await self.connection.fetch(_THINGS, self.service)]
        return [tuple(row) for row in found]

    async def rows(self, but: dict[str, str] | None = None) -> Rows:
        """Every row of every table, as JSON; `but` has conditions of rows that are left out."""
        tables = await self.connection.fetch(
            "SELECT tablename FROM pg_tables WHERE schemaname = $1::text AND tablename !~ 'yoyo' ORDER BY 1", self.service
        )
        found: Rows = {}
        for (table,) in tables:
            where = f"WHERE NOT ({but[table]})" if but and table in but else ""
            rows = await self.connection.fetch(f'SELECT to_jsonb(t) AS row FROM "{table}" AS t {where} ORDER BY t::text')
            found[table] = [row["row"] for row in rows]
        return found


@pytest.fixture(params=sorted(ROWS))
async def walk(postgres: PostgresServer, request: pytest.FixtureRequest) -> AsyncIterator[Walk]:
    service = str(request.param)
    name = f"walk_{uuid4().hex}"
    async with postgres.session(PostgresSettings(dsn=SecretStr(postgres.dsn))) as session:
        await session.execute(f'CREATE DATABASE "{name}"')
        settings = PostgresSettings(dsn=SecretStr(postgres.dsn_of(name)))
        try:
            async with postgres.session(settings, service) as connection:
                await connection.set_type_codec("jsonb", schema="pg_catalog", encoder=json.dumps, decoder=json.loads)
                await connection.execute(f"CREATE EXTENSION vector SCHEMA public; CREATE SCHEMA {service}")
                yield Walk(settings, service, connection)
        finally:
            await session.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def known_to_both(rows: Rows, other: Rows) -> Rows:
    """The rows of tables that `other` has too, with its columns; a table without rows there says nothing of its columns."""
    kept: Rows = {}
    for table in rows.keys() & other.keys():
        columns = rows[table][0].keys() & other[table][0].keys() if rows[table] and other[table] else set()
        kept[table] = sorted(({name: row[name] for name in columns} for row in rows[table]), key=str)
    return kept


async def test_each_migration_goes_back_and_forward_with_data_in_place(walk: Walk) -> None:
    (before, seed), *later = ROWS[walk.service].items()
    await walk.up(before)
    await walk.connection.execute(seed)
    shapes = {before: await walk.shape()}
    for id, seed in later:
        await walk.up(id)
        await walk.connection.execute(seed)
        shapes[id], full = await walk.shape(), await walk.rows()
        stays = await walk.rows(REMOVED_BY_GOING_BACK.get(id))
        await walk.down(before)
        assert await walk.shape() == shapes[before]
        back = await walk.rows()
        assert known_to_both(back, full) == known_to_both(stays, back)
        await walk.up(id)
        assert await walk.shape() == shapes[id]
        again = await walk.rows()
        assert known_to_both(again, back) == known_to_both(back, again)
        before = id


async def test_all_the_way_back_leaves_nothing_and_forward_again_is_the_straight_way(walk: Walk) -> None:
    await asyncio.to_thread(migrate, walk.settings, [walk.service])
    straight = await walk.shape()
    await walk.down(None)
    assert await walk.shape() == []
    await asyncio.to_thread(migrate, walk.settings, [walk.service])
    assert await walk.shape() == straight


async def test_every_migration_has_a_way_back_that_says_what_it_loses(walk: Walk) -> None:
    await walk.up()
    first, *others = ROWS[walk.service]
    told = await asyncio.to_thread(losses, walk.settings, walk.service, first)
    assert [line.partition(":")[0] for line in told] == list(reversed(others))
    assert all("Loses" in line for line in told)
    await asyncio.to_thread(go_back, walk.settings, walk.service, first)
    assert await asyncio.to_thread(losses, walk.settings, walk.service, first) == []
    with pytest.raises(UnknownMigration):
        await asyncio.to_thread(go_back, walk.settings, walk.service, "0099-nowhere")


@pytest.mark.parametrize("walk", ["gateway"], indirect=True)
async def test_every_stored_key_becomes_the_key_of_an_administrator_or_of_a_member_with_one_agent(walk: Walk) -> None:
    await walk.up("0003-tenants")
    words = [persona.value for persona in Persona]
    await walk.connection.execute(
        'INSERT INTO keys (id, tenant, "user", role, hash, prefix) '
        "SELECT gen_random_uuid(), 'acme', role, role, sha256(role::bytea), 'phr_' FROM unnest($1::text[]) AS role",
        words,
    )
    await walk.up("0005-roles")
    query = "SELECT role, access, agents FROM keys ORDER BY role"
    stated = [(one.value, one.rights["role"].value, list(one.rights["agents"])) for one in sorted(Persona)]
    assert [tuple(row) for row in await walk.connection.fetch(query)] == stated
    await walk.down("0003-tenants")
    assert [row["role"] for row in await walk.connection.fetch("SELECT role FROM keys ORDER BY role")] == sorted(words)


@pytest.mark.parametrize("walk", ["gateway"], indirect=True)
async def test_going_back_leaves_no_key_with_more_rights_than_it_had(walk: Walk) -> None:
    await walk.up("0005-roles")
    rights = [("admin", "owner", ()), ("maestro", "member", ("maestro", "noor")), ("noor", "reader", ("noor",))]
    await walk.connection.executemany(
        'INSERT INTO keys (id, tenant, "user", role, access, agents, hash, prefix) '
        "VALUES (gen_random_uuid(), 'acme', 'ann', $1, $2, $3, sha256($1::text::bytea), 'phr_')",
        rights,
    )
    await walk.down("0003-tenants")
    assert [row["role"] for row in await walk.connection.fetch("SELECT role FROM keys ORDER BY role")] == [
        "admin",
        "maestro",
        "noor",
    ]
