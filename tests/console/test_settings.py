"""People and administrators at the pages of settings: users, limits, policy, retention, profile, outside tools."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from tests.console.house import House, house
from tests.console.keeping import faults
from tests.console.pages import signed_in, visit
from tests.console.payloads import PAYLOADS, ran
from tests.support.browser import Page
from tests.support.bus import eventually
from tests.support.mcp_outsiders import RunningOutsider, outsider
from tests.support.people import Person

pytestmark = [pytest.mark.verify, pytest.mark.timeout(300)]

PARTS = ("profile", "usage", "keys", "users", "agents", "tools", "policy", "models", "audit", "retention")
ADMINISTRATORS_ALONE = ("keys", "users", "tools", "models", "audit", "retention")


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[RunningOutsider]:
    """An outside MCP server."""
    async with outsider() as running:
        yield running


@pytest.fixture(scope="module")
async def here(tmp_path_factory: pytest.TempPathFactory, server: RunningOutsider) -> AsyncIterator[House]:
    folder = tmp_path_factory.mktemp("settings") / "data"
    async with house(folder, MEDIA_TRUSTED_HOSTS=json.dumps([server.place])) as opened:
        yield opened


@pytest.fixture(scope="module")
async def ada(here: House) -> Person:
    """An administrator."""
    return await here.people.someone(role="admin")


@pytest.fixture(scope="module")
async def page(here: House, ada: Person, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    async with signed_in(tmp_path_factory.mktemp("profile"), here.url, ada.key) as opened:
        yield opened


async def test_a_user_is_erased_after_a_preview_and_a_typed_name(here: House, page: Page, ada: Person) -> None:
    gone = await here.people.someone(tenant=ada.tenant)
    await gone.http.post("/api/v1/memory", json={"memories": [{"text": "My locker is number nine."}]})
    await visit(page, here.url, "/settings/users")
    await page.click(f"button[aria-label='Erase {gone.user}']")
    await page.told("dialog .settings-counts", "memory")
    assert await page.run("return document.querySelector('dialog .button.danger').disabled") is True
    await page.fill(f"Type {gone.user} to confirm", gone.user)
    await page.click("dialog .button.danger")
    await page.told("tr", "Complete")
    (erasure,) = (await ada.http.get("/api/v1/erasures")).json()["erasures"]
    assert (erasure["user"], erasure["state"]) == (gone.user, "complete")


async def test_everybody_of_the_tenant_is_listed_and_found_by_name(here: House, page: Page, ada: Person) -> None:
    await ada.http.post("/api/v1/keys", json={"user": "zoe", "role": "reader", "agents": ["noor"]})
    await visit(page, here.url, "/settings/users?q=zo")
    script = "return [...document.querySelectorAll('tbody td')].slice(0, 5).map(cell => cell.textContent)"
    assert await page.run(script) == ["zoe", "Reader", "Never", "0", "1"]
    await visit(page, here.url, "/settings/users?q=nobody")
    assert (await page.text(".empty-title"), await page.complaints()) == ("No user has such a name.", [])


async def test_a_limit_is_set_and_its_removal_undone(here: House, page: Page, ada: Person) -> None:
    limit = {"window": "day", "agent": None, "user": "bo", "tokens": 5000, "usd": None}

    async def held() -> list[dict[str, object]]:
        limits = (await ada.http.get("/api/v1/limits")).json()["limits"]
        return [{name: each[name] for name in limit} for each in limits]

    await visit(page, here.url, "/settings/usage")
    await page.press("Set a limit")
    chosen = "select.value = 'day'; select.dispatchEvent(new Event('change', {bubbles: true}))"
    await page.run(f"const select = document.querySelector('dialog select'); {chosen}")
    await page.fill("User", "bo")
    await page.fill("Tokens", "5000")
    await page.click("dialog .button.primary")
    await page.told("td", "user bo")
    assert await held() == [limit]
    await page.click("button[aria-label='Remove user bo']")
    await page.click("dialog .button.danger")
    await page.told(".toast", "The limit is removed.")
    await page.until(lambda driver: not driver.find_elements("css selector", "[aria-label='Remove user bo']"))
    assert await held() == []
    await page.press("Undo")
    await page.told("td", "user bo")
    assert await held() == [limit]


async def test_a_rule_is_added_and_the_version_before_is_restored(here: House, page: Page, ada: Person) -> None:
    await visit(page, here.url, "/settings/policy")
    for host in ("one.example", "two.example"):
        await page.click(".card-actions .button")
        await page.fill("Hosts that data may be sent to", host)
        if host == "one.example":
            await page.press("Add a rule")
        await page.click("dialog .button.primary")
        await page.told(".facts dd", host)
    policy = (await ada.http.get("/api/v1/action-policy")).json()["policy"]
    rule = {"origin": "web", "effect": "outbound", "ruling": "refuse"}
    assert (policy["version"], policy["egress"], policy["rules"]) == (2, ["two.example"], [rule])
    await page.click("button[aria-label='Restore 1']")
    await page.click("dialog .button.danger")
    await page.told(".facts dd", "one.example")
    restored = (await ada.http.get("/api/v1/action-policy")).json()
    assert (restored["policy"]["version"], restored["restores"], restored["policy"]["egress"]) == (3, 1, ["one.example"])


async def test_shorter_retention_says_what_it_deletes_before_it_is_saved(here: House, page: Page, ada: Person) -> None:
    await visit(page, here.url, "/settings/retention")
    await page.fill("Traces", "30")
    await page.press("Save")
    await page.told("dialog", "Traces: older than 30 days")
    assert (await ada.http.get("/api/v1/retention")).json()["traces"] is None
    await page.click("dialog .button.danger")
    await page.told(".toast", "Saved.")
    assert (await ada.http.get("/api/v1/retention")).json()["traces"] == 30


async def test_a_profile_is_changed_and_the_change_undone(here: House, page: Page, ada: Person) -> None:
    await visit(page, here.url, "/settings/profile")
    await page.press("Edit")
    await page.fill("Profile as JSON", json.dumps({"language": "German"}))
    await page.click("dialog .button.primary")
    await page.told(".facts", "German")
    assert (await ada.http.get("/api/v1/profile")).json()["profile"] == {"language": "German"}
    await page.press("Undo")
    await page.told(".empty-title", "Nothing stands in your profile")
    assert (await ada.http.get("/api/v1/profile")).json()["profile"] == {}


async def test_an_own_agent_shows_what_changed_and_goes_back(here: House, page: Page, ada: Person) -> None:
    for text in ("Answer in one sentence.", "Answer in two sentences."):
        body = {"based_on": "dialogue", "instructions": text}
        answer = await ada.http.put("/api/v1/agents/brief", json=body, headers={"Idempotency-Key": uuid4().hex})
        assert answer.status_code == 200, answer.text
    await visit(page, here.url, "/settings/agents/brief?before=1")
    await page.told(".diff .added", "two sentences")
    await page.click("button[aria-label='Restore 1']")
    await page.told("dialog .diff", "one sentence")
    await page.click("dialog .button.danger")
    await page.told(".settings-text", "Answer in one sentence.")
    shown = (await ada.http.get("/api/v1/agents/brief")).json()
    assert shown["definition"]["instructions"] == "Answer in one sentence."


async def test_an_agent_is_made_looked_at_first_then_deleted_and_brought_back(here: House, page: Page, ada: Person) -> None:
    await visit(page, here.url, "/settings/agents")
    await page.press("Make an agent")
    await page.fill("Name", "librarian")
    await page.fill("Instructions", "Name the note.")
    await page.press("Look at the change")
    await page.told("dialog .diff .added", "Name the note.")
    assert (await ada.http.get("/api/v1/agents/librarian")).status_code == 404
    await page.press("Publish version 1")
    await page.told(".settings-text", "Name the note.")
    await page.press("Delete")
    await page.click("dialog .button.danger")
    await page.told(".toast", "librarian is deleted.")
    assert (await ada.http.get("/api/v1/agents/librarian")).status_code == 404
    await page.press("Undo")
    await page.told(".settings-text", "Name the note.")
    assert await page.complaints() == []


async def test_a_packaged_agent_shows_how_it_works_and_is_not_changed(here: House, page: Page) -> None:
    await visit(page, here.url, "/settings/agents/noor")
    await page.told(".facts dt", "Works by")
    assert (await page.count(".card-actions .button"), await page.complaints()) == (0, [])


async def test_what_an_outside_tool_says_anew_is_called_once_it_is_accepted_anew(
    here: House, page: Page, ada: Person, server: RunningOutsider
) -> None:
    async def accepted() -> list[tuple[str, int]]:
        (out,) = (await ada.http.get("/api/v1/mcp-servers")).json()["servers"]
        return [(tool["description"], tool["risk"]) for tool in out["tools"]]

    add = "[...document.querySelectorAll('.settings-tool')].find(e => e.querySelector('h3').textContent === 'add')"
    await visit(page, here.url, "/settings/tools")
    await page.press("Add a server")
    await page.fill("Name", "out")
    await page.fill("Address", server.url)
    await page.click("dialog .button.primary")
    await page.told(".settings-tool", "Add two numbers.")
    assert await accepted() == []
    await page.run(f"{add}.querySelector('.button.primary').click()")
    await page.told(".toast", "add is accepted.")
    assert await accepted() == [("Add two numbers.", 3)]
    await page.told(".settings-tool .badge.good", "Accepted")  # the page has asked the server once more
    server.says.tools = {**server.says.tools, "add": {**server.says.tools["add"], "description": PAYLOADS[1]}}
    await page.click("section.card:last-of-type > .card-head .button")  # ask again
    await page.told(".settings-tool .badge.warn", "Changed")
    assert PAYLOADS[1] in await page.text(".settings-tool .diff")
    assert await accepted() == [("Add two numbers.", 3)]
    await page.run(f"{add}.querySelector('.button.primary').click()")
    await page.until(lambda driver: not driver.find_elements("css selector", ".settings-tool .badge.warn"))
    assert await accepted() == [(PAYLOADS[1], 3)]
    assert (await ran(page), await page.complaints()) == ([], [])
    await page.press("Switch off")
    await page.told(".facts", "Off")
    await page.click(".card-actions .button.danger")
    await page.fill("Type out to confirm", "out")
    await page.click("dialog .button.danger")
    await page.told(".empty-title", "No outside server is registered")


async def entered(who: Person, query: str) -> bool:
    """Whether the audit trail holds an entry that a query finds."""
    return bool((await who.http.get(f"/api/v1/audit?{query}")).json()["entries"])


async def test_what_was_done_and_what_was_refused_is_found_in_the_audit_trail(here: House, page: Page, ada: Person) -> None:
    made = await ada.http.post("/api/v1/keys", json={"user": "una", "agents": ["noor"]})
    async with httpx.AsyncClient(base_url=here.url, headers={"Authorization": f"Bearer {made.json()['key']}"}) as una:
        assert (await una.get("/api/v1/audit")).status_code == 403
    for query, row in (("text=UNA&action=keys.", "keys.create"), ("user=una&outcome=refused", "audit.list")):
        await eventually(lambda query=query: entered(ada, query))  # type: ignore[misc]
        await visit(page, here.url, f"/settings/audit?{query}")
        assert await page.text("tbody tr td a") == row
    await page.click("tbody tr td a")
    assert await page.text("dialog h2") == "audit.list"
    assert "forbidden" in await page.text("dialog .facts")
    assert await page.complaints() == []


async def test_who_may_not_see_a_part_is_told_why(here: House, tmp_path: Path) -> None:
    member = await here.people.someone()
    async with signed_in(tmp_path, here.url, member.key) as opened:
        for part in ADMINISTRATORS_ALONE:
            await visit(opened, here.url, f"/settings/{part}")
            assert (part, await opened.text(".empty-title")) == (part, "Only administrators may see this")
        assert await opened.complaints() == []


async def test_pages_fit_every_width_and_can_be_used_by_everybody(here: House, page: Page) -> None:
    await page.complaints()
    assert await faults(page, here.url, *(f"/settings/{part}" for part in PARTS), "/settings/agents/brief?before=1") == []
