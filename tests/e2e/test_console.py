"""A person at the console of a whole stack: a question from the portfolio, its sources, and its trace through the services."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.browser import NoBrowser, Page, window
from tests.support.people import Town
from tests.support.sample_portfolio import PROGRAMME
from tests.support.stack import RunningStack

pytestmark = pytest.mark.timeout(1_000)

QUESTION = "What is the Geological Disposal Facility programme for?"


@pytest.mark.usefixtures("portfolio")
async def test_a_question_is_answered_with_sources_and_a_trace_through_the_services(
    stack: RunningStack, everybody: Town, tmp_path: Path
) -> None:
    try:
        async with window(tmp_path / "profile") as page:
            await page.open(stack.data.url.read_text().strip() + "/console")
            await _journey(page, everybody.owner.key)
    except NoBrowser as error:
        pytest.fail(str(error), pytrace=False)


async def _journey(page: Page, key: str) -> None:
    await page.fill("Your key", key)
    await page.enter("Your key")
    await page.fill("Agent", "dialogue")
    await page.fill("Message", QUESTION)
    await page.enter("Message")
    assert (await page.text(".sources summary")).startswith(PROGRAMME)
    assert "extractive: no language model" in await page.text(".marks")
    await page.press("Trace")
    assert await page.text("#trace tbody tr:first-child th") == "POST /console/messages"
    services = await page.run("return [...document.querySelectorAll('#trace tbody td:nth-child(2)')].map(c => c.textContent)")
    # The instructions are asked too, by whichever turn is the first after their copy has aged.
    assert {"gateway", "orchestrator", "memory", "graph"} <= set(services)
    await page.picture("trace.png")
