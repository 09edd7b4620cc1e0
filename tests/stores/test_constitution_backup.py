"""The constitutional graph in an archive of the stores: whole, and under another tenant's name."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from phronesis_contracts.constitution.registry import NODE_LABEL, TYPES
from phronesis_graph.twin.ontology_file import load as ontology
from phronesis_operations.graph import GraphDump, GraphLoad
from phronesis_operations.reporting import Damaged
from phronesis_operations.tenancy import Tenancy
from tests.stores.test_graph_backup import Records
from tests.support.constitution_writes import Constitution, declared
from tests.support.graph import Stores, opened
from tests.support.servers import GraphServer

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
async def stores(graph_server: GraphServer, tmp_path: Path) -> AsyncIterator[Stores]:
    async with opened(graph_server, tmp_path) as stores:
        await stores.schema.declared()
        yield stores


async def test_a_tenants_graph_moves_whole_and_is_its_own_there(stores: Stores) -> None:
    old, new = Constitution(stores), Constitution(stores)
    ids = {
        name: await old.node(name, **declared(kind), properties={"a": [1]}, override="a sample") for name, kind in TYPES.items()
    }
    await old.relate(ids["goal"], "SUPPORTED_BY", ids["vision"])
    await old.relate(ids["note"], "SPEAKS_OF", ids["human"])
    nodes, relationships = Records(), Records()
    await GraphDump(stores.bolt, ontology(), old.who.tenant).run(nodes, relationships)
    load = GraphLoad(stores.bolt, ontology(), Tenancy(old.who.tenant, new.who.tenant))
    await load.nodes(iter(nodes.frames()))
    assert await load.relationships(iter(relationships.frames())) == 2
    assert (await new.nodes(), await new.links()) == (await old.nodes(), await old.links())
    statement = f"MATCH (:{NODE_LABEL})-[r]->() WHERE r.tenant = $tenant RETURN r.key AS key ORDER BY key"
    keys = [row["key"] for row in await stores.run(statement, tenant=new.who.tenant)]
    assert [key.split("/")[0] for key in keys] == [new.who.tenant] * 2
    again = await new.relate(ids["goal"], "SUPPORTED_BY", ids["vision"])
    assert not again.created
    await load.remove(new.who.tenant)
    assert (await new.nodes(), len(await old.nodes())) == ([], len(TYPES))


def test_a_relationship_of_another_tenant_is_not_taken_in() -> None:
    tenancy = Tenancy("acme", "other")
    with pytest.raises(Damaged):
        tenancy.relationship({"tenant": "stranger", "key": "stranger/a/SERVES/b"})
    assert tenancy.relationship({"tenant": "acme", "key": "acme/a/SERVES/b"}) == {
        "tenant": "other",
        "key": "other/a/SERVES/b",
    }
    assert tenancy.relationship({"w": 1}) == {"w": 1}
