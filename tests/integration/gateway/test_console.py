"""Sessions of the console: who is let in, from where, and what a page carries that keeps others out."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import httpx
import pytest

from phronesis_gateway.auth.sessions import COOKIE, IDLE
from phronesis_postgres import Database, PostgresSettings
from tests.support.gateway import Holder, RunningGateway, gateway
from tests.support.servers import NatsServer


@pytest.fixture
async def browser(api: RunningGateway) -> AsyncIterator[httpx.AsyncClient]:
    """A client with cookies of its own, that says where its forms come from as a browser does."""
    origin = f"http://127.0.0.1:{api.server.port}"
    headers = {"Origin": origin, "Sec-Fetch-Site": "same-origin"}
    async with httpx.AsyncClient(base_url=origin, headers=headers, timeout=20) as client:
        yield client


ME = "/api/v1/me"


async def sign_in(browser: httpx.AsyncClient, secret: str, **headers: str) -> httpx.Response:
    return await browser.post("/console/session", json={"key": secret}, headers=headers)


async def session(browser: httpx.AsyncClient, holder: Holder) -> dict[str, str]:
    """The headers of a session that was begun now; the browser keeps none."""
    id = (await sign_in(browser, holder.secret)).cookies[COOKIE]
    browser.cookies.clear()
    return {"Cookie": f"{COOKIE}={id}", "Sec-Fetch-Site": "same-origin"}


async def test_a_session_is_a_cookie_that_no_script_reads_and_no_other_site_sends(
    browser: httpx.AsyncClient, ann: Holder
) -> None:
    entered = await sign_in(browser, ann.secret)
    assert entered.status_code == 204
    cookie = entered.headers["set-cookie"]
    assert cookie.partition("; ")[2] == "HttpOnly; Max-Age=28800; Path=/; SameSite=strict"
    assert ann.secret not in cookie
    assert (await browser.get(ME)).json()["user"] == ann.who.user


async def test_signing_out_ends_the_session_in_every_copy_and_not_only_the_cookie(
    api: RunningGateway, browser: httpx.AsyncClient, ann: Holder, nats_server: NatsServer, database: PostgresSettings
) -> None:
    kept = await session(browser, ann)
    async with gateway(nats_server, database) as copy:
        assert (await copy.http.get(ME, headers=kept)).status_code == 200
        assert (await browser.delete("/console/session", headers=kept)).status_code == 204
        assert [(await each.http.get(ME, headers=kept)).status_code for each in (api, copy)] == [401, 401]


async def test_signing_out_everywhere_ends_a_users_sessions_and_no_other_ones(
    api: RunningGateway, browser: httpx.AsyncClient, ann: Holder
) -> None:
    again, bob = await api.holder(tenant=ann.who.tenant, user=ann.who.user), await api.holder(tenant=ann.who.tenant)
    sessions = [await session(browser, holder) for holder in (ann, again, bob)]
    await browser.delete("/console/session?everywhere=true", headers=sessions[0])
    assert [(await api.http.get(ME, headers=each)).status_code for each in sessions] == [401, 401, 200]


@pytest.mark.parametrize(
    ("column", "before"), [("expires_at", "0 seconds"), ("used_at", f"{IDLE} seconds")], ids=["too old", "unused"]
)
async def test_a_session_ends_when_it_is_old_or_unused(
    api: RunningGateway, browser: httpx.AsyncClient, ann: Holder, database: PostgresSettings, column: str, before: str
) -> None:
    await sign_in(browser, ann.secret)
    assert (await browser.get(ME)).status_code == 200
    async with Database.open(database, "gateway") as store, store.transaction(ann.who.tenant) as connection:
        changed = f"UPDATE sessions SET {column} = now() - interval '{before}' WHERE tenant = $1"
        await connection.execute(changed, ann.who.tenant)
    assert (await browser.get(ME)).status_code == 401


async def test_a_look_keeps_a_session_for_another_while(
    browser: httpx.AsyncClient, ann: Holder, database: PostgresSettings
) -> None:
    await sign_in(browser, ann.secret)
    async with Database.open(database, "gateway") as store:
        async with store.transaction(ann.who.tenant) as connection:
            await connection.execute("UPDATE sessions SET used_at = now() - interval '30 minutes'")
        assert (await browser.get(ME)).status_code == 200
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
    assert (refused.status_code, refused.json()["code"], "set-cookie" in refused.headers) == (401, "unauthorized", False)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"key": 1}', b"{"])
async def test_what_holds_no_key_is_refused(browser: httpx.AsyncClient, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    assert (await browser.post("/console/session", content=body, headers=headers)).status_code in (400, 401)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "https://other.phronesis.example", "Sec-Fetch-Site": "same-site"},
        {"Origin": "http://phronesis.example", "Sec-Fetch-Site": "same-origin"},
        {"Origin": "null", "Sec-Fetch-Site": "same-origin"},
    ],
)
async def test_other_sites_and_open_lines_can_neither_sign_in_nor_use_a_session(
    browser: httpx.AsyncClient, ann: Holder, headers: dict[str, str]
) -> None:
    assert (await sign_in(browser, ann.secret, **headers)).status_code == 403
    await sign_in(browser, ann.secret)
    answers = [
        await browser.get(ME, headers=headers),
        await browser.post("/api/v1/turns", json={"currentMessageText": "x"}, headers=headers),
        await browser.delete("/console/session", headers=headers),
    ]
    assert [answer.status_code for answer in answers] == [403, 403, 403]


async def test_a_request_without_a_browsers_word_needs_the_origin_to_be_the_host(api: RunningGateway, ann: Holder) -> None:
    here = f"http://127.0.0.1:{api.server.port}"
    answers = [
        await api.http.post("/console/session", json={"key": ann.secret}, headers=headers)
        for headers in ({"Origin": here}, {"Origin": "http://127.0.0.1:1"}, {})
    ]
    api.http.cookies.clear()
    assert [answer.status_code for answer in answers] == [204, 403, 403]


async def test_a_key_in_the_header_counts_before_a_session(
    api: RunningGateway, browser: httpx.AsyncClient, ann: Holder
) -> None:
    bob = await api.holder(tenant=ann.who.tenant)
    await sign_in(browser, ann.secret)
    assert (await browser.get(ME, headers=bob.headers)).json()["user"] == bob.who.user


async def test_a_session_may_do_what_its_key_may_and_no_more(api: RunningGateway, browser: httpx.AsyncClient) -> None:
    reader = await api.holder(scopes=("phronesis:read",))
    await sign_in(browser, reader.secret)
    refused = await browser.post("/api/v1/turns", json={"currentMessageText": "x"})
    assert (refused.status_code, refused.json()["code"]) == (403, "insufficient_scope")


async def test_every_page_keeps_foreign_scripts_styles_and_frames_out(browser: httpx.AsyncClient) -> None:
    pages = [await browser.get(path) for path in ("/console", "/console/memory/x", "/console/chat")]
    assert {page.headers["content-type"] for page in pages} == {"text/html; charset=utf-8"}
    (policy,) = {page.headers["content-security-policy"] for page in pages}
    assert "default-src 'none'; script-src 'self'; style-src 'self';" in policy
    assert ("unsafe" in policy, "http" in policy, "*" in policy) == (False, False, False)
    assert all(" style=" not in page.text and "//" not in page.text for page in pages)


async def test_files_of_the_pages_are_kept_by_browsers_and_there_are_no_others(
    api: RunningGateway, browser: httpx.AsyncClient
) -> None:
    names = re.findall(r"/console/assets/(\w+-[\w.-]+)", (await browser.get("/console")).text)
    assert len(names) >= 4
    found = [await api.http.get(f"/console/assets/{name}") for name in names]
    assert {(file.status_code, file.headers["cache-control"]) for file in found} == {
        (200, "public, max-age=31536000, immutable")
    }
    for name in ("x.js", "..%2Fweb.py", "x/index.html"):
        assert (await api.http.get(f"/console/assets/{name}")).status_code == 404


@pytest.mark.parametrize(
    ("accepted", "encoding"), [("br, gzip", "gzip"), ("gzip;q=0.5", "gzip"), ("gzip;q=0", None), ("identity", None), ("", None)]
)
async def test_files_of_the_pages_are_compressed_for_whoever_takes_it(
    api: RunningGateway, browser: httpx.AsyncClient, accepted: str, encoding: str | None
) -> None:
    [name, *_] = re.findall(r"/console/assets/(main-[\w.-]+\.js)", (await browser.get("/console")).text)
    plain = await api.http.get(f"/console/assets/{name}", headers={"Accept-Encoding": "identity"})
    found = await api.http.get(f"/console/assets/{name}", headers={"Accept-Encoding": accepted})
    assert (found.headers.get("content-encoding"), found.headers["vary"]) == (encoding, "Accept-Encoding")
    assert found.content == plain.content
    assert (int(found.headers["content-length"]) < len(plain.content)) is (encoding is not None)


async def test_the_console_is_no_part_of_the_described_api(api: RunningGateway) -> None:
    described = (await api.http.get("/openapi.json")).json()
    assert [path for path in described["paths"] if path.startswith("/console")] == []
