"""A person at the traces of the console: what each step of an answer did, and a replay beside it."""

from __future__ import annotations

import json

import pytest

from tests.console.keeping import faults
from tests.console.pages import visit
from tests.console.scripts import answered
from tests.support.approving import Desk
from tests.support.browser import Page
from tests.support.groq_server import Fault
from tests.support.people import Person

pytestmark = [pytest.mark.verify, pytest.mark.timeout(600)]


async def test_a_filter_stands_in_the_address_and_finds_only_what_fits(
    desk: Desk, person: Person, url: str, page: Page
) -> None:
    await answered(desk, person)
    await visit(page, url, "/traces?agent=nova")
    assert await page.count("tbody tr") == 1
    await visit(page, url, "/traces?agent=noor")
    assert await page.text(".empty-title") == "No turn fits these filters."
    await page.press("Clear filters")
    await page.until(lambda driver: driver.find_elements("css selector", "tbody tr"))
    assert (await page.run("return location.search"), await page.complaints()) == ("", [])


async def test_an_answer_that_did_not_help_is_found_with_what_was_said_about_it(
    desk: Desk, person: Person, url: str, page: Page
) -> None:
    turn, text = await answered(desk, person)
    conversation = (await person.turn(turn))["conversation_id"]
    await visit(page, url, f"/chat/{conversation}")
    await page.click("[aria-label='This did not help']")
    await page.fill("What was wrong or missing?", "It says nothing.")
    await page.press("Save")
    assert await page.text(".remark-said") == "It says nothing."
    await visit(page, url, "/traces?helpful=true")
    assert await page.text(".empty-title") == "No turn fits these filters."
    await visit(page, url, "/traces?helpful=false&user=*")
    row = "return [...document.querySelectorAll('tbody tr:first-child td')].slice(0, 2).map(cell => cell.textContent)"
    assert await page.run(row) == [f"{text}It says nothing.", person.user]
    await visit(page, url, f"/chat/{conversation}")
    await page.click("[aria-label='This did not help']")
    await page.press("Undo")
    assert await page.text(".remark-said") == "It says nothing."
    assert await page.complaints() == []


async def test_a_step_opens_to_what_its_service_noted(desk: Desk, person: Person, url: str, page: Page) -> None:
    turn, _ = await answered(desk, person)
    await visit(page, url, f"/traces/{turn}")
    await page.text(".waterfall .step-row")
    await page.click("[data-name='POST /api/v1/turns'] .step-row")
    assert "/api/v1/turns" in await page.text(".step-facts")
    assert (await page.run("return new URLSearchParams(location.search).has('span')"), await page.complaints()) == (True, [])


async def test_a_replay_stands_beside_the_first_run(desk: Desk, person: Person, url: str, page: Page) -> None:
    turn, text = await answered(desk, person)
    desk.model.fail("tools", Fault(content=json.dumps({"answer": "Noted, and done.", "confidence": 0.9}), about=text))
    await visit(page, url, f"/traces/{turn}")
    await page.press("Run again")
    heads = await page.until(lambda driver: [each.text for each in driver.find_elements("css selector", ".sides thead th")])
    assert heads == ["First run", "Replay"]
    assert await page.text(".diff .added") == "Noted, and done."
    assert await page.complaints() == []


async def test_every_page_fits_its_window_and_can_be_used_by_everybody(
    desk: Desk, person: Person, url: str, page: Page
) -> None:
    turn, _ = await answered(desk, person)
    assert await faults(page, url, "/traces", f"/traces/{turn}") == []
