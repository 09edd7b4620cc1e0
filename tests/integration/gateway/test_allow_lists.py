"""Allow-lists at the gateway's faces: what is listed, what is refused and audited, and what a release changes at once."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError

from phronesis_bus import Call, announce, connect, serve
from phronesis_bus.connection import Bus
from phronesis_contracts import NotFound
from phronesis_contracts.constitution.search import SEMANTIC_SEARCH_TOOL, SearchStats, SemanticFound, SemanticSearch
from phronesis_contracts.instructions import AGENT_GET, RELEASED, AgentProfile, AgentRef, Released
from phronesis_contracts.service import AUDITED
from phronesis_contracts.tools import legal_name
from phronesis_gateway.mcp.tools import SEARCH
from phronesis_gateway.settings import ToolSettings
from phronesis_postgres import PostgresSettings
from tests.support import mcp
from tests.support.bus import broker, eventually
from tests.support.counsel import AGENTS, profile
from tests.support.gateway import RunningGateway, gateway
from tests.support.personas import Persona
from tests.support.servers import NatsServer


class Instructions:
    """An instructions service whose lists a test changes."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.profiles = {name: profile(name) for name in AGENTS}

    async def agent_get(self, call: Call, request: AgentRef) -> AgentProfile:
        if request.agent not in self.profiles:
            raise NotFound("no such agent")
        return self.profiles[request.agent]

    async def allow(self, tenant: str, agent: str, *tools: str) -> None:
        self.profiles[agent] = self.profiles[agent].model_copy(update={"tools": tools})
        await announce(self.bus, tenant, RELEASED, Released(tags=(f"{agent}/allow_list",), version="1.0.0+1"))


