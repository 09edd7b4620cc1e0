"""Forged, edited and expired tokens, keys and principals: each is refused, and nobody who owns anything is asked."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx
import pytest

from phronesis_bus import Bus, Call, Signer, connect, serve, take
from phronesis_bus.envelope import PRINCIPAL
from phronesis_contracts import Principal
from phronesis_contracts.memory import RECALL_TOOL, Recall, Recalled
from phronesis_contracts.orchestrator import TURN, TURN_LIST, ListTurns, SubmitTurn, Turns
from phronesis_gateway.auth.handlers import KEYS as KEYS_ROUTE
from phronesis_gateway.turns.handlers import TURNS
from tests.support.bus import eventually
from tests.support.forgeries import HEADERS, KEYS, PRINCIPALS, TOKENS, WHO
from tests.support.gateway import Holder, RunningGateway, gateway
from tests.support.issuer import Issuer
from tests.support.personas import Persona, persona_of
from tests.support.servers import NatsServer, PostgresServer

RECALL = "/api/v1/tools/recall"


@dataclass
class Owners:
    """Who owns memories and turns, and what they were asked."""

    asked: list[Principal] = field(default_factory=list)
    turns: list[str] = field(default_factory=list)

    async def recall(self, call: Call, request: Recall) -> Recalled:
        """Answer with nothing."""
        self.asked.append(call.who)
        return Recalled(items=())

    async def list_turns(self, call: Call, request: ListTurns) -> Turns:
        """Answer with nothing."""
        self.asked.append(call.who)
        return Turns(turns=())

    async def on_turn(self, call: Call, turn: SubmitTurn) -> None:
        """Take a turn."""
        self.asked.append(call.who)
        self.turns.append(turn.text)


@pytest.fixture(scope="module")
async def owners(nats_server: NatsServer) -> AsyncIterator[Owners]:
    """Those who own."""
    found = Owners()
    async with (
        connect("memory", nats_server.settings("memory")) as memory,
        connect("orchestrator", nats_server.settings("orchestrator")) as orchestrator,
    ):
        await serve(memory, RECALL_TOOL, found.recall)
        await serve(orchestrator, TURN_LIST, found.list_turns)
        await take(orchestrator, TURN, found.on_turn)
        yield found


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    """The identity provider that the gateway trusts."""
    return Issuer()


@pytest.fixture(scope="module")
async def api(
    nats_server: NatsServer, postgres: PostgresServer, owners: Owners, issuer: Issuer
) -> AsyncIterator[RunningGateway]:
    """A gateway that trusts it."""
    async with (
        postgres.fresh_schema("gateway") as database,
        gateway(nats_server, database, issuer.tokens(), accept_wait=1) as running,
    ):
        yield running


async def refused(api: RunningGateway, owners: Owners, headers: Any) -> None:
    """Fail unless every door is shut to a request with these headers, and nobody was asked anything."""
    before = list(owners.asked)
    answers: list[httpx.Response] = [
        await api.http.post(RECALL, json={"query": "anything"}, headers=headers),
        await api.http.get(TURNS, headers=headers),
        await api.http.get(f"{TURNS}/{uuid4()}/events", headers=headers),
        await api.http.post(KEYS_ROUTE, json={"user": "mallory"}, headers=headers),
    ]
    assert [answer.status_code for answer in answers] == [401] * 4
    assert {answer.headers["www-authenticate"] for answer in answers} == {'Bearer error="invalid_token"'}
    assert {answer.json()["code"] for answer in answers} == {"unauthorized"}
    assert owners.asked == before


async def test_the_good_token_that_the_forged_ones_are_made_of_is_let_in(
    api: RunningGateway, owners: Owners, issuer: Issuer
) -> None:
    for kid in issuer.keys:
        headers = {"Authorization": f"Bearer {issuer.token(kid)}"}
        assert (await api.http.post(RECALL, json={"query": "anything"}, headers=headers)).status_code == 200
        assert (owners.asked[-1].tenant, owners.asked[-1].user, persona_of(owners.asked[-1])) == ("acme", "ann", Persona.NOOR)


@pytest.mark.parametrize("what", HEADERS)
async def test_a_forged_token_is_refused_and_nothing_is_done(
    api: RunningGateway, owners: Owners, issuer: Issuer, what: str
) -> None:
    await refused(api, owners, {"Authorization": HEADERS[what](issuer)})


async def test_there_are_forty_forms_and_more_of_each_kind_that_counts() -> None:
    assert len(TOKENS) >= 40
    assert len(HEADERS) + len(KEYS) + len(PRINCIPALS) >= 100


async def test_only_of_an_expired_token_it_is_said_why_it_is_refused(api: RunningGateway, issuer: Issuer) -> None:
    said: dict[str, set[str]] = {}
    for what in TOKENS:
        answer = await api.http.get(TURNS, headers={"Authorization": HEADERS[what](issuer)})
        said.setdefault(answer.json()["detail"], set()).add(what)
    assert said.pop("the token has expired") == {"expired", "exp negative"}
    assert said.keys() == {"the token is not valid"}


async def test_two_authorization_headers_are_refused_though_both_are_good(
    api: RunningGateway, owners: Owners, issuer: Issuer
) -> None:
    holder = await api.holder()
    for pair in ([issuer.token(), issuer.token()], [holder.secret, issuer.token()], [holder.secret, holder.secret]):
        await refused(api, owners, [("Authorization", f"Bearer {one}") for one in pair])


@pytest.mark.parametrize("name", ["access_token", "token", "jwt", "authorization", "key"])
async def test_a_token_in_the_address_or_a_cookie_opens_nothing(
    api: RunningGateway, owners: Owners, issuer: Issuer, name: str
) -> None:
    before = list(owners.asked)
    token = issuer.token()
    answers = [
        await api.http.get(TURNS, params={name: token}),
        await api.http.get(TURNS, headers={"Cookie": f"{name}={token}"}),
        await api.http.get(f"{TURNS}/{uuid4()}/events", params={"ticket": token}),
    ]
    assert [(answer.status_code, answer.headers["www-authenticate"]) for answer in answers] == [(401, "Bearer")] * 3
    assert owners.asked == before


@pytest.fixture
async def ann(api: RunningGateway) -> Holder:
    """Somebody with a good key."""
    return await api.holder()


@pytest.mark.parametrize("what", KEYS)
async def test_a_forged_key_is_refused_and_nothing_is_done(api: RunningGateway, owners: Owners, ann: Holder, what: str) -> None:
    assert (await api.http.get(TURNS, headers=ann.headers)).status_code == 200
    await refused(api, owners, {"Authorization": f"Bearer {KEYS[what](ann.secret)}"})


async def test_a_revoked_key_is_refused_at_once_though_it_was_remembered(
    api: RunningGateway, owners: Owners, ann: Holder
) -> None:
    assert (await api.http.get(TURNS, headers=ann.headers)).status_code == 200
    admin = await api.holder(tenant=ann.who.tenant, **Persona.ADMIN.rights)
    assert (await api.http.delete(f"{KEYS_ROUTE}/{ann.who.key}", headers=admin.headers)).status_code == 200
    await refused(api, owners, ann.headers)


async def test_a_key_acts_for_its_own_tenant_whatever_the_request_says(
    api: RunningGateway, owners: Owners, ann: Holder
) -> None:
    claims = {"X-Tenant": "globex", "Phronesis-Principal": "x", "X-Forwarded-User": "root", "X-Persona": "admin"}
    answer = await api.http.post(RECALL, json={"query": "anything"}, params={"tenant": "globex"}, headers=ann.headers | claims)
    assert (answer.status_code, owners.asked[-1]) == (200, ann.who)


@pytest.fixture(scope="module")
async def outside(nats_server: NatsServer, owners: Owners) -> AsyncIterator[Bus]:
    """A connection that may publish questions and turns of every tenant: nothing but the token stands in its way."""
    async with connect("gateway", nats_server.settings("gateway")) as bus:
        yield bus


@pytest.fixture(scope="module")
def signer(nats_server: NatsServer) -> Signer:
    """What signs in the gateway's name."""
    path = nats_server.settings("gateway").signing_key_file
    assert path is not None
    return Signer.load("gateway", path)


