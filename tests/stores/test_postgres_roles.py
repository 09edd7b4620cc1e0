"""What each service's role may do in a database with every service's schema, and what no table may be without."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import asyncpg
import psycopg
import pytest
from pydantic import SecretStr

from phronesis_postgres import Database, PostgresSettings
from phronesis_postgres.migrate import migrate
from phronesis_postgres.roles import RoleAbove, grant_schema, role_of
from tests.support.servers import PostgresServer

OWNERS = ("gateway", "orchestrator", "memory", "instructions")
OF_NO_TENANT = {
    "instructions.agent_profiles": "the platform's own content, the same for all",
    "instructions.instruction_bundles": "the platform's own content, the same for all",
    "instructions.instruction_elements": "the platform's own content, the same for all",
    "instructions.instruction_history": "the platform's own content, the same for all",
    "memory.constitution_schedule": "when the platform's own batches are due",
    "memory.embedding": "one row: which model's vectors these are",
    "memory.words": "counts by hash; a hash is made of tenant, owner, kind and word, and is found by who knows all four",
    "orchestrator.revoked_keys": "ids of keys, random, which a claim over all tenants looks up",
}
"""Tables that the policies leave out, each with the reason."""
ONCE_FOR_ALL = {
    "gateway.keys_hash_key": "the hash of a secret of 256 bits",
    "gateway.sessions_pkey": "the hash of a random id",
    "gateway.used_tickets_pkey": "the hash of a signed ticket",
    "orchestrator.audit_news_id_key": "the id of news: tenant, service and row",
    "orchestrator.deletions_conversation_id_key": "a row of another tenant's conversation is refused before",
    "gateway.erasures_pkey": "an id, random",
    "orchestrator.approval_grants_pkey": "an id, random",
    "orchestrator.schedules_pkey": "an id, random",
    "orchestrator.trigger_events_pkey": "a schedule's id",
    "orchestrator.task_waits_pkey": "made of a turn's id",
    "orchestrator.task_waits_pending": "a turn's id",
    "orchestrator.task_waits_turn_id_step_key": "a turn's id",
    "orchestrator.directives_pkey": "a turn's id",
    "orchestrator.journal_pkey": "a turn's id",
    "orchestrator.messages_once": "a turn's id",
    "orchestrator.messages_pkey": "a conversation's id",
    "orchestrator.turns_conversation_id_sequence_key": "a row in another tenant's conversation is refused before",
    "orchestrator.deletion_reports_pkey": "a deletion's id",
    "memory.sources_pkey": "an item's id",
    "memory.item_versions_pkey": "an item's id",
    "memory.unembedded_pkey": "an item's id",
    "memory.tool_outcomes_pkey": "an item's id",
    "memory.strategies_pkey": "an item's id",
    "memory.strategy_evidence_pkey": "an item's id",
    "memory.facts_pkey": "an id, random",
    "memory.fact_sources_pkey": "a fact's id",
    "memory.forgettings_pkey": "an id, random",
    "orchestrator.approvals_pkey": "an id, random",
    "orchestrator.approvals_pending": "a turn's id",
    "orchestrator.approvals_turn_id_step_key": "a turn's id",
    "orchestrator.ledger_pkey": "a number that the database gives",
    "orchestrator.task_states_pkey": "a turn's id",
    "orchestrator.traces_pkey": "a turn's id",
    "orchestrator.source_forgettings_pkey": "an id, random",
    "memory.links_pkey": "an item's id, of which a row of another tenant's is refused before",
    "memory.held_news_pkey": "a number that the database gives",
}
"""Unique indexes without the tenant, beside those of ids: random, or made of a hash with the tenant in it. A clash with another
tenant's row would tell that it is there, so each says why nobody can bring it about."""
_IDS = (
    "items_pkey turns_pkey conversations_pkey deletions_pkey keys_pkey outbox_pkey audit_pkey texts_pkey vectors_pkey".split()
)


