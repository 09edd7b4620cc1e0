"""Keys of the bus: who may make them, what they open, and that a revoked one opens nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from phronesis_bus import Bus, Credentials, connect
from phronesis_postgres import EVERY_TENANT, Database, PostgresSettings
from tests.support.bus import eventually, somebody
from tests.support.gateway import Holder, RunningGateway, gateway
from tests.support.outside import admitting, is_let_in, outside
from tests.support.personas import Persona, persona_of
from tests.support.servers import NatsServer

KEYS, BUS = "/api/v1/keys", "/api/v1/keys/bus"


@pytest.fixture(scope="module")
async def server(nats_server: NatsServer) -> AsyncIterator[NatsServer]:
    """A broker with somebody who answers whom it may let in."""
    async with admitting(nats_server):
        yield nats_server


@pytest.fixture(scope="module")
async def memory(nats_server: NatsServer) -> AsyncIterator[Bus]:
    """A service that outside systems ask."""
    async with connect("memory", nats_server.settings("memory")) as bus:
        yield bus


@pytest.fixture
async def operator(api: RunningGateway) -> Holder:
    """Somebody who runs the platform."""
    return await api.holder(**Persona.ADMIN.rights, scopes=("operator",))


def wanted(**changes: Any) -> dict[str, Any]:
    return {"tenant": f"t-{uuid4().hex[:8]}", "user": "robot", **Persona.CURATOR.stated} | changes


def access(made: dict[str, Any]) -> Credentials:
    return Credentials(made["nats_user"], made["nats_password"], made["token"], made["inbox"])


async def test_a_key_of_the_bus_is_made_shown_once_and_listed(api: RunningGateway, operator: Holder, memory: Bus) -> None:
    asked = wanted(days=2, department="it")
    answer = await api.http.post(BUS, json=asked, headers=operator.headers)
    made = answer.json()
    assert (answer.status_code, answer.headers["location"]) == (201, f"{KEYS}/{made['id']}")
    assert made["servers"] == [api.bus.settings.url]
    assert (made["nats_user"], made["inbox"]) == (made["id"], f"_INBOX.out.{made['id']}")
    lives = datetime.fromisoformat(made["expires_at"]) - datetime.fromisoformat(made["created_at"])
    assert lives == timedelta(days=2)
    who = memory.verifier.principal(made["token"])
    stated = (who.tenant, who.user, persona_of(who), who.department, who.scopes, who.key, who.inbox)
    assert stated == (asked["tenant"], "robot", Persona.CURATOR, "it", (), made["id"], made["inbox"])

    shown = (await api.http.get(f"{KEYS}/{made['id']}", headers=operator.headers)).json()
    listed = (await api.http.get(KEYS, params={"tenant": asked["tenant"]}, headers=operator.headers)).json()["keys"]
    secret = {"servers", "nats_user", "nats_password", "token", "inbox"}
    assert listed == [shown] == [{name: value for name, value in made.items() if name not in secret}]
    assert shown["bus"] is True


async def test_nothing_that_it_opens_with_is_stored(api: RunningGateway, operator: Holder, database: PostgresSettings) -> None:
    made = (await api.http.post(BUS, json=wanted(), headers=operator.headers)).json()
    async with Database.open(database, "gateway") as store, store.connection(EVERY_TENANT) as connection:
        rows = await connection.fetch("SELECT keys::text FROM keys UNION ALL SELECT outbox::text FROM outbox")
    for secret in (made["token"], made["nats_password"]):
        assert [row for row in rows if secret.rpartition(".")[2] in row[0]] == []


async def test_it_opens_the_bus_and_not_the_gateway(api: RunningGateway, operator: Holder, server: NatsServer) -> None:
    made = (await api.http.post(BUS, json=wanted(), headers=operator.headers)).json()
    for secret in (made["token"], made["nats_password"], made["id"]):
        refused = await api.http.get("/api/v1/tools", headers={"Authorization": f"Bearer {secret}"})
        assert (refused.status_code, refused.json()["code"]) == (401, "unauthorized")
    assert await is_let_in(server, access(made))


async def test_a_revoked_one_is_put_out_and_its_token_refused(
    api: RunningGateway, operator: Holder, server: NatsServer, memory: Bus
) -> None:
    made = (await api.http.post(BUS, json=wanted(), headers=operator.headers)).json()
    async with outside(server, somebody(), access(made)) as system:
        await api.http.delete(f"{KEYS}/{made['id']}", headers=operator.headers)
        await eventually(lambda: system.nats.is_closed)
    assert not await is_let_in(server, access(made))
    await eventually(lambda: made["id"] in memory.revoked)


async def test_what_the_broker_forgot_is_said_again_when_the_gateway_starts(
    api: RunningGateway, operator: Holder, nats_server: NatsServer, database: PostgresSettings, memory: Bus
) -> None:
    made = (await api.http.post(BUS, json=wanted(), headers=operator.headers)).json()
    await api.http.delete(f"{KEYS}/{made['id']}", headers=operator.headers)
    await eventually(lambda: made["id"] in memory.revoked)
    async with connect("declare", nats_server.settings("declare")) as bus:
        await bus.request("$JS.API.STREAM.PURGE.REVOKED", b"", timeout=3)
    async with connect("graph", nats_server.settings("graph")) as graph:
        assert (graph.revoked.known, made["id"] in graph.revoked) == (True, False)
        async with gateway(nats_server, database):
            await eventually(lambda: made["id"] in graph.revoked)


async def test_only_those_who_run_the_platform_make_one(api: RunningGateway) -> None:
    admin = await api.holder(**Persona.ADMIN.rights)
    narrowed = await api.holder(**Persona.ADMIN.rights, scopes=("operator", "phronesis:read"))
    other = await api.holder(**Persona.MAESTRO.rights, scopes=("operator",))
    answers = [
        await api.http.post(BUS, json=wanted(tenant=holder.who.tenant), headers=holder.headers)
        for holder in (admin, other, narrowed)
    ]
    refused = [(answer.status_code, answer.json()["code"]) for answer in answers]
    assert refused == [(403, "forbidden"), (403, "forbidden"), (403, "insufficient_scope")]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"tenant": "system"}, "tenant"),
        ({"tenant": "a.b"}, "tenant"),
        ({"user": ">"}, "user"),
        ({"user": "*"}, "user"),
        ({"role": "king"}, "role"),
        ({"days": 0}, "days"),
        ({"days": 367}, "days"),
        ({"scopes": ["operator"]}, "scopes"),
    ],
)
async def test_one_that_cannot_be_is_refused(
    api: RunningGateway, operator: Holder, changes: dict[str, Any], field: str
) -> None:
    refused = await api.http.post(BUS, json=wanted(**changes), headers=operator.headers)
    assert (refused.status_code, refused.json()["field"]) == (400, field)


async def test_an_administrator_of_its_tenant_sees_and_revokes_it_and_another_does_not(
    api: RunningGateway, operator: Holder
) -> None:
    made = (await api.http.post(BUS, json=wanted(), headers=operator.headers)).json()
    own = await api.holder(**Persona.ADMIN.rights, tenant=made["tenant"])
    other = await api.holder(**Persona.ADMIN.rights)
    answers = [await api.http.delete(f"{KEYS}/{made['id']}", headers=who.headers) for who in (other, own)]
    assert [answer.status_code for answer in answers] == [404, 200]
