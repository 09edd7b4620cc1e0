"""What stores know to be forgotten outlives a restore: rows of another installation are marked to be forgotten again."""

from __future__ import annotations

from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg

from phronesis_operations.restore import find_forgotten, forget_again
from phronesis_postgres import EVERY_TENANT, Database, PostgresSettings
from tests.support.servers import PostgresServer

_ERASED = (
    "INSERT INTO gateway.erasures (id, tenant, user_id, requested_by, completed_at) VALUES ($1, 'acme', 'bob', 'root', now())"
)
_INSERT = "INSERT INTO forgettings (id, tenant, owner, ids, turns, conversation_id) VALUES ($1, 'acme', 'ann', $2, $3, 'c1')"


def database_of(settings: PostgresSettings) -> str:
    return urlsplit(settings.dsn.get_secret_value()).path.strip("/")


async def test_what_an_older_archive_does_not_know_is_marked_once(postgres: PostgresServer) -> None:
    async with postgres.fresh_schema("memory", "gateway", "orchestrator") as where, Database.open(where, "memory") as database:
        async with database.transaction(EVERY_TENANT) as connection:
            await connection.execute(_INSERT, uuid4(), ["f1"], ["t1"])
        owner = await asyncpg.connect(postgres.dsn_of(database_of(where)))
        try:
            await owner.execute(_ERASED, uuid4())
            known = await find_forgotten(owner)
            await owner.execute("DELETE FROM memory.forgettings")
            assert (await forget_again(owner, known), await forget_again(owner, known)) == (1, 0)
            await owner.execute("DELETE FROM gateway.erasures")
            assert (await forget_again(owner, known), await forget_again(owner, known)) == (1, 0)
            row = await owner.fetchrow("SELECT ids, turns, conversation_id, again FROM memory.forgettings")
            assert row is not None
            assert tuple(row) == (["f1"], ["t1"], "c1", True)
            row = await owner.fetchrow("SELECT tenant, user_id, requested_by, completed_at, before FROM gateway.erasures")
            assert row is not None
            assert tuple(row) == ("acme", "bob", "root", None, "{}")
        finally:
            await owner.close()
