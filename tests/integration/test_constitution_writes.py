"""The constitutional graph's writes over the bus: what the service answers, announces and refuses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import ConfigDict

from phronesis_bus import Bus, News, ask, follow
from phronesis_contracts import BadRequest, Forbidden, Message, Principal, Rpc
from phronesis_contracts.constitution import maintenance, writes
from phronesis_contracts.constitution.insight import CHECK_POLICY, CheckPolicy
from phronesis_contracts.constitution.registry import TYPES
from phronesis_contracts.constitution.writes import CONSTITUTION_CHANGED, ConstitutionChanged, GuardrailHit, NodeWritten
from phronesis_contracts.orchestrator import Audited
from phronesis_contracts.service import AUDITED
from phronesis_graph.app import build
from phronesis_graph.bolt.driver import Bolt
from phronesis_graph.settings import GraphSettings
from tests.support.bus import connected, eventually, somebody
from tests.support.graph import opened, settings
from tests.support.personas import Persona
from tests.support.servers import GraphServer, NatsServer

pytestmark = pytest.mark.timeout(300)


class Anything(Message):
    """Arguments as somebody might send them who holds no contract."""

    model_config = ConfigDict(extra="allow")


@asynccontextmanager
async def service(bus: Bus, how: GraphSettings) -> AsyncIterator[None]:
    async with Bolt.open(how) as bolt:
        await build(bus, bolt, how.dialect)
        yield
        await bus.stop()


@pytest.fixture
async def buses(nats_server: NatsServer, graph_server: GraphServer, tmp_path: Path) -> AsyncIterator[list[Bus]]:
    """Two copies of the graph service run; buses of the gateway, of memory and of the orchestrator."""
    how = settings(graph_server, tmp_path)
    async with opened(graph_server, tmp_path) as stores:
        await stores.schema.declared()
    async with connected(nats_server, "graph", "graph", "gateway", "memory", "orchestrator") as (one, two, *others):
        async with service(one, how), service(two, how):
            yield others


async def create(bus: Bus, who: Principal, type: str, **given: Any) -> NodeWritten:
    tool = writes.CREATE[type]
    return await ask(bus, who, tool.rpc, tool.rpc.input.model_validate({"title": f"A {type}", **given}))


@pytest.mark.req("O-106", "O-109")
async def test_every_type_has_a_tool_that_creates_and_one_that_changes(buses: list[Bus]) -> None:
    gateway, who = buses[0], somebody(**Persona.ADMIN.rights)
    for name in TYPES:
        made = await create(gateway, who, name, summary="s")
        tool = writes.UPDATE[name]
        asked = tool.rpc.input.model_validate({"id": made.node.id, "summary": None, "title": "B"})
        changed = await ask(gateway, who, tool.rpc, asked)
        assert (changed.node.title, changed.node.summary, changed.changed) == ("B", None, ("title", "summary"))


@pytest.mark.req("O-115")
async def test_every_write_is_announced_once_after_it_is_there(buses: list[Bus]) -> None:
    gateway, memory, orchestrator = buses
    who = somebody(**Persona.ADMIN.rights)
    heard, entries = list[ConstitutionChanged](), list[Audited]()

    async def on_changed(news: News, event: ConstitutionChanged) -> None:
        if news.tenant == who.tenant:
            heard.append(event)

    async def on_audited(news: News, event: Audited) -> None:
        if news.tenant == who.tenant:
            entries.append(event)

    await follow(memory, CONSTITUTION_CHANGED, on_changed)
    await follow(orchestrator, AUDITED["graph"], on_audited)
    goal, vision = [(await create(gateway, who, name)).node.id for name in ("goal", "vision")]
    link = await ask(gateway, who, writes.RELATE, writes.Relate(from_id=goal, type="SERVES", to_id=vision))
    await ask(gateway, who, writes.UPDATE_NODE, writes.UpdateAnyNode(id=goal, title="B"))
    await ask(gateway, who, writes.UNRELATE, writes.Unrelate(id=link.relationship.id))
    await ask(gateway, who, writes.DELETE_NODE, writes.DeleteConstitutionNode(id=vision))
    await eventually(lambda: len(heard) >= 6 and len(entries) >= 6)
    told = [
        [(node.id, node.operation.value, node.version, node.changed) for node in event.nodes]
        or [(one.id, one.operation.value) for one in event.relationships]
        for event in heard
    ]
    relationship = link.relationship.id
    assert sorted(told) == sorted(
        [
            [(goal, "create", 1, ("title", "status"))],
            [(vision, "create", 1, ("title", "status"))],
            [(relationship, "create")],
            [(goal, "update", 2, ("title",))],
            [(relationship, "delete")],
            [(vision, "delete", 2, ())],
        ]
    )
    assert {entry.outcome for entry in entries} == {"done"}


@pytest.mark.req("O-107")
async def test_a_refusal_names_the_field_and_comes_as_its_own_class(buses: list[Bus]) -> None:
    who = somebody(**Persona.ADMIN.rights)
    for type, given, field in (
        ("goal", {"title": ""}, "title"),
        ("insight", {"confidence": "sure"}, "confidence"),
        ("insight", {"confidence": 2}, "confidence"),
        ("goal", {"deadline": "soon"}, "deadline"),
    ):
        rpc = Rpc(writes.CREATE[type].rpc.subject, Anything, NodeWritten)
        with pytest.raises(BadRequest) as caught:
            await ask(buses[0], who, rpc, Anything.model_validate({"title": "x", **given}))
        assert caught.value.field == field


@pytest.mark.req("O-013", "O-346")
async def test_a_role_that_may_not_write_a_layer_is_refused_and_audited(buses: list[Bus]) -> None:
    gateway, _, orchestrator = buses
    who = somebody(**Persona.EXECUTE.rights)
    entries = list[Audited]()

    async def on_audited(news: News, event: Audited) -> None:
        if news.tenant == who.tenant:
            entries.append(event)

    await follow(orchestrator, AUDITED["graph"], on_audited)
    with pytest.raises(Forbidden):
        await create(gateway, who, "guardrail")
    owner = who.model_copy(update=Persona.MAESTRO.rights)
    value = (await create(gateway, owner, "value")).node.id
    with pytest.raises(Forbidden):
        await ask(gateway, who, writes.UPDATE_NODE, writes.UpdateAnyNode(id=value, title="B"))
    with pytest.raises(Forbidden):
        await ask(gateway, who, writes.DELETE_NODE, writes.DeleteConstitutionNode(id=value))
    with pytest.raises(Forbidden):
        await ask(gateway, owner, maintenance.RESTORE_GRAPH, maintenance.RestoreGraph(restore_id="r", last=True))
    await eventually(lambda: sum(entry.outcome == "refused" for entry in entries) >= 3)
    refused = [entry.action for entry in entries if entry.outcome == "refused"]
    assert sorted(refused) == ["guardrail.create.v1", "node.delete.v1", "node.update.v1"]


async def test_a_new_rule_holds_on_every_copy_of_the_service(buses: list[Bus]) -> None:
    gateway, _, orchestrator = buses
    admin = somebody(**Persona.ADMIN.rights)
    agent = admin.model_copy(update=Persona.EXECUTE.rights)
    entries = list[Audited]()

    async def on_audited(news: News, event: Audited) -> None:
        if news.tenant == agent.tenant and event.outcome == "refused":
            entries.append(event)

    await follow(orchestrator, AUDITED["graph"], on_audited)
    for _ in range(10):
        assert (await ask(gateway, agent, CHECK_POLICY, CheckPolicy(text="gossip"))).allowed
    rule = (await create(gateway, admin, "guardrail", trigger="gossip", severity="block")).node.id

    async def everywhere() -> bool:
        answers = [await ask(gateway, agent, CHECK_POLICY, CheckPolicy(text="gossip")) for _ in range(20)]
        return not any(answer.allowed for answer in answers)

    await eventually(everywhere)
    with pytest.raises(GuardrailHit, match=rule):
        await create(gateway, agent, "task", title="Spread gossip")
    await eventually(lambda: bool(entries))
    assert [(entry.action, entry.code) for entry in entries] == [("task.create.v1", "constitution.guardrail")]
