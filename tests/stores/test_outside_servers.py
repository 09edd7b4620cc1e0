"""Outside servers on a real Postgres: of one tenant, audited, and with their headers encrypted."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from uuid import uuid4

import asyncpg
import pytest
from pydantic import SecretStr

from phronesis_bus import Call
from phronesis_contracts import Conflict, KeyReused, NotFound, Principal, Risk
from phronesis_contracts.outside import (
    AcceptedTool,
    AcceptTools,
    AddServer,
    AllowTool,
    JudgeTools,
    ServerRef,
    SwitchServer,
    UnknownServer,
)
from phronesis_orchestrator.outside_tools.ports import secrets_owner
from phronesis_orchestrator.outside_tools.store import PostgresServers
from phronesis_orchestrator.sessions.store import AesSeal
from phronesis_postgres import Database, PostgresSettings
from tests.support.personas import Persona
from tests.support.servers import PostgresServer

SEAL = AesSeal(SecretStr("a long enough key of somebody"))
SERVER = AddServer(
    name="weather", url="https://tools.example/mcp/private-path", secret_headers={"Authorization": "Bearer sesame"}
)


@pytest.fixture
async def where(postgres: PostgresServer) -> AsyncIterator[PostgresSettings]:
    async with postgres.fresh_schema("orchestrator") as settings:
        yield settings


@pytest.fixture
async def database(where: PostgresSettings) -> AsyncIterator[Database]:
    async with Database.open(where, "orchestrator") as opened:
        yield opened


@pytest.fixture
def store(database: Database) -> PostgresServers:
    return PostgresServers(database)


def root(tenant: str = "", key: str | None = None) -> Call:
    return Call(Principal(tenant=tenant or f"t-{uuid4().hex[:8]}", user="root", **Persona.ADMIN.rights), "gateway", key)


def tool(name: str, risk: Risk = Risk.LOW) -> AcceptedTool:
    return AcceptedTool(
        name=name,
        description="The weather.",
        parameters={"type": "object", "properties": {"city": {"type": "string"}}},
        pin="a" * 64,
        risk=risk,
        idempotent=False,
        accepted_by="root",
        accepted_at=datetime(2026, 1, 2, tzinfo=UTC),
    )


async def added(store: PostgresServers, call: Call) -> None:
    await store.add(call, SERVER, SEAL.shut(json.dumps(SERVER.secret_headers), secrets_owner(call.who.tenant, SERVER.name)))


async def test_a_server_comes_back_with_its_headers_sealed_and_its_tools_as_they_were_accepted(store: PostgresServers) -> None:
    call = root()
    await added(store, call)
    accepted = await store.accept(
        call, AcceptTools(name="weather", tools=(AllowTool(name="now"),)), [tool("now"), tool("later")]
    )
    kept = await store.one(call.who.tenant, "weather")
    assert kept.to_contract() == accepted
    assert (kept.tools, kept.header_names, kept.enabled) == ((tool("later"), tool("now")), ("Authorization",), True)
    assert kept.sealed is not None
    assert json.loads(SEAL.open(kept.sealed, secrets_owner(call.who.tenant, "weather"))) == {"Authorization": "Bearer sesame"}


async def test_a_name_is_taken_once_in_a_tenant_and_a_repeat_with_its_key_gives_the_first_answer(
    store: PostgresServers,
) -> None:
    call = root(key="k")
    await added(store, call)
    await added(store, call)
    with pytest.raises(Conflict):
        await added(store, root(call.who.tenant))
    with pytest.raises(KeyReused):
        await store.add(call, SERVER.model_copy(update={"seconds": 1.0}), None)
    await added(store, root())


async def test_judging_sets_the_risk_anew_and_withdraws(store: PostgresServers) -> None:
    call = root()
    await added(store, call)
    await store.accept(call, AcceptTools(name="weather", tools=(AllowTool(name="now"),)), [tool("now"), tool("later")])
    judged = await store.judge(
        call,
        JudgeTools(name="weather", tools=(AllowTool(name="now", risk=Risk.HIGH, idempotent=True),), withdrawn=("later",)),
    )
    assert [(one.name, one.risk, one.idempotent) for one in judged.tools] == [("now", Risk.HIGH, True)]
    with pytest.raises(NotFound):
        await store.judge(call, JudgeTools(name="weather", tools=(AllowTool(name="later"),)))


async def test_switching_and_removing(store: PostgresServers) -> None:
    call = root()
    await added(store, call)
    await store.accept(call, AcceptTools(name="weather", tools=(AllowTool(name="now"),)), [tool("now")])
    off = await store.switch(call, SwitchServer(name="weather", enabled=False))
    assert (off.enabled, off.version) == (False, 2)
    assert (await store.remove(call, ServerRef(name="weather"))).existed
    assert not (await store.remove(call, ServerRef(name="weather"))).existed
    assert await store.of(call.who.tenant) == ()
    for missing in (store.one(call.who.tenant, "weather"), store.switch(call, SwitchServer(name="weather", enabled=True))):
        with pytest.raises(UnknownServer):
            await missing


async def test_another_tenant_has_none_of_it(store: PostgresServers, database: Database) -> None:
    ann, other = root(), root()
    await added(store, ann)
    await store.accept(ann, AcceptTools(name="weather", tools=(AllowTool(name="now"),)), [tool("now")])
    assert await store.of(other.who.tenant) == ()
    with pytest.raises(UnknownServer):
        await store.accept(other, AcceptTools(name="weather", tools=(AllowTool(name="now"),)), [tool("now")])
    assert not (await store.remove(other, ServerRef(name="weather"))).existed
    for table in ("outside_servers", "outside_tools"):
        async with database.connection(other.who.tenant) as connection:
            assert await connection.fetch(f"SELECT * FROM {table}") == []
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        async with database.transaction(other.who.tenant) as connection:
            await connection.execute(
                "INSERT INTO outside_servers (tenant, name, url, seconds, created_by) VALUES ($1, 'x', 'https://x', 1, 'eve')",
                ann.who.tenant,
            )


async def test_no_row_no_outbox_and_no_remembered_answer_holds_a_secret(
    store: PostgresServers, postgres: PostgresServer, where: PostgresSettings
) -> None:
    await added(store, root(key="k"))
    async with postgres.session(where, "orchestrator") as reader:
        rows = [dict(row) for table in ("outside_servers", "writes") for row in await reader.fetch(f"SELECT * FROM {table}")]
        [news] = await reader.fetch("SELECT subject, body FROM outbox")
    assert "sesame" not in repr(rows)
    body = bytes(news["body"]).decode()
    assert ("audited" in news["subject"], "tools.example" in body, "private-path" in body, "sesame" in body) == (
        *(True, True),
        *(False, False),
    )


async def test_a_tenant_has_fifty_servers_at_most(store: PostgresServers) -> None:
    call = root()
    for number in range(50):
        await store.add(call, AddServer(name=f"s{number}", url="https://tools.example/"), None)
    with pytest.raises(Conflict):
        await store.add(call, AddServer(name="one-more", url="https://tools.example/"), None)
