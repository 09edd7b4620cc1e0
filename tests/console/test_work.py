"""A person at the work of agents in the console: tasks with their plans, calls that wait for consent, and schedules."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import pytest

from tests.console.keeping import faults
from tests.console.pages import signed_in, visit
from tests.console.scripts import ASK, LAST, LOOK, planned, wanted
from tests.support.approving import AGENT, Desk
from tests.support.browser import Page
from tests.support.bus import eventually
from tests.support.groq_server import Fault
from tests.support.people import Person
from tests.support.tasks import TASKS, ended, looked

pytestmark = [pytest.mark.verify, pytest.mark.timeout(600)]


async def test_a_dry_run_shows_the_plan_and_what_somebody_would_be_asked(desk: Desk, url: str, page: Page) -> None:
    goal = planned(desk, LOOK, LAST | {"tool": "remember", "arguments": {"items": [{"text": "Kept."}]}})
    await visit(page, url, "/work?start=1")
    await page.fill("Goal", goal)
    await page.press("Show the plan only")
    tools = await page.until(lambda driver: [each.text for each in driver.find_elements("css selector", ".call strong")])
    assert tools == ["recall", "remember"]
    states = "return [...document.querySelectorAll('.plan-step')].map(s => s.dataset.state)"
    assert (await page.run(states), await page.complaints()) == (["pending", "pending"], [])


async def test_the_report_of_a_task_is_a_file_in_each_form(desk: Desk, person: Person, url: str, page: Page) -> None:
    answer = await person.http.post(TASKS, json={"goal": planned(desk, LOOK)})
    task = await ended(person, answer.json()["turn_id"])
    await visit(page, url, f"/work/tasks/{task['task_id']}")
    kinds = await page.wait_for(
        """Promise.all([...document.querySelectorAll('a[download]')].map(
          a => fetch(a.href).then(r => r.headers.get('Content-Type').split(';')[0]))).then(done)"""
    )
    assert (kinds, await page.complaints()) == (["application/pdf", "text/html", "text/markdown"], [])


async def test_a_call_that_is_declined_with_a_note_is_not_made(desk: Desk, url: str, tmp_path: Path) -> None:
    goal = await desk.goal()
    id = await wanted(desk, desk.person, {"id": goal})
    async with signed_in(tmp_path / "profile", url, desk.person.key) as page:
        await visit(page, url, "/work/approvals")
        await page.fill("Note", "We need it.")
        await page.press("Decline")
        await page.until(lambda driver: not driver.find_elements("css selector", f"[data-id='{id}']"))
        found = await desk.approval(id)
        assert (found["status"], found["note"], await page.complaints()) == ("refused", "We need it.", [])
    assert await desk.there(goal)


async def test_what_a_task_asks_waits_on_the_first_page(desk: Desk, person: Person, url: str, page: Page) -> None:
    answer = await person.http.post(TASKS, json={"goal": planned(desk, LOOK, ASK)})
    await eventually(lambda: _asks(person, answer.json()["turn_id"]))
    await visit(page, url, "")
    await page.click(".plain-list a", "Which year?")
    await page.click(".asking button", "2022")
    await page.told(".report", "All of it is here.")
    assert await page.complaints() == []


async def _asks(person: Person, id: str) -> bool:
    return bool((await looked(person, id))["waiting"])


async def test_calls_from_a_document_are_approved_for_good_and_the_grant_is_withdrawn(
    desk: Desk, url: str, tmp_path: Path
) -> None:
    word = f"reed{uuid4().hex[:8]}"
    desk.model.fail("tools", Fault(calls=[("task_create_v1", {"title": "Order a new roof"})], about=word))
    desk.model.fail("tools", Fault(content=json.dumps({"answer": "Done."}), about=word))
    letter = await desk.person.uploaded("letter.txt", b"The roof is old. Somebody ought to order a new one.", "text/plain")
    turn = (await desk.person.submit(f"What does the letter say, {word}?", media=[letter], agent=AGENT)).json()["turn_id"]
    id = (await desk.waits(turn))["approval_id"]
    async with signed_in(tmp_path / "profile", url, desk.person.key) as page:
        await visit(page, url, "/work/approvals")
        shown = await page.text(f"[data-id='{id}']")
        assert [text in shown for text in ("a document (letter.txt)", "changes something")] == [True, True]
        await page.press("Always approve such calls")
        await page.click("dialog .button.danger")
        assert await page.text("tbody tr td:first-child") == "task.create.v1"
        await page.press("Withdraw")
        await page.click("dialog .button.danger")
        await page.until(lambda driver: not driver.find_elements("css selector", "tbody tr"))
        assert await page.complaints() == []
    (grant,) = (await desk.person.http.get("/api/v1/approval-grants", params={"revoked": True})).json()["grants"]
    assert (grant["tool"], grant["kinds"], grant["revoked_by"]) == ("task.create.v1", ["document", "tool"], desk.person.user)


async def test_a_schedule_is_made_in_the_viewers_zone_paused_and_deleted(person: Person, url: str, page: Page) -> None:
    await page.devtools("Emulation.setTimezoneOverride", timezoneId="Asia/Tokyo")
    await visit(page, url, "/work/schedules?make=1")
    await page.fill("Goal", "Report on what is overdue")
    await page.press("Make schedule")
    assert (await page.text("tbody tr td:nth-child(2)")) == "Monday, 08:00"
    (made,) = (await person.http.get("/api/v1/schedules")).json()["schedules"]
    assert (made["cron"], made["time_zone"], made["enabled"]) == ("0 8 * * 1", "Asia/Tokyo", True)
    await page.click("tbody [aria-label=Pause]")
    await page.until(lambda driver: driver.find_elements("css selector", "tbody [aria-label=Resume]"))
    (paused,) = (await person.http.get("/api/v1/schedules")).json()["schedules"]
    assert (paused["schedule_id"], paused["enabled"]) == (made["schedule_id"], False)
    await page.click("tbody [aria-label=Delete]")
    await page.click("dialog .button.danger")
    assert await page.text(".empty-title") == "There are no schedules yet."
    assert ((await person.http.get("/api/v1/schedules")).json()["schedules"], await page.complaints()) == ([], [])


async def test_every_page_fits_its_window_and_can_be_used_by_everybody(
    desk: Desk, person: Person, url: str, page: Page
) -> None:
    answer = await person.http.post(TASKS, json={"goal": planned(desk, LOOK, LAST)})
    task = await ended(person, answer.json()["turn_id"])
    parts = ("", f"/tasks/{task['task_id']}", "/approvals", "/schedules", "/strategies", "?start=1", "/schedules?make=1")
    assert await faults(page, url, *(f"/work{part}" for part in parts)) == []