@pytest.fixture(scope="module")
async def where(postgres: PostgresServer) -> AsyncIterator[PostgresSettings]:
    async with postgres.fresh_schema(*OWNERS) as settings:
        yield settings


@pytest.fixture
async def owner(postgres: PostgresServer, where: PostgresSettings) -> AsyncIterator[asyncpg.Connection]:
    async with postgres.session(where) as session:
        yield session


async def test_every_table_has_forced_policies_or_a_reason(owner: asyncpg.Connection) -> None:
    rows = await owner.fetch(
        "SELECT relnamespace::regnamespace || '.' || relname AS name, relrowsecurity AND relforcerowsecurity AS held, "
        "(SELECT array_agg(polname::text ORDER BY polname) FROM pg_policy WHERE polrelid = pg_class.oid AND polpermissive) "
        "AS policies FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace::regnamespace::text = ANY($1) "
        "AND relname !~ '^_?yoyo'",
        list(OWNERS),
    )
    held = {row["name"] for row in rows if row["held"] and row["policies"] in (["of_the_tenant"], ["of_its_parent"])}
    assert {row["name"] for row in rows} - held == set(OF_NO_TENANT)


async def test_every_policy_of_a_tenant_is_the_same_one(owner: asyncpg.Connection) -> None:
    rows = await owner.fetch(
        "SELECT DISTINCT qual, with_check, roles::text, cmd FROM pg_policies WHERE policyname = 'of_the_tenant'"
    )
    assert len(rows) == 1
    assert (rows[0]["with_check"], rows[0]["roles"], rows[0]["cmd"]) == (None, "{public}", "ALL")
    with_tenant = "SELECT count(*) FROM information_schema.columns WHERE column_name = 'tenant' AND table_schema = ANY($1)"
    policies = await owner.fetchval("SELECT count(*) FROM pg_policies WHERE policyname = 'of_the_tenant'")
    assert policies == await owner.fetchval(with_tenant, list(OWNERS))


async def test_no_view_and_no_function_works_with_rights_that_the_caller_has_not(owner: asyncpg.Connection) -> None:
    found = await owner.fetch(
        "SELECT relname FROM pg_class WHERE relkind IN ('v', 'm') AND relnamespace::regnamespace::text = ANY($1) "
        "AND NOT coalesce(reloptions @> ARRAY['security_invoker=true'], false) "
        "UNION ALL SELECT proname FROM pg_proc WHERE prosecdef AND pronamespace::regnamespace::text = ANY($2)",
        list(OWNERS),
        [*OWNERS, "public"],
    )
    assert found == []


async def test_a_unique_index_holds_the_tenant_or_what_nobody_can_guess(owner: asyncpg.Connection) -> None:
    rows = await owner.fetch(
        "SELECT schemaname || '.' || indexname AS name, indexname FROM pg_indexes WHERE schemaname = ANY($1) "
        "AND indexdef LIKE 'CREATE UNIQUE%' AND indexdef !~ '\\mtenant\\M' AND tablename !~ '^_?yoyo'",
        list(OWNERS),
    )
    of_no_tenant = {f"{table}_" for table in OF_NO_TENANT}
    found = {row["name"] for row in rows if row["indexname"] not in _IDS}
    assert {name for name in found if not name.startswith(tuple(of_no_tenant))} == set(ONCE_FOR_ALL)


