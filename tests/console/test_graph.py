"""Somebody at the pages of the graph: searches, lets a drawing grow, follows paths and chains, and sees what is missing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from typing import Any
from urllib.parse import quote

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

SMALL, HOSTILE, LARGE = 2024, 2025, 2026
"""Years of the twin: a few things that are joined, texts that would run a script, and 5,000 nodes."""
CHAIN = (
    ("EntityProject", "tunnel", "Harbour tunnel", None),
    ("EntityOrgUnit", "unit", "Tunnel office", "CLOSE_GAPS"),
    ("EntityCapability", "building", "Building under water", "OPERATES"),
    ("SectorPerformance", "minutes", "Minutes saved", "REPORTS"),
    ("SectorObjective", "nearer", "A nearer south bank", "AGGREGATES_TO"),
)
FEWEST = 30
"""Frames a second that panning 5,000 nodes has to reach, without a GPU."""


def node(type: str, id: str, name: str, year: int, **properties: Any) -> dict[str, Any]:
    """A node as it is upserted."""
    return {"type": type, "id": id, "name": name, "year": year, "level": "L3", "properties": properties}


def link(type: str, source: tuple[str, str], target: tuple[str, str], year: int) -> dict[str, Any]:
    """A relationship as it is upserted."""
    ends = {side: {"type": end[0], "id": end[1], "year": year} for side, end in (("source", source), ("target", target))}
    return {"type": type, **ends}


def small() -> Iterator[tuple[list[dict[str, Any]], list[dict[str, Any]]]]:
    """A project with its whole chain up to an objective, and another that stood on its own the year before."""
    nodes = [node(type, id, name, SMALL) for type, id, name, _ in CHAIN]
    links = [link(str(after[3]), before[:2], after[:2], SMALL) for before, after in pairwise(CHAIN)]
    yield [*nodes, node("EntityProject", "pier", "Old pier", SMALL - 1)], links
    ends = [node("EntityProject", f"p-{at}", text, HOSTILE, aims=text) for at, text in enumerate(PAYLOADS)]
    joins = [link("DELIVERED_BY", ("EntityProject", f"p-{at}"), ("SectorGovEntity", "d"), HOSTILE) for at in range(len(ends))]
    yield [*ends, node("SectorGovEntity", "d", PAYLOADS[0], HOSTILE)], joins


def large() -> Iterator[tuple[list[dict[str, Any]], list[dict[str, Any]]]]:
    """5,000 nodes: departments, their projects, and a risk of each project."""
    departments = [node("SectorGovEntity", f"d-{at}", f"Department {at}", LARGE) for at in range(20)]
    yield departments, []
    for start in range(0, 2_490, 240):
        nodes, links = [], []
        for at in range(start, min(2_490, start + 240)):
            project, risk = ("EntityProject", f"l-{at}"), ("EntityRisk", f"l-{at}")
            nodes += [node(*project, f"Project {at}", LARGE), node(*risk, f"Risk of project {at}", LARGE)]
            links += [
                link("RATED", project, risk, LARGE),
                link("DELIVERED_BY", project, ("SectorGovEntity", f"d-{at % 20}"), LARGE),
            ]
        yield nodes, links


@pytest.fixture(scope="module")
async def here(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    async with house(tmp_path_factory.mktemp("graph") / "data") as opened:
        yield opened


@pytest.fixture(scope="module")
async def keeper(here: House) -> Person:
    """Somebody who reads both graphs of a tenant that has some of each."""
    admin = await here.people.someone(role="admin")
    found = sample()
    for part in parts(found.nodes, found.relationships):
        answer = await admin.tool(LOAD_TOOL.name, part.model_dump(mode="json", by_alias=True, exclude_defaults=True))
        assert answer.status_code == 200, answer.text
    person = await here.people.someone(tenant=admin.tenant, role="maestro")
    for nodes, links in small():
        await upsert(person, nodes, links)
    return person


@pytest.fixture(scope="module")
async def page(here: House, keeper: Person, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    async with signed_in(tmp_path_factory.mktemp("profile"), here.url, keeper.key) as opened:
        yield opened


async def upsert(person: Person, nodes: list[dict[str, Any]], links: list[dict[str, Any]]) -> None:
    """Write a part of the twin."""
    answer = await person.tool("graph_upsert", {"nodes": nodes, "relationships": links})
    assert answer.status_code == 200, answer.text


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


def key(type: str, id: str, year: int = SMALL) -> str:
    """A node of the twin as the address of a drawing names it."""
    return quote(quote(f"{type}/{id}/{year}", safe=""), safe="")


async def test_a_search_begins_a_drawing_that_grows_by_neighbours(here: House, page: Page) -> None:
    await visit(page, here.url, f"/graph?year={SMALL}")
    await page.fill("Find by name", "tunnel")
    await page.enter("Find by name")
    await click(page, ".hit", "Harbour tunnel")
    assert sorted(await texts(page, ".node-list td:first-child", 2)) == ["Harbour tunnel", "Tunnel office"]
    await click(page, ".node-list button[aria-label='Show neighbours of Tunnel office']")
    assert sorted(await texts(page, ".node-list td:first-child", 3)) == [
        "Building under water",
        "Harbour tunnel",
        "Tunnel office",
    ]
    assert await texts(page, ".edge-list td:nth-child(2)", 2) == ["Closes gaps in", "Operates"]
    assert await page.complaints() == []


async def test_a_path_leads_from_a_project_to_the_objective_it_serves(here: House, page: Page) -> None:
    shown = f"{key('EntityProject', 'tunnel')},{key('SectorObjective', 'nearer')}"
    await visit(page, here.url, f"/graph?year={SMALL}&open={shown}")
    await click(page, ".node-list .link", "Harbour tunnel")
    await click(page, ".selected button", "Path from here")
    await click(page, ".node-list .link", "A nearer south bank")
    await click(page, ".selected button", "Path to here")
    assert await texts(page, ".steps button", len(CHAIN)) == [name for _, _, name, _ in CHAIN]
    assert await page.complaints() == []


async def test_the_page_of_a_project_tells_its_chain_up_to_the_objective(here: House, page: Page) -> None:
    await visit(page, here.url, f"/graph/EntityProject/tunnel/{SMALL}")
    assert await texts(page, ".chain .steps a", len(CHAIN)) == [name for _, _, name, _ in CHAIN]
    assert await page.complaints() == []


async def test_a_path_of_the_constitution_leads_from_a_project_to_the_vision(here: House, page: Page) -> None:
    await visit(page, here.url, "/graph/constitution?from=project-sediment-archive&to=vision-living-shore")
    found = await texts(page, ".steps button", 2)
    assert (found[0], found[-1]) == ("The sediment archive", "A shore that looks after itself")
    assert await page.complaints() == []


async def test_what_is_missing_in_a_year_is_a_table(here: House, page: Page) -> None:
    await visit(page, here.url, f"/graph/gaps?type=EntityProject&year={SMALL}")
    assert "Old pier" in await texts(page, "tbody td:first-child")
    row = (await texts(page, "tbody tr"))[(await texts(page, "tbody td:first-child")).index("Old pier")]
    assert f"EntityProject/pier/{SMALL} is not there" in row
    assert await page.complaints() == []


async def test_a_survey_counts_projects_by_year(here: House, page: Page) -> None:
    await visit(page, here.url, "/graph/survey?type=EntityProject")
    assert await texts(page, "tbody tr", 3) == [f"{SMALL - 1}1 0", f"{SMALL}1 0", f"{HOSTILE}{len(PAYLOADS)} 0"]
    assert await page.complaints() == []


async def test_every_page_is_usable_at_each_width_and_in_each_theme(here: House, page: Page) -> None:
    project = key("EntityProject", "tunnel")
    paths = (
        f"/graph?year={SMALL}&q=tunnel&open={project}&sel={project}",
        "/graph/constitution?all=1",
        f"/graph/EntityProject/tunnel/{SMALL}",
        f"/graph/gaps?year={SMALL}",
        "/graph/survey",
    )
    assert await faults(page, here.url, *paths) == []


async def test_texts_of_nodes_run_nowhere(here: House, page: Page) -> None:
    for path in (f"/graph?all=1&year={HOSTILE}", f"/graph/EntityProject/p-1/{HOSTILE}", f"/graph/gaps?year={SMALL}"):
        await visit(page, here.url, path)
        await texts(page, "main h2")
        assert await ran(page) == []


async def test_5000_nodes_are_panned_at_30_frames_a_second(here: House, page: Page, keeper: Person) -> None:
    for nodes, links in large():
        await upsert(keeper, nodes, links)
    await visit(page, here.url, f"/graph?all=1&year={LARGE}")
    await page.until(lambda driver: driver.find_elements("css selector", "canvas[data-settled='true']"))
    assert await page.text(".explorer [role=status]") == "5,000 nodes, 4,980 relationships"
    frames = await page.wait_for(
        """const canvas = document.querySelector('canvas'), begun = performance.now(), first = Number(canvas.dataset.frames);
        const given = x => ({pointerId: 1, clientX: x, clientY: 400, bubbles: true});
        const at = (type, x) => canvas.dispatchEvent(new PointerEvent(type, given(x)));
        canvas.setPointerCapture = () => undefined;
        at('pointerdown', 400);
        let turn = 0;
        const pan = () => {
          at('pointermove', 400 + 100 * Math.sin(++turn / 20));
          const seconds = (performance.now() - begun) / 1000;
          if (seconds < 3) return requestAnimationFrame(pan);
          at('pointerup', 400);
          done((Number(canvas.dataset.frames) - first) / seconds);
        };
        requestAnimationFrame(pan)"""
    )
    assert frames >= FEWEST
    assert await page.complaints() == []
