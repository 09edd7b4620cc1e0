"""The analysts' endpoint, and the end of an analyst's event stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from phronesis_contracts.answers import Analysis, AnswerData, MemoryProcess, Visualization, VisualizationType
from phronesis_contracts.orchestrator import Problem, Reply, SubmitTurn
from tests.integration.gateway.test_events import watching
from tests.support.gateway import Holder, RunningGateway
from tests.support.scripted_orchestrator import ScriptedOrchestrator

CHAT = "/api/v1/chat/message"
GAPS = Visualization(
    type=VisualizationType.TABLE, title="What is missing", config={"columns": ["Gap"]}, data=[{"Gap": "ChainBreak"}]
)
ANALYSIS = Analysis(
    mode="A",
    memory_process=MemoryProcess(intent="to count", thought_trace="counted"),
    answer="There are **3** projects. One is late. " + "More is told here, at length. " * 30,
    analysis=("Three is few.", "One is late.", "None is lost.", "A fourth."),
    data=AnswerData(query_results=({"projects": 3, "rating": None},), summary_stats={"rows": 1}),
    visualizations=(GAPS,),
    cypher_executed="MATCH (p:EntityProject) RETURN count(p) AS projects",
    confidence=0.75,
)


@pytest.fixture
def analyst(orchestrator: ScriptedOrchestrator) -> Iterator[ScriptedOrchestrator]:
    """An orchestrator whose replies carry the analysis; a greeting's has read nothing."""

    def finish(turn: SubmitTurn, reply: Reply) -> Reply:
        nothing: dict[str, Any] = {"mode": "I", "cypher_executed": None, "data": AnswerData(), "visualizations": ()}
        found = ANALYSIS.model_copy(update=nothing) if turn.text.startswith("hello") else ANALYSIS
        return reply.model_copy(update={"analysis": found, "user_response": found.answer})

    before, orchestrator.finish = orchestrator.finish, finish
    yield orchestrator
    orchestrator.finish = before


async def post(api: RunningGateway, who: Holder, body: dict[str, Any]) -> httpx.Response:
    return await api.http.post(CHAT, json=body, headers=who.headers)


@pytest.mark.req("N-007", "N-010", "N-053", "N-054", "NC-022", "X-C09")
async def test_a_question_is_answered_with_one_whole_object(
    api: RunningGateway, ann: Holder, analyst: ScriptedOrchestrator
) -> None:
    text = f"how many {uuid4()}"
    answer = await post(api, ann, {"query": text})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    id = await analyst.arrived(text=text)
    told = answer.json()
    assert told.pop("turnId") == id
    assert told.pop("conversationId")
    assert told == ANALYSIS.model_dump(mode="json")
    assert analyst.submitted[id][0].agent == "noor"


@pytest.mark.req("N-066", "NC-028")
async def test_the_text_of_a_query_is_absent_where_none_was_run(
    api: RunningGateway, ann: Holder, analyst: ScriptedOrchestrator
) -> None:
    told = (await post(api, ann, {"query": f"hello {uuid4()}"})).json()
    assert "cypher_executed" not in told
    assert (told["data"], told["visualizations"]) == ({"query_results": [], "summary_stats": {}}, [])


async def test_a_conversation_and_an_agent_can_be_named(
    api: RunningGateway, ann: Holder, analyst: ScriptedOrchestrator
) -> None:
    text = f"and then {uuid4()}"
    conversation = uuid4().hex
    told = (await post(api, ann, {"query": text, "conversationId": conversation, "agent": "maestro"})).json()
    submitted = analyst.submitted[told["turnId"]][0]
    assert (told["conversationId"], submitted.conversation_id, submitted.agent) == (conversation, conversation, "maestro")


@pytest.mark.req("N-007")
async def test_the_endpoint_takes_no_other_method(api: RunningGateway, ann: Holder) -> None:
    answer = await api.http.get(CHAT, headers=ann.headers)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "body", [{}, {"query": ""}, {"query": "  \n"}, {"query": 7}, {"message": "x"}, {"query": "x", "role": "admin"}]
)
async def test_a_body_that_asks_nothing_is_refused(api: RunningGateway, ann: Holder, body: dict[str, Any]) -> None:
    answer = await post(api, ann, body)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")


async def test_a_refusal_names_the_field_of_this_endpoint(
    api: RunningGateway, ann: Holder, analyst: ScriptedOrchestrator
) -> None:
    text = f"refused {uuid4()}"
    problem = Problem(code="bad_request", status=400, detail="a NUL", field="text")
    analyst.refuse = lambda turn: problem if turn.text == text else None
    answer = await post(api, ann, {"query": text})
    analyst.refuse = lambda turn: None
    assert (answer.status_code, answer.json()["field"]) == (400, "query")


async def test_an_agent_that_gives_no_analysis_is_said_to_give_none(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator
) -> None:
    answer = await post(api, ann, {"query": f"hi {uuid4()}", "agent": "dialogue"})
    assert (answer.status_code, answer.json()["field"]) == (400, "agent")


@pytest.mark.req("N-238", "N-239", "NC-022", "NC-099", "NC-100", "V-C24", "T-010")
async def test_an_analysts_events_end_with_a_summary_and_the_whole_answer_and_no_piece_of_it(
    api: RunningGateway, ann: Holder, analyst: ScriptedOrchestrator
) -> None:
    turn = (await post(api, ann, {"query": f"watched {uuid4()}"})).json()["turnId"]
    async with watching(api, turn, ann.headers) as reader:
        seen = await reader.rest()
    assert [one.kind for one in seen] == ["accepted", "ended", "executive_summary", "analysis", "done"]
    summary, whole = seen[2].data, seen[3].data
    assert summary["points"] == ["Three is few.", "One is late.", "None is lost."]
    assert summary["summary"].startswith("There are 3 projects. One is late.")
    assert len(summary["summary"]) <= 400
    assert (summary["gaps"], summary["confidence"]) == (1, 0.75)
    assert {key: whole[key] for key in ANALYSIS.model_dump()} == ANALYSIS.model_dump(mode="json")
    assert json.loads(json.dumps(seen[4].data["reply"]["analysis"])) == ANALYSIS.model_dump(mode="json")


@pytest.mark.req("N-001", "NC-001")
async def test_the_release_of_the_loop_and_that_of_its_instructions_are_two_numbers(api: RunningGateway) -> None:
    told = (await api.http.get("/info")).json()
    assert (told["architecture"], told["matrix"]) == ("3.4", "4.0.0")
