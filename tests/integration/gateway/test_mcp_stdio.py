"""`phronesis mcp`: a desktop agent on stdin and stdout, the gateway behind."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters

from phronesis_contracts.orchestrator import TurnStatus
from phronesis_local.layout import inherited_environment
from tests.support import mcp
from tests.support.bus import eventually
from tests.support.gateway import Holder, RunningGateway
from tests.support.scripted_orchestrator import ScriptedOrchestrator

REVISIONS = pytest.mark.parametrize(("mode", "revision"), [("auto", mcp.NOW), ("legacy", mcp.BEFORE)])
pytestmark = [pytest.mark.usefixtures("orchestrator"), pytest.mark.timeout(300)]


def command(url: str, key: str) -> StdioServerParameters:
    """How a desktop agent is told to start it."""
    environment = inherited_environment() | {"PHRONESIS_URL": url, "PHRONESIS_KEY": key}
    return StdioServerParameters(command=sys.executable, args=["-m", "phronesis", "mcp", "--tools", "all"], env=environment)


@asynccontextmanager
async def desktop(api: RunningGateway, holder: Holder, mode: str = "auto") -> AsyncIterator[Client]:
    """The official client with `phronesis mcp` as its server."""
    async with Client(command(mcp.url(api).removesuffix(mcp.PATH), holder.secret), mode=mode) as client:
        yield client


@REVISIONS
async def test_a_desktop_agent_gets_the_same_as_by_http_with_progress(
    api: RunningGateway, ann: Holder, mode: str, revision: str
) -> None:
    heard: list[tuple[float, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))

    async with desktop(api, ann, mode) as client, mcp.agent(api, ann, mode) as by_http:
        assert client.session.protocol_version == revision
        assert await client.list_tools() == await by_http.list_tools()
        told = await client.call_tool("ask", {"message": "hello"}, progress_callback=on_progress)
        again = await by_http.call_tool("turn_get", {"turn_id": told.structured_content["turn_id"]})
        with pytest.raises(MCPError, match="there is no such tool"):
            await client.call_tool("../x", {})
    assert told.structured_content == again.structured_content
    assert heard == [(0, "accepted")]


@REVISIONS
async def test_a_call_that_a_desktop_agent_cancels_cancels_its_turn(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator, mode: str, revision: str
) -> None:
    text = uuid4().hex
    orchestrator.slow.add(text)
    scope = anyio.CancelScope()
    async with desktop(api, ann, mode) as client, asyncio.TaskGroup() as group:

        async def asked() -> None:
            with scope:
                await client.call_tool("ask", {"message": text})

        group.create_task(asked())
        id = await orchestrator.arrived(text=text)
        scope.cancel()

        async def cancelled() -> bool:
            found = (await api.http.get(f"/api/v1/turns/{id}", headers=ann.headers)).json()
            return bool(found["status"] == TurnStatus.CANCELLED)

        await eventually(cancelled)


async def test_a_desktop_agent_is_told_why_it_is_not_let_in(api: RunningGateway, ann: Holder) -> None:
    wrong = command(mcp.url(api).removesuffix(mcp.PATH), "phr_" + "x" * 43)
    with pytest.raises(Exception) as error:
        async with Client(wrong):
            pass
    assert "unauthorized: the key is not valid" in _whole(error.value)


async def test_a_gateway_that_is_away_is_an_error_of_the_call_and_lines_that_are_none_are_told() -> None:
    given = command("http://127.0.0.1:9", "phr_" + "x" * 43)
    process = await asyncio.create_subprocess_exec(
        given.command, *given.args, env=given.env, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    answers = []
    for line in (b"no json", json.dumps(mcp.message("tools/list", id="a")).encode()):
        process.stdin.write(line + b"\n")
        async with asyncio.timeout(60):
            answers.append(json.loads(await process.stdout.readline()))
    process.stdin.close()
    async with asyncio.timeout(30):
        code = await process.wait()
    assert [(answer["id"], answer["error"]["code"]) for answer in answers] == [(None, -32700), ("a", -32603)]
    assert answers[1]["error"]["message"] == "nothing answers at http://127.0.0.1:9/mcp"
    assert code == 0


def _whole(error: BaseException) -> str:
    """What an error says, and those inside of it."""
    inner = " ".join(_whole(one) for one in error.exceptions) if isinstance(error, BaseExceptionGroup) else ""
    return f"{error} {inner}"
