"""The four agents on the sample constitution, without a key: what they answer, what they may call, and what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import asyncpg
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

import phronesis_tokens as tokens
from phronesis_contracts import Agent
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.tools import legal_name
from phronesis_local import postgres
from tests.support import constitution_calls, institute
from tests.support.bus import eventually
from tests.support.counsel import AGENTS, profile
from tests.support.people import Person, Town
from tests.support.stack import RunningStack

pytestmark = pytest.mark.timeout(300)

EACH = pytest.mark.parametrize("agent", AGENTS)
RAW = "Raw data before interpretation"
QUESTIONS: dict[str, tuple[str, set[str]]] = {
    "what a goal serves and why": (
        "What does the goal 'Publish twelve years of sediment readings' serve, and why?",
        {"goal-open-sediment", "goal-trusted-record", "vision-living-shore"},
    ),
    "which decisions like this one paid off": (
        "We could borrow a flow meter from the harbour instead of buying one. Which decisions like this one paid off?",
        {"decision-borrow-corer"},
    ),
    "whether there is room for new work in seven days": (
        "Is there room for new work in the next seven days?",
        {"task-settle-licence"},
    ),
    "what loses support without a principle": (
        f"What loses its support without the principle '{RAW}'?",
        {"principle-raw-first"},
    ),
    "which goals contradict each other": (
        "Which goals contradict each other?",
        {"goal-more-field-days", "goal-fewer-field-days"},
    ),
}
"""For each question, how it is asked, and nodes that its answer has to cite."""
_EXAMPLE = re.compile(r"```json\n(.*?)\n```", re.S)
_AUDIT = "SELECT action, outcome, code FROM orchestrator.audit WHERE tenant = $1 AND who = $2"


@pytest.fixture(scope="module")
async def keeper(everybody: Town) -> Person:
    """Somebody whose tenant holds the sample constitution."""
    person = await everybody.someone(role="admin")
    await institute.load(person)
    return person


@asynccontextmanager
async def client(stack: RunningStack, person: Person) -> AsyncIterator[Client]:
    """The official MCP client."""
    url = stack.data.url.read_text().strip()
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {person.key}"}, timeout=60)
    async with http, Client(streamable_http_client(f"{url}/mcp", http_client=http)) as made:
        yield made


def told(result: CallToolResult) -> Any:
    """What a call gave."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    assert not result.is_error, content.text
    return json.loads(content.text)


async def good(person: Person, tool: str, given: dict[str, Any]) -> Any:
    answer = await person.tool(tool, given)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.verify
@EACH
@pytest.mark.parametrize("question", QUESTIONS)
async def test_every_agent_answers_on_the_sample_without_a_key_and_cites_nodes(
    everybody: Town, keeper: Person, agent: str, question: str
) -> None:
    text, cited = QUESTIONS[question]
    asking = await everybody.someone(keeper.tenant, agent)
    answer = await asking.say(text, agent=agent)
    assert answer.status_code == 200, answer.text
    reply = answer.json()
    assert reply["reasoner"] == "extractive"
    assert cited <= {source["id"] for source in reply["sources"]}, reply["user_response"]
    assert all(f"[{id}]" in reply["user_response"] for id in cited)


@EACH
@pytest.mark.req("O-234", "O-252", "O-441")
async def test_every_agents_session_starts_with_foundation_vision_and_workload(
    stack: RunningStack, everybody: Town, keeper: Person, agent: str
) -> None:
    asking = await everybody.someone(keeper.tenant, agent)
    async with client(stack, asking) as mcp:
        started = told(await mcp.call_tool("session_start_v1", {}))
    assert started["warnings"] == []
    assert {"value-open-record", "principle-raw-first", "human-director"} <= {node["id"] for node in started["foundation"]}
    assert {"goal-trusted-record", "vision-living-shore"} <= {node["id"] for node in started["vision"]}
    assert started["workload"]["capacity"]["availableHours"] > 0


@pytest.mark.verify
@pytest.mark.req("O-234", "O-374")
async def test_the_session_of_discuss_reads_the_second_versions_alone(everybody: Town, keeper: Person) -> None:
    fresh = await everybody.someone(role="admin")  # nothing of its tenant is cached yet
    asking = await everybody.someone(fresh.tenant, "discuss")
    answer = await asking.say("What does the goal 'Nothing yet' serve?", agent="discuss")
    assert answer.status_code == 200, answer.text
    turn = answer.json()["turn_id"]

    async def listed() -> set[str]:
        trace = (await asking.http.get(f"/api/v1/turns/{turn}/trace")).json()
        names = {span["name"] for span in trace["spans"] if span["name"].startswith("serve") and ".list" in span["name"]}
        return {name for name in names if ".foundation." in name or ".vision." in name}

    async def seen() -> bool:
        return bool(await listed())

    await eventually(seen, within=10)
    assert await listed() == {f"serve graph.v2.constitution.{layer}.list" for layer in ("foundation", "vision")}


