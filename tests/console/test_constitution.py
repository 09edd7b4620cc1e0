"""Somebody at the pages of the constitution: browses, changes within the rules, and is stopped by one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.console.holdings import founded
from tests.console.house import House, house
from tests.console.keeping import faults
from tests.console.pages import signed_in, visit
from tests.support.browser import Page
from tests.support.people import Person

pytestmark = [pytest.mark.verify, pytest.mark.timeout(600)]

GOAL = "goal-open-sediment"


@pytest.fixture(scope="module")
async def here(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    async with house(tmp_path_factory.mktemp("constitution") / "data") as opened:
        yield opened


@pytest.fixture(scope="module")
async def writer(here: House) -> Person:
    """Somebody who may write every layer, in a tenant that holds the sample."""
    return await founded(here.people)


@pytest.fixture(scope="module")
async def page(here: House, writer: Person, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    async with signed_in(tmp_path_factory.mktemp("profile"), here.url, writer.key) as opened:
        yield opened


async def node_of(person: Person, id: str) -> dict[str, Any]:
    """A node as the tool tells it."""
    found: dict[str, Any] = (await person.tool("node.get.v1", {"id": id})).json()["node"]
    return found


async def test_each_layer_tells_how_many_nodes_it_has(here: House, page: Page) -> None:
    await visit(page, here.url, "/constitution/strategy")
    tabs = await page.texts("#content .tabs a .count", 7)
    assert tabs == ["11", "6", "6", "4", "9", "4", "5"]
    assert "Borrow equipment before buying any" in await page.texts("tbody td:first-child a")
    assert await page.complaints() == []


async def test_something_is_found_by_meaning(here: House, page: Page) -> None:
    await visit(page, here.url, "/constitution/vision")
    await page.fill("Search by meaning", "lending instruments to each other")
    await page.enter("Search by meaning")
    await page.told("main", "Found for")
    assert "Borrow equipment before buying any" in await page.texts("tbody td:first-child a")
    assert await page.complaints() == []


async def test_a_goal_tells_what_it_serves_and_what_it_is_joined_to(here: House, page: Page) -> None:
    await visit(page, here.url, f"/constitution/nodes/{GOAL}")
    ladder = [each.removesuffix(" Goal").removesuffix(" Vision") for each in await page.texts(".ladder li", 3)]
    title = "Publish twelve years of sediment readings"
    assert ladder == [title, "Be the record that engineers trust", "A shore that looks after itself"]
    headings = await page.texts(".relation h3", 4)
    assert headings == ["Supported by", "Serves", "Serves (towards this)", "Measures (towards this)"]
    assert await page.complaints() == []


async def test_a_change_is_kept_and_undone_in_one_press(here: House, page: Page, writer: Person) -> None:
    before = (await node_of(writer, GOAL))["horizon"]
    await visit(page, here.url, f"/constitution/nodes/{GOAL}")
    await page.click("main button", "Edit")
    await page.fill("Horizon", "two years")
    await page.click("dialog button", "Save")
    await page.told(".toasts", "It was changed.")
    await page.told(".facts", "two years")
    assert (await node_of(writer, GOAL))["horizon"] == "two years"
    await page.click(".toast button", "Undo")
    await page.told(".facts", before)
    assert (await node_of(writer, GOAL))["horizon"] == before
    assert await page.complaints() == []


async def test_the_versions_of_a_node_tell_what_changed(here: House, page: Page) -> None:
    await visit(page, here.url, f"/constitution/nodes/{GOAL}")
    await page.click("main button", "Show versions")
    await page.texts(".versions li")
    await page.click(".versions summary", "Version 1 by")
    await page.told(".versions", "twelve of twelve years public")
    assert await page.complaints() == []


async def test_a_guardrail_stops_a_task_until_it_is_named(here: House, page: Page) -> None:
    title = "Core every branch of the creek at once"
    await visit(page, here.url, "/constitution/new?type=task")
    await page.fill("Title", title)
    await page.fill("Effort in hours", "60")
    await page.press("Save")
    assert "guardrail-long-task" in await page.text(".refused .problem")
    await page.fill("Do it all the same: id of the rule", "guardrail-long-task")
    await page.press("Save")
    await page.told("h1", title)
    assert [each for each in await page.complaints() if "409" not in each] == []


async def test_a_node_is_joined_to_another_that_was_looked_for(here: House, page: Page) -> None:
    await visit(page, here.url, "/constitution/nodes/project-sediment-archive")
    await page.click("main button", "Join to another node")
    await page.fill("The other node, by meaning", "a shore that looks after itself")
    await page.enter("The other node, by meaning")
    await page.click("dialog label input")
    await page.click("dialog .dialog-actions button", "Join")
    await page.told("main", "A shore that looks after itself")
    assert await page.complaints() == []


async def test_who_may_only_read_is_offered_no_change(here: House, writer: Person, tmp_path: Path) -> None:
    reader = await here.people.someone(tenant=writer.tenant, role="discuss")
    async with signed_in(tmp_path / "reader", here.url, reader.key) as page:
        await visit(page, here.url, f"/constitution/nodes/{GOAL}")
        await page.texts(".relation h3")
        assert await page.count(".page-actions button") == 0
        assert await page.complaints() == []


async def test_the_workload_tells_how_much_of_the_week_is_taken(here: House, page: Page) -> None:
    await visit(page, here.url, "/constitution/workload")
    stats = await page.run("return [...document.querySelectorAll('.stat-value')].map(each => each.textContent)")
    assert (len(stats), stats[0].endswith("%"), await page.complaints()) == (3, True, [])


async def test_decisions_stand_with_what_was_done_for_them(here: House, page: Page) -> None:
    await visit(page, here.url, "/constitution/decisions")
    assert await page.count("tbody tr, .empty") > 0
    assert await page.complaints() == []


async def test_every_page_is_usable_at_each_width_and_in_each_theme(here: House, page: Page) -> None:
    paths = ["/constitution/vision", f"/constitution/nodes/{GOAL}", "/constitution/new?type=goal", "/constitution?q=lending"]
    paths += ["/constitution/decisions", "/constitution/workload"]
    assert await faults(page, here.url, *paths) == []
