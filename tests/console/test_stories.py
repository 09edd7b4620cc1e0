"""Ten people at the console, each on a screen, a tablet and a phone, in light and in dark: what they came for is done."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.console.holdings import CHAIN, YEAR, chained
from tests.console.pages import THEMES, WIDTHS, go, overflows, sign_in, sized
from tests.console.scripts import ASK, LAST, LOOK, answered, planned, wanted
from tests.support.approving import Desk
from tests.support.browser import Page, window
from tests.support.bus import eventually
from tests.support.people import Person

pytestmark = [pytest.mark.verify, pytest.mark.timeout(300)]

INVOICE = b"Invoice 77 of Acme\n\nThe warranty lasts 24 months. The contact is Mr Keller. The delivery takes six weeks.\n"
TAG = "dialogue/directive/focused_analyst"
REPLY = "article.theirs[data-status=completed] .prose"


@pytest.fixture(scope="module")
async def browser(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    """The browser of all stories; each begins with nobody signed in."""
    async with window(tmp_path_factory.mktemp("profile"), WIDTHS[0], 900) as opened:
        yield opened


@pytest.fixture(params=[f"{width}-{theme}" for width in WIDTHS for theme in THEMES])
async def page(request: pytest.FixtureRequest, browser: Page) -> AsyncIterator[Page]:
    """A window of a width and in a theme, that shows all of its page at the end and has complained of nothing."""
    width, theme = request.param.split("-")
    await browser.devtools("Network.clearBrowserCookies")
    await browser.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
    await sized(browser, int(width))
    yield browser
    # A busy machine may find a part of the stack down for a moment, which the first page then shows.
    complaints = [each for each in await browser.complaints() if "/health/ready" not in each]
    assert await overflows(browser) + complaints == []


async def asked(page: Page, question: str) -> str:
    """The reply to a question of a new conversation."""
    await go(page, "Chat")
    await page.fill("Message", question)
    await page.enter("Message")
    return await page.text(REPLY)


async def test_a_first_visit_leads_to_a_first_answer(desk: Desk, url: str, page: Page) -> None:
    person = await desk.people.someone()
    await sign_in(page, url, person.key)
    await page.click(".examples a", "What can you do?")
    assert await page.text(REPLY) != ""
    (turn,) = await person.turns()
    assert (turn["status"], turn["opening"]) == ("completed", "What can you do?")


async def test_a_wrong_memory_is_corrected_and_the_answer_changes(desk: Desk, url: str, page: Page) -> None:
    person = await desk.people.someone()
    given = {"memories": [{"text": "The spare key hangs behind the boiler."}], "wait": True}
    assert (await person.http.post("/api/v1/memory", json=given)).status_code == 200
    await sign_in(page, url, person.key)
    assert "behind the boiler" in await asked(page, "Where does the spare key hang?")
    await go(page, "Memory")
    await page.fill("What are you looking for?", "spare key")
    await page.click("button", "Search")
    await page.choose("Kind", "Note")  # not the episode in which it was asked for
    await page.told("h2", "1 memory found")
    await page.click(".memory-results a", "behind the boiler")
    await page.click(".page-actions button", "Correct")
    await page.fill("Text", "The spare key hangs in the porch.")
    await page.click("dialog button", "Save")
    await page.told(".timeline .now", "in the porch")
    assert "in the porch" in await asked(page, "Where does the spare key hang?")


async def test_a_call_is_approved_by_its_origin(desk: Desk, url: str, page: Page) -> None:
    goal = await desk.goal()
    id = await wanted(desk, desk.person, {"id": goal})
    await sign_in(page, url, desk.person.key)
    await page.click(f"a[href$='{id}']", "node.delete.v1")
    shown = await page.text(f"[data-id='{id}']")
    assert [text in shown for text in (goal, "Depends on", "cannot be undone", "is irreversible")] == [True] * 4
    await page.click(f"[data-id='{id}'] button", "Approve once")
    await page.click("dialog button.danger")
    await page.told(".toast", "node.delete.v1")
    approval = await desk.approval(id)
    await desk.person.ended(approval["turn_id"])
    assert (approval["status"], await desk.there(goal)) == ("granted", False)


async def test_the_step_that_made_an_answer_slow_is_found(desk: Desk, url: str, page: Page) -> None:
    person = await desk.people.someone(role="admin")
    slow, text = await answered(desk, person, stall=1.5)
    await answered(desk, person)
    await sign_in(page, url, person.key)
    await go(page, "Traces")
    await page.told("tbody tr", text)
    if await page.run("return getComputedStyle(document.querySelector('.table-sort')).display !== 'none'"):
        await page.choose("Sort by", "Duration, descending")
    else:
        await page.click("th button", "Duration")
        await page.click("th button", "Duration")
    await page.told("tbody tr:first-child", text)
    await page.click("tbody tr:first-child a")
    told = await page.text(".card .slowest-step")
    spans = (await person.http.get(f"/api/v1/turns/{slow}/trace")).json()["spans"]
    model = next(
        span["attributes"]["gen_ai.request.model"]
        for span in spans
        if span["end_ns"] - span["start_ns"] > 1.5e9 and "gen_ai.request.model" in span.get("attributes", {})
    )
    assert told.startswith(f"The slowest step was {model} in orchestrator: 1")


async def test_two_versions_of_instructions_are_compared(desk: Desk, url: str, page: Page) -> None:
    person = await desk.people.someone(role="admin")
    content = (await called(person, "show_instruction", tag=TAG))["content"]
    for line in ("Name a figure.", "Say where it is from."):
        content += f"\n{line}"
        await called(person, "publish_instructions", texts=[{"tag": TAG, "content": content}], note=line)
    await sign_in(page, url, person.key)
    await go(page, "Instructions")
    await page.click(".tabs a", "Releases")
    await page.choose("Before", "Release 1 · Name a figure.")
    await page.told(".diff-head", "Release 1")
    assert await page.texts(".diff-head span") == ["Release 1", "Release 2"]
    assert [text.strip() for text in await page.texts(".diff .added")] == ["Say where it is from."]


async def test_a_document_is_forgotten_after_a_preview_of_what_goes_with_it(desk: Desk, url: str, page: Page) -> None:
    person = await desk.people.someone()
    given = {"file": ("acme.txt", INVOICE, "text/plain")}
    file = (await person.http.post("/v1/files", files=given, data={"purpose": "user_data"})).json()["id"]
    await person.reply("What does the document say about the warranty?", media=[file])
    await eventually(lambda: _has_episode(person))
    await sign_in(page, url, person.key)
    await go(page, "Memory")
    await page.click(".tabs a", "Documents")
    await page.click("button[aria-label='Preview forgetting: acme.txt']")
    await page.told(".memory-forgetting", "1 file goes.")
    goes = await page.texts(".memory-forgetting td[data-label=Kind]", 4)
    assert sorted(goes) == ["Document", "Episode", "File", "Turn"]
    assert (await person.http.get(f"/v1/files/{file}")).status_code == 200
    await page.click(".memory-forgetting button", "Forget")
    await page.click("dialog button.danger")
    await page.told(".badge", "Complete")
    assert (await person.http.get(f"/v1/files/{file}")).status_code == 404


async def test_the_objective_that_a_project_serves_is_found(desk: Desk, url: str, page: Page) -> None:
    person = await desk.people.someone(role="maestro")
    await chained(person)
    await sign_in(page, url, person.key)
    await go(page, "Graph")
    await page.fill("Find by name", "tunnel")
    await page.choose("Year", str(YEAR))
    await page.click(".seeker button", "Search")
    await page.click(".hit", "Harbour tunnel")
    await page.click(".selected a", "Open its page")
    assert await page.texts(".chain .steps a", len(CHAIN)) == [name for _, _, name, _ in CHAIN]
    await page.click(".chain .steps a", "A nearer south bank")
    await page.told("h1", "A nearer south bank")


async def test_a_key_is_made_shown_once_and_withdrawn(desk: Desk, url: str, page: Page) -> None:
    person = await desk.people.someone(role="admin")
    await sign_in(page, url, person.key)
    await go(page, "Settings")
    await page.click(".tabs a", "Keys")
    await page.click(".card button", "Make a key")
    await page.fill("User", "bo")
    await page.click("dialog .button.primary")
    secret = await page.text(".settings-secret code")
    async with httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {secret}"}) as client:
        me = (await client.get("/api/v1/me")).json()
        assert (me["user"], me["tenant"], me["role"], me["agents"]) == ("bo", person.tenant, "member", ["noor"])
        await page.click("dialog button", "I have kept it")
        kept = await page.run("return document.documentElement.outerHTML + JSON.stringify({...localStorage})")
        assert secret not in kept
        await page.click(f"button[aria-label='Revoke {secret[:8]}']")
        await page.click("dialog button.danger")
        await page.told(".toast", "is revoked")
        assert (await client.get("/api/v1/me")).status_code == 401


async def test_a_task_is_followed_wave_by_wave_to_a_report_that_is_accepted(desk: Desk, url: str, page: Page) -> None:
    person = await desk.people.someone(role="admin")
    await sign_in(page, url, person.key)
    await go(page, "Work")
    await page.click("button", "New task")
    await page.fill("Goal", planned(desk, LOOK, ASK, LAST))
    await page.click("dialog .button.primary")
    await page.text(".asking")
    assert await page.texts(".waves h3") == ["Wave 1", "Wave 2", "Wave 3"]
    assert await page.text(".plan-step.done .note") == "recall → nothing"
    await page.click(".asking button", "2022")
    # The page is not loaded again: the events tell that the task has ended.
    assert await page.text(".prose strong") == "here"
    states = "return [...document.querySelectorAll('.plan-step')].map(step => step.dataset.state)"
    assert await page.run(states) == ["done", "done", "done"]
    await page.click("button", "Accept")
    await page.told(".badge.good", "accepted")
    (task,) = (await person.http.get("/api/v1/tasks")).json()["tasks"]
    assert (task["status"], task["progress"]["verified"]["by"]) == ("completed", "person")


async def test_the_timeline_of_a_fact_is_found(desk: Desk, url: str, page: Page) -> None:
    person = await desk.people.someone()
    for text in ("I live in Bern.", "I live in Basel now."):
        await person.reply(text)
    await sign_in(page, url, person.key)
    await go(page, "Memory")
    await page.click(".tabs a", "Facts")
    await page.click("td a", "The user lives in Basel.")
    await page.told(".timeline", "Superseded by: The user lives in Basel.")
    assert await page.texts(".timeline > li > a") == ["The user lives in Basel.", "The user lives in Bern."]


async def _has_episode(person: Person) -> bool:
    found = await person.http.get("/api/v1/memory", params={"kind": "episode"})
    return bool(found.raise_for_status().json()["memories"])


async def called(person: Person, tool: str, **given: Any) -> dict[str, Any]:
    answer = await person.tool(tool, given)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found
