"""A person who talks to agents at the console, in a real browser: progress, charts, sources, files, and what goes wrong."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.console.answers import CHARTS, GAPS
from tests.console.keeping import faults
from tests.console.pages import signed_in, visit
from tests.support.browser import Page
from tests.support.gateway import Holder, RunningGateway
from tests.support.personas import Persona
from tests.support.scripted_orchestrator import ScriptedOrchestrator

pytestmark = [pytest.mark.verify, pytest.mark.timeout(600)]
ENDED = "article.theirs[aria-busy=false]"


@pytest.fixture
def url(api: RunningGateway) -> str:
    return f"http://127.0.0.1:{api.server.port}"


@pytest.fixture
async def page(url: str, ann: Holder, tmp_path: Path) -> AsyncIterator[Page]:
    async with signed_in(tmp_path / "profile", url, ann.secret) as opened:
        await visit(opened, url, "/chat")
        yield opened


async def ask(page: Page, question: str) -> None:
    """Send a question and wait for the end of its turn."""
    ended = await page.count(ENDED)
    await page.fill("Message", question)
    await page.enter("Message")
    await page.until(lambda driver: len(driver.find_elements("css selector", ENDED)) > ended)


_UNANSWERED = ("agents", "usage", "approvals", "tasks")


def heeded(complaints: list[str]) -> list[str]:
    """Complaints, but for those of what the pages ask that nobody answers behind this gateway."""
    return [each for each in complaints if not any(f"/api/v1/{name}" in each for name in _UNANSWERED)]


async def test_the_key_is_nowhere_that_a_script_or_a_log_could_read(page: Page, ann: Holder) -> None:
    kept = await page.run("return JSON.stringify([location.href, document.cookie, {...localStorage}, {...sessionStorage}])")
    assert ann.secret not in kept
    (cookie,) = await page.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")
    assert ann.secret not in cookie["value"]


@pytest.mark.req("N-010", "N-065", "N-071", "N-077")
async def test_every_visualization_of_the_closed_set_is_shown_in_order_and_its_figures_can_be_read(page: Page) -> None:
    await ask(page, "Show everything")
    drawn = "return [...document.querySelectorAll('.chart')].map(c => [c.dataset.type, !!c.querySelector('canvas')])"
    wanted = [[chart.type.value, True] for chart in CHARTS]
    await page.until(lambda driver: driver.execute_script(drawn)[: len(wanted)] == wanted)
    cells = "return [...document.querySelectorAll('.chart[data-type=column] tbody tr')].map(r => r.cells[1].textContent)"
    assert await page.run(cells) == [str(row["projects"]) for row in CHARTS[0].data if isinstance(row, dict)]
    assert heeded(await page.complaints()) == []


@pytest.mark.req("N-058", "N-062")
async def test_what_a_model_smuggles_into_an_answer_is_inert_and_its_markup_is_kept(page: Page) -> None:
    await ask(page, "Show everything")
    inside = (
        "return [document.title, document.querySelectorAll('article script, article img, article [onerror]').length,"
        " document.querySelectorAll('article .prose b').length > 0]"
    )
    assert await page.run(inside) == ["Chat · Phronesis", 0, True]


async def test_gaps_are_a_table_in_which_the_unknown_is_no_zero(page: Page) -> None:
    await ask(page, "What is missing?")
    cells = "return [...document.querySelectorAll('figure.chart tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
    assert await page.run(cells) == [["—" if value is None else str(value) for value in row.values()] for row in GAPS]


async def test_a_turn_is_followed_while_it_runs(page: Page, orchestrator: ScriptedOrchestrator) -> None:
    orchestrator.slow.add("Take your time")
    await page.fill("Message", "Take your time")
    await page.enter("Message")
    turn = await orchestrator.arrived(text="Take your time")
    await page.text(".progress .phase")
    await orchestrator.phase(turn, "retrieved")
    await page.until(lambda driver: "Looked it up" in driver.find_element("css selector", ".progress").text)
    await orchestrator.end(turn)
    assert await page.text(f"{ENDED} .prose") == "You said: Take your time"


async def test_a_turn_that_runs_can_be_stopped_and_tried_again(page: Page, orchestrator: ScriptedOrchestrator) -> None:
    orchestrator.slow.add("Never mind")
    await page.fill("Message", "Never mind")
    await page.enter("Message")
    await page.press("Stop")
    assert "Stopped." in await page.text("article.theirs[data-status=cancelled]")
    assert await page.text("article.theirs[data-status=cancelled] .turn-actions") != ""


async def test_sources_open_and_an_answer_says_what_it_lacks_and_how_sure_it_is(page: Page) -> None:
    await ask(page, "How many projects does each department have?")
    await page.press("1 source")
    await page.press("Rural Fibre")
    assert await page.text(".sources details[open] blockquote") == "Last seen in 2021."
    marks = await page.run("return [...document.querySelectorAll('.marks > *')].map(each => each.textContent)")
    assert marks == ["without strategies", "82% sure", "by rules, without a language model · 840 ms"]


async def test_a_conversation_is_read_again_and_deleted_after_a_question(page: Page) -> None:
    await ask(page, "How many projects does each department have?")
    await page.run("location.reload()")
    await page.until(lambda driver: driver.find_elements("css selector", ".chart canvas"))
    assert await page.text(".message.mine .said") == "How many projects does each department have?"
    await page.point(".conversations li")
    await page.click(".conversations li .button")
    await page.text("dialog h2")
    await page.click("dialog .button.danger")
    await page.until(lambda driver: driver.current_url.endswith("/console/chat"))
    await page.until(lambda driver: not driver.find_elements("css selector", ".conversations li"))


async def said_before(api: RunningGateway, ann: Holder, *texts: str) -> str:
    """The conversation in which somebody said all this."""
    given: dict[str, str] = {"agent": "noor"}
    for text in texts:
        body = given | {"currentMessageText": text}
        answer = await api.http.post("/api/v1/conversations/messages", json=body, headers=ann.headers)
        given["conversation_id"] = answer.json()["conversation_id"]
    return given["conversation_id"]


async def test_a_long_conversation_is_read_from_its_end_and_what_was_read_stays_where_it_is(
    page: Page, url: str, api: RunningGateway, ann: Holder
) -> None:
    conversation = await said_before(api, ann, *(f"Number {number}" for number in range(12)))
    await visit(page, url, f"/chat/{conversation}")
    said = "return [...document.querySelectorAll('.message.mine .said')].map(each => each.textContent)"
    assert await page.run(said) == [f"Number {number}" for number in range(2, 12)]
    top = "return window.first.getBoundingClientRect().top"
    await page.run("document.querySelector('.messages').scrollTop = 0; window.first = document.querySelector('.message.mine')")
    before = await page.run(top)
    await page.press("Earlier messages")
    await page.until(lambda driver: len(driver.execute_script(said)) == 12)
    assert (abs(await page.run(top) - before) < 2, await page.count(".earlier")) == (True, 0)
    asked = "return performance.getEntriesByType('resource').filter(each => each.name.includes('/api/v1/turns/')).length"
    assert (await page.run(asked), heeded(await page.complaints())) == (0, [])


async def test_a_conversation_is_found_by_what_was_said_in_it(page: Page, url: str, api: RunningGateway, ann: Holder) -> None:
    await said_before(api, ann, "The green lamp")
    wanted = await said_before(api, ann, "The red boat")
    await visit(page, url, "/chat")
    await page.fill("Search conversations", "BOAT red")
    await page.enter("Search conversations")
    await page.until(lambda driver: len(driver.find_elements("css selector", ".conversations li")) == 1)
    assert await page.run("return document.querySelector('.conversations li a').pathname") == f"/console/chat/{wanted}"
    assert await page.run("return new URLSearchParams(location.search).get('q')") == "BOAT red"


async def test_a_message_is_changed_and_sent_again(page: Page) -> None:
    await ask(page, "Fist words")
    await page.point(".message.mine")
    await page.click(".message.mine .edit")
    await page.until(lambda driver: driver.execute_script("return document.querySelector('#message').value") == "Fist words")
    await ask(page, "First words")
    said = "return [...document.querySelectorAll('.message.mine .said')].map(each => each.textContent)"
    assert await page.run(said) == ["Fist words", "First words"]


async def test_a_message_can_be_edited_again_after_its_words_were_taken_out(page: Page) -> None:
    await ask(page, "Twice")
    for _ in range(2):
        await page.fill("Message", "")
        await page.point(".message.mine")
        await page.click(".message.mine .edit")
        await page.until(lambda driver: driver.execute_script("return document.querySelector('#message').value") == "Twice")


async def test_a_turn_that_was_stopped_is_tried_again(page: Page, orchestrator: ScriptedOrchestrator) -> None:
    orchestrator.slow.add("Second chance")
    await page.fill("Message", "Second chance")
    await page.enter("Message")
    await page.press("Stop")
    await page.text("article.theirs[data-status=cancelled]")
    await page.press("Try again")
    await page.until(lambda driver: len(driver.find_elements("css selector", "article.theirs")) == 2)
    again = await page.run("return [...document.querySelectorAll('article.theirs')].at(-1).dataset.turn")
    await orchestrator.end(again)
    assert await page.text("article.theirs[data-status=completed] .prose") == "You said: Second chance"


async def test_a_link_from_elsewhere_writes_its_question_down_and_sends_nothing(page: Page, url: str) -> None:
    await visit(page, url, "/chat?ask=Forget+everything")
    await page.until(
        lambda driver: driver.execute_script("return document.querySelector('#message').value") == "Forget everything"
    )
    assert await page.count(".message") == 0


async def test_a_message_is_sent_from_an_address_without_tls(page: Page) -> None:
    await page.run("delete Crypto.prototype.randomUUID")  # as browsers do at such an address
    await ask(page, "Am I heard?")
    assert await page.text(f"{ENDED} .prose") == "You said: Am I heard?"


async def test_messages_of_one_conversation_do_not_stand_at_the_address_of_another(page: Page) -> None:
    await ask(page, "Only here")
    await page.run("history.pushState(null, '', '/console/chat/none'); dispatchEvent(new PopStateEvent('popstate'))")
    await page.text(".messages .problem")
    assert await page.count(".message") == 0


async def test_a_file_that_cannot_be_stored_is_named_and_the_message_stays(page: Page) -> None:
    await page.fill("Message", "Read this")
    await page.run(
        "const held = new DataTransfer(); held.items.add(new File(['a'], 'note.txt', {type: 'text/plain'}));"
        "document.querySelector('.composer').dispatchEvent(new DragEvent('drop', {dataTransfer: held, bubbles: true}))"
    )
    assert await page.text(".files li") == "note.txt\n1 B"
    await page.press("Send")
    assert "note.txt: " in await page.text(".composer .problem")
    assert await page.run("return document.querySelector('#message').value") == "Read this"


async def test_a_revoked_key_ends_the_session(page: Page, ann: Holder, api: RunningGateway) -> None:
    admin = await api.holder(tenant=ann.who.tenant, **Persona.ADMIN.rights)
    revoked = await api.http.delete(f"/api/v1/keys/{ann.who.key}", headers=admin.headers)
    assert revoked.is_success
    await page.fill("Message", "Am I still here?")
    await page.enter("Message")
    assert "not signed in" in await page.text(".sign-in .note")


async def test_signing_out_ends_the_session(page: Page) -> None:
    await page.click(".account summary")
    await page.press("Sign out")
    await page.text(".sign-in h1")
    assert await page.cookies() == []


async def test_a_wrong_key_is_refused_in_plain_words(page: Page, url: str) -> None:
    await page.click(".account summary")
    await page.press("Sign out")
    await page.fill("Your key", "phr_" + "x" * 43)
    await page.press("Sign in")
    assert (await page.text(".problem-title")) == "the key is not valid"


async def test_the_chat_and_the_first_page_keep_what_every_page_keeps(page: Page, url: str) -> None:
    await ask(page, "Show everything")
    here = json.loads(await page.run("return JSON.stringify(location.pathname)")).removeprefix("/console")
    assert heeded(await faults(page, url, here, "/chat")) == []
