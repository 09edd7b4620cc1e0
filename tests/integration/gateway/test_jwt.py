"""Callers who come with an identity provider's token, at a gateway that trusts it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from phronesis_contracts import Principal
from phronesis_gateway.app import Tokens
from phronesis_gateway.auth.handlers import KEYS
from phronesis_gateway.auth.tokens import IssuerKeys
from phronesis_gateway.turns.handlers import MESSAGES, TURNS
from phronesis_postgres import PostgresSettings
from tests.support.gateway import Holder, RunningGateway, gateway
from tests.support.issuer import Issuer, key_server
from tests.support.personas import Persona
from tests.support.scripted_orchestrator import ScriptedOrchestrator
from tests.support.servers import NatsServer


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    """The identity provider."""
    return Issuer()


@pytest.fixture(scope="module")
async def trusting(
    nats_server: NatsServer, database: PostgresSettings, orchestrator: ScriptedOrchestrator, issuer: Issuer
) -> AsyncIterator[RunningGateway]:
    """A gateway that trusts it."""
    async with gateway(
        nats_server, database, issuer.tokens(), wait=6, max_streams_per_key=1, burst=40, requests_per_second=0.01
    ) as running:
        yield running


class Bearer:
    """A user of the identity provider, in a tenant of their own unless stated."""

    def __init__(self, gateway: RunningGateway, issuer: Issuer, **claims: Any) -> None:
        self.claims: dict[str, Any] = {"tenant": f"t-{uuid4().hex[:12]}", "sub": f"u-{uuid4().hex[:12]}"} | claims
        self.gateway, self.issuer = gateway, issuer

    def headers(self, scheme: str = "Bearer", **changes: Any) -> dict[str, str]:
        """What a request of theirs carries."""
        return {"Authorization": f"{scheme} {self.issuer.token('ed', **self.claims | changes)}"}

    async def get(self, path: str, **changes: Any) -> httpx.Response:
        """What they get from `path`, with a token of its own."""
        return await self.gateway.http.get(path, headers=self.headers(**changes))

    async def submitted(self) -> str:
        """A turn that they handed in."""
        answer = await self.gateway.http.post(TURNS, json={"currentMessageText": "Hello"}, headers=self.headers())
        assert answer.status_code == 202, answer.text
        return str(answer.json()["turn_id"])


@pytest.fixture
def ann(trusting: RunningGateway, issuer: Issuer) -> Bearer:
    """Somebody with tokens."""
    return Bearer(trusting, issuer)


async def admin_of(ann: Bearer) -> Holder:
    """An administrator of ann's tenant, with a key."""
    return await ann.gateway.holder(tenant=ann.claims["tenant"], **Persona.ADMIN.rights)


async def entered(ann: Bearer, admin: Holder) -> dict[str, Any]:
    """How ann stands among the keys."""
    answer = await ann.gateway.http.get(KEYS, headers=admin.headers)
    [found] = [key for key in answer.json()["keys"] if key["user"] == ann.claims["sub"]]
    return dict(found)


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_a_message_with_a_token_acts_for_the_one_it_names(
    ann: Bearer, orchestrator: ScriptedOrchestrator, scheme: str
) -> None:
    text = f"Hello {uuid4()}"
    answer = await ann.gateway.http.post(
        MESSAGES, json={"currentMessageText": text}, headers=ann.headers(scheme, department="Roads")
    )
    assert (answer.status_code, answer.json()["user_response"]) == (200, f"You said: {text}")
    who = orchestrator.callers[answer.json()["turn_id"]]
    assert who.model_copy(update={"key": None}) == Principal(
        tenant=ann.claims["tenant"], user=ann.claims["sub"], **Persona.NOOR.rights, department="Roads"
    )


async def test_every_token_of_a_caller_leads_to_the_same_turns_and_no_other_callers(ann: Bearer) -> None:
    turn = await ann.submitted()
    assert (await ann.get(f"{TURNS}/{turn}", exp=int(ann.issuer.claims()["exp"]) + 60)).status_code == 200
    assert (await ann.get(f"{TURNS}/{turn}", sub="bob")).status_code == 404
    assert (await ann.get(f"{TURNS}/{turn}", tenant="globex")).status_code == 404


async def test_a_key_still_opens_a_gateway_that_takes_tokens(trusting: RunningGateway) -> None:
    holder = await trusting.holder()
    assert (await trusting.http.get(TURNS, headers=holder.headers)).status_code == 200


async def test_a_gateway_that_trusts_nobody_takes_no_token(api: RunningGateway, issuer: Issuer) -> None:
    answer = await api.http.get(TURNS, headers=Bearer(api, issuer).headers())
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Bearer error="invalid_token"')


async def test_a_ticket_that_was_got_with_a_token_opens_the_stream_of_its_turn(ann: Bearer) -> None:
    turn = await ann.submitted()
    made = await ann.gateway.http.post(f"{TURNS}/{turn}/ticket", headers=ann.headers())
    stream = await ann.gateway.http.get(made.json()["url"])
    assert (stream.status_code, stream.text.count("event: done")) == (200, 1)


async def test_a_callers_tokens_share_one_rate_and_the_streams_of_one_key(ann: Bearer, trusting: RunningGateway) -> None:
    answers = [await ann.get(f"{TURNS}?limit={n + 1}", role="admin" if n % 2 else "member") for n in range(50)]
    assert {answer.status_code for answer in answers} == {200, 429}
    other = Bearer(trusting, ann.issuer)
    assert (await other.get(TURNS)).status_code == 200


