"""A person at the console's pages of the constitutional graph, in a real browser, on a whole stack with the sample in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import pytest

from phronesis.constitution.files import parts
from phronesis_contracts.constitution.writes import LOAD_TOOL
from phronesis_samples.institute import sample
from tests.support.browser import NoBrowser, Page, window
from tests.support.people import Person, Town

pytestmark = [pytest.mark.verify, pytest.mark.timeout(1_000)]
"""Where there is no browser yet, the first test installs one."""

_numbers = count(1)


@pytest.fixture(scope="module")
async def writer(everybody: Town) -> Person:
    """Somebody who may write every layer, in a tenant that holds the sample."""
    admin = await everybody.someone(role="admin")
    found = sample()
    for part in parts(found.nodes, found.relationships):
        answer = await admin.tool(LOAD_TOOL.name, part.model_dump(mode="json", by_alias=True, exclude_defaults=True))
        assert answer.status_code == 200, answer.text
    return await everybody.someone(tenant=admin.tenant, role="maestro")


@pytest.fixture
async def page(writer: Person, tmp_path: Path) -> AsyncIterator[Page]:
    """A window on the graph's pages, signed in."""
    try:
        async with window(tmp_path / "profile") as opened:
            await _sign_in(opened, writer)
            await _follow(opened, "Constitution")
            await opened.complaints()  # that nobody was signed in yet, and a style that the chart library may not add
            yield opened
    except NoBrowser as error:
        pytest.fail(str(error), pytrace=False)


async def _sign_in(page: Page, person: Person) -> None:
    await page.open(str(person.http.base_url.join("/console")))
    await page.fill("Your key", person.key)
    await page.enter("Your key")
    await page.text("header .who")


async def _follow(page: Page, text: str) -> None:
    """Follow the first link with this text, and wait for its page."""
    mark = f"left-{next(_numbers)}"
    await page.run(f"document.body.dataset.mark = '{mark}'")
    pressed = f"[...document.querySelectorAll('a')].find(a => a.textContent.trim().startsWith({text!r}))"
    click = "a.dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}))"  # a link of a drawing has no `click`
    await page.until(lambda driver: driver.execute_script(f"const a = {pressed}; if (a) {click}; return Boolean(a)"))
    await _left(page, mark)


async def _left(page: Page, mark: str) -> None:
    script = "return document.readyState === 'complete' && document.body.dataset.mark !== arguments[0]"
    await page.until(lambda driver: driver.execute_script(script, mark))


async def _send(page: Page, button: str) -> None:
    mark = f"left-{next(_numbers)}"
    await page.run(f"document.body.dataset.mark = '{mark}'")
    await page.press(button)
    await _left(page, mark)


async def _texts(page: Page, css: str) -> list[str]:
    return list(await page.run(f"return [...document.querySelectorAll({css!r})].map(each => each.textContent.trim())"))


async def test_the_layers_are_browsed_and_a_node_opens_with_its_neighbours(page: Page) -> None:
    assert await _texts(page, "#layers ul:first-child a") == [
        *("foundation", "vision", "strategy", "tactics", "execution", "track", "mind"),
    ]
    counts = await _texts(page, "#layers ul:first-child .note")
    assert counts == ["11 nodes", "6 nodes", "6 nodes", "4 nodes", "9 nodes", "4 nodes", "5 nodes"]
    await _follow(page, "strategy")
    await _follow(page, "Borrow equipment before buying any")
    assert "A shelf of idle instruments is a grant that did no field work." in await page.text("dl.figures")
    joined = await _texts(page, ".neighbours li")
    assert len(joined) == 5
    assert any(each.startswith("supported by") and "A lending circle for instruments" in each for each in joined)
    assert any(each.startswith("← serves") and "Rent a shallow boat by the week" in each for each in joined)


async def test_a_goal_shows_its_ladder(page: Page) -> None:
    await _follow(page, "Publish twelve years of sediment readings")
    assert await _texts(page, ".ladder li a") == [
        "Publish twelve years of sediment readings",
        "Be the record that engineers trust",
        "A shore that looks after itself",
    ]
    assert await page.run("return document.documentElement.scrollWidth <= window.innerWidth")
    await page.picture("constitution-goal.png")


