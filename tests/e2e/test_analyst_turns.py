"""Noor on the whole stack, with the scripted model behind the reasoner: the steps of a turn, across all the services."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest

from phronesis_local.parts import SERVICES
from tests.support import groq_tools
from tests.support.bus import eventually
from tests.support.groq_server import Fault, GroqServer, groq_server
from tests.support.people import Person, town
from tests.support.production import SERVERS
from tests.support.sample_portfolio import OTHERS, YEAR, few_projects
from tests.support.stack import running

pytestmark = [pytest.mark.verify, pytest.mark.timeout(240)]

CHAT = "/api/v1/chat/message"
COUNT = "MATCH (p:EntityProject) WHERE p.year = $year AND p.level = 'L3' RETURN count(p) AS projects"


@dataclass
class Desk:
    """A stack with a scripted model, and somebody whose twin has five projects."""

    model: GroqServer
    owner: Person

    async def ask(self, text: str, agent: str = "noor") -> dict[str, Any]:
        """The whole answer to a question."""
        answer = await self.owner.http.post(CHAT, json={"query": text, "agent": agent})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def script(self, *rounds: list[tuple[str, Any]]) -> None:
        """Let the model make these rounds of calls; then it answers of what it read last."""
        self.model.reset()
        for calls in rounds:
            self.model.fail("tools", Fault(calls=calls))


@pytest.fixture(scope="module")
async def desk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    folder = tmp_path_factory.mktemp("analyst") / "data"
    async with AsyncExitStack() as opened:
        model = await opened.enter_async_context(groq_server())
        environment = {"GROQ_API_KEY": "gsk-scripted", "ORCHESTRATOR_MODEL_URL": model.groq_url}
        stack = await opened.enter_async_context(running(folder, (*SERVERS, *SERVICES), environment))
        people = await opened.enter_async_context(town(stack.data.url.read_text().strip(), stack.data.key.read_text().strip()))
        await people.ready()
        owner = people.owner
        made = await owner.tool("graph_upsert", few_projects().model_dump(mode="json"))
        assert made.status_code == 200, made.text
        yield Desk(model, owner)


RECALL = ("recall_memory", {"scope": "personal", "query_summary": "projects"})
BUNDLE = ("retrieve_instructions", {"mode": "A"})
READ = ("read_neo4j_cypher", {"cypher_query": COUNT, "parameters": {"year": YEAR}})


@pytest.mark.req("N-026", "N-037")
async def test_a_greeting_is_one_completion_and_no_tool_call(desk: Desk) -> None:
    desk.script()
    told = await desk.ask("Good morning, thank you")
    assert (told["mode"], [call.purpose for call in desk.model.calls]) == ("I", ["classify"])
    assert "cypher_executed" not in told


@pytest.mark.req("N-007", "N-008", "N-009", "N-025", "N-042", "N-045", "N-228", "T-001")
async def test_a_question_is_answered_from_memory_instructions_and_twin(desk: Desk) -> None:
    desk.script([RECALL], [BUNDLE], [READ])
    told = await desk.ask("How many projects are there in 2023?")
    assert told["data"]["query_results"] == [{"projects": len(OTHERS) + 1}]
    assert (told["cypher_executed"], told["confidence"]) == (COUNT, 0.95)
    steps = ("phase 0 remember", "phase 1 requirements", "phase 2 recollect", "phase 3 recall", "phase 4 reconcile")

    async def spans() -> list[dict[str, Any]]:
        trace = (await desk.owner.http.get(f"/api/v1/turns/{told['turnId']}/trace")).json()
        return sorted(trace["spans"], key=lambda span: span["start_ns"])

    async def whole() -> bool:
        return "invoke_agent noor" in [span["name"] for span in await spans()]

    await eventually(whole)
    found = await spans()
    first = {step: next(at for at, span in enumerate(found) if span["name"] == step) for step in (*steps, "phase 5 return")}
    assert list(first) == sorted(first, key=lambda step: first[step])
    assert {span["service"] for span in found} >= {"gateway", "orchestrator", "memory", "instructions", "graph"}


@pytest.mark.req("N-018", "N-021")
async def test_tier_1_stands_first_in_every_prompt(desk: Desk) -> None:
    desk.script()
    await desk.ask("hello")
    await desk.ask("How many projects are there in 2023?")
    prompts = [(call.request or {})["messages"][0]["content"] for call in desk.model.calls]
    assert {call.purpose for call in desk.model.calls} == {"classify", "tools"}
    assert len({call.step for call in desk.model.calls}) == 6  # a call that is tried again is the same step
    assert {prompt[:2_000] for prompt in prompts} == {prompts[0][:2_000]}
    assert "cognitive digital twin" in prompts[0][:2_000]


@pytest.mark.req("N-052", "N-047")
async def test_a_query_that_skips_is_refused_by_the_guard_and_repaired_by_the_model(desk: Desk) -> None:
    skips = ("read_neo4j_cypher", {"cypher_query": "MATCH (p:EntityProject) RETURN p.id AS id SKIP 5"})
    desk.script([RECALL], [BUNDLE], [skips], [READ])
    told = await desk.ask(f"How many projects? {uuid4().hex}")
    request = desk.model.calls[-1].request or {}
    results = groq_tools.results(request)
    assert json.loads(results[2])["error"] == "graph.query_refused"
    assert told["cypher_executed"] == COUNT


@pytest.mark.req("N-238")
async def test_the_events_of_a_question_end_with_the_whole_answer(desk: Desk) -> None:
    desk.script([RECALL], [BUNDLE], [READ])
    turn = (await desk.ask("How many projects are there in 2023?"))["turnId"]
    text = (await desk.owner.http.get(f"/api/v1/turns/{turn}/events")).text
    kinds = [line.removeprefix("event: ") for line in text.splitlines() if line.startswith("event: ")]
    assert kinds[-4:] == ["ended", "executive_summary", "analysis", "done"]
    assert "text" not in kinds
