"""Keys: who may make them, what they open, and that a revoked one opens nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from phronesis_bus import News, follow
from phronesis_contracts import Agent, Role
from phronesis_contracts.orchestrator import Audited
from phronesis_contracts.service import AUDITED, KEY_REVOKED, KeyRevoked
from phronesis_gateway.auth.keys import hash_secret, new_secret
from phronesis_gateway.auth.store import read_first_key, store_first_key
from phronesis_postgres import EVERY_TENANT, Database, PostgresSettings
from tests.support.bus import eventually
from tests.support.gateway import Holder, RunningGateway, gateway
from tests.support.personas import Persona, persona_of
from tests.support.scripted_orchestrator import ScriptedOrchestrator
from tests.support.servers import NatsServer, PostgresServer

KEYS = "/api/v1/keys"


@pytest.fixture
async def admin(api: RunningGateway) -> Holder:
    """An administrator of a tenant."""
    return await api.holder(**Persona.ADMIN.rights)


async def test_a_key_is_made_used_and_revoked(api: RunningGateway, admin: Holder) -> None:
    made = await api.http.post(KEYS, json={"user": "bob", "agents": ["maestro"]}, headers=admin.headers)
    key = made.json()
    secret = key.pop("key")
    bearer = {"Authorization": f"Bearer {secret}"}
    assert (made.status_code, made.headers["location"]) == (201, f"{KEYS}/{key['id']}")
    assert (key["tenant"], key["user"], key["prefix"]) == (admin.who.tenant, "bob", secret[:8])
    assert (key["role"], key["agents"], "phronesis-deprecation" in made.headers) == ("member", ["maestro"], False)
    assert (await api.http.get("/api/v1/tools", headers=bearer)).status_code == 200
    assert (await api.http.get(f"{KEYS}/{key['id']}", headers=admin.headers)).json() == key

    revoked = await api.http.delete(f"{KEYS}/{key['id']}", headers=admin.headers)
    assert (revoked.status_code, revoked.json()["revoked_at"] is not None) == (200, True)
    refused = await api.http.get("/api/v1/tools", headers=bearer)
    assert (refused.status_code, refused.json()["code"]) == (401, "unauthorized")
    assert refused.headers["www-authenticate"] == 'Bearer error="invalid_token"'
    again = await api.http.delete(f"{KEYS}/{key['id']}", headers=admin.headers)
    assert again.json() == revoked.json()


@pytest.mark.parametrize("persona", sorted(set(Persona) - {Persona.ADMIN}))
async def test_a_role_of_the_version_before_makes_a_member_and_is_said_to_be_deprecated(
    api: RunningGateway, admin: Holder, persona: Persona
) -> None:
    made = await api.http.post(KEYS, json={"user": "bob", "role": persona.value}, headers=admin.headers)
    assert (made.status_code, made.json()["role"], made.json()["agents"]) == (201, "member", [persona.value])
    assert made.headers["phronesis-deprecation"].startswith(f"role {persona.value} is deprecated")
    mixed = {"user": "bob", "role": persona.value, "agents": ["noor"]}
    assert (await api.http.post(KEYS, json=mixed, headers=admin.headers)).json()["field"] == "role"


@pytest.mark.parametrize("persona", Persona)
async def test_a_key_that_the_version_before_stored_keeps_its_rights(
    api: RunningGateway, database: PostgresSettings, persona: Persona
) -> None:
    holder = await api.holder(**Persona.NOOR.rights)
    async with Database.open(database, "gateway") as store, store.transaction(EVERY_TENANT) as connection:
        await connection.execute(
            "UPDATE keys SET role = $2, access = NULL, agents = NULL WHERE id = $1", UUID(holder.who.key), persona.value
        )
    found = await api.store.by_id(holder.who.key or "")
    assert found is not None
    assert persona_of(found.principal) is persona
    assert await api.store.is_elevated(holder.who.tenant, holder.who.user) == persona.principal.elevated


@pytest.mark.parametrize("persona", Persona)
async def test_a_key_is_stored_with_the_role_that_the_version_before_reads(
    api: RunningGateway, database: PostgresSettings, persona: Persona
) -> None:
    holder = await api.holder(**persona.rights)
    async with Database.open(database, "gateway") as store, store.connection(EVERY_TENANT) as connection:
        role = await connection.fetchval("SELECT role FROM keys WHERE id = $1", UUID(holder.who.key))
    assert role == persona.value
    assert await api.store.is_elevated(holder.who.tenant, holder.who.user) == persona.principal.elevated


async def test_to_the_version_before_a_reader_is_a_member_whose_key_may_only_read(
    api: RunningGateway, admin: Holder, database: PostgresSettings
) -> None:
    body = {"user": "bob", "role": "reader", "agents": ["noor", "maestro"], "scopes": ["audit"]}
    operator = await api.holder(**Persona.ADMIN.rights, scopes=("operator",), tenant=admin.who.tenant)
    made = (await api.http.post(KEYS, json=body, headers=operator.headers)).json()
    async with Database.open(database, "gateway") as store, store.connection(EVERY_TENANT) as connection:
        row = await connection.fetchrow("SELECT role, scopes FROM keys WHERE id = $1", UUID(made["id"]))
    assert tuple(row or ()) == ("maestro", ["audit", "phronesis:read"])
    assert (made["role"], made["scopes"]) == ("reader", ["audit", "phronesis:read"])
    assert await api.store.is_elevated(admin.who.tenant, "bob")


async def test_the_keys_of_owners_are_made_and_revoked_by_owners(api: RunningGateway, admin: Holder) -> None:
    owner = await api.holder(role=Role.OWNER, agents=(), tenant=admin.who.tenant)
    wanted = {"user": "bob", "role": "owner"}
    refused = await api.http.post(KEYS, json=wanted, headers=admin.headers)
    made = await api.http.post(KEYS, json=wanted, headers=owner.headers)
    assert (refused.status_code, made.status_code, made.json()["agents"]) == (403, 201, [])
    path = f"{KEYS}/{made.json()['id']}"
    assert [(await api.http.delete(path, headers=by.headers)).status_code for by in (admin, owner)] == [403, 200]


async def test_a_reader_reads_and_is_refused_what_changes_anything(api: RunningGateway) -> None:
    reader = await api.holder(role=Role.READER, agents=(Agent.NOOR,))
    listed = (await api.http.get("/api/v1/tools", headers=reader.headers)).json()["tools"]
    assert {tool["risk"] for tool in listed} == {"read"}
    answers = [
        await api.http.post("/api/v1/turns", json={"currentMessageText": "x"}, headers=reader.headers),
        await api.http.post("/api/v1/tools/remember", json={"items": []}, headers=reader.headers),
        await api.http.post(KEYS, json={"user": "bob"}, headers=reader.headers),
    ]
    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(403, "forbidden")] * 3


async def test_the_secret_of_a_key_is_stored_nowhere(api: RunningGateway, admin: Holder, database: PostgresSettings) -> None:
    made = (await api.http.post(KEYS, json={"user": "bob"}, headers=admin.headers)).json()
    async with Database.open(database, "gateway") as store, store.connection(EVERY_TENANT) as connection:
        rows = await connection.fetch("SELECT keys::text FROM keys UNION ALL SELECT outbox::text FROM outbox")
    assert [row for row in rows if made["key"][8:] in row[0]] == []
    listed = (await api.http.get(KEYS, headers=admin.headers)).json()
    assert [key["id"] for key in listed["keys"]] == [made["id"], admin.who.key]
    assert "key" not in listed["keys"][0]


async def test_a_key_that_was_revoked_or_is_over_opens_nothing_and_is_announced_and_audited(
    api: RunningGateway, admin: Holder, orchestrator: ScriptedOrchestrator, database: PostgresSettings
) -> None:
    heard: list[tuple[str, KeyRevoked]] = []
    audit: list[tuple[str, Audited]] = []

    async def on_revoked(news: News, event: KeyRevoked) -> None:
        heard.append((news.tenant, event))

    async def on_audited(news: News, event: Audited) -> None:
        audit.append((news.tenant, event))

    await follow(orchestrator.bus, KEY_REVOKED, on_revoked)
    await follow(orchestrator.bus, AUDITED["gateway"], on_audited)
    made = (await api.http.post(KEYS, json={"user": "bob"}, headers=admin.headers)).json()
    await api.http.delete(f"{KEYS}/{made['id']}", headers=admin.headers)
    await api.http.post(KEYS, json={"tenant": "elsewhere", "user": "bob"}, headers=admin.headers)
    await eventually(lambda: (admin.who.tenant, KeyRevoked(key=made["id"])) in heard)

    def mine() -> list[tuple[str, str]]:
        return sorted((event.action, event.outcome) for tenant, event in audit if tenant == admin.who.tenant)

    await eventually(lambda: len(mine()) == 3)
    assert mine() == [("keys.create", "done"), ("keys.create", "refused"), ("keys.revoke", "done")]
    assert made["key"] not in str(audit)

    ends = (await api.http.post(KEYS, json={"user": "bob", "days": 1}, headers=admin.headers)).json()
    bearer = {"Authorization": f"Bearer {ends['key']}"}
    async with Database.open(database, "gateway") as store, store.transaction(admin.who.tenant) as connection:
        await connection.execute("UPDATE keys SET expires_at = now() WHERE id = $1", UUID(ends["id"]))
    assert (await api.http.get("/api/v1/tools", headers=bearer)).status_code == 401
    await eventually(lambda: (admin.who.tenant, KeyRevoked(key=ends["id"])) in heard)


@pytest.mark.parametrize("role", sorted(set(Persona) - {Persona.ADMIN}))
async def test_only_administrators_manage_keys(api: RunningGateway, role: Persona) -> None:
    holder = await api.holder(**role.rights)
    answers = [
        await api.http.post(KEYS, json={"user": "bob"}, headers=holder.headers),
        await api.http.get(KEYS, headers=holder.headers),
        await api.http.delete(f"{KEYS}/{holder.who.key}", headers=holder.headers),
    ]
    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(403, "forbidden")] * 3


async def test_an_administrator_keeps_to_its_tenant_and_an_operator_does_not(api: RunningGateway, admin: Holder) -> None:
    operator = await api.holder(**Persona.ADMIN.rights, scopes=("operator",))
    wanted = {"tenant": f"t-{uuid4().hex[:8]}", "user": "bob"}
    refused = await api.http.post(KEYS, json=wanted, headers=admin.headers)
    raised = await api.http.post(KEYS, json={"user": "bob", "scopes": ["operator"]}, headers=admin.headers)
    made = await api.http.post(KEYS, json=wanted, headers=operator.headers)
    assert [answer.status_code for answer in (refused, raised, made)] == [403, 403, 201]
    hidden = await api.http.delete(f"{KEYS}/{made.json()['id']}", headers=admin.headers)
    seen = await api.http.get(KEYS, params={"tenant": wanted["tenant"]}, headers=operator.headers)
    assert (hidden.status_code, [key["id"] for key in seen.json()["keys"]]) == (404, [made.json()["id"]])


WIDER = {
    "another tenant": ({}, {"tenant": "t-other"}),
    "an owner": ({}, {"role": "owner"}),
    "a scope that the maker lacks": ({}, {"scopes": ["operator"]}),
    "no tools stated": ({"tools": ["keys-have-no-tool"]}, {}),
    "a tool that the maker may not call": ({"tools": ["recall"]}, {"tools": ["recall", "forget"]}),
    "no end": ({"days": 2}, {}),
    "a later end": ({"days": 2}, {"days": 3}),
}


@pytest.mark.parametrize("what", WIDER)
async def test_no_key_is_wider_than_its_makers(api: RunningGateway, admin: Holder, what: str) -> None:
    own, wanted = WIDER[what]
    ends = datetime.now(UTC) + timedelta(days=own["days"]) if "days" in own else None
    maker = await api.holder(tenant=admin.who.tenant, **Persona.ADMIN.rights, tools=own.get("tools"), expires_at=ends)
    refused = await api.http.post(KEYS, json={"user": "bob", **wanted}, headers=maker.headers)
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    listed = (await api.http.get(KEYS, headers=admin.headers)).json()["keys"]
    assert [key["id"] for key in listed if key["user"] == "bob"] == []


async def test_an_operator_makes_no_key_that_outlives_its_own_not_of_the_bus_either(api: RunningGateway) -> None:
    ends = datetime.now(UTC) + timedelta(days=2)
    operator = await api.holder(**Persona.ADMIN.rights, scopes=("operator",), expires_at=ends)
    wanted = {"user": "bob", "tenant": "t-other", "days": 3}
    refused = [await api.http.post(path, json=wanted, headers=operator.headers) for path in (KEYS, f"{KEYS}/bus")]
    assert [(each.status_code, each.json()["field"]) for each in refused] == [(403, "days")] * 2
    made = await api.http.post(KEYS, json={**wanted, "days": 1}, headers=operator.headers)
    assert made.status_code == 201


async def test_a_key_with_tools_calls_them_and_opens_nothing_else(
    api: RunningGateway, admin: Holder, orchestrator: ScriptedOrchestrator
) -> None:
    before = len(orchestrator.submitted)
    wanted = {"user": "bob", "agents": ["maestro"], "tools": ["turn.get"]}
    made = (await api.http.post(KEYS, json=wanted, headers=admin.headers)).json()
    bearer = {"Authorization": f"Bearer {made['key']}"}
    listed = (await api.http.get("/api/v1/tools", headers=bearer)).json()["tools"]
    assert {tool["name"] for tool in listed} == set(made["tools"]) >= {"turn.get"}
    id = str(uuid4())
    called = await api.http.post("/api/v1/tools/turn.get", json={"turn_id": id}, headers=bearer)
    other = await api.http.post("/api/v1/tools/recall", json={"text": "x"}, headers=bearer)
    assert [(each.status_code, each.json()["code"]) for each in (called, other)] == [(404, "not_found"), (403, "forbidden")]
    shut = [
        await api.http.post("/api/v1/turns", json={"currentMessageText": "x"}, headers=bearer),
        await api.http.post("/v1/chat/completions", json={"model": "dialogue", "messages": []}, headers=bearer),
        await api.http.get("/api/v1/conversations", headers=bearer),
        await api.http.get("/api/v1/profile", headers=bearer),
        await api.http.get(f"/api/v1/turns/{id}/events", headers=bearer),
        await api.http.post(KEYS, json={"user": "eve"}, headers=bearer),
        await api.http.get("/api/v1/usage", headers=bearer),
    ]
    assert {answer.status_code for answer in shut} == {403}
    assert len(orchestrator.submitted) == before


async def test_the_version_before_does_not_find_a_key_that_it_would_take_for_a_wider_one(
    api: RunningGateway, admin: Holder, database: PostgresSettings
) -> None:
    limits: list[dict[str, Any]] = [{}, {"tools": ["recall"]}, {"days": 1}]
    made = [await api.http.post(KEYS, json={"user": "bob", **more}, headers=admin.headers) for more in limits]
    async with Database.open(database, "gateway") as store, store.connection(admin.who.tenant) as connection:
        found = [
            await connection.fetchval("SELECT count(*) FROM keys WHERE hash = $1", hash_secret(each.json()["key"]))
            for each in made
        ]
    assert found == [1, 0, 0]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"user": "bob", "tools": []}, "tools"),
        ({"user": "bob", "tools": ["no.such.tool"]}, "tools"),
        ({"user": "bob", "days": 0}, "days"),
        ({"tenant": "system", "user": "bob"}, "tenant"),
        ({"user": "Bob.x"}, "user"),
        ({"user": "bob", "role": "king"}, "role"),
        ({"user": "bob", "agents": ["king"]}, "agents.0"),
        ({"user": "bob", "agents": []}, "agents"),
        ({"user": "bob", "access": "admin"}, "access"),
        ({"user": "bob", "hash": "x"}, "hash"),
        ({}, "user"),
    ],
)
async def test_a_key_that_cannot_be_is_refused_with_its_field(api: RunningGateway, body: dict[str, Any], field: str) -> None:
    operator = await api.holder(**Persona.ADMIN.rights, scopes=("operator",))
    answer = await api.http.post(KEYS, json=body, headers=operator.headers)
    assert (answer.status_code, answer.json()["field"]) == (400, field)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "Basic eDp5",
        "Bearer",
        "Bearer phr_short",
        pytest.param(f"Bearer {new_secret()}", id="nobody's"),
        "Bearer ' OR 1=1",
    ],
)
async def test_a_request_without_a_good_key_is_refused(api: RunningGateway, header: str | None) -> None:
    answer = await api.http.get("/api/v1/turns", headers={"Authorization": header} if header else {})
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")


@pytest.mark.verify
async def test_a_revocation_reaches_another_replica_within_seconds(
    api: RunningGateway, admin: Holder, ann: Holder, nats_server: NatsServer, database: PostgresSettings
) -> None:
    operator = await api.holder(**Persona.ADMIN.rights, scopes=("operator",))
    async with gateway(nats_server, database) as other:
        assert (await other.http.get("/api/v1/tools", headers=ann.headers)).status_code == 200
        await api.http.delete(f"{KEYS}/{ann.who.key}", headers=operator.headers)

        async def refused() -> bool:
            return (await other.http.get("/api/v1/tools", headers=ann.headers)).status_code == 401

        await eventually(refused, within=8)


async def test_the_first_key_is_entered_once_and_stays_revoked(
    api: RunningGateway, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("key") / "key"
    secret = new_secret()
    file.write_text(f"{secret}\n")
    await store_first_key(api.store, *read_first_key(file))
    bearer = {"Authorization": f"Bearer {secret}"}
    (mine,) = [k for k in (await api.http.get(KEYS, headers=bearer)).json()["keys"] if k["prefix"] == secret[:8]]
    assert (mine["tenant"], mine["user"], mine["role"], mine["scopes"]) == ("local", "owner", "owner", ["operator"])
    await api.http.delete(f"{KEYS}/{mine['id']}", headers=bearer)
    await store_first_key(api.store, *read_first_key(file))
    assert (await api.http.get(KEYS, headers=bearer)).status_code == 401


async def test_without_its_database_the_gateway_serves_known_keys_and_refuses_others_with_503(
    nats_server: NatsServer, tmp_path_factory: pytest.TempPathFactory, orchestrator: ScriptedOrchestrator
) -> None:
    server = PostgresServer(tmp_path_factory.mktemp("postgres"))
    await server.start()
    try:
        async with server.fresh_schema("gateway") as database, gateway(nats_server, database) as running:
            known, unknown = await running.holder(), await running.holder()

            async def status(holder: Holder) -> int:
                return (await running.http.get("/api/v1/turns", headers=holder.headers)).status_code

            assert await status(known) == 200
            await server.kill()
            answer = await running.http.get("/api/v1/turns", headers=unknown.headers)
            assert (answer.status_code, answer.json()["code"], answer.headers["retry-after"]) == (503, "unavailable", "1")
            assert await status(known) == 200
            ready = await running.http.get("/health/ready")
            assert (ready.status_code, "gateway.postgres" in ready.json()["down"]) == (503, True)
            await server.start()
            assert await status(unknown) == 200
    finally:
        await server.stop()


@pytest.mark.parametrize("path", [KEYS, f"{KEYS}/bus"])
@pytest.mark.parametrize("days", ["30", True])
async def test_the_days_of_a_key_are_a_number_and_no_text(api: RunningGateway, admin: Holder, path: str, days: object) -> None:
    wanted = {"tenant": admin.who.tenant, "user": "bob", "days": days}
    refused = await api.http.post(path, json=wanted, headers=admin.headers)
    assert (refused.status_code, refused.json()["field"]) == (400, "days")


@pytest.mark.parametrize("narrow", [{"tools": ["recall"]}, {"scopes": ("phronesis:read",)}])
async def test_a_key_that_cannot_administer_is_no_other_administrator_for_the_last_one(
    api: RunningGateway, admin: Holder, narrow: dict[str, Any]
) -> None:
    await api.holder(tenant=admin.who.tenant, **Persona.ADMIN.rights, **narrow)
    itself = f"/api/v1/users/{admin.who.user}"
    refused = await api.http.delete(itself, headers=admin.headers)
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    await api.holder(tenant=admin.who.tenant, **Persona.ADMIN.rights)
    assert (await api.http.delete(itself, headers=admin.headers)).status_code == 202