async def test_the_workload_says_whether_there_is_room(page: Page) -> None:
    await _follow(page, "Workload")
    assert (await page.text(".zone")).endswith("yellow: 31 of 40 hours (78%)")
    assert len(await _texts(page, "table.rows tbody tr")) == 4
    await page.picture("constitution-workload.png")


async def test_the_graph_is_drawn_and_a_box_leads_on(page: Page) -> None:
    await _follow(page, "Drawing")
    assert await page.count("svg.graph .box") == 17
    await _follow(page, "Publish twelve years of")
    drawn = await page.count("svg.graph .box")
    assert 5 < drawn < 17
    assert await page.count("svg.graph .marked") == 1
    await _follow(page, "Draw more")
    assert await page.count("svg.graph .box") > drawn
    overlapping = await page.run(
        "const boxes = [...document.querySelectorAll('svg.graph .box rect')].map(r => r.getBoundingClientRect());"
        "return boxes.some((a, i) => boxes.some((b, j) => i < j && a.left < b.right && b.left < a.right"
        " && a.top < b.bottom && b.top < a.bottom))"
    )
    assert overlapping is False
    assert await page.complaints() == []
    await page.picture("constitution-drawing.png")


async def test_something_is_found_by_meaning(page: Page) -> None:
    await page.until(lambda driver: driver.find_elements("css selector", "#q"))
    await page.fill("Find by meaning", "lending instruments to each other")
    await _send(page, "Find")
    assert "Borrow equipment before buying any" in await _texts(page, "table.rows td a")


async def test_a_node_is_made_by_a_form_changed_and_joined(page: Page) -> None:
    await _follow(page, "execution")
    await _follow(page, "decision")
    await page.fill("Title", "Buy a <b>second</b> echo sounder")
    await page.fill("Reasoning", "The first one has been away for repair since spring.")
    await page.fill("Roi", "0.4")
    await page.fill("Decided at", "2026-02-03")
    await _send(page, "Save")
    assert await page.text("h1") == "Buy a <b>second</b> echo sounder"
    assert "total: 0.4" in await page.text("dl.figures")
    await _follow(page, "Change it")
    await page.fill("Roi", "")
    await page.fill("Summary", "Put off until the store's log is read.")
    await _send(page, "Save")
    assert "total" not in await page.text("dl.figures")
    await _follow(page, "Change it")
    await page.run("document.querySelector('#f-relationship').value = 'SERVES'")
    await page.fill("Id of the other node", "strategy-borrow-first")
    await _send(page, "Join")
    assert (await page.text(".neighbours li")).startswith("serves")


async def test_a_guardrail_stops_a_form_until_it_is_acknowledged_by_name(page: Page) -> None:
    await _follow(page, "execution")
    await _follow(page, "task")
    await page.fill("Title", "Core every branch of the creek at once")
    await page.fill("Effort hours", "60")
    await _send(page, "Save")
    assert "guardrail-long-task" in await page.text(".fault")
    assert await page.run("return document.querySelector('#f-title').value") == "Core every branch of the creek at once"
    await page.picture("constitution-guardrail.png")
    await page.fill("Acknowledge", "guardrail-long-task")
    await _send(page, "Save")
    assert await page.text("h1") == "Core every branch of the creek at once"


async def test_who_may_only_read_finds_no_form_and_may_send_none(everybody: Town, writer: Person, tmp_path: Path) -> None:
    reader = await everybody.someone(tenant=writer.tenant, role="discuss")
    async with window(tmp_path / "reader") as page:
        await _sign_in(page, reader)
        await page.open(str(reader.http.base_url.join("/console/constitution/nodes/goal-open-sediment")))
        assert await page.text("h1") == "Publish twelve years of sediment readings"
        assert await page.count("a[href*='/edit/']") == 0
        await page.open(str(reader.http.base_url.join("/console/constitution/new?type=goal")))
        await page.fill("Title", "A goal of a reader")
        await _send(page, "Save")
        assert "member (discuss) may not use goal.create.v1" in await page.text(".fault")
