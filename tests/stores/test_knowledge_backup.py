"""Knowledge of the agents in an archive: labels, values, relationships, and nothing of anybody else's under its name."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from phronesis_graph.knowledge.model import KNOWLEDGE
from phronesis_graph.twin.ontology_file import load as ontology
from phronesis_operations.format import Frame
from phronesis_operations.graph import GraphDump, GraphLoad
from phronesis_operations.reporting import Damaged
from phronesis_operations.tenancy import Tenancy
from tests.stores.test_graph_backup import Records
from tests.support.bus import somebody
from tests.support.curators import Curators
from tests.support.graph import Stores, opened, stored
from tests.support.personas import Persona
from tests.support.servers import GraphServer

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
async def stores(graph_server: GraphServer, tmp_path: Path) -> AsyncIterator[Stores]:
    async with opened(graph_server, tmp_path) as stores:
        await stores.schema.declared()
        yield stores


async def moved(stores: Stores, tenant: str, new: str) -> None:
    """A tenant's part of the store, exported and imported under another name."""
    nodes, relationships = Records(), Records()
    await GraphDump(stores.bolt, ontology(), tenant).run(nodes, relationships)
    load = GraphLoad(stores.bolt, ontology(), Tenancy(tenant, new))
    await load.nodes(iter(nodes.frames()))
    await load.relationships(iter(relationships.frames()))


@pytest.mark.req("K-097")
async def test_knowledge_moves_with_its_tenant_and_goes_with_it(stores: Stores) -> None:
    old = Curators(stores)
    new = Curators(stores, somebody(**Persona.CURATOR.rights))
    milk = await old.node(name="Milk", n=1, f=2.0, list=["a"], version="2023")
    concept = await old.node("Concept", name="Dairy")
    link = await old.joined(milk, "IS_A", concept, w=1)
    await old.changed("MATCH (p:Product {name: 'Milk'}) SET p.since = date('2020-01-02')")
    await stores.knowledge.store(old.who.tenant, stored(old.who.user, "c1"))
    await moved(stores, old.who.tenant, new.who.tenant)
    found = {one["id"]: one for one in (await new.call("search_nodes", limit=100))["nodes"]}
    values = {"name": "Milk", "n": 1, "f": 2.0, "list": ["a"], "version": "2023", "since": "2020-01-02"}
    assert found == {
        milk: {"id": milk, "labels": ["Product"], "properties": values},
        concept: {"id": concept, "labels": ["Concept"], "properties": {"name": "Dairy"}},
    }
    [row] = await new.rows("MATCH (p:Product)-[r:IS_A]->() RETURN r")
    assert row == {"r": {"id": link, "type": "IS_A", "properties": {"w": 1}}}
    [item] = await stores.expand(new.who.model_copy(update={"user": old.who.user}), "c1")
    assert (item.id, item.type) == ("c1", "Concept")
    await GraphLoad(stores.bolt, ontology()).remove(new.who.tenant)
    assert (await new.call("search_nodes", limit=100))["nodes"] == []
    assert len((await old.call("search_nodes", limit=100))["nodes"]) == 2


@pytest.mark.parametrize("labels", [["A`) DETACH DELETE (m"], [7], "Product", None, [""]])
async def test_a_label_in_an_archive_that_is_no_name_is_refused(stores: Stores, labels: Any) -> None:
    frame = Frame({"label": KNOWLEDGE, "labels": labels}, b'{"key": "acme/a", "tenant": "acme"}')
    with pytest.raises(Damaged):
        await GraphLoad(stores.bolt, ontology()).nodes(iter([frame]))


@pytest.mark.parametrize("type", ["T`]->() DETACH DELETE (m", 7, None, ["T"]])
async def test_a_type_in_an_archive_that_is_no_name_is_refused(stores: Stores, type: Any) -> None:
    ends = {"from": KNOWLEDGE, "to": KNOWLEDGE, "source": "acme/a", "target": "acme/b"}
    with pytest.raises(Damaged):
        await GraphLoad(stores.bolt, ontology()).relationships(iter([Frame({"type": type, **ends}, b"{}")]))
