"""The console behind HTTP: who is let in, from where, and what an answer carries that keeps others out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import httpx
import pytest

from phronesis_contracts.orchestrator import Problem, turn_id
from phronesis_gateway.console.session import COOKIE, IDLE
from phronesis_postgres import Database, PostgresSettings
from tests.support.gateway import Holder, RunningGateway, gateway
from tests.support.scripted_orchestrator import ScriptedOrchestrator
from tests.support.servers import NatsServer

PARTS = ("", "/events", "/trace")


@pytest.fixture
async def browser(api: RunningGateway) -> AsyncIterator[httpx.AsyncClient]:
    """A client with cookies of its own, that says where its forms come from as a browser does."""
    origin = f"http://127.0.0.1:{api.server.port}"
    headers = {"Origin": origin, "Sec-Fetch-Site": "same-origin"}
    async with httpx.AsyncClient(base_url=origin, headers=headers, timeout=20) as client:
        yield client


async def sign_in(browser: httpx.AsyncClient, secret: str, **headers: str) -> httpx.Response:
    return await browser.post("/console/sign-in", data={"key": secret}, headers=headers)


async def session(browser: httpx.AsyncClient, holder: Holder) -> dict[str, str]:
    """The header of a session that was begun now; the browser keeps none."""
    id = (await sign_in(browser, holder.secret)).cookies[COOKIE]
    browser.cookies.clear()
    return {"Cookie": f"{COOKIE}={id}"}


async def send(browser: httpx.AsyncClient, text: str, **headers: str) -> httpx.Response:
    return await browser.post("/console/messages", json={"currentMessageText": text}, headers=headers)


async def test_a_session_is_a_cookie_that_no_script_reads_and_no_other_site_sends(
    browser: httpx.AsyncClient, ann: Holder
) -> None:
    entered = await sign_in(browser, ann.secret)
    assert (entered.status_code, entered.headers["location"]) == (303, "/console")
    cookie = entered.headers["set-cookie"]
    assert cookie.partition("; ")[2] == "HttpOnly; Max-Age=28800; Path=/console; SameSite=strict"
    assert ann.secret not in cookie
    assert (await browser.get("/console")).status_code == 200


async def test_signing_out_ends_the_session_in_every_copy_and_not_only_the_cookie(
    api: RunningGateway, browser: httpx.AsyncClient, ann: Holder, nats_server: NatsServer, database: PostgresSettings
) -> None:
    kept = await session(browser, ann)
    async with gateway(nats_server, database) as copy:
        assert (await copy.http.get("/console", headers=kept)).status_code == 200
        left = await browser.post("/console/sign-out", headers=kept)
        assert (left.status_code, left.headers["location"]) == (303, "/console")
        assert [(await each.http.get("/console", headers=kept)).status_code for each in (api, copy)] == [401, 401]


async def test_signing_out_everywhere_ends_a_users_sessions_and_no_other_ones(
    api: RunningGateway, browser: httpx.AsyncClient, ann: Holder
) -> None:
    again, bob = await api.holder(tenant=ann.who.tenant, user=ann.who.user), await api.holder(tenant=ann.who.tenant)
    sessions = [await session(browser, holder) for holder in (ann, again, bob)]
    await browser.post("/console/sign-out", data={"everywhere": "yes"}, headers=sessions[0])
    assert [(await api.http.get("/console", headers=each)).status_code for each in sessions] == [401, 401, 200]


@pytest.mark.parametrize(
    ("column", "before"), [("expires_at", "0 seconds"), ("used_at", f"{IDLE} seconds")], ids=["too old", "unused"]
)
async def test_a_session_ends_when_it_is_old_or_unused(
    api: RunningGateway, browser: httpx.AsyncClient, ann: Holder, database: PostgresSettings, column: str, before: str
) -> None:
    await sign_in(browser, ann.secret)
    assert (await browser.get("/console")).status_code == 200
    async with Database.open(database, "gateway") as store, store.transaction(ann.who.tenant) as connection:
        changed = f"UPDATE sessions SET {column} = now() - interval '{before}' WHERE tenant = $1"
        await connection.execute(changed, ann.who.tenant)
    assert (await browser.get("/console")).status_code == 401


async def test_a_look_keeps_a_session_for_another_while(
    browser: httpx.AsyncClient, ann: Holder, database: PostgresSettings
) -> None:
    await sign_in(browser, ann.secret)
    async with Database.open(database, "gateway") as store:
        async with store.transaction(ann.who.tenant) as connection:
            await connection.execute("UPDATE sessions SET used_at = now() - interval '30 minutes'")
        assert (await browser.get("/console")).status_code == 200
        async with store.connection(ann.who.tenant) as connection:
            assert await connection.fetchval("SELECT used_at > now() - interval '1 minute' FROM sessions")


async def test_the_id_of_a_session_is_stored_nowhere(
    browser: httpx.AsyncClient, ann: Holder, database: PostgresSettings
) -> None:
    id = (await sign_in(browser, ann.secret)).cookies[COOKIE]
    async with Database.open(database, "gateway") as store, store.connection(ann.who.tenant) as connection:
        rows = [dict(row) for row in await connection.fetch("SELECT * FROM sessions")]
    assert len(rows) == 1
    assert id not in str(rows)
    assert ann.secret not in str(rows)


async def test_behind_https_the_cookie_is_never_sent_in_the_clear(browser: httpx.AsyncClient, ann: Holder) -> None:
    entered = await sign_in(browser, ann.secret, Origin="https://phronesis.example")
    assert entered.headers["set-cookie"].endswith("; Secure")


@pytest.mark.parametrize("secret", ["phr_" + "x" * 43, "", "no key", "eyJhbGciOiJub25lIn0.e30."])
async def test_what_is_no_key_opens_nothing(browser: httpx.AsyncClient, secret: str) -> None:
    refused = await sign_in(browser, secret)
    assert (refused.status_code, "set-cookie" in refused.headers, 'data-code="unauthorized"' in refused.text) == (
        401,
        False,
        True,
    )


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "https://other.phronesis.example", "Sec-Fetch-Site": "same-site"},
        {"Origin": "http://phronesis.example", "Sec-Fetch-Site": "same-origin"},
        {"Origin": "null", "Sec-Fetch-Site": "same-origin"},
    ],
)
async def test_forms_of_other_pages_and_of_open_lines_are_refused(
    browser: httpx.AsyncClient, ann: Holder, headers: dict[str, str]
) -> None:
    assert (await sign_in(browser, ann.secret, **headers)).status_code == 403
    await sign_in(browser, ann.secret)
    id = uuid4()
    for path in ("messages", f"turns/{id}/cancel", f"conversations/{id}/delete", "sign-out"):
        assert (await browser.post(f"/console/{path}", json={}, headers=headers)).status_code == 403


async def test_without_a_browsers_word_the_origin_has_to_be_the_host(api: RunningGateway, ann: Holder) -> None:
    here = f"http://127.0.0.1:{api.server.port}"
    answers = [
        await api.http.post("/console/sign-in", data={"key": ann.secret}, headers=headers)
        for headers in ({"Origin": here}, {"Origin": "http://127.0.0.1:1"}, {})
    ]
    api.http.cookies.clear()
    assert [answer.status_code for answer in answers] == [303, 403, 403]


async def test_nobody_who_is_not_signed_in_sees_anything(browser: httpx.AsyncClient) -> None:
    id = uuid4()
    paths = ["", "/conversations", f"/conversations/{id}", *(f"/turns/{id}{part}" for part in PARTS)]
    assert {(await browser.get(f"/console{path}")).status_code for path in paths} == {401}
    posts = ["/messages", f"/turns/{id}/cancel", f"/conversations/{id}/delete"]
    assert {(await browser.post(f"/console{path}", json={})).status_code for path in posts} == {401}


async def test_a_session_opens_the_console_alone_and_nothing_else_opens_it(
    api: RunningGateway, browser: httpx.AsyncClient, ann: Holder
) -> None:
    session = (await sign_in(browser, ann.secret)).cookies[COOKIE]
    turn = (await api.http.post("/api/v1/turns", json={"currentMessageText": "x"}, headers=ann.headers)).json()["turn_id"]
    ticket = (await api.http.post(f"/api/v1/turns/{turn}/ticket", headers=ann.headers)).json()["ticket"]
    by_session = await api.http.get("/api/v1/turns", headers={"Cookie": f"{COOKIE}={session}"})
    as_ticket = await api.http.get(f"/api/v1/turns/{turn}/events", params={"ticket": session})
    by_ticket = await api.http.get("/console", headers={"Cookie": f"{COOKIE}={ticket}"})
    by_bearer = await api.http.get("/console", headers=ann.headers)
    assert [answer.status_code for answer in (by_session, as_ticket, by_ticket, by_bearer)] == [401, 401, 401, 401]


async def test_another_persons_turn_is_not_there(
    api: RunningGateway, browser: httpx.AsyncClient, ann: Holder, orchestrator: ScriptedOrchestrator
) -> None:
    bob = await api.holder(tenant=ann.who.tenant)
    turn = (await api.http.post("/api/v1/turns", json={"currentMessageText": "mine"}, headers=bob.headers)).json()
    await sign_in(browser, ann.secret)
    answers = [await browser.get(f"/console/turns/{turn['turn_id']}{part}") for part in PARTS]
    answers.append(await browser.post(f"/console/turns/{turn['turn_id']}/cancel"))
    answers.append(await browser.get(f"/console/conversations/{turn['conversation_id']}"))
    answers.append(await browser.post(f"/console/conversations/{turn['conversation_id']}/delete"))
    assert {answer.status_code for answer in answers} == {404}


async def test_a_key_that_may_only_read_sends_nothing(api: RunningGateway, browser: httpx.AsyncClient) -> None:
    reader = await api.holder(scopes=("phronesis:read",))
    await sign_in(browser, reader.secret)
    refused = await send(browser, "hello")
    assert (refused.status_code, 'data-code="insufficient_scope"' in refused.text) == (403, True)
    assert (await browser.get("/console")).status_code == 200


async def test_the_same_message_with_the_same_key_is_one_turn(
    browser: httpx.AsyncClient, ann: Holder, orchestrator: ScriptedOrchestrator
) -> None:
    await sign_in(browser, ann.secret)
    key = uuid4().hex
    answers = [await send(browser, "once", **{"Idempotency-Key": key}) for _ in range(2)]
    id = turn_id(ann.who.tenant, ann.who.user, key)
    assert [(answer.status_code, f"/console/turns/{id}" in answer.text) for answer in answers] == [(201, True)] * 2


async def test_a_refusal_says_what_to_do(browser: httpx.AsyncClient, ann: Holder, orchestrator: ScriptedOrchestrator) -> None:
    text = f"too much {uuid4()}"
    busy = Problem(code="busy", status=503, detail="too many turns", retry_after=3)
    orchestrator.refuse = lambda turn: busy if turn.text == text else None
    await sign_in(browser, ann.secret)
    refused = await send(browser, text)
    assert refused.status_code == 503
    assert "Wait until one has ended, then send it again. It is worth trying in 3 s." in refused.text


async def test_a_turn_that_failed_says_why(browser: httpx.AsyncClient, ann: Holder, orchestrator: ScriptedOrchestrator) -> None:
    text = f"fails {uuid4()}"
    orchestrator.ends[text] = Problem(code="unavailable", status=503, detail="the <graph> is away")
    await sign_in(browser, ann.secret)
    turn = turn_id(ann.who.tenant, ann.who.user, "k")
    await send(browser, text, **{"Idempotency-Key": "k"})
    shown = (await browser.get(f"/console/turns/{turn}")).text
    assert ("the &lt;graph&gt; is away" in shown, "nothing is done twice" in shown) == (True, True)


async def test_every_page_keeps_foreign_scripts_styles_and_frames_out(browser: httpx.AsyncClient, ann: Holder) -> None:
    pages = [await browser.get("/console"), await sign_in(browser, "wrong")]
    await sign_in(browser, ann.secret)
    pages += [await browser.get("/console"), await send(browser, "hello"), await browser.get(f"/console/turns/{uuid4()}")]
    policies = {page.headers.get("content-security-policy", "") for page in pages}
    assert len(policies) == 1
    policy = policies.pop()
    assert "default-src 'none'; script-src 'self';" in policy
    assert ("unsafe" in policy, "http" in policy, "*" in policy) == (False, False, False)
    assert all("<script>" not in page.text and " style=" not in page.text and "//" not in page.text for page in pages)
    assert {page.headers["cache-control"] for page in pages} == {"no-store"}


async def test_files_of_the_pages_are_kept_by_browsers_and_there_are_no_others(api: RunningGateway) -> None:
    names = ("console.js", "console.css", "icon.svg", "plotly.min.js")
    found = [await api.http.get(f"/console/assets/{name}") for name in names]
    assert {(file.status_code, file.headers["cache-control"]) for file in found} == {
        (200, "public, max-age=31536000, immutable")
    }
    for name in ("x.js", "..%2Froutes.py", "%2e%2e/routes.py", "widgetbundle.js"):
        assert (await api.http.get(f"/console/assets/{name}")).status_code == 404


async def test_the_console_is_no_part_of_the_described_api(api: RunningGateway) -> None:
    described = (await api.http.get("/openapi.json")).json()
    assert [path for path in described["paths"] if path.startswith("/console")] == []
