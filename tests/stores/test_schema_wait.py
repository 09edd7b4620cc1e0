"""A service's pod waits for its schema, whoever brings it up to date and whenever."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import asyncpg
import pytest
from pydantic import SecretStr

from phronesis_postgres import PostgresSettings
from phronesis_postgres.migrate import migrate
from phronesis_postgres.schemas import newest_migration
from phronesis_postgres.wait import NotReached, wait
from tests.support.servers import PostgresServer


async def empty_database(postgres: PostgresServer) -> PostgresSettings:
    name = f"test_{uuid4().hex}"
    connection = await asyncpg.connect(postgres.dsn)
    await connection.execute(f'CREATE DATABASE "{name}"')
    await connection.close()
    return PostgresSettings(dsn=SecretStr(postgres.dsn_of(name)))


async def test_a_service_waits_until_its_schema_is_as_new_as_it_is(postgres: PostgresServer) -> None:
    settings = await empty_database(postgres)
    with pytest.raises(NotReached, match="its schema is older than it"):
        wait(settings, "instructions", limit=0)
    waiting = asyncio.create_task(asyncio.to_thread(wait, settings, "instructions", limit=50, pause=0.05))
    await asyncio.to_thread(migrate, settings, ["instructions"])
    await waiting


async def test_one_schema_brought_up_to_date_lets_no_other_service_start(postgres: PostgresServer) -> None:
    settings = await empty_database(postgres)
    await asyncio.to_thread(migrate, settings, ["instructions"])
    with pytest.raises(NotReached):
        wait(settings, "memory", limit=0)


async def test_a_newer_schema_lets_an_older_image_start(postgres: PostgresServer) -> None:
    settings = await empty_database(postgres)
    await asyncio.to_thread(migrate, settings, ["instructions"])
    connection = await asyncpg.connect(settings.dsn.get_secret_value())
    await connection.execute("COMMENT ON SCHEMA instructions IS '9999-of-a-later-release'")
    await connection.close()
    assert newest_migration("instructions") < "9999"
    wait(settings, "instructions", limit=0)


def test_a_database_that_is_away_is_waited_for() -> None:
    nowhere = PostgresSettings(dsn=SecretStr("postgresql://nobody@127.0.0.1:1/none"))
    with pytest.raises(NotReached, match="does not let it in"):
        wait(nowhere, "memory", limit=0)
