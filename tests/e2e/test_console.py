"""A person at the console of a whole stack: a question from the portfolio, its sources, and its trace through the services."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from phronesis_samples.portfolio.reports import read_rows
from tests.support.browser import NoBrowser, Page, window
from tests.support.people import Person, Town
from tests.support.sample_portfolio import PROGRAMME
from tests.support.stack import RunningStack

pytestmark = [pytest.mark.verify, pytest.mark.timeout(1_000)]


@asynccontextmanager
async def _console(stack: RunningStack, folder: Path, key: str, agent: str) -> AsyncIterator[Page]:
    """A browser at the console, signed in, with an agent chosen."""
    try:
        async with window(folder / "profile") as page:
            await page.open(stack.data.url.read_text().strip() + "/console")
            await page.fill("Your key", key)
            await page.enter("Your key")
            await page.fill("Agent", agent)
            yield page
    except NoBrowser as error:
        pytest.fail(str(error), pytrace=False)


async def _ask(page: Page, question: str) -> None:
    await page.fill("Message", question)
    await page.enter("Message")
    await page.until(lambda driver: driver.find_elements("css selector", "article.turn:not(.open)"))


@pytest.mark.usefixtures("portfolio")
async def test_a_question_is_answered_with_sources_and_a_trace_through_the_services(
    stack: RunningStack, everybody: Town, tmp_path: Path
) -> None:
    async with _console(stack, tmp_path, everybody.owner.key, "dialogue") as page:
        await page.fill("Message", "What is the Geological Disposal Facility programme for?")
        await page.enter("Message")
        assert (await page.text(".sources summary")).startswith(PROGRAMME)
        assert "extractive: no language model" in await page.text(".marks")
        await page.press("Trace")
        assert await page.text("#trace tbody tr:first-child th") == "POST /console/messages"
        services = await page.run(
            "return [...document.querySelectorAll('#trace tbody td:nth-child(2)')].map(c => c.textContent)"
        )
        # The instructions are asked too, by whichever turn is the first after their copy has aged.
        assert {"gateway", "orchestrator", "memory", "graph"} <= set(services)
        await page.picture("trace.png")


@pytest.mark.req("N-071")
async def test_a_figure_of_the_portfolio_is_drawn(stack: RunningStack, analyst: Person, tmp_path: Path) -> None:
    async with _console(stack, tmp_path, analyst.key, "noor") as page:
        await _ask(page, "How many projects does each department have in 2022?")
        await page.until(lambda driver: driver.find_elements("css selector", ".chart .bars .point"))
        counted = dict(Counter(row["department"] for row in read_rows() if row["year"] == "2022"))
        bars = await page.run("return document.querySelectorAll('.chart .bars .point').length")
        assert bars == len(counted)
        await page.run("document.querySelector('.said').scrollIntoView()")
        await page.picture("chart.png")


@pytest.mark.req("N-077")
async def test_what_is_missing_of_a_project_is_a_table(stack: RunningStack, analyst: Person, tmp_path: Path) -> None:
    async with _console(stack, tmp_path, analyst.key, "noor") as page:
        await _ask(page, "What is missing for Sizewell C?")
        cells = "return [...document.querySelectorAll('.turn > .rows tbody tr')].map(r => r.cells[1].textContent)"
        assert set(await page.run(cells)) <= {"2020", "2021", "2022", "2023"}
        assert await page.run(cells) != []
        await page.run("document.querySelector('.said').scrollIntoView()")
        await page.picture("gaps.png")
