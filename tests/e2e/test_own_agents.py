"""A tenant makes an agent of its own over HTTP, and its users talk to it; another tenant has nothing of it."""

from __future__ import annotations

from time import monotonic
from typing import Any

import pytest

from tests.support.people import Person, Town
from tests.support.sample_portfolio import few_projects

pytestmark = [pytest.mark.verify, pytest.mark.timeout(300)]

AGENTS = "/api/v1/agents"
LIBRARIAN: dict[str, Any] = {
    "description": "I look things up in your notes.",
    "based_on": "dialogue",
    "instructions": "Answer in one sentence.",
    "phrases": {"greeting": "The archive is open."},
    "sources": ["memory", "documents"],
}
NOTE = "The key of the tide room hangs behind the brass clock."


async def put(person: Person, name: str = "librarian", **changes: Any) -> Any:
    answer = await person.http.put(f"{AGENTS}/{name}", json=LIBRARIAN | changes)
    return answer.status_code, answer.json()


async def said(person: Person, text: str, agent: str = "librarian") -> str:
    answer = await person.say(text, agent=agent)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["user_response"])


async def until_said(person: Person, text: str, told: str, there: bool = True) -> None:
    """Ask until the answer has a text, or lacks it: the event of a change takes a moment to every copy."""
    end = monotonic() + 10
    while (told in (found := await said(person, text))) is not there:
        assert monotonic() < end, found


async def test_a_tenants_agent_answers_from_its_sources_and_can_be_taken_back(everybody: Town) -> None:
    editor = await everybody.someone(role="admin")
    user = await everybody.someone(editor.tenant)
    assert (await editor.tool("graph_upsert", few_projects().model_dump(mode="json"))).status_code == 200
    await user.remember("Tide room", NOTE)
    status, planned = await put(editor, dry_run=True)
    assert (status, planned["version"], planned["dry_run"]) == (200, 1, True)
    assert (await user.say("Hello", agent="librarian")).status_code == 400
    assert (await put(editor, note="the first"))[0] == 200
    assert await said(user, "Hello") == "The archive is open."
    assert NOTE in await said(user, "Where does the key of the tide room hang?")
    of_twin = "How many projects are there?"
    assert (await said(user, of_twin)).startswith("That would be in the records, which I do not read.")
    assert "are **" in await said(user, of_twin, "dialogue")

    assert (await put(editor, sources=["documents"]))[1]["changed"] == ["sources"]
    await until_said(user, "Where does the key of the tide room hang?", NOTE, there=False)
    assert (await editor.http.post(f"{AGENTS}/librarian/rollback", json={})).json()["version"] == 1
    await until_said(user, "Where does the key of the tide room hang?", NOTE)
    versions = (await editor.http.get(f"{AGENTS}/librarian/versions")).json()["versions"]
    assert [(one["version"], one["active"], one["note"]) for one in versions] == [(2, False, ""), (1, True, "the first")]

    assert (await editor.http.delete(f"{AGENTS}/librarian")).json() == {"name": "librarian", "deleted": True}
    end = monotonic() + 10
    while (await user.say("Hello", agent="librarian")).status_code != 400:
        assert monotonic() < end, "a deleted agent still answers"


async def test_who_may_not_is_refused_and_another_tenant_has_nothing_of_it(everybody: Town) -> None:
    editor = await everybody.someone(role="editor")
    low, stranger = await everybody.someone(editor.tenant, role="noor"), await everybody.someone(role="admin")
    assert (await put(low))[0] == 403
    status, problem = await put(editor, based_on="nova", sources=None, tools=["recall", "read_neo4j_cypher"])
    assert (status, problem["field"]) == (403, "tools")
    assert "read_neo4j_cypher" in problem["detail"]
    status, problem = await put(editor, based_on="nova", tools=["recal"])
    assert (status, problem["field"], problem["detail"]) == (400, "tools", "there are no such tools: recal")
    assert (await put(editor))[0] == 200
    own = [(await one.http.get(AGENTS, params={"own": True})).json()["agents"] for one in (low, stranger)]
    assert [[agent["name"] for agent in found] for found in own] == [["librarian"], []]
    assert (await low.http.get(f"{AGENTS}/librarian")).status_code == 403
    assert (await stranger.http.get(f"{AGENTS}/librarian")).status_code == 404
    assert (await stranger.http.delete(f"{AGENTS}/librarian")).status_code == 404
    assert (await stranger.say("Hello", agent="librarian")).status_code == 400
