"""Tools by MCP, as the official client of both revisions sees them: the same as by HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any
from uuid import uuid4

import pytest
from mcp import MCPError

from phronesis_bus import Call, connect, serve, trace_id, traceparent
from phronesis_contracts import Unavailable
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.memory import (
    RECALL_TOOL,
    REMEMBER_TOOL,
    ItemKind,
    Recall,
    Recalled,
    RecalledItem,
    Remember,
    Remembered,
    RememberedItem,
)
from phronesis_contracts.service import TraceRef
from phronesis_contracts.tools import legal_name, schema_of_input, schema_of_output
from phronesis_gateway.mcp.server import KEY
from phronesis_gateway.mcp.turns import MAX_RESULT
from tests.support import mcp
from tests.support.gateway import Holder, RunningGateway
from tests.support.personas import Persona
from tests.support.servers import NatsServer

REVISIONS = pytest.mark.parametrize(("mode", "revision"), [("auto", mcp.NOW), ("legacy", mcp.BEFORE)])


class Memory:
    """A memory that remembers who asked it."""

    def __init__(self) -> None:
        self.asked: list[tuple[Call, Any]] = []
        self.trace: str | None = None

    async def recall(self, call: Call, request: Recall) -> Recalled:
        self.asked.append((call, request))
        self.trace = trace_id(traceparent())
        if request.query == "down":
            raise Unavailable("the store is away", retry_after=2)
        text = "x" * (MAX_RESULT if request.query == "large" else 10)
        return Recalled(items=(RecalledItem(id="i", kind=ItemKind.FACT, text=text, score=0.5, why={"text": 2.0}),))

    async def remember(self, call: Call, request: Remember) -> Remembered:
        self.asked.append((call, request))
        id = "i" * (MAX_RESULT if request.items[0].text == "large" else 10)
        return Remembered(items=tuple(RememberedItem(id=id, status="created") for _ in request.items))


@pytest.fixture(scope="module")
async def memory(nats_server: NatsServer) -> AsyncIterator[Memory]:
    """A memory on the bus."""
    async with AsyncExitStack() as stack:
        bus = await stack.enter_async_context(connect("memory", nats_server.settings("memory")))
        running = Memory()
        await serve(bus, RECALL_TOOL, running.recall)
        await serve(bus, REMEMBER_TOOL, running.remember)
        yield running


@REVISIONS
async def test_a_client_of_either_revision_gets_what_http_gives(
    api: RunningGateway, ann: Holder, memory: Memory, mode: str, revision: str
) -> None:
    by_http = await api.http.post("/api/v1/tools/recall", json={"query": "q"}, headers=ann.headers)
    async with mcp.agent(api, ann, mode) as client:
        found = await client.call_tool("recall", {"query": "q"})
        assert client.session.protocol_version == revision
    assert (found.is_error, found.structured_content) == (False, by_http.json())
    assert mcp.text_of(found) == by_http.json()
    assert [(call.who, request) for call, request in memory.asked[-2:]] == [(ann.who, Recall(query="q"))] * 2


@REVISIONS
async def test_the_tools_of_the_callers_role_are_listed_with_what_they_do(
    api: RunningGateway, mode: str, revision: str
) -> None:
    editor = await api.holder(**Persona.EDITOR.rights)
    async with mcp.agent(api, editor, mode) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    mine = {legal_name(name) for name, tool in TOOLS.items() if Persona.EDITOR.may(tool)}
    assert set(listed) == mine | {"ask"}
    recall = listed["recall"]
    assert recall.description == RECALL_TOOL.description
    assert (recall.input_schema, recall.output_schema) == (
        schema_of_input(Recall.model_json_schema()),
        schema_of_output(Recalled.model_json_schema()),
    )
    hints = recall.annotations
    assert hints is not None
    assert (hints.read_only_hint, hints.destructive_hint, hints.open_world_hint) == (True, False, False)


@REVISIONS
async def test_a_problem_is_a_result_that_says_so(
    api: RunningGateway, ann: Holder, memory: Memory, mode: str, revision: str
) -> None:
    async with mcp.agent(api, ann, mode) as client:
        down = await client.call_tool("recall", {"query": "down"})
        wrong = await client.call_tool("recall", {"query": "q", "limit": 1_000})
    assert (down.is_error, down.structured_content) == (True, None)
    assert mcp.text_of(down) == {
        "code": "unavailable", "status": 503, "detail": "the store is away", "retry_after": 2.0,
    }  # fmt: skip
    assert wrong.is_error
    assert {k: v for k, v in mcp.text_of(wrong).items() if k != "detail"} == {
        "code": "bad_request", "status": 400, "field": "limit",
    }  # fmt: skip


@REVISIONS
async def test_a_tool_of_another_role_is_a_refusal_and_one_that_is_not_there_an_error(
    api: RunningGateway, memory: Memory, mode: str, revision: str
) -> None:
    editor = await api.holder(**Persona.EDITOR.rights)
    before = len(memory.asked)
    async with mcp.agent(api, editor, mode) as client:
        refused = await client.call_tool("remember", {"items": [{"kind": "fact", "text": "x"}]})
        for name in ("nothing", "../recall", "recall/../remember", "RECALL", ""):
            with pytest.raises(MCPError) as error:
                await client.call_tool(name, {})
            assert (error.value.code, error.value.message) == (-32602, "there is no such tool")
    assert (refused.is_error, mcp.text_of(refused)["code"]) == (True, "forbidden")
    assert len(memory.asked) == before


async def test_the_dotted_name_of_a_tool_is_good_too(api: RunningGateway, ann: Holder) -> None:
    answers = [await mcp.call(api, ann, name, {}) for name in ("document.extract_text", "document_extract_text")]
    assert [mcp.problem_of(answer)["field"] for answer in answers] == ["media_id"] * 2


async def test_a_key_of_a_call_reaches_the_owner_of_the_write(api: RunningGateway, ann: Holder, memory: Memory) -> None:
    given = {"items": [{"kind": "fact", "text": "x"}]}
    await mcp.call(api, ann, "remember", given, **{KEY: "k 1"})
    call, _ = memory.asked[-1]
    assert call.key == f"mcp/{ann.who.user}/k 1"
    wrong = await mcp.call(api, ann, "remember", given, **{KEY: "line\nend"})
    assert mcp.problem_of(wrong)["field"] == f"_meta.{KEY}"


async def test_a_large_result_is_withheld_unless_it_is_a_writes(api: RunningGateway, ann: Holder, memory: Memory) -> None:
    read = await mcp.call(api, ann, "recall", {"query": "large"})
    assert (mcp.problem_of(read)["code"], mcp.problem_of(read)["status"]) == ("too_large", 413)
    written = await mcp.call(api, ann, "remember", {"items": [{"kind": "fact", "text": "large"}]})
    assert len(written["structuredContent"]["items"][0]["id"]) == MAX_RESULT


async def test_there_is_one_page_of_tools(api: RunningGateway, ann: Holder) -> None:
    first = (await mcp.post(api, ann, mcp.message("tools/list"))).json()["result"]
    assert ("nextCursor" in first, first["cacheScope"], first["resultType"]) == (False, "private", "complete")
    again = (await mcp.post(api, ann, mcp.message("tools/list"))).json()["result"]
    assert again == first
    other = await mcp.post(api, ann, mcp.message("tools/list", {"cursor": "x"}))
    assert (other.status_code, other.json()["error"]["code"]) == (400, -32602)


async def test_arguments_that_are_not_known_are_treated_as_by_http(api: RunningGateway, ann: Holder, memory: Memory) -> None:
    given = {"query": "q", "tenant": "other", "user": "bob"}
    by_http = await api.http.post("/api/v1/tools/recall", json=given, headers=ann.headers)
    found = await mcp.call(api, ann, "recall", given)
    assert (by_http.status_code, found["structuredContent"]) == (200, by_http.json())
    assert memory.asked[-1][0].who == ann.who


async def test_a_call_has_a_span_by_the_names_of_the_conventions_under_the_callers_trace(
    api: RunningGateway, ann: Holder, memory: Memory
) -> None:
    trace = uuid4().hex
    await mcp.call(api, ann, "recall", {"query": "q"}, traceparent=f"00-{trace}-{'1' * 16}-01")
    spans = {span.name: span for span in api.bus.tracing.recent.of(TraceRef(trace_id=trace)).spans}
    assert set(spans) == {"tools/call recall", "ask memory.v1.recall"}
    assert spans["tools/call recall"].attributes == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": mcp.NOW,
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "recall",
        "phronesis.owner": f"{ann.who.tenant}/{ann.who.user}",
    }
    assert memory.trace == trace
    counted = (await api.http.get("/metrics")).text
    assert 'gateway_mcp_seconds_count{method="tools/call",outcome="ok",tool="recall"}' in counted
