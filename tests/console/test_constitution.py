"""Somebody at the pages of the constitution: browses, changes within the rules, and is stopped by one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from phronesis.constitution.files import parts
from phronesis_contracts.constitution.writes import LOAD_TOOL
from phronesis_samples.institute import sample
from tests.console.house import House, house
from tests.console.keeping import faults
from tests.console.pages import signed_in, visit
from tests.console.payloads import PAYLOADS, ran
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
    admin = await here.people.someone(role="admin")
    found = sample()
    for part in parts(found.nodes, found.relationships):
        answer = await admin.tool(LOAD_TOOL.name, part.model_dump(mode="json", by_alias=True, exclude_defaults=True))
        assert answer.status_code == 200, answer.text
    return await here.people.someone(tenant=admin.tenant, role="maestro")


@pytest.fixture(scope="module")
async def page(here: House, writer: Person, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    async with signed_in(tmp_path_factory.mktemp("profile"), here.url, writer.key) as opened:
        yield opened


async def click(page: Page, css: str, text: str = "") -> None:
    """Press the first element that a selector finds and that has a text, once it is there and may be pressed."""
    script = f"""const e = [...document.querySelectorAll({css!r})].find(e => e.textContent.includes({text!r}) && !e.disabled);
    if (e) e.click(); return Boolean(e)"""
    await page.until(lambda driver: driver.execute_script(script))


async def texts(page: Page, css: str, fewest: int = 1) -> list[str]:
    """The texts of all elements that a selector finds, once there are some."""
    script = (
        f"const f = [...document.querySelectorAll({css!r})]; return f.length >= {fewest} && f.map(e => e.textContent.trim())"
    )
    found: list[str] = await page.until(lambda driver: driver.execute_script(script))
    return found


async def node_of(person: Person, id: str) -> dict[str, Any]:
    """A node as the tool tells it."""
    found: dict[str, Any] = (await person.tool("node.get.v1", {"id": id})).json()["node"]
    return found


async def becomes(page: Page, css: str, text: str) -> None:
    """Return when the first element that a selector finds has a text."""
    script = f"return document.querySelector({css!r})?.textContent.includes({text!r})"
    await page.until(lambda driver: driver.execute_script(script))


async def test_each_layer_tells_how_many_nodes_it_has(here: House, page: Page) -> None:
    await visit(page, here.url, "/constitution/strategy")
    tabs = await texts(page, "#content .tabs a .count", 7)
    assert tabs == ["11", "6", "6", "4", "9", "4", "5"]
    assert "Borrow equipment before buying any" in await texts(page, "tbody td:first-child a")
    assert await page.complaints() == []


async def test_something_is_found_by_meaning(here: House, page: Page) -> None:
    await visit(page, here.url, "/constitution/vision")
    await page.fill("Search by meaning", "lending instruments to each other")
    await page.enter("Search by meaning")
    await becomes(page, "main", "Found for")
    assert "Borrow equipment before buying any" in await texts(page, "tbody td:first-child a")
    assert await page.complaints() == []


async def test_a_goal_tells_what_it_serves_and_what_it_is_joined_to(here: House, page: Page) -> None:
    await visit(page, here.url, f"/constitution/nodes/{GOAL}")
    ladder = [each.removesuffix(" Goal").removesuffix(" Vision") for each in await texts(page, ".ladder li", 3)]
    title = "Publish twelve years of sediment readings"
    assert ladder == [title, "Be the record that engineers trust", "A shore that looks after itself"]
    headings = await texts(page, ".relation h3", 4)
    assert headings == ["Supported by", "Serves", "Serves (towards this)", "Measures (towards this)"]
    assert await page.complaints() == []


async def test_a_change_is_kept_and_undone_in_one_press(here: House, page: Page, writer: Person) -> None:
    before = (await node_of(writer, GOAL))["horizon"]
    await visit(page, here.url, f"/constitution/nodes/{GOAL}")
    await click(page, "main button", "Edit")
    await page.fill("Horizon", "two years")
    await click(page, "dialog button", "Save")
    await becomes(page, ".toasts", "It was changed.")
    assert (await node_of(writer, GOAL))["horizon"] == "two years"
    await click(page, ".toast button", "Undo")
    await becomes(page, ".facts", before)
    assert (await node_of(writer, GOAL))["horizon"] == before
    assert await page.complaints() == []


async def test_the_versions_of_a_node_tell_what_changed(here: House, page: Page) -> None:
    await visit(page, here.url, f"/constitution/nodes/{GOAL}")
    await click(page, "main button", "Show versions")
    await texts(page, ".versions li")
    await click(page, ".versions summary", "Version 1 by")
    await becomes(page, ".versions", "twelve of twelve years public")
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
    await becomes(page, "h1", title)
    assert [each for each in await page.complaints() if "409" not in each] == []


async def test_a_node_is_joined_to_another_that_was_looked_for(here: House, page: Page) -> None:
    await visit(page, here.url, "/constitution/nodes/project-sediment-archive")
    await click(page, "main button", "Join to another node")
    await page.fill("The other node, by meaning", "a shore that looks after itself")
    await page.enter("The other node, by meaning")
    await click(page, "dialog label input")
    await click(page, "dialog .dialog-actions button", "Join")
    await becomes(page, "main", "A shore that looks after itself")
    assert await page.complaints() == []


async def test_who_may_only_read_is_offered_no_change(here: House, writer: Person, tmp_path: Path) -> None:
    reader = await here.people.someone(tenant=writer.tenant, role="discuss")
    async with signed_in(tmp_path / "reader", here.url, reader.key) as page:
        await visit(page, here.url, f"/constitution/nodes/{GOAL}")
        await texts(page, ".relation h3")
        assert await page.count(".page-actions button") == 0
        assert await page.complaints() == []


async def test_texts_of_nodes_run_nowhere(here: House, page: Page, writer: Person) -> None:
    ids = []
    for text in PAYLOADS:
        made = await writer.tool("note.create.v1", {"title": text, "summary": text, "content": text})
        ids.append(made.json()["node"]["id"])
    for path in ("/constitution/mind", f"/constitution/nodes/{ids[1]}", "/graph/constitution?all=1"):
        await visit(page, here.url, path)
        await texts(page, "main h2")
        assert await ran(page) == []


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
