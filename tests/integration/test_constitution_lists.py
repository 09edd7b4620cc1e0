"""Lists through the bus, and what writes of this and of another process do to those that are kept."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from phronesis_bus import Bus, ask
from phronesis_contracts import Forbidden, Nothing, Principal
from phronesis_contracts.constitution import lists, writes
from phronesis_contracts.constitution.registry import TYPES, Layer
from phronesis_contracts.constitution.writes import Relate, Unrelate, UpdateAnyNode
from phronesis_contracts.service import HEALTH
from phronesis_graph.app import build
from phronesis_graph.bolt.driver import Bolt
from phronesis_graph.constitution.lists import LIST_SECONDS
from phronesis_graph.settings import GraphSettings
from tests.support.bus import connected, eventually, somebody
from tests.support.graph import settings
from tests.support.personas import Persona
from tests.support.servers import GraphServer, NatsServer


class Copies:
    """Two copies of the service, and who asks them: a question goes to either."""

    def __init__(self, gateway: Bus, graphs: list[Bus]) -> None:
        self.gateway = gateway
        self.graphs = graphs

    def read(self, tool: str, cached: str) -> int:
        """How often both together read a list from the store, or told one that was kept."""
        labels = {"tool": tool, "cached": cached}
        values = [bus.tracing.metrics.registry.get_sample_value(f"{LIST_SECONDS.name}_count", labels) for bus in self.graphs]
        return sum(int(value or 0) for value in values)


@pytest.fixture
async def copies(nats_server: NatsServer, graph_server: GraphServer, tmp_path: Path) -> AsyncIterator[Copies]:
    how = settings(graph_server, tmp_path)
    async with connected(nats_server, "graph", "graph", "gateway") as (one, two, gateway):
        async with service(one, how):
            await eventually(lambda: _ready(gateway))
            async with service(two, how):
                yield Copies(gateway, [one, two])


async def _ready(gateway: Bus) -> bool:
    return (await ask(gateway, somebody(), HEALTH["graph"], Nothing(), timeout=20)).ready


@asynccontextmanager
async def service(bus: Bus, how: GraphSettings) -> AsyncIterator[None]:
    async with Bolt.open(how) as bolt:
        await build(bus, bolt, how.dialect)
        yield
        await bus.stop()


async def create(copies: Copies, who: Principal, type: str, id: str, **more: object) -> None:
    tool = writes.CREATE[type]
    await ask(copies.gateway, who, tool.rpc, tool.rpc.input(id=id, title=f"The {id}", **more))


async def titles(copies: Copies, who: Principal) -> list[str]:
    """Titles of the foundation, as whichever copy tells them."""
    return [one.title for one in (await ask(copies.gateway, who, lists.LIST_FOUNDATION, lists.ListFoundation())).items]


async def parents(copies: Copies, who: Principal) -> list[str]:
    """Titles of the parents of the vision's nodes."""
    found = await ask(copies.gateway, who, lists.LIST_VISION, lists.ListVision())
    return [parent.title for one in found.items for parent in one.parents or ()]


async def settled(copies: Copies, who: Principal) -> None:
    """Both copies keep both lists: a while of questions is answered without the store."""
    for ask_for, tool in ((titles, lists.LIST_FOUNDATION_TOOL.name), (parents, lists.LIST_VISION_TOOL.name)):

        async def quiet(ask_for: object = ask_for, tool: str = tool) -> bool:
            before = copies.read(tool, "no")
            for _ in range(20):
                await ask_for(copies, who)  # type: ignore[operator]
            return copies.read(tool, "no") == before

        await eventually(quiet)


@pytest.mark.req("O-116", "O-323", "O-322")
async def test_writes_of_whichever_copy_are_seen_by_both_and_touch_only_what_they_must(copies: Copies) -> None:
    who = somebody(**Persona.MAESTRO.rights)
    await create(copies, who, "value", "honesty")
    await create(copies, who, "value", "patience")
    await create(copies, who, "goal", "goal")
    await settled(copies, who)

    before = copies.read("foundation.list.v2", "no"), copies.read("vision.list.v2", "no")
    await create(copies, who, "task", "task")
    await settled(copies, who)
    assert (copies.read("foundation.list.v2", "no"), copies.read("vision.list.v2", "no")) == before

    relate = Relate(from_id="goal", to_id="honesty", type="SUPPORTED_BY")
    link = (await ask(copies.gateway, who, writes.RELATE, relate)).relationship
    await every(lambda: parents(copies, who), ["The honesty"])
    assert copies.read("foundation.list.v2", "no") == before[0]

    await ask(copies.gateway, who, writes.UPDATE_NODE, UpdateAnyNode(id="honesty", title="Truth"))
    await every(lambda: parents(copies, who), ["Truth"])
    await every(lambda: titles(copies, who), ["Truth", "The patience"])

    await settled(copies, who)
    visions = copies.read("vision.list.v2", "no")
    await ask(copies.gateway, who, writes.UPDATE_NODE, UpdateAnyNode(id="patience", status="archived"))
    await every(lambda: titles(copies, who), ["Truth"])
    assert copies.read("vision.list.v2", "no") == visions
    await ask(copies.gateway, who, writes.UPDATE_NODE, UpdateAnyNode(id="honesty", status="archived"))
    await every(lambda: parents(copies, who), [])
    await ask(copies.gateway, who, writes.UPDATE_NODE, UpdateAnyNode(id="honesty", status="active"))
    await every(lambda: parents(copies, who), ["Truth"])
    await ask(copies.gateway, who, writes.UNRELATE, Unrelate(id=link.id))
    await every(lambda: parents(copies, who), [])


async def every(state: object, wanted: list[str]) -> None:
    """Both copies come to tell this: a row of answers is the same."""

    async def told() -> bool:
        return all([await state() == wanted for _ in range(8)])  # type: ignore[operator]

    await eventually(told)


@pytest.mark.req("O-014", "O-102", "O-119")
async def test_every_list_answers_by_the_bus_to_roles_that_may_read(copies: Copies) -> None:
    who = somebody(**Persona.MAESTRO.rights)
    for name in TYPES:
        await create(copies, who, name, f"a-{name}")
    reader = who.model_copy(update=Persona.DISCUSS.rights)
    for layer, tool in lists.LISTS.items():
        found = await ask(copies.gateway, reader, tool.rpc, lists.ListLayer())
        assert {one.layer for one in found.items} == {layer}
    everything = await ask(copies.gateway, reader, lists.GET_ALL, lists.GetAll())
    assert everything.stats.total_nodes == 35
    counted = await ask(copies.gateway, reader, lists.INVENTORY, Nothing())
    assert {one.count for one in counted.types} == {1}
    one = await ask(copies.gateway, reader, lists.GET_NODE, lists.GetConstitutionNode(id="a-goal"))
    assert one.node.layer is Layer.VISION
    with pytest.raises(Forbidden):
        await ask(copies.gateway, who.model_copy(update=Persona.NOOR.rights), lists.GET_ALL, lists.GetAll())
