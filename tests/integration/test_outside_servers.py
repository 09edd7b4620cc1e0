"""Administrators and outside servers: on a real broker and a real Postgres, with a real MCP server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from pydantic import SecretStr

from phronesis_bus import Bus, Relay, ask, connect, serve
from phronesis_contracts import BadRequest, Forbidden, Nothing, Principal, Risk
from phronesis_contracts.media import RESOLVE_ADDRESS
from phronesis_contracts.outside import (
    ACCEPT_TOOLS,
    ADD_SERVER,
    INSPECT_SERVER,
    JUDGE_TOOLS,
    LIST_SERVERS,
    REMOVE_SERVER,
    SWITCH_SERVER,
    AcceptTools,
    AddServer,
    AllowTool,
    CommandsOff,
    Inspected,
    JudgeTools,
    OutsideServers,
    ServerRef,
    SwitchServer,
    ToolChanged,
    ToolNotAllowed,
    ToolState,
    UnknownServer,
)
from phronesis_media.fetching.handlers import FetchHandlers
from phronesis_media.fetching.web import DestinationResolver, PublicWeb, SystemResolver
from phronesis_orchestrator.outside_tools.handlers import serve_outside
from phronesis_orchestrator.outside_tools.schemas import fetch_outside_tools
from phronesis_orchestrator.outside_tools.store import PostgresServers
from phronesis_orchestrator.sessions.store import AesSeal
from phronesis_orchestrator.turns.ports import BusNeighbours
from phronesis_postgres import Database, PostgresOutbox
from tests.support.mcp_outsiders import INJECTION, RunningOutsider, outsider
from tests.support.personas import Persona
from tests.support.servers import NatsServer, PostgresServer

SECRET = "Bearer nobody-may-see-this"


@dataclass
class Platform:
    """The gateway's connection, whom turns ask, and an outside server that an operator trusts."""

    gateway: Bus
    neighbours: BusNeighbours
    running: RunningOutsider

    async def add(self, who: Principal, name: str = "out", **more: Any) -> None:
        await ask(self.gateway, who, ADD_SERVER, AddServer(**{"name": name, "url": self.running.url, **more}))

    async def accept(self, who: Principal, *tools: str, **pins: str) -> None:
        allowed = tuple(AllowTool(name=tool, risk=Risk.LOW) for tool in tools)
        await ask(self.gateway, who, ACCEPT_TOOLS, AcceptTools(name="out", tools=allowed, pins=pins))

    async def inspect(self, who: Principal) -> Inspected:
        return await ask(self.gateway, who, INSPECT_SERVER, ServerRef(name="out"))

    async def call(self, who: Principal, tool: str, **given: Any) -> Any:
        found = (await fetch_outside_tools(self.neighbours, who, ("*",)))[f"outside.out.{tool}"]
        return await self.neighbours.ask(who, found.rpc, found.rpc.input.model_validate(given), key="turn/step")


@pytest.fixture
async def here(nats_server: NatsServer, postgres: PostgresServer) -> AsyncIterator[Platform]:
    async with (
        postgres.fresh_schema("orchestrator") as settings,
        Database.open(settings, "orchestrator") as database,
        connect("gateway", nats_server.settings("gateway")) as gateway,
        connect("media", nats_server.settings("media")) as media,
        connect("orchestrator", nats_server.settings("orchestrator")) as orchestrator,
        outsider() as running,
    ):
        places = DestinationResolver(SystemResolver(), trusted=(running.place,))
        fetching = FetchHandlers(PublicWeb(SystemResolver(), seconds=5), places, None, None)  # type: ignore[arg-type]  # nothing is fetched
        await serve(media, RESOLVE_ADDRESS, fetching.resolve)
        relay, neighbours = Relay(orchestrator, PostgresOutbox(database)), BusNeighbours(orchestrator)
        seal = AesSeal(SecretStr("a long enough key of somebody"))
        await serve_outside(orchestrator, neighbours, PostgresServers(database), seal, False, relay.wake)
        relay.start()
        yield Platform(gateway, neighbours, running)


@pytest.fixture
def root() -> Principal:
    return Principal(tenant=f"t-{uuid4().hex[:12]}", user="root", **Persona.ADMIN.rights)


async def states(here: Platform, root: Principal) -> dict[str, ToolState]:
    return {tool.name: tool.state for tool in (await here.inspect(root)).tools}


async def test_a_registered_server_offers_nothing_before_its_tools_are_accepted(here: Platform, root: Principal) -> None:
    await here.add(root)
    assert set((await states(here, root)).values()) == {ToolState.NEW}
    assert await fetch_outside_tools(here.neighbours, root, ("*",)) == {}
    await here.accept(root, "add")
    offered = await fetch_outside_tools(here.neighbours, root, ("*",))
    assert [(tool.name, tool.risk, tool.description) for tool in offered.values()] == [
        ("outside.out.add", Risk.LOW, "Add two numbers.")
    ]
    assert (await here.call(root, "add", a=2, b=3)).text == "5"


async def test_an_agent_is_offered_the_servers_of_its_profile_alone(here: Platform, root: Principal) -> None:
    await here.add(root)
    await here.accept(root, "add")
    assert [*await fetch_outside_tools(here.neighbours, root, ("out",))] == ["outside.out.add"]
    assert await fetch_outside_tools(here.neighbours, root, ("another",)) == {}
    assert await fetch_outside_tools(here.neighbours, root, ()) == {}


