"""What a server of the Model Context Protocol must do, one test for each; `docs/how-to/mcp.md` has the table."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from mcp import Client
from mcp_types import PROTOCOL_VERSION_META_KEY

from phronesis_contracts.service import AUDITED
from phronesis_gateway.mcp.endpoint import HEADERS, WELL_KNOWN
from phronesis_gateway.settings import McpSettings
from phronesis_postgres import PostgresSettings
from tests.support import mcp
from tests.support.gateway import Holder, RunningGateway, gateway
from tests.support.issuer import Issuer
from tests.support.mcp import message, post
from tests.support.servers import NatsServer

LIST = message("tools/list")
RECALL = message("tools/call", {"name": "recall", "arguments": {"query": "q"}})


def error_of(answer: httpx.Response) -> tuple[int, int]:
    """Status and code of an error of the protocol."""
    body = answer.json()
    assert body["jsonrpc"] == "2.0"
    return answer.status_code, body["error"]["code"]


# Discovery and the revisions


async def test_discovery_tells_the_revisions_and_the_capabilities_without_a_handshake(api: RunningGateway, ann: Holder) -> None:
    answer = await post(api, ann, message("server/discover"))
    found = answer.json()["result"]
    assert (answer.status_code, found["supportedVersions"], found["resultType"]) == (200, [mcp.NOW], "complete")
    assert ("tools" in found["capabilities"], "mcp-session-id" in answer.headers) == (True, False)


@pytest.mark.parametrize("asked", ["2025-11-25", "2025-06-18", "2025-03-26", "1999-01-01"])
async def test_a_handshake_agrees_on_the_revision_before(api: RunningGateway, ann: Holder, asked: str) -> None:
    params = {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    answer = await post(api, ann, body, MCP_Protocol_Version="", Mcp_Method="")
    agreed = _sse(answer)["result"]["protocolVersion"]
    assert (answer.status_code, agreed) == (200, mcp.BEFORE if asked == "1999-01-01" else asked)


async def test_a_revision_that_is_not_spoken_is_refused_with_those_that_are(api: RunningGateway, ann: Holder) -> None:
    body = message("tools/list")
    body["params"]["_meta"][PROTOCOL_VERSION_META_KEY] = "2099-01-01"
    answer = await post(api, ann, body, MCP_Protocol_Version="2099-01-01")
    assert error_of(answer) == (400, -32022)
    assert answer.json()["error"]["data"] == {"supported": [mcp.NOW], "requested": "2099-01-01"}


async def test_requests_need_no_session_and_any_copy_of_the_gateway_serves_any_of_them(
    api: RunningGateway, ann: Holder, nats_server: NatsServer, database: PostgresSettings
) -> None:
    async with gateway(nats_server, database) as other, mcp.agent(api, ann, "legacy") as client:
        first = await client.list_tools()
        old = {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}
        named = await post(other, ann, old, MCP_Protocol_Version=mcp.BEFORE, Mcp_Session_Id="made-up")
        assert [tool["name"] for tool in _sse(named)["result"]["tools"]] == [tool.name for tool in first.tools]


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
async def test_there_is_nothing_at_the_endpoint_but_post(api: RunningGateway, ann: Holder, method: str) -> None:
    answer = await api.http.request(method, mcp.PATH, headers=ann.headers | {"Accept": "text/event-stream"})
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


# Headers and body


@pytest.mark.parametrize(
    "headers",
    [
        {"Mcp_Method": "tools/call"},
        {"Mcp_Method": ""},
        {"Mcp_Name": "remember"},
        {"Mcp_Name": ""},
        {"Mcp_Name": "=?base64?!!!?="},
        {"MCP_Protocol_Version": mcp.BEFORE},
        {"MCP_Protocol_Version": ""},
    ],
)
async def test_headers_that_do_not_say_what_the_body_says_are_refused(
    api: RunningGateway, ann: Holder, headers: dict[str, str]
) -> None:
    body = LIST if "Mcp_Method" in headers else RECALL
    assert error_of(await post(api, ann, body, **headers)) == (400, -32020)


async def test_a_routing_header_that_comes_twice_is_refused(api: RunningGateway, ann: Holder) -> None:
    given = list((mcp.headers_of(RECALL) | ann.headers).items())
    answer = await api.http.post(mcp.PATH, json=RECALL, headers=[*given, ("Mcp-Name", "remember")])
    assert error_of(answer) == (400, -32020)


async def test_an_envelope_without_its_parts_is_refused(api: RunningGateway, ann: Holder) -> None:
    bare = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    assert error_of(await post(api, ann, bare)) == (400, -32602)


@pytest.mark.parametrize(
    ("accept", "status"), [("application/json", 406), ("text/event-stream", 406), ("text/html", 406), ("*/*", 200)]
)
async def test_a_client_has_to_take_both_forms_of_an_answer(api: RunningGateway, ann: Holder, accept: str, status: int) -> None:
    assert (await post(api, ann, LIST, Accept=accept)).status_code == status


async def test_a_body_of_another_type_is_refused(api: RunningGateway, ann: Holder) -> None:
    assert (await post(api, ann, LIST, Content_Type="text/plain")).status_code == 400


# Messages


@pytest.mark.parametrize("revision", [mcp.NOW, mcp.BEFORE])
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b'{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"ping"}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"a":' * 200 + b"1" + b"}" * 201, -32700),
        (b"\xff\xfe{}", -32700),
        (json.dumps([LIST]).encode(), -32600),
        (b'"ping"', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"tools/list"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}', -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"tools/list"}', -32600),
    ],
)
async def test_what_is_no_message_is_refused_and_runs_nothing(
    api: RunningGateway, ann: Holder, revision: str, body: bytes, code: int
) -> None:
    answer = await post(api, ann, body, MCP_Protocol_Version=revision, Mcp_Method="tools/list")
    assert error_of(answer) == (400, code)
    assert answer.json()["id"] is None


async def test_an_unknown_method_is_a_404(api: RunningGateway, ann: Holder) -> None:
    for method in ("nothing/here", "prompts/list", "resources/read", "ping/../tools"):
        assert error_of(await post(api, ann, message(method, {"uri": "x", "name": "x"}, id=method))) == (404, -32601)


@pytest.mark.parametrize("id", [0, -1, "", "a" * 1_000, 2**53])
async def test_the_id_of_a_request_comes_back_as_it_was(api: RunningGateway, ann: Holder, id: Any) -> None:
    assert (await post(api, ann, message("tools/list", id=id))).json()["id"] == id


async def test_the_same_id_twice_at_once_is_two_answers(api: RunningGateway, ann: Holder) -> None:
    answers = await asyncio.gather(*(post(api, ann, LIST) for _ in range(4)))
    assert [(answer.status_code, answer.json()["id"]) for answer in answers] == [(200, 1)] * 4


@pytest.mark.parametrize("revision", [mcp.NOW, mcp.BEFORE])
async def test_a_notification_is_taken_without_an_answer(api: RunningGateway, ann: Holder, revision: str) -> None:
    body = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    answer = await post(api, ann, body, MCP_Protocol_Version=revision)
    assert (answer.status_code, answer.content) == (202, b"")


async def test_a_schema_refers_to_nothing_outside_of_itself_and_asks_for_no_header(api: RunningGateway, ann: Holder) -> None:
    tools = (await post(api, ann, LIST)).json()["result"]["tools"]
    text = json.dumps([(tool["inputSchema"], tool.get("outputSchema")) for tool in tools])
    assert ('"$ref": "http' in text, "x-mcp-header" in text) == (False, False)
    assert {tool["inputSchema"]["type"] for tool in tools} == {"object"}


# Who may


async def test_who_is_not_let_in_is_told_where_to_read_how(api: RunningGateway) -> None:
    stranger = await post(api, None, LIST)
    wrong = await post(api, None, LIST, Authorization="Bearer phr_" + "x" * 43)
    address = f"http://127.0.0.1:{api.server.port}{WELL_KNOWN}/mcp"
    assert (stranger.status_code, wrong.status_code) == (401, 401)
    assert stranger.headers["www-authenticate"] == f'Bearer resource_metadata="{address}"'
    assert wrong.headers["www-authenticate"] == f'Bearer error="invalid_token", resource_metadata="{address}"'
    assert (await api.http.get(address)).json() == {
        "resource": mcp.url(api),
        "authorization_servers": [],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["phronesis:read", "phronesis:write"],
        "resource_name": "Phronesis",
    }
    assert (await api.http.get(WELL_KNOWN)).json() == (await api.http.get(address)).json()


@pytest.mark.parametrize("name", ["access_token", "token", "key", "ticket"])
async def test_a_key_in_the_address_lets_nobody_in(api: RunningGateway, ann: Holder, name: str) -> None:
    answer = await api.http.post(f"{mcp.PATH}?{name}={ann.secret}", json=LIST, headers=mcp.headers_of(LIST))
    assert answer.status_code == 401


async def test_every_request_needs_the_key_and_a_session_lets_nobody_in(api: RunningGateway, ann: Holder) -> None:
    async with mcp.agent(api, ann, "legacy") as client:
        await client.list_tools()
    old = {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}
    named = await post(api, None, old, MCP_Protocol_Version=mcp.BEFORE, Mcp_Session_Id="a" * 32)
    assert named.status_code == 401


async def test_a_body_of_a_stranger_is_never_read(api: RunningGateway) -> None:
    assert (await post(api, None, b"{" * 1_000)).status_code == 401


async def test_two_headers_that_authorize_let_nobody_in(api: RunningGateway, ann: Holder) -> None:
    given = [*mcp.headers_of(LIST).items(), *ann.headers.items(), ("Authorization", "Bearer other")]
    assert (await api.http.post(mcp.PATH, json=LIST, headers=given)).status_code == 401


async def test_a_token_for_this_server_lets_in_and_one_for_another_does_not(
    nats_server: NatsServer, database: PostgresSettings
) -> None:
    issuer = Issuer()
    tokens = issuer.tokens()
    async with gateway(nats_server, database, tokens) as api:
        found = (await api.http.get(WELL_KNOWN + mcp.PATH)).json()
        claims = {"tenant": "t-mcp", "sub": "u-mcp"}
        answers = [
            await post(api, None, LIST, Authorization=f"Bearer {issuer.token('ed', **claims | changes)}")
            for changes in ({}, {"aud": "https://other.example/mcp"}, {"exp": 1})
        ]
    assert found["authorization_servers"] == [tokens.settings.issuer]
    assert [answer.status_code for answer in answers] == [200, 401, 401]


@pytest.mark.parametrize("tool", ["remember", "ask"])
async def test_too_small_a_scope_is_a_403_that_names_the_one_it_takes_and_is_audited(
    api: RunningGateway, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = await api.holder(scopes=("phronesis:read",))
    published: list[tuple[str, Any]] = []
    publish = api.bus.request

    async def heard(subject: str, body: bytes, **more: Any) -> Any:
        published.append((subject, json.loads(body)))
        return await publish(subject, body, **more)

    monkeypatch.setattr(api.bus, "request", heard)
    answer = await post(api, small, message("tools/call", {"name": tool, "arguments": {"message": "x"}}))
    assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")
    assert answer.headers["www-authenticate"] == (
        'Bearer error="insufficient_scope", scope="phronesis:write", '
        f'resource_metadata="http://127.0.0.1:{api.server.port}{WELL_KNOWN}/mcp"'
    )
    mine = [entry for subject, entry in published if subject == AUDITED["gateway"].on(small.who.tenant)]
    assert [(entry["action"], entry["outcome"], entry["code"]) for entry in mine] == [(tool, "refused", "insufficient_scope")]
    assert (await post(api, small, LIST)).status_code == 200


async def test_a_scope_narrows_http_as_well(api: RunningGateway) -> None:
    small, whole = await api.holder(scopes=("phronesis:read",)), await api.holder(scopes=("phronesis:write",))
    statuses = []
    for holder in (small, whole):
        for path in ("/api/v1/tools/remember", "/api/v1/turns"):
            statuses.append((await api.http.post(path, json={}, headers=holder.headers)).status_code)
    assert statuses == [403, 403, 400, 400]


async def test_the_rate_of_a_key_holds_here_too(nats_server: NatsServer, database: PostgresSettings) -> None:
    async with gateway(nats_server, database, requests_per_second=0.01, burst=2) as api:
        holder = await api.holder()
        answers = [await post(api, holder, LIST) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert int(answers[2].headers["retry-after"]) >= 1


async def test_a_body_over_the_limit_is_refused(api: RunningGateway, ann: Holder) -> None:
    large = message("tools/call", {"name": "recall", "arguments": {"query": "x" * (1024 * 1024)}})
    assert (await post(api, ann, large)).status_code == 413


async def test_the_key_that_a_caller_presents_goes_no_further(
    api: RunningGateway, ann: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    publish = api.bus.request

    async def heard(subject: str, body: bytes, **more: Any) -> Any:
        sent.append(f"{body!r} {more}")
        return await publish(subject, body, **more)

    monkeypatch.setattr(api.bus, "request", heard)
    await post(api, ann, RECALL)
    assert (len(sent) > 0, any(ann.secret in one for one in sent)) == (True, False)


# From where


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1.evil.example", "http://localhost.evil:80"]
)
async def test_a_page_of_another_origin_is_refused(api: RunningGateway, ann: Holder, origin: str) -> None:
    for path, verb in ((mcp.PATH, "POST"), (WELL_KNOWN, "GET")):
        answer = await api.http.request(verb, path, json=LIST, headers=mcp.headers_of(LIST) | ann.headers | {"Origin": origin})
        assert answer.status_code == 403


@pytest.mark.parametrize("origin", ["http://localhost:3000", "http://127.0.0.1:6274", "http://[::1]:1"])
async def test_a_page_of_this_machine_may_ask(api: RunningGateway, ann: Holder, origin: str) -> None:
    assert (await post(api, ann, LIST, Origin=origin)).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example:1"])
async def test_a_name_that_is_not_ours_is_refused(api: RunningGateway, ann: Holder, host: str) -> None:
    answers = [
        await post(api, ann, LIST, Host=host),
        await api.http.get(WELL_KNOWN, headers={"Host": host}),
    ]
    assert [answer.status_code for answer in answers] == [421, 421]


async def test_the_operator_names_where_it_is_reached_from_outside(nats_server: NatsServer, database: PostgresSettings) -> None:
    outside = McpSettings(urls=("https://phronesis.example", "http://gateway.ns.svc:8080"))
    async with gateway(nats_server, database, mcp=outside, cors_origins=("https://app.example",)) as api:
        holder = await api.holder()
        hosts = [(await post(api, holder, LIST, Host=h)).status_code for h in ("phronesis.example", "gateway.ns.svc:8080")]
        page = await post(api, holder, LIST, Origin="https://app.example")
        found = (await api.http.get(WELL_KNOWN, headers={"Host": "phronesis.example"})).json()["resource"]
        leave = await api.http.options(
            mcp.PATH,
            headers={
                "Origin": "https://app.example",
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": ", ".join(HEADERS),
            },
        )
    assert (hosts, page.status_code, found, leave.status_code) == ([200, 200], 200, "https://phronesis.example/mcp", 200)


async def test_the_official_client_is_told_that_it_is_not_let_in(api: RunningGateway) -> None:
    with pytest.raises(Exception) as error:
        async with Client(mcp.url(api)):
            pass
    assert "error response" in repr(error.value)


def _sse(answer: httpx.Response) -> dict[str, Any]:
    """The message in an answer of the revision before."""
    data = next(line for line in answer.text.splitlines() if line.startswith("data: "))
    found: dict[str, Any] = json.loads(data.removeprefix("data: "))
    return found
