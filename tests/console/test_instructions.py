"""An editor at the instructions of the console: reads, publishes, goes back, and tries a change on some users."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.console.keeping import faults
from tests.console.pages import signed_in, visit
from tests.support.approving import Desk
from tests.support.browser import Page
from tests.support.people import Person

pytestmark = [pytest.mark.verify, pytest.mark.timeout(600)]

TAG = "dialogue/directive/focused_analyst"


async def called(person: Person, tool: str, **given: Any) -> dict[str, Any]:
    answer = await person.tool(tool, given)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def published(person: Person, *lines: str, note: str = "") -> None:
    """A release in which a text has further lines."""
    content = (await called(person, "show_instruction", tag=TAG))["content"]
    await called(person, "publish_instructions", texts=[{"tag": TAG, "content": "\n".join((content, *lines))}], note=note)


async def test_a_text_is_published_after_its_difference_was_seen_and_taken_back(person: Person, url: str, page: Page) -> None:
    before = (await called(person, "show_instruction", tag=TAG))["content"]
    await visit(page, url, f"/instructions/text?tag={TAG}&edit=1")
    await page.fill("Text", f"{before.strip()}\nBe kind.")
    await page.press("Show what would change")
    assert await page.text(".diff .added") == "Be kind."
    assert (await called(person, "list_releases"))["releases"] == []
    await page.press("Publish")
    await page.click("dialog .button.danger")
    await page.until(lambda driver: "Be kind." in driver.find_element("css selector", ".instruction").text)
    await page.press("Undo")
    await page.until(lambda driver: "Be kind." not in driver.find_element("css selector", ".instruction").text)
    assert (await called(person, "show_instruction", tag=TAG))["content"] == before
    assert await page.complaints() == []


async def test_an_earlier_release_is_made_active_again_once_it_is_confirmed(person: Person, url: str, page: Page) -> None:
    await published(person, "Name a figure.")
    await visit(page, url, "/instructions/releases")
    await page.press("Make active")
    await page.click("dialog .button.danger")
    await page.until(lambda driver: "active" in driver.find_element("css selector", "tbody tr:last-child td").text)
    assert [each["active"] for each in (await called(person, "list_releases"))["releases"]] == [False]
    assert await page.complaints() == []


async def test_an_experiment_is_started_and_stopped(person: Person, url: str, page: Page) -> None:
    await visit(page, url, "/instructions/experiments?start=1")
    await page.fill("Name", "tone")
    # The second arm has the one field for a tag.
    await page.fill("Text", TAG)
    await page.fill("What this arm is told instead", "Answer in one sentence.")
    await page.press("Start")
    await page.until(lambda driver: driver.find_elements("css selector", ".card h2 .badge.info"))
    await page.press("Stop experiment")
    await page.click("dialog .button.danger")
    await page.until(lambda driver: driver.find_elements("css selector", ".card h2 .badge.plain"))
    (found,) = (await called(person, "list_experiments"))["experiments"]
    assert (found["name"], found["status"], [arm["tags"] for arm in found["arms"]]) == ("tone", "stopped", [[], [TAG]])
    assert await page.complaints() == []


async def test_the_matrix_tells_which_mode_and_agent_has_which_text(person: Person, url: str, page: Page) -> None:
    await visit(page, url, "/instructions/coverage")
    rows = "document.querySelector('.matrix').querySelectorAll('tbody tr')"
    assert await page.run(f"return [...{rows}].map(row => row.querySelectorAll('a').length)") == [3, 3, 3, 3, 1, 1, 1, 1, 1, 1]
    assert await page.complaints() == []


async def test_a_member_is_told_that_instructions_are_for_administrators(desk: Desk, url: str, tmp_path: Path) -> None:
    member = await desk.people.someone()
    async with signed_in(tmp_path / "profile", url, member.key) as page:
        await visit(page, url, "/instructions")
        assert await page.text(".empty-title") == "Instructions are for administrators."
        assert await page.complaints() == []


async def test_every_page_fits_its_window_and_can_be_used_by_everybody(person: Person, url: str, page: Page) -> None:
    await published(person, "Name a figure.", note="More figures")
    parts = ("", "/releases", "/experiments", "/coverage", f"/text?tag={TAG}", f"/text?tag={TAG}&edit=1")
    assert await faults(page, url, *(f"/instructions{part}" for part in parts)) == []