@pytest.mark.req("N-214")
@pytest.mark.parametrize("service", OWNERS)
async def test_a_role_reaches_its_own_schema_and_nothing_else(owner: asyncpg.Connection, service: str) -> None:
    role = role_of(service)
    rows = await owner.fetch(
        "SELECT nspname FROM pg_namespace WHERE has_schema_privilege($1, oid, 'USAGE') AND nspname !~ '^pg_|^information'", role
    )
    assert {row["nspname"] for row in rows} == {service, "public"}
    rights = "SELECT has_schema_privilege($1, oid, 'CREATE') FROM pg_namespace"
    assert {row[0] for row in await owner.fetch(rights, role)} == {False}
    granted = await owner.fetch(
        "SELECT table_schema, privilege_type FROM information_schema.role_table_grants WHERE grantee = $1", role
    )
    assert {row["table_schema"] for row in granted} == {service}
    assert {row["privilege_type"] for row in granted} == {"SELECT", "INSERT", "UPDATE", "DELETE"}
    attributes = await owner.fetchrow(
        "SELECT rolcanlogin, rolsuper, rolbypassrls, rolcreatedb, rolcreaterole, rolreplication FROM pg_roles "
        "WHERE rolname = $1",
        role,
    )
    assert tuple(attributes) == (True, False, False, False, False, False)


async def test_a_session_of_one_service_cannot_read_anothers_tables(postgres: PostgresServer, where: PostgresSettings) -> None:
    connection = await asyncpg.connect(where.dsn.get_secret_value())
    try:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.fetch("SELECT * FROM memory.items")
    finally:
        await connection.close()


async def test_a_role_that_may_do_more_is_not_let_in(postgres: PostgresServer, where: PostgresSettings) -> None:
    service = f"strange{uuid4().hex[:8]}"
    settings = postgres.owner(where)
    with psycopg.connect(settings.dsn.get_secret_value(), autocommit=True) as guard:
        guard.execute(f"CREATE ROLE {role_of(service)} BYPASSRLS".encode())
        with pytest.raises(RoleAbove):
            grant_schema(guard, service, None)
        guard.execute(f"DROP ROLE {role_of(service)}".encode())


async def test_a_password_reaches_the_server_as_its_hash(
    postgres: PostgresServer, where: PostgresSettings, tmp_path: Path, owner: asyncpg.Connection
) -> None:
    (tmp_path / "gateway.password").write_text("secret-as-secret\n")
    settings = postgres.owner(where).model_copy(update={"roles_dir": tmp_path})
    await asyncio.to_thread(migrate, settings, ["gateway"])
    kept = await owner.fetchval("SELECT rolpassword FROM pg_authid WHERE rolname = 'phronesis_gateway'")
    assert kept.startswith("SCRAM-SHA-256$")


@pytest.fixture
async def managed(postgres: PostgresServer) -> AsyncIterator[PostgresSettings]:
    """A database whose owner is no superuser, as a provider gives it."""
    name = f"managed_{uuid4().hex}"
    async with postgres.session(PostgresSettings(dsn=SecretStr(postgres.dsn))) as session:
        await session.execute(f"CREATE ROLE {name} LOGIN CREATEROLE")
        await session.execute(f"CREATE DATABASE {name} OWNER {name}")
        settings = PostgresSettings(dsn=SecretStr(postgres.dsn_of(name, name)))
        async with postgres.session(settings) as inside:
            await inside.execute("CREATE EXTENSION vector SCHEMA public")
        try:
            yield settings
        finally:
            await session.execute(f"DROP DATABASE {name} WITH (FORCE)")
            await session.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")


async def test_an_owner_without_superuser_migrates_and_is_held_to_the_policies_too(
    managed: PostgresSettings,
) -> None:
    await asyncio.to_thread(migrate, managed, list(OWNERS))
    role = PostgresSettings(dsn=SecretStr(_as(managed, role_of("memory"))))
    async with Database.open(role, "memory") as database, database.transaction("acme") as connection:
        await connection.execute("INSERT INTO nodes (tenant, key, version) VALUES ('acme', 'n', 1)")
    session = await asyncpg.connect(managed.dsn.get_secret_value())
    try:
        assert await session.fetch("SELECT * FROM memory.nodes") == []
        assert await session.fetchval("SELECT to_regclass('memory.texts_scope')::text") == "memory.texts_scope"
    finally:
        await session.close()


def _as(where: PostgresSettings, role: str) -> str:
    address = where.dsn.get_secret_value().removeprefix("postgresql://")
    return f"postgresql://{role}@{address.partition('@')[2]}"
