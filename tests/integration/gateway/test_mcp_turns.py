"""Talking to an agent by MCP: a turn is handed in, waited for, and cancelled with its call."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import uuid4

import anyio
import httpx
import pytest

from phronesis_contracts.orchestrator import Problem, TurnStatus, turn_id
from phronesis_gateway.mcp.server import KEY
from tests.support import mcp
from tests.support.bus import eventually
from tests.support.gateway import Holder, RunningGateway, gateway
from tests.support.scripted_orchestrator import ScriptedOrchestrator

REVISIONS = pytest.mark.parametrize("mode", ["auto", "legacy"])
pytestmark = pytest.mark.usefixtures("orchestrator")


async def status(api: RunningGateway, holder: Holder, id: str) -> str:
    """Where a turn is."""
    return str((await api.http.get(f"/api/v1/turns/{id}", headers=holder.headers)).json()["status"])


@REVISIONS
async def test_a_question_is_answered_with_the_turn_as_http_shows_it(api: RunningGateway, ann: Holder, mode: str) -> None:
    async with mcp.agent(api, ann, mode) as client:
        told = await client.call_tool("ask", {"message": "hello"})
        again = await client.call_tool("turn_get", {"turn_id": told.structured_content["turn_id"]})
    by_http = await api.http.get(f"/api/v1/turns/{told.structured_content['turn_id']}", headers=ann.headers)
    assert told.structured_content == again.structured_content == by_http.json()
    assert told.structured_content["reply"]["user_response"] == "You said: hello"


async def test_a_conversation_goes_on_under_its_id_with_the_agent_that_is_named(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator
) -> None:
    text = uuid4().hex
    await mcp.call(api, ann, "ask", {"message": text, "conversation_id": "c-1", "agent": "nova"})
    turn = orchestrator.submitted[await orchestrator.arrived(text=text)][0]
    assert (turn.text, turn.conversation_id, turn.agent) == (text, "c-1", "nova")


@REVISIONS
async def test_the_phases_of_a_turn_are_its_progress_and_only_grow(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator, mode: str
) -> None:
    text = uuid4().hex
    heard: list[tuple[float, float | None, str | None]] = []
    orchestrator.slow.add(text)

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with mcp.agent(api, ann, mode) as client, asyncio.TaskGroup() as group:
        call = group.create_task(client.call_tool("ask", {"message": text}, progress_callback=on_progress))
        id = await orchestrator.arrived(text=text)
        for phase in ("preprocessed", "routed", "preprocessed", "retrieved", "answered"):
            await eventually(lambda: bool(heard))
            await orchestrator.phase(id, phase)
        await eventually(lambda: len(heard) == 5)
        await orchestrator.end(id)
        await call
    assert heard == [
        (0, 4, "accepted"), (1, 4, "preprocessed"), (2, 4, "routed"), (3, 4, "retrieved"), (4, 4, "answered"),
    ]  # fmt: skip


async def test_nothing_is_told_of_a_turn_to_a_client_that_did_not_ask(api: RunningGateway, ann: Holder) -> None:
    body = mcp.message("tools/call", {"name": "ask", "arguments": {"message": "hello"}})
    answer = await mcp.post(api, ann, body)
    assert answer.headers["content-type"] == "application/json"


@REVISIONS
async def test_a_call_that_is_cancelled_cancels_its_turn(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator, mode: str
) -> None:
    text = uuid4().hex
    orchestrator.slow.add(text)
    async with mcp.agent(api, ann, mode) as client, asyncio.TaskGroup() as group:
        scope = anyio.CancelScope()

        async def asked() -> None:
            with scope:
                await client.call_tool("ask", {"message": text})

        group.create_task(asked())
        id = await orchestrator.arrived(text=text)
        scope.cancel()
        await _until(api, ann, id, TurnStatus.CANCELLED)


@pytest.mark.parametrize("revision", [mcp.NOW, mcp.BEFORE])
async def test_a_stream_that_is_closed_cancels_its_turn(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator, revision: str
) -> None:
    text = uuid4().hex
    orchestrator.slow.add(text)
    async with _asking(api, ann, text, revision):
        id = await orchestrator.arrived(text=text)
    await _until(api, ann, id, TurnStatus.CANCELLED)


async def test_a_notification_cancels_the_turn_on_any_copy_of_the_gateway(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator, nats_server: Any, database: Any
) -> None:
    text = uuid4().hex
    orchestrator.slow.add(text)
    given = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}
    headers = {"MCP_Protocol_Version": mcp.BEFORE, "Mcp_Session_Id": "s-1", "Mcp_Method": ""}
    bob = await api.holder()
    async with gateway(nats_server, database) as other, asyncio.TaskGroup() as group:
        body = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "ask", "arguments": {"message": text}}}
        call = group.create_task(mcp.post(api, ann, body, **headers))
        id = await orchestrator.arrived(text=text)
        assert id == turn_id(ann.who.tenant, ann.who.user, "mcp/s-1/5")
        assert (await mcp.post(other, bob, given, **headers)).status_code == 202
        assert await status(api, ann, id) == "queued"
        assert (await mcp.post(other, ann, given, **headers)).status_code == 202
        await _until(api, ann, id, TurnStatus.CANCELLED)
        answer = json.loads((await call).text.split("data: ", 1)[1].splitlines()[0])
    assert mcp.problem_of(answer["result"])["code"] == "turn_ended"


async def test_a_turn_that_takes_longer_goes_on_and_is_found_again(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator
) -> None:
    text = uuid4().hex
    orchestrator.slow.add(text)
    told = (await mcp.call(api, ann, "ask", {"message": text, "wait": 0}))["structuredContent"]
    assert (told["status"], told["reply"]) == ("queued", None)
    await orchestrator.end(told["turn_id"])
    found = await mcp.call(api, ann, "turn_get", {"turn_id": told["turn_id"]})
    assert found["structuredContent"]["reply"]["user_response"] == f"You said: {text}"


async def test_a_gateway_that_stops_says_where_the_turn_is_and_cancels_nothing(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator, nats_server: Any, database: Any
) -> None:
    text = uuid4().hex
    orchestrator.slow.add(text)
    async with gateway(nats_server, database) as other, asyncio.TaskGroup() as group:
        async with _asking(other, ann, text, mcp.NOW) as answer:
            events = (json.loads(line[6:]) async for line in answer.aiter_lines() if line.startswith("data: "))
            said = await anext(events)
            group.create_task(other.server.stop())
            told = (await anext(events))["result"]["structuredContent"]
    assert said["params"]["message"] == "accepted"
    assert (told["status"], await status(api, ann, told["turn_id"])) == ("queued", "queued")


async def test_the_same_key_is_the_same_turn_and_with_another_message_a_conflict(api: RunningGateway, ann: Holder) -> None:
    key, text = uuid4().hex, uuid4().hex
    first, second = [await mcp.call(api, ann, "ask", {"message": text}, **{KEY: key}) for _ in range(2)]
    other = await mcp.call(api, ann, "ask", {"message": "another"}, **{KEY: key})
    assert first == second
    assert mcp.problem_of(other)["code"] == "idempotency_key_reused"


async def test_a_turn_that_fails_is_a_problem_with_its_code(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator
) -> None:
    text = uuid4().hex
    orchestrator.ends[text] = Problem(code="model_failed", status=502, detail="no model answered")
    found = mcp.problem_of(await mcp.call(api, ann, "ask", {"message": text}))
    assert (found["code"], found["status"], found["detail"]) == ("model_failed", 502, "no model answered")
    assert found["turn_id"] == await orchestrator.arrived(text=text)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "message"),
        ({"message": " "}, "message"),
        ({"message": "x" * 100_001}, "message"),
        ({"message": "x", "wait": 301}, "wait"),
        ({"message": "x", "wait": -1}, "wait"),
        ({"message": "x", "conversation_id": "c" * 65}, "conversation_id"),
    ],
)
async def test_a_question_that_breaks_a_rule_is_a_problem_that_names_the_field(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator, given: dict[str, Any], field: str
) -> None:
    before = len(orchestrator.submitted)
    found = mcp.problem_of(await mcp.call(api, ann, "ask", given))
    assert (found["code"], found["field"], len(orchestrator.submitted)) == ("bad_request", field, before)


async def test_a_turn_of_another_is_never_found(api: RunningGateway, ann: Holder) -> None:
    told = (await mcp.call(api, ann, "ask", {"message": "secret"}))["structuredContent"]
    bob = await api.holder(tenant=ann.who.tenant)
    found = mcp.problem_of(await mcp.call(api, bob, "turn_get", {"turn_id": told["turn_id"]}))
    assert (found["code"], found["status"]) == ("not_found", 404)


def _asking(api: RunningGateway, holder: Holder, text: str, revision: str) -> Any:
    """The open stream of a question; progress is asked for, so that it begins at once."""
    params = {"name": "ask", "arguments": {"message": text}}
    if revision == mcp.NOW:
        body = mcp.message("tools/call", params, progressToken="p")
        headers = mcp.headers_of(body)
    else:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {"Accept": mcp.ACCEPT, "MCP-Protocol-Version": revision}
    return api.http.stream("POST", mcp.PATH, json=body, headers=headers | holder.headers, timeout=httpx.Timeout(20))


async def _until(api: RunningGateway, holder: Holder, id: str, wanted: TurnStatus) -> None:
    async def reached() -> bool:
        return await status(api, holder, id) == wanted

    await eventually(reached)