@pytest.mark.parametrize("what", PRINCIPALS)
async def test_a_forged_principal_is_refused_on_the_bus_and_nothing_is_done(
    outside: Bus, owners: Owners, signer: Signer, what: str
) -> None:
    before = list(owners.asked)
    headers = {PRINCIPAL: PRINCIPALS[what](WHO, signer)}
    reply = await outside.nats.request("rpc.acme.memory.v1.recall", b'{"query": "q"}', timeout=5, headers=headers)
    assert json.loads(reply.data)["status"] == (403 if what == "another tenant's" else 401)
    assert owners.asked == before


async def test_a_good_principal_is_refused_on_every_subject_of_another_tenant(
    outside: Bus, owners: Owners, signer: Signer
) -> None:
    before = list(owners.asked)
    for subject in ("rpc.globex.memory.v1.recall", "rpc.system.memory.v1.recall", "rpc.acme-2.memory.v1.recall"):
        reply = await outside.nats.request(subject, b'{"query": "q"}', timeout=5, headers={PRINCIPAL: signer.token(WHO)})
        assert json.loads(reply.data)["status"] == 403
    assert owners.asked == before


async def test_a_question_without_a_principal_is_refused(outside: Bus, owners: Owners) -> None:
    before = list(owners.asked)
    reply = await outside.nats.request("rpc.acme.memory.v1.recall", b'{"query": "q"}', timeout=5)
    assert json.loads(reply.data)["status"] == 401
    assert owners.asked == before


async def test_no_turn_is_taken_from_a_forged_principal(outside: Bus, owners: Owners, signer: Signer) -> None:
    forged, good = f"forged {uuid4()}", f"good {uuid4()}"

    def body(text: str) -> bytes:
        return SubmitTurn(idempotency_key=uuid4().hex, text=text).model_dump_json().encode()

    tokens = [make(WHO, signer) for make in PRINCIPALS.values()]
    for text, token in [*((forged, token) for token in tokens), (good, signer.token(WHO))]:
        stored = await outside.nats.request("job.acme.orchestrator.v1.turn", body(text), headers={PRINCIPAL: token})
        assert json.loads(stored.data)["stream"] == "JOB"
    await eventually(lambda: good in owners.turns)
    assert forged not in owners.turns
