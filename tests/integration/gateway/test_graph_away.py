"""Tools of the constitutional graph while its owner is away or hangs: an error that says what to do, and no hung call."""

from __future__ import annotations

import asyncio
import time
from itertools import cycle
from typing import Any

import pytest

from phronesis_bus import Call, connect, serve
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.constitution.insight import CHECK_POLICY_TOOL, CheckPolicy
from scripts import samples
from tests.support import mcp
from tests.support.gateway import RunningGateway
from tests.support.personas import Persona
from tests.support.servers import NatsServer

OF_THE_GRAPH = sorted(name for name, tool in TOOLS.items() if tool.rpc.subject.startswith(("graph.v1.con", "graph.v2.con")))


def arguments(name: str) -> dict[str, Any]:
    """What the tool may be called with."""
    forms = samples.committed()[f"rpc.{TOOLS[name].rpc.subject}"]
    latest: dict[str, Any] = forms["in"][-1]
    return latest


@pytest.mark.req("O-100")
async def test_without_the_graph_service_each_of_its_tools_says_at_once_that_it_is_away_and_when_to_try_again(
    api: RunningGateway,
) -> None:
    assert len(OF_THE_GRAPH) > 80
    # One user would be over their limit of requests.
    admins, problems = [await api.holder(**Persona.ADMIN.rights) for _ in range(3)], {}
    for admin, name in zip(cycle(admins), OF_THE_GRAPH, strict=False):
        began = time.monotonic()
        problem = mcp.problem_of(await mcp.call(api, admin, name, arguments(name)))
        told = tuple(problem.get(field) for field in ("code", "status", "detail", "retry_after"))
        problems[name] = (*told, time.monotonic() - began < TOOLS[name].rpc.timeout)
    assert problems == dict.fromkeys(OF_THE_GRAPH, ("unavailable", 503, "graph is not there", 1.0, True))


@pytest.mark.verify
@pytest.mark.req("O-100")
async def test_a_graph_service_that_hangs_is_given_up_after_the_tools_own_time(
    api: RunningGateway, nats_server: NatsServer
) -> None:
    async def hang(call: Call, request: CheckPolicy) -> Any:
        await asyncio.Event().wait()

    admin = await api.holder(**Persona.ADMIN.rights)
    async with connect("graph", nats_server.settings("graph")) as graph:
        await serve(graph, CHECK_POLICY_TOOL, hang)
        began = time.monotonic()
        problem = mcp.problem_of(await mcp.call(api, admin, CHECK_POLICY_TOOL.name, arguments(CHECK_POLICY_TOOL.name)))
    assert (problem["code"], problem["status"]) == ("timed_out", 504)
    assert time.monotonic() - began < CHECK_POLICY_TOOL.rpc.timeout + 2