class Memory:
    """A memory that finds nothing, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[SemanticSearch] = []

    async def semantic(self, call: Call, request: SemanticSearch) -> SemanticFound:
        self.asked.append(request)
        return SemanticFound(results=(), stats=SearchStats())


@pytest.fixture(scope="module")
async def instructions(nats_server: NatsServer) -> AsyncIterator[Instructions]:
    """Instructions on the bus."""
    async with connect("instructions", nats_server.settings("instructions")) as bus:
        running = Instructions(bus)
        await serve(bus, AGENT_GET, running.agent_get)
        yield running


@pytest.fixture(scope="module")
async def memory(nats_server: NatsServer) -> AsyncIterator[Memory]:
    """A memory on the bus."""
    async with AsyncExitStack() as stack:
        bus = await stack.enter_async_context(connect("memory", nats_server.settings("memory")))
        running = Memory()
        await serve(bus, SEMANTIC_SEARCH_TOOL, running.semantic)
        yield running


@pytest.mark.parametrize("role", AGENTS)
@pytest.mark.req("O-229")
async def test_an_agent_sees_its_list_by_mcp_and_by_http(api: RunningGateway, instructions: Instructions, role: str) -> None:
    holder = await api.holder(**Persona(role).rights)
    names = profile(role).tools
    async with mcp.agent(api, holder) as client:
        by_mcp = [tool.name for tool in (await client.list_tools()).tools]
    by_http = (await api.http.get("/api/v1/tools", headers=holder.headers)).json()["tools"]
    assert by_mcp == ["ask", *map(legal_name, names)]
    assert [tool["name"] for tool in by_http] == sorted(names)


@pytest.mark.req("O-346")
async def test_a_call_outside_the_list_is_refused_by_both_faces_and_audited(
    api: RunningGateway, instructions: Instructions, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = await api.holder(**Persona.DISCUSS.rights)
    published: list[tuple[str, Any]] = []
    publish = api.bus.request

    async def heard(subject: str, body: bytes, **more: Any) -> Any:
        published.append((subject, json.loads(body)))
        return await publish(subject, body, **more)

    monkeypatch.setattr(api.bus, "request", heard)
    by_mcp = await mcp.call(api, holder, "insight_search_v1", {"query": "q"})
    by_http = await api.http.post("/api/v1/tools/insight.search.v1", json={"query": "q"}, headers=holder.headers)
    problem = mcp.problem_of(by_mcp)
    assert (problem["code"], by_http.status_code, by_http.json()["code"]) == ("forbidden", 403, "forbidden")
    assert problem["detail"] == by_http.json()["detail"] == "insight.search.v1 is not among the tools of the agent discuss"
    mine = [entry for subject, entry in published if subject == AUDITED["gateway"].on(holder.who.tenant)]
    assert [(entry["action"], entry["role"], entry["outcome"], entry["code"], entry["arguments"]) for entry in mine] == [
        ("insight.search.v1", Persona.DISCUSS.text, "refused", "forbidden", {"query": "q"})
    ] * 2


@pytest.mark.req("O-235")
async def test_a_tool_that_a_release_removes_is_gone_from_the_next_list_without_a_restart(
    api: RunningGateway, instructions: Instructions, memory: Memory
) -> None:
    holder = await api.holder(**Persona.EXECUTE.rights)
    before = profile("execute").tools

    async def names() -> list[str]:
        async with mcp.agent(api, holder) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    try:
        assert "semantic_search_v1" in await names()
        assert (await mcp.call(api, holder, "semantic.search.v1", {"query": "q"}))["isError"] is False
        await instructions.allow(holder.who.tenant, "execute", *(name for name in before if name != "semantic.search.v1"))

        async def is_gone() -> bool:
            return "semantic_search_v1" not in await names()

        await eventually(is_gone, within=5)
        refused = await mcp.call(api, holder, "semantic.search.v1", {"query": "q"})
        assert mcp.problem_of(refused)["code"] == "forbidden"
    finally:
        await instructions.allow(holder.who.tenant, "execute", *before)


async def test_without_instructions_an_agent_has_no_tools_and_the_others_have_theirs(
    database: PostgresSettings, tmp_path: Path
) -> None:
    async with broker(tmp_path) as alone, gateway(alone, database) as api:
        lonely, free = await api.holder(**Persona.MIND.rights), await api.holder()
        listing = await mcp.post(api, lonely, mcp.message("tools/list"))
        called = await mcp.call(api, lonely, "semantic_search_v1", {"query": "q"})
        others = (await mcp.post(api, free, mcp.message("tools/list"))).json()["result"]["tools"]
    assert listing.json()["error"]["data"]["code"] == "unavailable"
    assert mcp.problem_of(called)["code"] == "unavailable"
    assert len(others) > 1


@pytest.mark.req("O-094")
async def test_every_spelling_of_a_tools_name_comes_to_the_same_handler(
    api: RunningGateway, instructions: Instructions, memory: Memory
) -> None:
    holder = await api.holder(**Persona.DISCUSS.rights)
    spelt = ("semantic.search.v1", "semantic_search_v1", "odei.neo4j.semantic.search.v1", "odei_neo4j_semantic_search_v1")
    before = len(memory.asked)
    for name in spelt:
        assert (await mcp.call(api, holder, name, {"query": name}))["isError"] is False
        answer = await api.http.post(f"/api/v1/tools/{name}", json={"query": name}, headers=holder.headers)
        assert answer.status_code == 200, answer.text
    assert [request.query for request in memory.asked[before:]] == [name for name in spelt for _ in range(2)]


@pytest.mark.req("O-095")
async def test_each_bad_field_is_named_and_nobody_is_asked(
    api: RunningGateway, instructions: Instructions, memory: Memory
) -> None:
    holder, before = await api.holder(**Persona.DISCUSS.rights), len(memory.asked)
    wrong = mcp.problem_of(await mcp.call(api, holder, "semantic_search_v1", {"query": "", "topK": 51, "minSimilarity": 1.2}))
    assert (wrong["code"], wrong["field"]) == ("bad_request", "query")
    assert all(f"{name}: " in wrong["detail"] for name in ("query", "topK", "minSimilarity"))
    assert len(memory.asked) == before


@pytest.mark.req("O-096", "C-21")
async def test_what_is_left_out_is_as_documented(api: RunningGateway, instructions: Instructions, memory: Memory) -> None:
    holder = await api.holder(**Persona.DISCUSS.rights)
    await mcp.call(api, holder, "semantic_search_v1", {"query": "q"})
    asked = memory.asked[-1]
    assert (asked.top_k, asked.min_similarity, asked.status, asked.include_relationships) == (10, None, "active", False)


async def test_what_is_not_in_a_long_list_is_found_and_can_be_called(api: RunningGateway) -> None:
    admin = await api.holder(**Persona.ADMIN.rights)
    async with mcp.agent(api, admin) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        found = await client.call_tool("search_tools", {"query": "change a work session", "limit": 3})
        assert not found.is_error
        name = mcp.text_of(found)["tools"][0]["name"]
        assert (name, name in listed) == ("workSession_update_v1", False)
        missing = await client.call_tool(name, {})
    assert mcp.text_of(missing)["code"] == "bad_request"


async def test_a_search_finds_no_tool_that_the_caller_may_not_call(api: RunningGateway, instructions: Instructions) -> None:
    holder = await api.holder(**Persona.DISCUSS.rights)
    found = await mcp.call(api, holder, "search_tools", {"query": "create goal value task", "limit": 20})
    names = {one["name"] for one in found["structuredContent"]["tools"]}
    assert names <= {legal_name(name) for name in profile("discuss").tools}


@pytest.mark.req("O-097", "O-098")
async def test_a_retired_tool_is_gone_by_a_setting_and_back_by_it(
    nats_server: NatsServer, database: PostgresSettings, api: RunningGateway
) -> None:
    name = "foundation_list_v1"
    async with gateway(nats_server, database, retired=ToolSettings(retired=("foundation.list.v1",))) as retiring:
        admin = await retiring.holder(**Persona.ADMIN.rights)
        seen = []
        for one in (retiring, api):
            async with mcp.agent(one, admin) as client:
                found = (await client.call_tool(SEARCH.name, {"query": "foundation list", "limit": 20})).structured_content
                seen.append(name in {tool["name"] for tool in found["tools"]})
        by_http = await retiring.http.post("/api/v1/tools/foundation.list.v1", json={}, headers=admin.headers)
        by_mcp = mcp.problem_of(await mcp.call(retiring, admin, name, {}))
    assert seen == [False, True]
    assert (by_http.status_code, by_http.json()["code"]) == (410, "retired")
    assert (by_mcp["code"], by_mcp["detail"]) == ("retired", "foundation.list.v1 is retired; use foundation.list.v2")


async def test_a_tool_that_there_is_not_is_an_error_for_agents_too(api: RunningGateway, instructions: Instructions) -> None:
    holder = await api.holder(**Persona.MIND.rights)
    async with mcp.agent(api, holder) as client:
        with pytest.raises(MCPError):
            await client.call_tool("graph_dream_v1", {})
