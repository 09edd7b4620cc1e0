"""Sessions on the real graph service: what a constitution's session holds, and which writes change the next one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import phronesis_tokens as tokens
from phronesis_bus import Bus, announce, ask, connect
from phronesis_contracts import Principal
from phronesis_contracts.constitution import writes
from phronesis_contracts.constitution.lists import LISTS, ListLayer
from phronesis_contracts.constitution.registry import TYPES, Layer
from phronesis_contracts.constitution.session import (
    ASSESS_WORKLOAD,
    CONTEXT_USAGE,
    START_SESSION,
    AskUsage,
    AssessWorkload,
    SessionStarted,
    StartSession,
)
from phronesis_contracts.constitution.writes import (
    CONSTITUTION_CHANGED,
    ConstitutionChanged,
    DeleteConstitutionNode,
    NodeNews,
    Operation,
    Relate,
    Unrelate,
    UpdateAnyNode,
)
from phronesis_graph.app import build
from phronesis_graph.bolt.driver import Bolt
from phronesis_orchestrator.sessions.calendar import CalendarReaders
from phronesis_orchestrator.sessions.handlers import serve_sessions
from phronesis_orchestrator.sessions.store import AesSeal, PostgresCalendars
from phronesis_orchestrator.turns.ports import BusNeighbours
from phronesis_postgres import Database
from tests.support.bus import eventually, somebody
from tests.support.constitutions import plant, thing
from tests.support.graph import opened, settings
from tests.support.personas import Persona
from tests.support.servers import GraphServer, NatsServer, PostgresServer

WORDS = "We write down what we measured, who measured it, and what would have changed our mind; "
ALL = ("foundation", "vision", "workload")

pytestmark = pytest.mark.timeout(180)  # the store's schema is declared by the first test, on however busy a machine


@dataclass
class Agents:
    """A tenant's agents in front of the services."""

    bus: Bus
    tenant: str

    def who(self, role: Persona) -> Principal:
        return Principal(tenant=self.tenant, user=f"u-{role}", **role.rights)

    async def create(self, type: str, id: str, role: Persona = Persona.ADMIN, **more: Any) -> str:
        rpc = writes.CREATE[type].rpc
        request = rpc.input.model_validate({"id": id, "title": f"The {id}", **more})
        await ask(self.bus, self.who(role), rpc, request, timeout=60)  # the first one declares the store's schema
        return id

    async def update(self, id: str, role: Persona = Persona.ADMIN, **fields: Any) -> None:
        await ask(self.bus, self.who(role), writes.UPDATE_NODE, UpdateAnyNode.model_validate({"id": id, **fields}))

    async def relate(self, source: str, type: str, target: str, role: Persona = Persona.ADMIN) -> str:
        request = Relate(from_id=source, to_id=target, type=type)
        return (await ask(self.bus, self.who(role), writes.RELATE, request)).relationship.id

    async def start(self, role: Persona = Persona.DISCUSS) -> SessionStarted:
        return await ask(self.bus, self.who(role), START_SESSION, StartSession())

    async def fresh(self) -> set[str]:
        """The parts that the next session loads anew."""
        return set(ALL) - set((await self.start()).stats.cached)

    async def settled(self) -> None:
        """Return when a session is begun with nothing but what is kept: all news has been heard."""

        async def kept() -> bool:
            return not await self.fresh()

        await eventually(kept)

    async def dropped(self, parts: set[str]) -> set[str]:
        """The parts that sessions load anew, until these are among them and no more are."""
        seen: set[str] = set()

        async def enough() -> bool:
            fresh = await self.fresh()
            seen.update(fresh)
            return seen >= parts and not fresh

        await eventually(enough)
        return seen


@pytest.fixture
async def buses(
    nats_server: NatsServer, graph_server: GraphServer, postgres: PostgresServer, tmp_path: Path
) -> AsyncIterator[tuple[Bus, Bus]]:
    """The gateway's bus, and the graph's."""
    how = settings(graph_server, tmp_path)
    async with AsyncExitStack() as stack:
        schema = await stack.enter_async_context(postgres.fresh_schema("orchestrator"))
        database = await stack.enter_async_context(Database.open(schema, "orchestrator"))
        bolt = await stack.enter_async_context(Bolt.open(how))
        names = ("graph", "orchestrator", "gateway")
        graph, orchestrator, gateway = [
            await stack.enter_async_context(connect(name, nats_server.settings(name))) for name in names
        ]
        await build(graph, bolt, how.dialect)
        reader = CalendarReaders(1)
        orchestrator.on_stop(reader.close)
        await serve_sessions(
            orchestrator, BusNeighbours(orchestrator), PostgresCalendars(database), AesSeal(None), reader, lambda: None
        )
        yield gateway, graph
        await orchestrator.stop()
        await graph.stop()


