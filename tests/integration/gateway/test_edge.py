"""What is refused before anything is stored or run, and what surrounds every answer."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from phronesis_contracts.orchestrator import MAX_TEXT
from phronesis_gateway.auth import authentication
from phronesis_gateway.http import server
from phronesis_postgres import PostgresSettings
from tests.support.gateway import Holder, RunningGateway, gateway
from tests.support.personas import Persona
from tests.support.scripted_orchestrator import ScriptedOrchestrator
from tests.support.servers import NatsServer

MESSAGES = "/api/v1/conversations/messages"
JSON = {"Content-Type": "application/json"}


async def post(api: RunningGateway, holder: Holder, content: Any, **headers: str) -> httpx.Response:
    return await api.http.post(MESSAGES, content=content, headers=holder.headers | JSON | headers)


def said(body: bytes) -> bytes:
    return b'{"currentMessageText":' + body + b"}"


BAD = {
    "cut short": b'{"currentMessageText": "x"',
    "trailing comma": b'{"currentMessageText": "x",}',
    "key twice": b'{"currentMessageText": "x", "currentMessageText": "y"}',
    "nan": said(b"NaN"),
    "endless number": said(b"1e400"),
    "huge number": said(b"9" * 5_000),
    "no object": b'"x"',
    "deep": b"[" * 100_000,
    "deep and whole": said(b"[" * 40 + b"]" * 40),
    "no utf-8": said(b'"\xff\xfe"'),
    "half a pair": said(b'"\\ud800"'),
    "nul": said(b'"\\u0000"'),
    "mark of byte order": b"\xef\xbb\xbf" + said(b'"x"'),
    "utf-16": said(b'"x"').decode().encode("utf-16"),
    "nothing": b"",
}


@pytest.mark.parametrize("name", BAD)
async def test_what_is_no_strict_json_is_a_400_and_nothing_is_published(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator, name: str
) -> None:
    before = len(orchestrator.submitted)
    answer = await post(api, ann, BAD[name])
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(orchestrator.submitted) == before


@pytest.mark.req("D-015")
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "currentMessageText"),
        ({"currentMessageText": " \n"}, "currentMessageText"),
        ({"currentMessageText": "x" * (MAX_TEXT + 1)}, "currentMessageText"),
        ({"currentMessageText": 5}, "currentMessageText"),
        ({"currentMessageText": "x", "agent": ""}, "agent"),
        ({"currentMessageText": "x", "conversationId": "c" * 65}, "conversationId"),
        ({"currentMessageMedia": [{}]}, "currentMessageMedia.0"),
        ({"currentMessageMedia": [{"mediaId": "m", "url": "http://x"}]}, "currentMessageMedia.0"),
        ({"currentMessageMedia": [{"mediaId": "m"}] * 17}, "currentMessageMedia"),
        ({"currentMessageText": "x", "tenant": "other"}, "tenant"),
    ],
)
async def test_a_body_that_breaks_a_rule_is_a_400_that_names_the_field(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator, body: dict[str, Any], field: str
) -> None:
    before = len(orchestrator.submitted)
    answer = await post(api, ann, json.dumps(body))
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert len(orchestrator.submitted) == before


async def test_a_refusal_never_quotes_the_input(api: RunningGateway, ann: Holder) -> None:
    secret = uuid4().hex
    for body in (f'{{"currentMessageText": {secret}', f'{{"{secret}": 1, "{secret}": 2}}', f'{{"agent": ["{secret}"]}}'):
        answer = await post(api, ann, body)
        assert (answer.status_code, secret in answer.text) == (400, False)


@pytest.mark.parametrize("type", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_a_body_of_another_type_is_a_400(api: RunningGateway, ann: Holder, type: str) -> None:
    assert (await post(api, ann, said(b'"x"'), **{"Content-Type": type})).status_code == 400


@pytest.mark.req("D-155")
async def test_a_body_over_the_limit_is_a_413_however_it_is_sent(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator
) -> None:
    before = len(orchestrator.submitted)
    whole = said(b'"' + b"x" * 1024 * 1024 + b'"')

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(whole), 65_536):
            yield whole[at : at + 65_536]

    for content in (whole, pieces()):
        answer = await post(api, ann, content)
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert len(orchestrator.submitted) == before


async def test_a_strangers_body_is_not_read(api: RunningGateway) -> None:
    answer = await api.http.post(MESSAGES, content=b"{", headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/api/v1/nothing", 404, "not_found"),
        ("GET", "/", 404, "not_found"),
        ("GET", MESSAGES, 405, "method_not_allowed"),
        ("PATCH", "/api/v1/turns", 405, "method_not_allowed"),
        ("GET", "/api/v1/turns/a.b", 404, "not_found"),
        ("GET", "/api/v1/turns/%2e%2e%2fkeys", 404, "not_found"),
        ("GET", "/api/v1/turns?limit=NaN", 400, "bad_request"),
        ("GET", "/api/v1/turns?limit=-1", 400, "bad_request"),
        ("GET", "/api/v1/turns?limit=1000000000", 400, "bad_request"),
        ("GET", "/api/v1/turns?status=dead", 400, "bad_request"),
        ("GET", "/api/v1/conversations/x?before=x", 400, "bad_request"),
    ],
)
async def test_what_there_is_not_is_a_problem(
    api: RunningGateway, ann: Holder, method: str, path: str, status: int, code: str
) -> None:
    answer = await api.http.request(method, path, headers=ann.headers)
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status_code, answer.json()["code"]) == (status, code)


async def test_every_answer_has_an_id_of_its_own(api: RunningGateway) -> None:
    answers = [await api.http.get(path, headers={"X-Request-Id": "mine"}) for path in ("/info", "/nothing")]
    ids = {answer.headers["x-request-id"] for answer in answers}
    assert len(ids - {"mine"}) == 2


@pytest.mark.req("D-155")
async def test_a_key_over_its_rate_is_a_429_and_others_are_not(nats_server: NatsServer, database: PostgresSettings) -> None:
    async with gateway(nats_server, database, requests_per_second=0.1, burst=2) as running:
        ann, bob = await running.holder(), await running.holder()
        answers = [await running.http.get("/api/v1/tools", headers=ann.headers) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert (answers[2].json()["code"], 1 <= int(answers[2].headers["retry-after"]) <= 10) == ("too_many_requests", True)
        left = [re.findall(r'"user";r=(\d+)', answer.headers["ratelimit"]) for answer in answers]
        assert left == [["1"], ["0"], ["0"]]
        assert {answer.headers["ratelimit-policy"] for answer in answers} == {'"user";q=2;w=20, "tenant";q=2000;w=2'}
        assert (await running.http.get("/api/v1/tools", headers=bob.headers)).status_code == 200


async def test_requests_of_one_tenant_at_once_are_bounded_and_another_tenant_is_answered(
    nats_server: NatsServer, database: PostgresSettings
) -> None:
    async with gateway(nats_server, database, max_requests_per_tenant=1) as running:
        ann, bob = await running.holder(), await running.holder()
        answers = await asyncio.gather(*(running.http.get("/api/v1/conversations", headers=ann.headers) for _ in range(20)))
        assert {answer.status_code for answer in answers} == {200, 429}
        assert (await running.http.get("/api/v1/tools", headers=bob.headers)).status_code == 200
        assert (await running.http.get("/api/v1/tools", headers=ann.headers)).status_code == 200


async def test_pages_of_no_origin_may_read_answers_unless_it_is_listed(
    api: RunningGateway, nats_server: NatsServer, database: PostgresSettings
) -> None:
    origin = {"Origin": "https://console.example"}
    preflight = origin | {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    closed = [await api.http.get("/info", headers=origin), await api.http.options(MESSAGES, headers=preflight)]
    assert [a for a in closed if "access-control-allow-origin" in a.headers] == []
    async with gateway(nats_server, database, cors_origins=("https://console.example",)) as running:
        opened = [await running.http.get("/info", headers=origin), await running.http.options(MESSAGES, headers=preflight)]
        assert [a.headers["access-control-allow-origin"] for a in opened] == ["https://console.example"] * 2
        foreign = await running.http.get("/info", headers={"Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in foreign.headers


async def test_a_head_without_end_is_cut_off(api: RunningGateway) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", api.server.port)
    writer.write(b"GET /info HTTP/1.1\r\nx: ")
    try:
        for _ in range(64):
            writer.write(b"y" * 16_384)
            await writer.drain()
    except ConnectionError:
        pass
    async with asyncio.timeout(5):
        try:
            answer = await reader.read()
        except ConnectionError:
            answer = b""
    writer.close()
    assert answer == b"" or answer.startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("lengths", [b"Content-Length: -5\r\n", b"Content-Length: 3\r\nContent-Length: 30\r\n"])
async def test_a_length_that_cannot_be_is_refused(api: RunningGateway, lengths: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", api.server.port)
    writer.write(b"POST /api/v1/turns HTTP/1.1\r\nHost: x\r\n" + lengths + b"\r\n{}")
    async with asyncio.timeout(5):
        assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
    writer.close()


async def test_the_description_of_the_api_names_every_route_and_no_422(api: RunningGateway) -> None:
    description = (await api.http.get("/openapi.json")).json()
    assert {path for path in description["paths"] if path.startswith("/api")} == {
        MESSAGES,
        "/api/v1/chat/message",
        "/api/v1/turns",
        "/api/v1/turns/{id}",
        "/api/v1/turns/{id}/feedback",
        "/api/v1/turns/{id}/retry",
        "/api/v1/turns/{id}/replay",
        "/api/v1/turns/{id}/trace",
        "/api/v1/action-policy",
        "/api/v1/action-policy/versions",
        "/api/v1/approval-grants",
        "/api/v1/approval-grants/{id}",
        "/api/v1/approvals",
        "/api/v1/approvals/{id}",
        "/api/v1/forgettings",
        "/api/v1/forgettings/{id}",
        "/api/v1/schedules",
        "/api/v1/schedules/{id}",
        "/api/v1/tasks",
        "/api/v1/tasks/{id}",
        "/api/v1/tasks/{id}/answer",
        "/api/v1/tasks/{id}/events",
        "/api/v1/tasks/{id}/outcome",
        "/api/v1/strategies",
        "/api/v1/strategies/effect",
        "/api/v1/strategies/{id}",
        "/api/v1/tasks/{id}/report",
        "/api/v1/usage",
        "/api/v1/limits",
        "/api/v1/memory",
        "/api/v1/memory/search",
        "/api/v1/memory/context",
        "/api/v1/memory/{id}",
        "/api/v1/memory/{id}/history",
        "/api/v1/agents",
        "/api/v1/agents/{name}",
        "/api/v1/agents/{name}/versions",
        "/api/v1/agents/{name}/diff",
        "/api/v1/agents/{name}/rollback",
        "/api/v1/mcp-servers",
        "/api/v1/mcp-servers/{name}",
        "/api/v1/mcp-servers/{name}/tools",
        "/api/v1/turns/{id}/events",
        "/api/v1/turns/{id}/ticket",
        "/api/v1/conversations",
        "/api/v1/conversations/{id}",
        "/api/v1/deletions/{id}",
        "/api/v1/media",
        "/api/v1/media/{id}",
        "/api/v1/profile",
        "/api/v1/tools",
        "/api/v1/tools/{name}",
        "/api/v1/me",
        "/api/v1/keys",
        "/api/v1/keys/bus",
        "/api/v1/keys/{id}",
        "/api/v1/audit",
        "/api/v1/users",
        "/api/v1/users/{user_id}",
        "/api/v1/erasures",
        "/api/v1/erasures/{id}",
        "/api/v1/retention",
    }
    assert '"422"' not in json.dumps(description)


async def test_the_page_of_the_api_loads_its_script_and_styles_from_the_gateway_alone(api: RunningGateway) -> None:
    page = (await api.http.get("/docs")).text
    loaded = re.findall(r'<(?:script|link|img)[^>]* (?:src|href)="([^"]*)"', page)
    assert [re.sub(r".*/", "", address) for address in loaded] == ["swagger-ui.css", "favicon.png", "swagger-ui-bundle.js"]
    assert [(await api.http.get(address)).status_code for address in loaded] == [200, 200, 200]
    assert [address for address in loaded if not re.match(r"/\w", address)] == []
    assert re.findall(r'"validatorUrl": (.+?),?\n', page) == ["null"]


@pytest.mark.parametrize("path", ["/api/v1/mcp-servers", "/api/v1/tools/mcp_servers.add"])
async def test_an_outside_server_with_an_empty_address_is_refused_with_the_field(api: RunningGateway, path: str) -> None:
    admin = await api.holder(**Persona.ADMIN.rights)
    answer = await api.http.post(path, json={"name": "weather", "url": ""}, headers=admin.headers)
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (400, "bad_request", "url")


async def test_requests_are_counted_by_route_and_not_by_id(api: RunningGateway, ann: Holder) -> None:
    id = str(uuid4())
    await api.http.get(f"/api/v1/turns/{id}", headers=ann.headers)
    text = (await api.http.get("/metrics")).text
    assert 'gateway_requests_total{method="GET",route="/api/v1/turns/{id}",status="404"}' in text
    assert id not in text


async def test_a_body_that_comes_too_slowly_is_given_up(
    api: RunningGateway, ann: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "BODY_SECONDS", 0.2)
    reader, writer = await asyncio.open_connection("127.0.0.1", api.server.port)
    head = f"POST {MESSAGES} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ann.secret}\r\nContent-Length: 100\r\n\r\n{{"
    writer.write(head.encode())
    async with asyncio.timeout(5):
        assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
    writer.close()


async def test_a_head_that_comes_too_slowly_is_given_up(api: RunningGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.2)
    for begun in (b"", b"GET /info HTTP/1.1\r\nHost:", b"GET /info HTTP/1.1\r\nHost: x\r\n\r\nGET /info HT"):
        reader, writer = await asyncio.open_connection("127.0.0.1", api.server.port)
        writer.write(begun)
        async with asyncio.timeout(5):
            answer = await reader.read()
        assert answer.count(b"HTTP/1.1 200 ") == begun.count(b"\r\n\r\n")
        writer.close()