async def test_an_open_stream_counts_for_all_tokens_of_a_caller(ann: Bearer, orchestrator: ScriptedOrchestrator) -> None:
    text = f"slow {uuid4()}"
    orchestrator.slow.add(text)
    answer = await ann.gateway.http.post(TURNS, json={"currentMessageText": text}, headers=ann.headers())
    turn = answer.json()["turn_id"]
    async with ann.gateway.http.stream("GET", f"{TURNS}/{turn}/events", headers=ann.headers()) as stream:
        # Held, as the connection is closed with the iterator.
        lines = stream.aiter_lines()
        assert (stream.status_code, (await anext(lines)).partition(":")[0]) == (200, "retry")
        assert (await ann.get(f"{TURNS}/{turn}/events", role="admin")).status_code == 429
    await orchestrator.end(turn)


async def test_who_comes_with_a_token_stands_among_the_keys_once(ann: Bearer) -> None:
    answers = await asyncio.gather(*(ann.get(TURNS) for _ in range(20)))
    assert {answer.status_code for answer in answers} == {200}
    found = await entered(ann, await admin_of(ann))
    del found["id"], found["created_at"], found["bus"], found["expires_at"]
    assert found == {
        "tenant": ann.claims["tenant"],
        "user": ann.claims["sub"],
        "role": "member",
        "agents": ["noor"],
        "department": None,
        "ministry": None,
        "scopes": [],
        "prefix": "jwt",
        "revoked_at": None,
        "tools": None,
    }


async def test_a_caller_who_is_shut_out_stays_out_with_every_token_and_ticket(ann: Bearer) -> None:
    turn, admin = await ann.submitted(), await admin_of(ann)
    ticket = (await ann.gateway.http.post(f"{TURNS}/{turn}/ticket", headers=ann.headers())).json()["url"]
    id = (await entered(ann, admin))["id"]
    revoked = await ann.gateway.http.delete(f"{KEYS}/{id}", headers=admin.headers)
    assert revoked.status_code == 200
    assert (await ann.get(TURNS)).status_code == 401
    assert (await ann.get(TURNS, exp=int(ann.issuer.claims()["exp"]) + 60, role="admin")).status_code == 401
    assert (await ann.gateway.http.get(ticket)).status_code == 401


@pytest.mark.parametrize(("allowed", "status"), [((), 403), (("operator",), 201)])
async def test_a_token_makes_its_holder_an_operator_only_where_that_is_allowed(
    nats_server: NatsServer, database: PostgresSettings, issuer: Issuer, allowed: tuple[str, ...], status: int
) -> None:
    async with gateway(nats_server, database, issuer.tokens(scopes=allowed)) as running:
        chief = Bearer(running, issuer, role="admin", scope="operator")
        body = {"tenant": f"t-{uuid4().hex[:12]}", "user": "bob"}
        answer = await running.http.post(KEYS, json=body, headers=chief.headers())
        assert answer.status_code == status


async def test_while_the_issuers_keys_cannot_be_had_a_token_is_unavailable_and_a_key_good(
    nats_server: NatsServer, database: PostgresSettings, orchestrator: ScriptedOrchestrator, issuer: Issuer
) -> None:
    async with key_server() as server:
        settings = issuer.settings(jwks_url=server.url)
        server.status, server.body = 500, b"broken"
        async with gateway(nats_server, database, Tokens(settings, IssuerKeys.of(settings))) as running:
            ann, key = Bearer(running, issuer), await running.holder()
            answer = await ann.get(TURNS)
            assert (answer.status_code, answer.json()["code"], answer.headers["retry-after"]) == (503, "unavailable", "10")
            assert (await running.http.get(TURNS, headers=key.headers)).status_code == 200


async def test_keys_are_read_over_http_once_for_many_requests(
    nats_server: NatsServer, database: PostgresSettings, orchestrator: ScriptedOrchestrator, issuer: Issuer
) -> None:
    async with key_server() as server:
        settings = issuer.settings(jwks_url=server.url)
        server.body = issuer.document
        async with gateway(nats_server, database, Tokens(settings, IssuerKeys.of(settings))) as running:
            answers = await asyncio.gather(*(Bearer(running, issuer).get(TURNS) for _ in range(20)))
            assert ({answer.status_code for answer in answers}, server.asked) == ({200}, 1)


async def test_nothing_that_is_logged_holds_a_token(ann: Bearer, caplog: pytest.LogCaptureFixture) -> None:
    good, forged = ann.headers()["Authorization"], ann.headers(aud="other")["Authorization"]
    for authorization in (good, forged, good[:-4]):
        await ann.gateway.http.get(TURNS, headers={"Authorization": authorization})
    signatures = [authorization.rsplit(".", 1)[1] for authorization in (good, forged)]
    assert not [line for line in caplog.messages if any(signature[:20] in line for signature in signatures)]


@pytest.mark.parametrize(("scope", "sends"), [("phronesis:read", 403), ("phronesis:write", 202), ("", 202), ("other", 202)])
async def test_a_narrowed_token_reads_and_does_no_more(ann: Bearer, scope: str, sends: int) -> None:
    headers = ann.headers(scope=scope)
    assert (await ann.gateway.http.get(TURNS, headers=headers)).status_code == 200
    answer = await ann.gateway.http.post(TURNS, json={"currentMessageText": "Hello"}, headers=headers)
    assert answer.status_code == sends
