"""A first visit on a whole stack with a sample: an answer in one press, the report of a task, and pictures of all pages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.console.house import House, house
from tests.console.keeping import faults
from tests.console.pages import overflows, signed_in, themed, visit
from tests.support.browser import Page
from tests.support.operations import phronesis
from tests.support.tasks import ended, task

pytestmark = [pytest.mark.verify, pytest.mark.timeout(900)]
AREAS = ("", "/chat", "/memory", "/graph", "/constitution", "/work", "/traces", "/instructions", "/settings")
ALSO = ("/settings/keys", "/settings/users", "/settings/agents", "/settings/audit", "/graph/gaps", "/memory/facts")


@pytest.fixture(scope="module")
async def here(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    folder = tmp_path_factory.mktemp("first") / "data"
    async with house(folder) as opened:
        code, _, errors = await phronesis("load", "portfolio", data=folder)
        assert code == 0, errors
        yield opened


@pytest.fixture
async def owner(here: House, tmp_path: Path) -> AsyncIterator[Page]:
    """A window of the one who started the stack."""
    async with signed_in(tmp_path / "profile", here.url, here.people.owner.key) as page:
        yield page


async def test_one_press_on_the_first_page_leads_to_an_answer(here: House, owner: Page) -> None:
    await visit(owner, here.url, "")
    asked = await owner.text(".examples a")
    await owner.click(".examples a")
    await owner.until(lambda driver: driver.find_elements("css selector", "article.theirs[data-status=completed]"))
    assert await owner.text(".message.mine .said") == asked
    assert any(letter.isdigit() for letter in await owner.text("article.theirs .prose"))
    await owner.picture("answer.png")
    await owner.click("article.theirs a[href*='/traces/']")
    await owner.text(".slowest-step")
    await owner.picture("trace.png")
    assert await owner.complaints() == []


async def test_the_report_of_a_task_is_read_with_its_figures_tables_and_charts(here: House, owner: Page) -> None:
    id = await task(here.people.owner)
    found = await ended(here.people.owner, id)
    kinds = [block["kind"] for block in found["progress"]["report"]["blocks"]]
    await visit(owner, here.url, f"/work/tasks/{id}")
    await owner.until(lambda driver: driver.find_elements("css selector", ".report .chart canvas"))
    counts = [await owner.count(f".report {css}") for css in (".stats", ".chart[data-type]", ".chart:not([data-type])")]
    assert counts == [kinds.count(kind) for kind in ("figures", "chart", "table")]
    await owner.picture("task.png")
    assert await overflows(owner) + await owner.complaints() == []


async def test_the_ways_in_are_shown_until_one_was_used(here: House, owner: Page, tmp_path: Path) -> None:
    await visit(owner, here.url, "")
    assert await owner.count(".command") == 0
    newcomer = await here.people.someone(role="admin")
    async with signed_in(tmp_path / "new", here.url, newcomer.key) as page:
        await page.text(".command pre")
        assert await page.complaints() == []


async def test_everything_of_a_year_is_drawn(here: House, owner: Page) -> None:
    await visit(owner, here.url, "/graph")
    await owner.press("Draw everything")
    await owner.until(lambda driver: driver.find_elements("css selector", "canvas[data-frames]"))
    await owner.picture("drawing.png")
    assert await owner.complaints() == []


async def test_every_area_has_a_page_without_faults(here: House, owner: Page) -> None:
    for area in AREAS:
        await visit(owner, here.url, area)
        await owner.picture(f"{area.strip('/') or 'home'}.png")
        await themed(owner, "dark")
        await owner.picture(f"{area.strip('/') or 'home'}-dark.png")
        await themed(owner, "light")
    for page in ALSO:
        await visit(owner, here.url, page)
        await owner.picture(f"{page.strip('/').replace('/', '-')}.png")
    assert await faults(owner, here.url, "", "/chat") == []