@pytest.fixture
def agents(buses: tuple[Bus, Bus]) -> Agents:
    return Agents(buses[0], somebody().tenant)


async def small(agents: Agents) -> None:
    """A value, what enforces it, a goal that rests on it, and a task."""
    await agents.create("value", "candour")
    await agents.create("guardrail", "no-secrets")
    await agents.create("goal", "answers")
    await agents.create("task", "write", dueDate=datetime.now(UTC).date().isoformat(), effortHours=3)
    await agents.relate("candour", "ENFORCED_BY", "no-secrets")
    await agents.relate("answers", "SUPPORTED_BY", "candour")
    await agents.settled()


@pytest.mark.req(
    "O-003", "O-006", "O-007", "O-245", "O-246", "O-332", "O-333", "O-356", "O-376", "O-418", "O-434", "O-435", "O-436"
)
@pytest.mark.req("C-04", "C-86", "C-101")
async def test_a_whole_constitution_is_in_its_session_within_the_budget(
    agents: Agents, graph_server: GraphServer, tmp_path: Path
) -> None:
    kinds = ("value", "principle", "guardrail", "policy", "context", "human", "ai")
    bags = {"properties": {"note": WORDS * 20}, "metadata": {"from": WORDS * 20}}
    foundation, vision = [f"f{at}" for at in range(45)], [f"g{at}" for at in range(25)]
    nodes = [
        *(thing(id, kinds[at % 7], summary=WORDS, description=WORDS * 12, **bags) for at, id in enumerate(foundation)),
        *(thing(id, "goal", summary=WORDS, target="One more than last year") for id in vision),
    ]
    await agents.create("note", "first")  # by now the service has declared the store's schema
    async with opened(graph_server, tmp_path) as stores:
        links = (f"{child} SUPPORTED_BY {parent}" for parent, child in pairwise(vision))
        await plant(stores, agents.who(Persona.ADMIN), nodes, *links)
    found = await agents.start()
    assert {node.id for node in found.foundation} == set(foundation)
    assert {node.id for node in found.vision} == set(vision)
    assert {parent.id for node in found.vision for parent in node.parents or ()} == set(vision[:-1])
    assert all(node.summary for node in found.foundation)
    assert found.warnings == ()
    assert found.stats.load_time < 5_000
    assert found.stats.foundation_tokens <= 15_000
    assert found.stats.vision_tokens <= 8_000
    assert found.stats.total_tokens <= 25_000
    assert await whole(agents, Layer.FOUNDATION) > 44_000
    used = await ask(agents.bus, agents.who(Persona.DISCUSS), CONTEXT_USAGE, AskUsage())
    assert {row.component: row.remaining for row in used.rows}["conversation"] >= 0


async def whole(agents: Agents, layer: Layer) -> int:
    """Tokens of a layer as the first version of its list tells it."""
    size, cursor = 0, None
    while True:
        page = await ask(agents.bus, agents.who(Persona.DISCUSS), LISTS[layer].rpc, ListLayer(cursor=cursor))
        size += tokens.count(json.dumps([node.model_dump(mode="json") for node in page.items]))
        cursor = page.next_cursor
        if cursor is None:
            return size


@pytest.mark.req("O-008", "O-251")
async def test_no_node_of_another_layer_is_in_a_session(agents: Agents) -> None:
    await small(agents)
    await agents.create("strategy", "plan")
    await agents.create("insight", "idea", role=Persona.MIND)
    found = await agents.start()
    assert {node.id for node in (*found.foundation, *found.vision)} == {"candour", "no-secrets", "answers"}


@pytest.mark.req("O-200", "O-201", "O-195")
async def test_the_workload_has_the_open_tasks_of_the_week_and_no_others(agents: Agents) -> None:
    today = datetime.now(UTC).date()
    for name, day, more in (
        ("now", 0, {"effortHours": 3}),
        ("soon", 6, {"effortHours": 2.5, "status": "in_progress"}),
        ("guess", 2, {}),
        ("late", -2, {"effortHours": 50}),
        ("far", 30, {"effortHours": 50}),
        ("done", 1, {"effortHours": 50, "status": "done"}),
    ):
        await agents.create("task", name, dueDate=(today + timedelta(days=day)).isoformat(), **more)
    found = await ask(agents.bus, agents.who(Persona.EXECUTE), ASSESS_WORKLOAD, AssessWorkload(include_task_details=True))
    assert found.tasks.items is not None
    assert [task.id for task in found.tasks.items] == ["now", "guess", "soon"]
    assert (found.tasks.total, found.tasks.by_status, found.capacity.scheduled_hours) == (3, {"todo": 2, "in_progress": 1}, 5.5)
    assert [line.split()[0] for line in found.recommendations[1:]] == ["1", "1"]