@pytest.mark.verify
@EACH
@pytest.mark.req("O-229", "O-346")
async def test_the_official_client_lists_and_calls_every_tool_of_an_agent_and_is_refused_the_others(
    stack: RunningStack, everybody: Town, agent: str
) -> None:
    owner = await everybody.someone(role="admin")
    asking = await everybody.someone(owner.tenant, agent)
    names = profile(agent).tools
    async with client(stack, asking) as mcp:
        listed = [tool.name for tool in (await mcp.list_tools()).tools]
        assert listed == ["ask", *map(legal_name, names)]
        for name in names:
            if name == "turn.get":
                continue  # of a turn of one's own, which `ask` begins
            given = await constitution_calls.call(name)(owner)
            if (agent, name) == ("mind", "relationship.create.v1"):  # it joins what it writes: insights to where they led
                given = {"fromId": "asked", "type": "LEADS_TO", "toId": "shared"}
            told(await mcp.call_tool(legal_name(name), given))
        outside = [name for name in ("node.delete.v1", "backup.restore.v1", "goal.create.v1") if name not in names]
        for name in outside:
            refused = await mcp.call_tool(legal_name(name), {})
            (content,) = refused.content
            assert isinstance(content, TextContent)
            assert (refused.is_error, json.loads(content.text)["code"]) == (True, "forbidden")
    connection = await asyncpg.connect(postgres.dsn(stack.data.postgres))

    async def audited() -> bool:
        rows = await connection.fetch(_AUDIT, owner.tenant, asking.user)
        return {row["action"] for row in rows if row["outcome"] == "refused" and row["code"] == "forbidden"} == set(outside)

    try:
        await eventually(audited, within=20)
    finally:
        await connection.close()


@pytest.mark.verify
@EACH
@pytest.mark.req("O-236", "O-289")
async def test_each_example_of_a_guide_answers_on_the_sample(everybody: Town, keeper: Person, agent: str) -> None:
    asking = await everybody.someone(keeper.tenant, agent)
    for text in _EXAMPLE.findall(profile(agent).prompts["guide"]):
        example = json.loads(text.replace("the-goal-id", "goal-trusted-record"))
        await good(asking, example["tool"], example["arguments"])


@pytest.mark.verify
@pytest.mark.req("O-442", "O-446", "O-290")
async def test_decisions_looks_up_a_precedent_in_one_call_and_in_two(everybody: Town, keeper: Person) -> None:
    asking = await everybody.someone(keeper.tenant, "decisions")
    asked = {"query": "borrow equipment instead of buying it"}
    found = await good(asking, "decision.precedents.v1", asked)
    returns = [hit["node"]["roi"]["total"] for hit in found["results"]]
    assert found["results"]
    assert returns == sorted(returns, reverse=True)
    search = {**asked, "layers": ["execution"], "types": ["decision"], "minSimilarity": 0.2}
    by_hand = (await good(asking, "semantic.search.v1", search))["results"]
    assert all(isinstance(hit["node"]["roi"]["total"], int | float) for hit in by_hand)


@pytest.mark.verify
@pytest.mark.req("O-443")
async def test_execute_assesses_the_workload_and_finds_what_is_due(everybody: Town, keeper: Person) -> None:
    asking = await everybody.someone(keeper.tenant, "execute")
    found = await good(asking, "workload.assess.v1", {"includeTaskDetails": True})
    assert "task-settle-licence" in {task["id"] for task in found["tasks"]["items"]}
    window = {"startDate": found["startDate"], "endDate": found["endDate"]}
    due = await good(asking, "tasks.due.v1", window)
    assert {task["id"] for task in due["items"]} == {task["id"] for task in found["tasks"]["items"]}


@pytest.mark.verify
@pytest.mark.req("O-444")
async def test_mind_searches_insights(everybody: Town, keeper: Person) -> None:
    asking = await everybody.someone(keeper.tenant, "mind")
    search = {"query": "borrowed tools get used", "layers": ["mind"], "minSimilarity": 0.2}
    found = (await good(asking, "semantic.search.v1", search))["results"]
    assert found[0]["node"]["id"] == "insight-borrowed-tools"
    assert {hit["node"]["layer"] for hit in found} == {"mind"}


