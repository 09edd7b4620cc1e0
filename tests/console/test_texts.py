"""What people, models and files wrote, on every page that shows it: 200 texts that would run a script, and none runs."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest

from tests.console.holdings import YEAR, link, node, upsert
from tests.console.pages import signed_in, visit
from tests.console.payloads import PAYLOADS, packed, ran
from tests.console.scripts import ASK, LOOK, planned
from tests.support.approving import AGENT, Desk
from tests.support.browser import Page
from tests.support.bus import eventually
from tests.support.groq_server import Fault
from tests.support.people import Person
from tests.support.tasks import TASKS, ended, looked

pytestmark = [pytest.mark.verify, pytest.mark.timeout(600)]

TAG = "dialogue/directive/focused_analyst"
AREAS = ("", "/chat", "/memory", "/graph", "/constitution", "/work", "/traces", "/instructions", "/settings/agents")
PARTS = "home chat memory facts graph constitution work approvals instructions settings addresses".split()


@dataclass(frozen=True)
class Written:
    """Whose pages show the texts, and where."""

    person: Person
    paths: dict[str, list[str]]


@pytest.fixture(scope="module")
async def written(desk: Desk) -> Written:
    """A tenant in which every field that takes any text holds the payloads."""
    person = await desk.people.someone(role="admin")
    builder = await desk.people.someone(tenant=person.tenant, role="maestro")
    return Written(
        person,
        {
            "home": [""],
            "chat": await _said(desk, person),
            "memory": await _remembered(person),
            "facts": await _known(person),
            "graph": await _joined(builder),
            "constitution": await _resolved(builder),
            "work": await _worked(desk, person),
            "approvals": await _wanted(desk, person),
            "instructions": await _instructed(person),
            "settings": await _set(person),
            "addresses": [
                f"{area}?q={quote(text)}&ask={quote(text)}" for area in AREAS for text in (PAYLOADS[0], PAYLOADS[-1])
            ],
        },
    )


@pytest.fixture(scope="module")
async def page(desk: Desk, written: Written, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    url = desk.stack.data.url.read_text().strip()
    async with signed_in(tmp_path_factory.mktemp("profile"), url, written.person.key) as opened:
        yield opened


def test_there_are_200_payloads() -> None:
    assert len(set(PAYLOADS)) >= 200


@pytest.mark.parametrize("part", PARTS)
async def test_no_text_runs(written: Written, url: str, page: Page, part: str) -> None:
    for path in written.paths[part]:
        await visit(page, url, path)
        while await page.run(_MORE):
            await page.until(lambda driver: not driver.find_elements("css selector", ".skeleton"))
        assert (path, await ran(page), await page.complaints()) == (path, [], [])


_MORE = """const more = [...document.querySelectorAll('main .button')].find(each => each.textContent === 'Show more');
for (const each of document.querySelectorAll('main details')) each.open = true;
more?.click(); return Boolean(more)"""


async def _good(person: Person, tool: str, **given: Any) -> dict[str, Any]:
    answer = await person.tool(tool, given)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def _sent(person: Person, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await person.http.request(method, path, json=body, headers={"Idempotency-Key": uuid4().hex})
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found


def _numbered(texts: Iterable[str]) -> dict[str, str]:
    return {f"{number} {text}"[:60]: text for number, text in enumerate(texts)}


async def _said(desk: Desk, person: Person) -> list[str]:
    conversation = None
    for text in packed(3_000, "\n\n"):
        word = f"lark{uuid4().hex[:8]}"
        said = {"user_response": text, "next_agent_directive": "curious_explorer", "directive_reasoning": "-"}
        desk.model.fail("final", Fault(content=json.dumps(said), about=word))
        turn = await person.say(f"{text}\n\n{word}", conversation)
        assert turn.status_code == 200, turn.text
        conversation = turn.json()["conversation_id"]
    (last, *_) = await person.turns()
    return ["/chat", f"/chat/{conversation}", "/traces", f"/traces/{last['turn_id']}"]


async def _remembered(person: Person) -> list[str]:
    memories: list[dict[str, Any]] = [
        {"text": text, "speaker": text, "external_id": text, "metadata": {"note": text}} for text in packed(200)
    ]
    memories += [{"text": text, "metadata": _numbered(PAYLOADS[:30])} for text in packed(4_000)]
    added = await _sent(person, "POST", "/api/v1/memory", {"memories": memories, "wait": True})
    ids = [each["id"] for each in added["memories"]]
    searched = ["/memory?q=onerror+script", "/memory/documents", f"/memory/documents?source={quote(PAYLOADS[0])}"]
    return ["/memory", *searched, *(f"/memory/{id}" for id in (ids[0], *ids[-4:]))]


async def _known(person: Person) -> list[str]:
    lines = [{"subject": text, "predicate": f"says {at}", "object": text, "text": text} for at, text in enumerate(packed(200))]
    await _good(person, "facts.import", lines="\n".join(map(json.dumps, lines)))
    (fact, *_) = (await _good(person, "facts.list"))["facts"]
    return ["/memory/facts?held=all", "/memory/facts?q=onerror+script", f"/memory/facts/{fact['id']}"]


async def _joined(person: Person) -> list[str]:
    nodes = [node("EntityProject", f"p-{at}", text, YEAR, aims=text) for at, text in enumerate(PAYLOADS)]
    joins = [link("DELIVERED_BY", ("EntityProject", f"p-{at}"), ("SectorGovEntity", "d"), YEAR) for at in range(len(nodes))]
    await upsert(person, [*nodes, node("SectorGovEntity", "d", PAYLOADS[0], YEAR)], joins)
    one = [f"/graph/EntityProject/p-{at}/{YEAR}" for at in (0, 101)]
    return [
        f"/graph?all=1&year={YEAR}",
        "/graph?q=onerror",
        *one,
        f"/graph/gaps?year={YEAR}",
        "/graph/survey?type=EntityProject",
    ]


async def _resolved(person: Person) -> list[str]:
    long = packed(8_000)[0]
    ids = []
    for text in packed(500):
        made = await _good(person, "note.create.v1", title=text, summary=text, content=long)
        ids.append(made["node"]["id"])
    goal = await _good(person, "goal.create.v1", title=packed(500)[0], narrative=long, horizon=long, description=long)
    found = ["/constitution/mind", "/constitution?q=onerror+script", "/constitution/vision", "/graph/constitution?all=1"]
    return [*found, *(f"/constitution/nodes/{id}" for id in (*ids[:2], goal["node"]["id"]))]


async def _worked(desk: Desk, person: Person) -> list[str]:
    steps = [LOOK | {"id": f"look{at}", "description": text, "wave": 1} for at, text in enumerate(packed(300)[:8])]
    asking = ASK | {"arguments": {"question": packed(400)[0], "choices": packed(100)[:3]}}
    goals = [
        planned(desk, *steps, LOOK, report="\n\n".join(PAYLOADS)),
        planned(desk, LOOK, asking),
        planned(desk, LOOK, LOOK | {"id": "keep", "tool": "remember", "arguments": {"items": [{"text": packed(2_000)[0]}]}}),
    ]
    ids = []
    for at, goal in enumerate(goals):
        given = {"goal": f"{goal} {packed(3_900)[0]}", "dry_run": at == 2}
        ids.append((await _sent(person, "POST", TASKS, given))["turn_id"])
    await ended(person, ids[0])
    await _sent(person, "POST", f"{TASKS}/{ids[0]}/outcome", {"accepted": False, "comment": packed(1_000)[0]})
    await _sent(person, "POST", "/api/v1/schedules", {"goal": packed(3_900)[0], "cron": "0 8 * * 1"})
    await eventually(lambda: _is(partial(looked, person), ids[1], "waiting"))
    tasks = [f"/work/tasks/{id}" for id in ids]
    return ["/work", *tasks, "/work/schedules", "/work/strategies", f"/traces/{ids[0]}"]


async def _is(read: Callable[[str], Awaitable[dict[str, Any]]], id: str, status: str) -> bool:
    return bool((await read(id))["status"] == status)


async def _wanted(desk: Desk, person: Person) -> list[str]:
    turns = [await _wanted_one(desk, person) for _ in range(2)]
    (refused, *_) = (await person.http.get("/api/v1/approvals")).json()["approvals"]
    answer = {"decision": "refuse", "note": packed(1_000)[0]}
    await _sent(person, "POST", f"/api/v1/approvals/{refused['approval_id']}", answer)
    return ["", "/work/approvals?status=all", *(f"/traces/{turn}" for turn in turns)]


async def _wanted_one(desk: Desk, person: Person) -> str:
    word = f"reed{uuid4().hex[:8]}"
    given = {"title": packed(500)[0], "description": packed(20_000)[0]}
    desk.model.fail("tools", Fault(calls=[("task_create_v1", given)], about=word))
    desk.model.fail("tools", Fault(content=json.dumps({"answer": "Done."}), about=word))
    letter = await person.uploaded(f"{PAYLOADS[1]}.txt".replace("/", ""), b"Somebody ought to order a roof.", "text/plain")
    turn = (await person.submit(f"What does the letter say, {word}?", media=[letter], agent=AGENT)).json()["turn_id"]
    await eventually(lambda: _is(person.turn, turn, "waiting"))
    return str(turn)


async def _instructed(person: Person) -> list[str]:
    content = (await _good(person, "show_instruction", tag=TAG))["content"]
    lines = [re.sub(r"([{}])\1+", r"\1", each) for each in PAYLOADS]  # doubled ones are placeholders
    for at, note in enumerate(packed(500)[:3]):
        texts = [{"tag": TAG, "content": "\n".join((content, *lines, str(at)))}]
        await _good(person, "publish_instructions", texts=texts, note=note)
    arms = [{"name": "as-is", "weight": 1, "texts": {}}, {"name": "other", "weight": 1, "texts": {TAG: "\n".join(lines)}}]
    await _good(person, "start_experiment", name="texts", arms=arms)
    at = f"/instructions/text?tag={TAG}"
    return ["/instructions", at, f"{at}&edit=1", "/instructions/releases?before=1&after=3", "/instructions/experiments"]


async def _set(person: Person) -> list[str]:
    await _sent(person, "PUT", "/api/v1/profile", {"profile": _numbered(PAYLOADS)})
    for text in packed(300)[:12]:
        body = {"based_on": "dialogue", "description": text, "instructions": packed(7_900)[0], "note": text}
        await _sent(person, "PUT", "/api/v1/agents/eve", body)
    return [
        "/settings/profile",
        "/settings/agents",
        "/settings/agents/eve?before=1",
        "/settings/keys",
        "/settings/usage",
        "/chat",
    ]