async def test_a_changed_tool_is_refused_until_it_is_accepted_again(here: Platform, root: Principal) -> None:
    await here.add(root)
    await here.accept(root, "add")
    here.running.says.tools["add"]["description"] = f"Add two numbers. {INJECTION}"
    with pytest.raises(ToolChanged):
        await here.call(root, "add", a=1, b=1)
    [offered] = (await fetch_outside_tools(here.neighbours, root, ("*",))).values()
    assert offered.description == "Add two numbers."
    [changed] = [tool for tool in (await here.inspect(root)).tools if tool.name == "add"]
    assert (changed.state, f"+Add two numbers. {INJECTION}" in changed.diff) == (ToolState.CHANGED, True)
    await here.accept(root, "add", add=changed.pin)
    assert (await states(here, root))["add"] is ToolState.ACCEPTED


async def test_what_was_looked_at_is_what_is_accepted(here: Platform, root: Principal) -> None:
    await here.add(root)
    looked_at = {tool.name: tool.pin for tool in (await here.inspect(root)).tools}
    here.running.says.tools["add"]["description"] = INJECTION
    with pytest.raises(ToolChanged):
        await here.accept(root, "add", add=looked_at["add"])
    with pytest.raises(BadRequest, match="no tool"):
        await here.accept(root, "nothing")


async def test_withdrawn_tools_and_servers_that_are_off_are_not_offered(here: Platform, root: Principal) -> None:
    await here.add(root)
    await here.accept(root, "add", "write")
    tools = await fetch_outside_tools(here.neighbours, root, ("*",))
    await ask(here.gateway, root, JUDGE_TOOLS, JudgeTools(name="out", withdrawn=("write",)))
    assert [*await fetch_outside_tools(here.neighbours, root, ("*",))] == ["outside.out.add"]
    await ask(here.gateway, root, SWITCH_SERVER, SwitchServer(name="out", enabled=False))
    assert await fetch_outside_tools(here.neighbours, root, ("*",)) == {}
    for tool, given in (("outside.out.write", {}), ("outside.out.add", {"a": 1, "b": 1})):
        rpc = tools[tool].rpc  # a turn that was offered it before
        with pytest.raises(ToolNotAllowed):
            await here.neighbours.ask(root, rpc, rpc.input.model_validate(given), key="k")


@pytest.mark.parametrize("role", [role for role in Persona if role is not Persona.ADMIN])
async def test_none_but_administrators_look_after_servers(here: Platform, root: Principal, role: Persona) -> None:
    who = root.model_copy(update=role.rights)
    for rpc, request in (
        (ADD_SERVER, AddServer(name="out", url=here.running.url)),
        (LIST_SERVERS, Nothing()),
        (INSPECT_SERVER, ServerRef(name="out")),
        (ACCEPT_TOOLS, AcceptTools(name="out", tools=(AllowTool(name="add"),))),
        (JUDGE_TOOLS, JudgeTools(name="out")),
        (SWITCH_SERVER, SwitchServer(name="out", enabled=True)),
        (REMOVE_SERVER, ServerRef(name="out")),
    ):
        with pytest.raises(Forbidden):
            await ask(here.gateway, who, rpc, request)  # type: ignore[arg-type]  # each with its own


async def test_another_tenant_sees_and_reaches_nothing(here: Platform, root: Principal) -> None:
    await here.add(root)
    await here.accept(root, "add")
    other = root.model_copy(update={"tenant": f"t-{uuid4().hex[:12]}"})
    assert await ask(here.gateway, other, LIST_SERVERS, Nothing()) == OutsideServers()
    assert await fetch_outside_tools(here.neighbours, other, ("*", "out")) == {}
    with pytest.raises(UnknownServer):
        await here.inspect(other)
    rpc = (await fetch_outside_tools(here.neighbours, root, ("*",)))["outside.out.add"].rpc
    with pytest.raises(UnknownServer):
        await here.neighbours.ask(other, rpc, rpc.input.model_validate({"a": 1, "b": 1}), key="k")


@pytest.mark.parametrize(
    "given",
    [
        {"url": "http://127.0.0.1:1/mcp"},
        {"url": "http://169.254.169.254/latest"},
        {"url": "http://localhost/mcp"},
        {"url": "http://192.168.1.1/mcp"},
        {"url": "http://8.8.8.8/mcp", "secret_headers": {"Authorization": "x"}},
        {"url": None},
        {"command": ("cat",)},
        {"url": None, "command": ("cat",), "secret_headers": {"A": "b"}},
        {"secret_headers": {"Host": "inside.example"}},
        {"secret_headers": {"Mcp-Session-Id": "x"}},
    ],
)
async def test_a_server_that_may_not_be_reached_or_contradicts_itself_is_refused(
    here: Platform, root: Principal, given: dict[str, Any]
) -> None:
    with pytest.raises(BadRequest):
        await here.add(root, **given)


async def test_commands_are_refused_unless_the_installation_allows_them(here: Platform, root: Principal) -> None:
    with pytest.raises(CommandsOff):
        await here.add(root, url=None, command=("cat",))


async def test_secret_headers_reach_the_server_and_nobody_else(
    here: Platform, root: Principal, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    await here.add(root, secret_headers={"Authorization": SECRET})
    await here.accept(root, "add")
    assert (await here.call(root, "add", a=1, b=1)).text == "2"
    assert {seen.get("authorization") for seen in here.running.says.headers} == {SECRET}
    listed = await ask(here.gateway, root, LIST_SERVERS, Nothing())
    assert listed.servers[0].headers == ("Authorization",)
    assert SECRET not in listed.model_dump_json() + (await here.inspect(root)).model_dump_json() + caplog.text
