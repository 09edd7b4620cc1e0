"""Somebody at the pages of the graph: searches, lets a drawing grow, follows paths and chains, and sees what is missing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import quote

import pytest

from tests.console.holdings import CHAIN, LARGE, YEAR, chained, founded, large, node, upsert
from tests.console.house import House, house
from tests.console.keeping import faults
from tests.console.pages import panned, signed_in, visit
from tests.support.browser import Page
from tests.support.people import Person

pytestmark = [pytest.mark.verify, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
async def here(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    async with house(tmp_path_factory.mktemp("graph") / "data") as opened:
        yield opened


@pytest.fixture(scope="module")
async def keeper(here: House) -> Person:
    """Somebody who reads both graphs of a tenant that has some of each."""
    person = await founded(here.people)
    await chained(person)
    await upsert(person, [node("EntityProject", "pier", "Old pier", YEAR - 1)], [])
    return person


@pytest.fixture(scope="module")
async def page(here: House, keeper: Person, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    async with signed_in(tmp_path_factory.mktemp("profile"), here.url, keeper.key) as opened:
        yield opened


def key(type: str, id: str, year: int = YEAR) -> str:
    """A node of the twin as the address of a drawing names it."""
    return quote(quote(f"{type}/{id}/{year}", safe=""), safe="")


async def test_a_search_begins_a_drawing_that_grows_by_neighbours(here: House, page: Page) -> None:
    await visit(page, here.url, f"/graph?year={YEAR}")
    await page.fill("Find by name", "tunnel")
    await page.enter("Find by name")
    await page.click(".hit", "Harbour tunnel")
    assert sorted(await page.texts(".node-list td:first-child", 2)) == ["Harbour tunnel", "Tunnel office"]
    await page.click(".node-list button[aria-label='Show neighbours of Tunnel office']")
    assert sorted(await page.texts(".node-list td:first-child", 3)) == [
        "Building under water",
        "Harbour tunnel",
        "Tunnel office",
    ]
    assert await page.texts(".edge-list td:nth-child(2)", 2) == ["Closes gaps in", "Operates"]
    assert await page.complaints() == []


async def test_a_path_leads_from_a_project_to_the_objective_it_serves(here: House, page: Page) -> None:
    shown = f"{key('EntityProject', 'tunnel')},{key('SectorObjective', 'nearer')}"
    await visit(page, here.url, f"/graph?year={YEAR}&open={shown}")
    await page.click(".node-list .link", "Harbour tunnel")
    await page.click(".selected button", "Path from here")
    await page.click(".node-list .link", "A nearer south bank")
    await page.click(".selected button", "Path to here")
    assert await page.texts(".steps button", len(CHAIN)) == [name for _, _, name, _ in CHAIN]
    assert await page.complaints() == []


async def test_a_path_of_the_constitution_leads_from_a_project_to_the_vision(here: House, page: Page) -> None:
    await visit(page, here.url, "/graph/constitution?from=project-sediment-archive&to=vision-living-shore")
    found = await page.texts(".steps button", 2)
    assert (found[0], found[-1]) == ("The sediment archive", "A shore that looks after itself")
    assert await page.complaints() == []


async def test_what_is_missing_in_a_year_is_a_table(here: House, page: Page) -> None:
    await visit(page, here.url, f"/graph/gaps?type=EntityProject&year={YEAR}")
    assert "Old pier" in await page.texts("tbody td:first-child")
    row = (await page.texts("tbody tr"))[(await page.texts("tbody td:first-child")).index("Old pier")]
    assert f"EntityProject/pier/{YEAR} is not there" in row
    assert await page.complaints() == []


async def test_a_survey_counts_projects_by_year(here: House, page: Page) -> None:
    await visit(page, here.url, "/graph/survey?type=EntityProject")
    assert await page.texts("tbody tr", 2) == [f"{YEAR - 1}1 0", f"{YEAR}1 0"]
    assert await page.complaints() == []


async def test_every_page_is_usable_at_each_width_and_in_each_theme(here: House, page: Page) -> None:
    project = key("EntityProject", "tunnel")
    paths = (
        f"/graph?year={YEAR}&q=tunnel&open={project}&sel={project}",
        "/graph/constitution?all=1",
        f"/graph/EntityProject/tunnel/{YEAR}",
        f"/graph/gaps?year={YEAR}",
        "/graph/survey",
    )
    assert await faults(page, here.url, *paths) == []


async def test_a_drawing_of_5000_nodes_follows_the_pointer(here: House, page: Page, keeper: Person) -> None:
    for nodes, links in large():
        await upsert(keeper, nodes, links)
    await visit(page, here.url, f"/graph?all=1&year={LARGE}")
    await page.until(lambda driver: driver.find_elements("css selector", "canvas[data-settled='true']"))
    assert await page.text(".explorer [role=status]") == "5,000 nodes, 4,980 relationships"
    assert await panned(page) > 5  # frames a second; `python -m bench --only console` measures them
    assert await page.complaints() == []