@pytest.mark.req("O-323")
async def test_writes_of_two_agents_each_drop_what_they_touch(agents: Agents) -> None:
    await small(agents)
    await agents.update("candour", summary="Say what is so.")
    assert await agents.dropped({"foundation"}) == {"foundation"}
    await agents.update("write", role=Persona.EXECUTE, fields={"effortHours": 5})
    assert await agents.dropped({"workload"}) == {"workload"}
    found = await agents.start()
    assert found.workload is not None
    assert [node.summary for node in found.foundation if node.id == "candour"] == ["Say what is so."]
    assert found.workload.capacity.scheduled_hours == 5.0


@pytest.mark.req("O-323")
async def test_a_relationship_that_is_made_or_removed_drops_the_part_that_shows_it(agents: Agents) -> None:
    await small(agents)
    await agents.create("principle", "show-work")
    await agents.settled()
    made = await agents.relate("candour", "ENFORCED_BY", "show-work")
    assert await agents.dropped({"foundation"}) == {"foundation"}
    await agents.relate("answers", "ALIGNS_WITH", "show-work")
    assert await agents.dropped({"vision"}) == {"vision"}
    await ask(agents.bus, agents.who(Persona.ADMIN), writes.UNRELATE, Unrelate(id=made))
    assert await agents.dropped({"foundation"}) == {"foundation"}
    found = await agents.start()
    assert {link.to_id for link in found.foundation_relationships} == {"no-secrets"}
    assert {parent.id for parent in found.vision[0].parents or ()} == {"candour", "show-work"}


@pytest.mark.req("O-323")
async def test_what_is_archived_or_deleted_is_gone_from_every_part_that_showed_it(agents: Agents) -> None:
    await small(agents)
    await agents.update("candour", status="archived")
    assert await agents.dropped({"foundation", "vision"}) == {"foundation", "vision"}
    archived = await agents.start()
    assert ([node.id for node in archived.foundation], archived.vision[0].parents or ()) == (["no-secrets"], ())
    await agents.update("candour", status="active")
    assert await agents.dropped({"foundation", "vision"}) == {"foundation", "vision"}
    assert [parent.id for parent in (await agents.start()).vision[0].parents or ()] == ["candour"]
    await ask(agents.bus, agents.who(Persona.ADMIN), writes.DELETE_NODE, DeleteConstitutionNode(id="answers"))
    assert await agents.dropped({"vision"}) == {"vision"}
    assert (await agents.start()).vision == ()
    assert "candour" in {node.id for node in (await agents.start()).foundation}


@pytest.mark.req("O-434")
@pytest.mark.parametrize("size", [45, 500])
async def test_a_session_that_nothing_is_kept_of_is_whole(
    agents: Agents, buses: tuple[Bus, Bus], graph_server: GraphServer, tmp_path: Path, size: int
) -> None:
    """How long it takes is measured by `make bench`, at five sizes and on both pairs of stores."""
    kinds = {"value": 45 if size == 45 else 60, "goal": 0 if size == 45 else 15, "strategy": 50, "task": 250, "insight": 125}
    nodes = [thing(f"{kind}{at}", kind, summary=WORDS) for kind, count in kinds.items() for at in range(count)][:size]
    await agents.create("note", "first")  # by now the service has declared the store's schema
    async with opened(graph_server, tmp_path) as stores:
        await plant(stores, agents.who(Persona.ADMIN), nodes)
    touched = ConstitutionChanged(
        nodes=tuple(
            NodeNews(id="x", type=type, layer=TYPES[type].layer, operation=Operation.CREATE, version=1)
            for type in ("value", "goal", "task")
        )
    )
    loaded: list[int] = []
    while len(loaded) < 3:
        found = await agents.start()
        if not found.stats.cached:
            loaded.append(len(found.foundation) + len(found.vision))
            await announce(buses[1], agents.tenant, CONSTITUTION_CHANGED, touched)
    assert loaded == [min(size, 75)] * 3
