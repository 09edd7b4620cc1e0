"""A person at the console, in a real browser: signs in, asks, sees charts, gaps and the trace."""

from __future__ import annotations

import json

import pytest

from tests.console.answers import CHARTS, GAPS, RATINGS
from tests.support.browser import Page
from tests.support.gateway import Holder, RunningGateway
from tests.support.personas import Persona
from tests.support.scripted_orchestrator import ScriptedOrchestrator

pytestmark = pytest.mark.timeout(1_000)
"""Where there is no browser yet, the first test installs one."""


async def sign_in(page: Page, holder: Holder) -> None:
    """Sign in with a key, by the keyboard alone."""
    await page.fill("Your key", holder.secret)
    await page.enter("Your key")
    assert await page.text("header .who") == f"{holder.who.user} · {holder.who.tenant} · {holder.who.rights}"


async def ask(page: Page, question: str) -> None:
    """Send a question and wait for the end of its turn."""
    ended = await page.count("article.turn:not(.open)")
    await page.fill("Message", question)
    await page.enter("Message")
    await page.until(lambda driver: len(driver.find_elements("css selector", "article.turn:not(.open)")) > ended)


async def test_a_wrong_key_is_refused_in_plain_words(page: Page) -> None:
    await page.fill("Your key", "phr_" + "x" * 43)
    await page.press("Sign in")
    assert (await page.text(".fault")).splitlines()[0] == "the key is not valid"


async def test_the_key_is_nowhere_that_a_script_or_a_log_could_read(page: Page, ann: Holder) -> None:
    await sign_in(page, ann)
    kept = await page.run("return JSON.stringify([location.href, document.cookie, {...localStorage}, {...sessionStorage}])")
    assert kept == json.dumps([await page.run("return location.href"), "", {}, {}], separators=(",", ":"))
    (cookie,) = await page.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/console")
    assert ann.secret not in cookie["value"]


@pytest.mark.req("N-010", "N-065", "N-071", "N-077")
async def test_every_visualization_of_the_closed_set_is_drawn_in_order(page: Page, ann: Holder) -> None:
    await sign_in(page, ann)
    await page.complaints()  # that nobody was signed in yet, and a style for maps that the chart library may not add
    await ask(page, "Show everything")
    drawn = (
        "return [...document.querySelectorAll('.chart')].map(c => [c.dataset.type, c.querySelectorAll('.main-svg').length > 0])"
    )
    await page.until(lambda driver: all(done for _, done in driver.execute_script(drawn)))
    assert [name for name, _ in await page.run(drawn)] == [chart.type.value for chart in CHARTS]
    bars = "document.querySelector('[data-type=column] .drawing').querySelectorAll('.bars .point path')"
    heights = await page.run(f"return [...{bars}].map(b => Math.round(b.getBoundingClientRect().height))")
    assert [round(h / heights[0], 1) for h in heights] == [
        round(row["projects"] / RATINGS[0]["projects"], 1) for row in RATINGS
    ]
    assert await page.count("article.turn .rows > table, article.turn > .report") >= len(CHARTS) + 2
    assert await page.complaints() == []


@pytest.mark.req("N-058")
async def test_what_a_model_smuggles_into_an_answer_is_inert(page: Page, ann: Holder) -> None:
    await sign_in(page, ann)
    await ask(page, "Show everything")
    inside = "return [document.title, document.querySelectorAll('article script, article img, article [onerror]').length]"
    assert await page.run(inside) == ["Console · Phronesis", 0]


async def test_gaps_are_a_table_in_which_the_unknown_is_no_zero(page: Page, ann: Holder) -> None:
    await sign_in(page, ann)
    await ask(page, "What is missing?")
    cells = "return [...document.querySelectorAll('.turn > .rows tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
    assert await page.run(cells) == [["—" if value is None else str(value) for value in row.values()] for row in GAPS]


