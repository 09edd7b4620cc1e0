"""Somebody at the pages of memory: finds, understands, corrects, takes along and forgets what is remembered of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import uuid4

import pytest

from tests.console.house import House, house
from tests.console.keeping import faults
from tests.console.pages import signed_in, visit
from tests.support.browser import Page
from tests.support.people import Person

pytestmark = [pytest.mark.verify, pytest.mark.timeout(300)]

_PRESS_IMPORT = """const found = [...document.querySelectorAll('main .button')].find(b => b.textContent === 'Import');
if (found.disabled) return false; found.click(); return true"""
_LIST = ".memory-results .memory-list > li"


@pytest.fixture(scope="module")
async def here(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    async with house(tmp_path_factory.mktemp("memory") / "data") as opened:
        yield opened


@pytest.fixture(scope="module")
async def lena(here: House) -> Person:
    """Somebody who is remembered."""
    return await here.people.someone()


@pytest.fixture(scope="module")
async def page(here: House, lena: Person, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    async with signed_in(tmp_path_factory.mktemp("profile"), here.url, lena.key) as opened:
        yield opened


async def add(person: Person, *memories: dict[str, Any]) -> list[str]:
    """Add memories that a search finds at once; their ids."""
    answer = await person.http.post("/api/v1/memory", json={"memories": memories, "wait": True})
    assert answer.status_code == 200, answer.text
    return [each["id"] for each in answer.json()["memories"]]


async def fact_of(person: Person, text: str) -> str:
    """The id of a fact that is known, as soon as it is."""
    end = monotonic() + 30
    while True:
        facts = (await person.tool("facts.list", {})).json()["facts"]
        if found := [fact["id"] for fact in facts if fact["text"] == text]:
            return str(found[0])
        assert monotonic() < end, f"it is not known: {text}"
        await asyncio.sleep(0.1)


async def test_a_wrong_fact_is_corrected_and_the_answer_changes(here: House, page: Page, lena: Person) -> None:
    await lena.reply("I live in Bern.")
    fact = await fact_of(lena, "The user lives in Bern.")
    assert (await lena.reply("Where do I live?"))["user_response"] == "You live in Bern."
    await visit(page, here.url, f"/memory/facts/{fact}")
    await page.press("Correct")
    await page.fill("What is right?", "I live in Basel now.")
    await page.press("Tell the agent")
    await page.told(".timeline", "The user lives in Basel.")
    assert (await lena.reply("Where do I live?"))["user_response"] == "You live in Basel."
    assert await page.complaints() == []


async def test_a_corrected_memory_shows_what_it_said_before_and_the_correction_can_be_undone(
    here: House, page: Page, lena: Person
) -> None:
    (id,) = await add(lena, {"text": "The rehearsal is on Monday."})
    await visit(page, here.url, f"/memory/{id}")
    await page.press("Correct")
    await page.fill("Text", "The rehearsal is on Tuesday.")
    await page.press("Save")
    await page.told(".timeline li.now", "Tuesday")
    assert [each for each in await page.texts(".timeline .memory-whole")] == [
        "The rehearsal is on Tuesday.",
        "The rehearsal is on Monday.",
    ]
    await page.press("Undo")
    await page.told(".timeline li.now", "Monday")
    assert (await lena.http.get(f"/api/v1/memory/{id}")).json()["text"] == "The rehearsal is on Monday."


async def test_a_search_tells_every_part_of_a_score(here: House, page: Page, lena: Person) -> None:
    await add(lena, {"text": "The spare key hangs behind the boiler."})
    query = {"query": "where is the spare key?", "limit": 20}
    found = (await lena.http.post("/api/v1/memory/search", json=query)).json()["memories"][0]
    await visit(page, here.url, "/memory?q=where+is+the+spare+key%3F")
    await page.told(f"{_LIST}:first-child", "boiler")
    names = {"vector": "Meaning (cosine)", "text": "Words (BM25)", "neighbour": "Neighbour"}
    told = await page.run(
        f"return [...document.querySelectorAll('{_LIST}:first-child .score-part')]"
        ".map(p => [p.querySelector('dt').textContent, p.querySelector('.score-value').textContent])"
    )
    expected = [["Score", found["score"]], *([names[name], value] for name, value in found["why"].items())]
    assert [[name, float(value)] for name, value in told] == [[name, round(value, 3)] for name, value in expected]


async def test_filters_stand_in_the_address(here: House, page: Page, lena: Person) -> None:
    conversation = uuid4().hex
    messages = [{"text": "The parcel has come.", "speaker": "Ada"}]
    await lena.http.post("/api/v1/memory", json={"conversation_id": conversation, "memories": messages})
    await visit(page, here.url, f"/memory?kind=message&conversation={conversation}")
    await page.told(_LIST, "parcel")
    assert await page.texts(f"{_LIST} .memory-text") == ["The parcel has come."]
    await visit(page, here.url, f"/memory?kind=note&conversation={conversation}")
    assert await page.text(".empty-title") == "No memory fits these filters"


async def test_a_memory_is_added_and_found(here: House, page: Page, lena: Person) -> None:
    await visit(page, here.url, "/memory")
    await page.press("Add a memory")
    await page.fill("Text", "The ladder stands in the shed.")
    await page.fill("Metadata", "room: shed\nsteps: 12")
    await page.click("dialog .button.primary")
    await page.told(".memory-whole", "ladder")
    id = (await page.run("return location.pathname")).rsplit("/", 1)[-1]
    kept = (await lena.http.get(f"/api/v1/memory/{id}")).json()
    assert (kept["text"], kept["metadata"]) == ("The ladder stands in the shed.", {"room": "shed", "steps": 12})


async def test_a_memory_is_forgotten_after_a_preview(here: House, page: Page, lena: Person) -> None:
    (id,) = await add(lena, {"text": "The old password hint was about a lake."})
    await visit(page, here.url, f"/memory/{id}")
    await page.press("Forget")
    await page.told("dialog .memory-counts", "stored items")
    assert (await lena.http.get(f"/api/v1/memory/{id}")).status_code == 200
    await page.click("dialog .button.danger")
    await page.told(".toast", "Forgotten")
    assert (await lena.http.get(f"/api/v1/memory/{id}")).status_code == 404


async def test_what_is_exported_can_be_imported_and_refused_lines_are_named(
    here: House, page: Page, lena: Person, tmp_path: Path
) -> None:
    lines = [{"text": "The attic is dry.", "external_id": "attic"}, {"speaker": "Ada"}, {"text": "x", "occurred_at": "soon"}]
    file = tmp_path / "some.jsonl"
    file.write_text("\n".join([*(json.dumps(line) for line in lines), "{"]))
    await visit(page, here.url, "/memory/transfer")
    await page.until(lambda driver: driver.find_element("css selector", "input[type=file]").send_keys(str(file)) or True)
    await page.until(lambda driver: driver.execute_script(_PRESS_IMPORT))
    await page.told(".memory-report", "4 of 4 lines: 1 new, 0 replaced, 0 as they were, 3 refused.")
    assert [each.split(" ")[1][0] for each in await page.texts(".memory-refused li")] == ["2", "3", "4"]
    await page.complaints()  # that lines were refused
    await page.run(
        "window.saved = []; const make = URL.createObjectURL;"
        "URL.createObjectURL = blob => (blob.text().then(text => window.saved.push(text)), make.call(URL, blob))"
    )
    await page.press("Export all")
    saved = await page.until(lambda driver: driver.execute_script("return window.saved[0]"))
    held = (await lena.http.get("/api/v1/memory", params={"limit": 200})).json()["memories"]
    assert [json.loads(line) for line in saved.splitlines()] == held


async def test_who_may_only_read_is_told_so(here: House, lena: Person, tmp_path: Path) -> None:
    reader = {"tenant": lena.tenant, "user": "reader", "role": "reader"}
    key = (await here.people.owner.http.post("/api/v1/keys", json=reader)).json()["key"]
    async with signed_in(tmp_path, here.url, key) as opened:
        await visit(opened, here.url, "/memory/transfer")
        assert "Your key may only read." in await opened.text("main")
        assert await opened.count(".page-actions .button") == 0


async def test_who_acts_for_users_sees_what_is_remembered_of_one_and_cannot_change_it(
    here: House, lena: Person, tmp_path: Path
) -> None:
    (id,) = await add(lena, {"text": "The tent is at Lena's."})
    program = await here.people.someone(tenant=lena.tenant, scopes=("act_for_users",))
    async with signed_in(tmp_path, here.url, program.key) as opened:
        await visit(opened, here.url, f"/memory?q=where+is+the+tent&user={lena.user}")
        await opened.told(_LIST, "The tent is at Lena's.")
        await visit(opened, here.url, f"/memory/{id}?user={lena.user}")
        assert await opened.text(".memory-whole") == "The tent is at Lena's."
        assert await opened.count(".page-actions .button") == 0


async def test_pages_fit_every_width_and_can_be_used_by_everybody(here: House, page: Page, lena: Person) -> None:
    (id,) = await add(lena, {"text": "A" * 300, "metadata": {"long": "b" * 200}})
    fact = await fact_of(lena, "The user lives in Basel.")
    paths = [
        "",
        "?q=where+is+the+spare+key",
        f"/{id}",
        "/facts",
        "/facts?q=where+do+I+live",
        f"/facts/{fact}",
        "/documents",
        "/transfer",
    ]
    assert await faults(page, here.url, *(f"/memory{path}" for path in paths)) == []