@pytest.mark.verify
@pytest.mark.req("O-445", "O-285", "O-286", "O-288")
async def test_a_goal_that_is_named_in_words_comes_with_the_strategies_around_it(everybody: Town, keeper: Person) -> None:
    asking = await everybody.someone(keeper.tenant, "discuss")
    found = await good(asking, "goal.search.v1", {"query": "publish twelve years of sediment readings"})
    assert found["goal"]["id"] == "goal-open-sediment"
    assert found["goalScore"] >= 0.6
    first = found["found"]["results"][0]
    assert (first["node"]["id"], first["path"][-1]["nodeId"]) == ("strategy-release-raw",) * 2
    assert tokens.count(json.dumps(found)) <= 12_000


@pytest.mark.verify
@pytest.mark.req("O-222", "O-223", "O-225", "O-226", "O-227")
@pytest.mark.parametrize(
    ("tool", "same", "given"),
    [
        ("discuss_semantic_search", "semantic.search.v1", {"query": "open readings", "minSimilarity": 0.1}),
        ("discuss_hybrid_search", "hybrid.search.v1", {"query": "open readings", "anchorNodeId": "goal-open-sediment"}),
        ("discuss_workload_assess", "workload.assess.v1", {}),
        ("discuss_graph_pagerank", "graph.pagerank.v1", {"types": ["value"]}),
        ("discuss_graph_communities", "graph.communities.v1", {}),
    ],
)
async def test_an_agents_own_name_of_a_tool_answers_the_same(
    keeper: Person, tool: str, same: str, given: dict[str, Any]
) -> None:
    one, other = await good(keeper, tool, given), await good(keeper, same, given)
    for found in (one, other):
        for name in ("retrievalId", "cached", "stats"):
            found.pop(name, None)
    assert one == other


@pytest.mark.verify
@pytest.mark.req("O-235", "O-405")
async def test_a_tool_that_a_tenant_takes_from_an_agent_is_gone_at_once_and_back_after_a_rollback(
    stack: RunningStack, everybody: Town
) -> None:
    editor = await everybody.someone(role="editor")
    asking = await everybody.someone(editor.tenant, "discuss")
    kept = [name for name in profile("discuss").tools if name != "hybrid.search.v1"]
    text = "\n".join(f"- {name}" for name in kept)

    async def listed() -> list[str]:
        async with client(stack, asking) as mcp:
            return [tool.name for tool in (await mcp.list_tools()).tools]

    async def has(*names: str) -> None:
        async def state() -> bool:
            return await listed() == ["ask", *map(legal_name, names)]

        await eventually(state, within=15)

    await has(*profile("discuss").tools)
    await good(editor, "publish_instructions", {"texts": [{"tag": "discuss/allow_list", "content": text}]})
    await has(*kept)
    refused = await asking.tool("hybrid.search.v1", {"query": "q"})
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    await good(editor, "rollback_instructions", {"to": 0})
    await has(*profile("discuss").tools)


async def test_a_write_that_goes_against_a_rule_is_refused_with_the_rule_named(everybody: Town, keeper: Person) -> None:
    asking = await everybody.someone(keeper.tenant, "execute")
    long = {"id": f"t-{uuid4().hex[:8]}", "title": "Dig the whole pond", "effortHours": 40}
    refused = await asking.tool("task.create.v1", long)
    assert (refused.status_code, refused.json()["code"]) == (409, "constitution.guardrail")
    assert "guardrail-long-task" in refused.json()["detail"]
    made = await good(asking, "task.create.v1", {**long, "acknowledge": ["guardrail-long-task"]})
    assert made["acknowledged"] == ["guardrail-long-task"]


@pytest.mark.verify
async def test_a_decision_that_goes_against_a_rule_is_answered_with_the_rule(everybody: Town, keeper: Person) -> None:
    asking = await everybody.someone(keeper.tenant, "decisions")
    answer = await asking.say("Should we publish residents' addresses with the gauge readings?", agent="decisions")
    reply = answer.json()
    assert reply["user_response"].startswith("This is not allowed:\n- the guardrail No residents' personal data in public")
    assert "guardrail-personal-data" in {source["id"] for source in reply["sources"]}


@pytest.mark.verify
async def test_agents_of_the_portfolio_stay_as_they_are(everybody: Town) -> None:
    """Their tools follow from their loop and from the caller's role."""
    somebody = await everybody.someone()
    shown = (await somebody.http.get("/api/v1/tools")).json()["tools"]
    assert [tool["name"] for tool in shown] == sorted(name for name, tool in TOOLS.items() if Agent.NOOR in tool.agents)