async def test_an_answer_with_a_chart_fits_a_window(page: Page, ann: Holder) -> None:
    await sign_in(page, ann)
    await page.fill("Agent", "noor")
    await ask(page, "How many projects does each department have?")
    await page.until(lambda driver: driver.find_elements("css selector", ".chart .bars .point"))
    await page.run("document.querySelector('.said').scrollIntoView()")
    assert await page.run("return document.documentElement.scrollWidth <= window.innerWidth")


async def test_an_answer_with_gaps_fits_a_window(page: Page, ann: Holder) -> None:
    await sign_in(page, ann)
    await page.fill("Agent", "noor")
    await ask(page, "What is missing?")
    await page.run("document.querySelector('.said').scrollIntoView()")
    assert await page.run("return document.documentElement.scrollWidth <= window.innerWidth")


async def test_a_turn_is_followed_while_it_runs(page: Page, ann: Holder, orchestrator: ScriptedOrchestrator) -> None:
    orchestrator.slow.add("Take your time")
    await sign_in(page, ann)
    await page.fill("Message", "Take your time")
    await page.press("Send")
    turn = await orchestrator.arrived(text="Take your time")
    await page.text(".turn.open .progress")
    await orchestrator.phase(turn, "retrieved")
    await page.until(lambda driver: "Looked it up" in driver.find_element("css selector", ".progress").text)
    await orchestrator.end(turn)
    assert (await page.text("article.turn:not(.open) .text")) == "You said: Take your time"


async def test_a_turn_that_runs_can_be_stopped(page: Page, ann: Holder, orchestrator: ScriptedOrchestrator) -> None:
    orchestrator.slow.add("Never mind")
    await sign_in(page, ann)
    await page.fill("Message", "Never mind")
    await page.press("Send")
    await page.press("Stop")
    assert "The turn was cancelled." in await page.text("article.turn:not(.open)")


async def test_sources_open_and_an_answer_says_what_it_lacks(page: Page, ann: Holder) -> None:
    await sign_in(page, ann)
    await ask(page, "How many projects does each department have?")
    await page.press("Rural Fibre")
    assert await page.text(".sources details[open] p") == "Last seen in 2021."
    marks = await page.run("return [...document.querySelectorAll('.turn .mark')].map(each => each.textContent)")
    assert marks == ["extractive: no language model", "0.8 s", "made without: strategies"]
    assert await page.text(".confidence") == "Confidence 82%"


async def test_the_trace_of_a_turn_opens_as_a_tree_with_times(page: Page, ann: Holder) -> None:
    await sign_in(page, ann)
    await ask(page, "What is missing?")
    await page.press("Trace")
    assert await page.text("#trace tbody tr:first-child th") == "POST /console/messages"
    depths = await page.run("return [...document.querySelectorAll('#trace tbody tr')].map(r => Number(r.dataset.depth))")
    assert (depths[0], max(depths) > 0) == (0, True)
    assert await page.count("#trace rect") == len(depths)
    await page.picture("trace.png")


async def test_a_conversation_is_read_again_with_its_charts_and_deleted(page: Page, ann: Holder) -> None:
    await sign_in(page, ann)
    await ask(page, "How many projects does each department have?")
    await page.run("location.reload()")
    await page.until(lambda driver: driver.find_elements("css selector", ".chart .main-svg"))
    assert await page.text(".said") == "How many projects does each department have?"
    await page.run("window.confirm = () => true")
    await page.press("Delete")
    await page.until(lambda driver: driver.current_url.endswith("/console"))
    assert await page.count("nav li") == 0


async def test_a_revoked_key_ends_the_session(page: Page, ann: Holder, api: RunningGateway) -> None:
    await sign_in(page, ann)
    admin = await api.holder(tenant=ann.who.tenant, **Persona.ADMIN.rights)
    revoked = await api.http.delete(f"/api/v1/keys/{ann.who.key}", headers=admin.headers)
    assert revoked.is_success
    await page.fill("Message", "Am I still here?")
    await page.enter("Message")
    assert "Sign in again" in await page.text(".fault")


async def test_signing_out_ends_the_session(page: Page, ann: Holder) -> None:
    await sign_in(page, ann)
    await page.press("Sign out")
    assert "You are not signed in" in await page.text(".sign-in .note")
    assert await page.cookies() == []
