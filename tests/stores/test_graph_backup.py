"""What a graph store holds goes into an archive and comes out again, into a store of either kind, as it was."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from phronesis_bus import Call
from phronesis_contracts.ontology import PublishOntology
from phronesis_contracts.twin import Upsert
from phronesis_graph.bolt.driver import Row
from phronesis_graph.bolt.schema import LOCKS, NEWS
from phronesis_graph.knowledge.store import StoreNames
from phronesis_graph.twin.active import activate_packaged
from phronesis_graph.twin.ontology import Ontology
from phronesis_graph.twin.ontology_file import load as ontology
from phronesis_graph.twin.ontology_handlers import OntologyHandlers
from phronesis_graph.twin.ontology_store import BoltMisfits, BoltOntologies
from phronesis_local.settings import Stores
from phronesis_operations.format import Frame, pack, unpack
from phronesis_operations.graph import GraphDump, GraphLoad, labels, to_json
from phronesis_operations.reporting import Damaged, Failed
from phronesis_operations.tenancy import Tenancy
from tests.support import production
from tests.support.bus import somebody
from tests.support.graph import Stores as GraphStores
from tests.support.graph import joined, node, opened, ref
from tests.support.personas import Persona
from tests.support.servers import ArcadeServer, GraphServer

pytestmark = [pytest.mark.verify, pytest.mark.timeout(180)]

VALUES: tuple[Any, ...] = (
    *(0, 1, -1, 2**53 + 1, 2**63 - 1, -(2**63)),
    *(0.0, 1.0, -0.5, 1e308, 5e-324, 0.1, 1e15, 123456789.125),
    *(True, False, "", "1", "1.0", "true", "2023-01-02", "zwölf\n\t\"'\\ \u2028 \U0001f6a2", "x" * 20_000),
    *([], [1, 2, 3], [0.5, 1.0], ["a", ""], [True, False]),
)


@dataclass
class Records:
    """Packed records in memory."""

    held: list[bytes] = field(default_factory=list)

    def append(self, record: bytes, rows: int) -> None:
        """Take one."""
        self.held.append(record)

    def clear(self) -> None:
        """Forget all."""
        self.held.clear()

    def frames(self) -> list[Frame]:
        """The records, in an order of their own."""
        return sorted((frame for one in self.held for frame in unpack(one)), key=lambda f: (sorted(f.header.items()), f.body))


async def dumped(stores: GraphStores, tenant: str | None = None) -> tuple[list[Frame], list[Frame]]:
    """Nodes and relationships of a store, with the properties of each in one order."""
    nodes, relationships = Records(), Records()
    await GraphDump(stores.bolt, ontology(), tenant).run(nodes, relationships)
    return nodes.frames(), relationships.frames()


def plain(frames: list[Frame]) -> list[tuple[dict[str, Any], list[tuple[str, str]]]]:
    """Records that can be compared: the store may give properties in another order, and `repr` tells 1 from 1.0."""
    return sorted(
        ((f.header, sorted((k, repr(v)) for k, v in json.loads(f.body).items())) for f in frames), key=lambda pair: repr(pair)
    )


@pytest.fixture
async def stores(graph_server: GraphServer, tmp_path: Path) -> AsyncIterator[GraphStores]:
    async with opened(graph_server, tmp_path) as stores:
        await stores.schema.declared()
        await GraphLoad(stores.bolt, ontology()).empty()
        yield stores


async def filled(stores: GraphStores, tenant: str, count: int = 60) -> None:
    """Nodes of all labels with random values, joined at random."""
    chance, keys = random.Random(tenant), []
    for number in range(count):
        label = labels(ontology())[number % len(labels(ontology()))]
        key = f"{tenant}/{label}/ü{number}/2023"
        values = {f"p{i}": chance.choice(VALUES) for i in range(6)} | {"key": key, "tenant": tenant}
        await stores.run(f"CREATE (n:{label}) SET n = $values", values=values)
        keys.append((label, key))
    twin = [(label, key) for label, key in keys if label in ontology().nodes]
    for number in range(count):
        (a, source), (b, target) = chance.choice(twin), chance.choice(twin)
        values = {"w": chance.choice(VALUES), "n": number}
        await stores.run(
            f"MATCH (a:{a} {{key: $a}}) MATCH (b:{b} {{key: $b}}) CREATE (a)-[r:PARENT_OF]->(b) SET r = $values",
            a=source,
            b=target,
            values=values,
        )


async def loaded(stores: GraphStores, nodes: list[Frame], relationships: list[Frame], tenancy: Tenancy | None = None) -> None:
    """Write records into a store."""
    load = GraphLoad(stores.bolt, ontology(), tenancy)
    assert await load.nodes(iter(nodes)) == len(nodes)
    assert await load.relationships(iter(relationships)) == len(relationships)


async def test_every_value_comes_back_as_it_was(stores: GraphStores) -> None:
    await filled(stores, "acme")
    nodes, relationships = await dumped(stores)
    assert (len(nodes), len(relationships)) == (60, 60)
    await GraphLoad(stores.bolt, ontology()).empty()
    await loaded(stores, nodes, relationships)
    again = await dumped(stores)
    assert (plain(again[0]), plain(again[1])) == (plain(nodes), plain(relationships))


@pytest.mark.skipif(production.STORES is Stores.EMBEDDED, reason="needs Neo4j: make test-stores")
async def test_from_one_store_to_the_other_and_back_nothing_changes(tmp_path: Path, graph_server: GraphServer) -> None:
    embedded = ArcadeServer(tmp_path / "arcadedb")
    await embedded.start()
    try:
        async with opened(embedded, tmp_path) as arcadedb, opened(graph_server, tmp_path) as neo4j:
            await arcadedb.schema.declared()
            await neo4j.schema.declared()
            await filled(arcadedb, "acme")
            first = held = await dumped(arcadedb)
            for store in (neo4j, arcadedb):
                await GraphLoad(store.bolt, ontology()).empty()
                await loaded(store, *held)
                held = await dumped(store)
                assert (plain(held[0]), plain(held[1])) == (plain(first[0]), plain(first[1]))
    finally:
        await embedded.stop()


async def test_one_tenants_part_holds_nothing_of_another(stores: GraphStores) -> None:
    for tenant in ("acme", "acme-1", "acme0", "zulu"):
        await filled(stores, tenant, 40)
    nodes, relationships = await dumped(stores, "acme")
    keys = [frame.body for frame in nodes] + [str(frame.header["source"]).encode() for frame in relationships]
    assert keys
    assert [key for key in keys if b"acme/" not in key] == []
    assert [key for key in keys if b"acme-1" in key or b"acme0" in key or b"zulu" in key] == []


async def test_a_tenants_part_comes_in_under_another_name(stores: GraphStores) -> None:
    await filled(stores, "acme", 40)
    nodes, relationships = await dumped(stores, "acme")
    held = [frame for frame in nodes if frame.header["label"] != "PlatformLink"]  # of which these hold no ends
    await loaded(stores, held, relationships, Tenancy("acme", "moved"))
    moved = await dumped(stores, "moved")
    assert len(moved[0]) == len(held)
    assert len(moved[1]) == len(relationships)
    assert b"acme" not in b"".join(frame.body for frame in moved[0])


async def test_anothers_nodes_do_not_come_in_with_a_tenant(stores: GraphStores) -> None:
    foreign = next(unpack(pack({"label": "EntityProject"}, to_json({"key": "zulu/EntityProject/1/2023", "tenant": "zulu"}))))
    with pytest.raises(Damaged, match="another tenant"):
        await GraphLoad(stores.bolt, ontology(), Tenancy("acme", "acme")).nodes(iter([foreign]))


@pytest.mark.parametrize("label", ["Nobody", "EntityProject) DETACH DELETE (m", "", None, 7, ["EntityProject"]])
async def test_a_label_that_nobody_knows_is_refused(stores: GraphStores, label: Any) -> None:
    with pytest.raises(Damaged):
        await GraphLoad(stores.bolt, ontology()).nodes(iter([Frame({"label": label}, b'{"key": "a"}')]))


async def test_a_relationship_whose_end_is_missing_is_an_error(stores: GraphStores) -> None:
    header = {"type": "PARENT_OF", "from": "EntityProject", "to": "EntityProject", "source": "acme/a", "target": "acme/b"}
    with pytest.raises(Failed):
        await GraphLoad(stores.bolt, ontology()).relationships(iter([Frame(header, b"{}")]))


async def test_a_twin_that_is_written_all_the_time_is_read_all_the_same(
    stores: GraphStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a write whose key was read, all is read; of one that came later, there is no key."""
    monkeypatch.setattr("phronesis_operations.graph._PAUSE", 0.001)
    dump, who = GraphDump(stores.bolt, ontology()), somebody(**Persona.MAESTRO.rights)
    read, done = dump._pages, list[str]()

    async def busy(label: str, wanted: str) -> AsyncIterator[list[Row]]:
        done.append(f"k{len(done)}")
        await stores.upsert(who, Upsert(nodes=(node(done[-1]),)), key=done[-1])
        async for rows in read(label, wanted):
            yield rows

    monkeypatch.setattr(dump, "_pages", busy)
    nodes = Records()
    assert not await dump.run(nodes, Records())
    bodies = [json.loads(frame.body) for frame in nodes.frames()]
    keys = {body["key"].rpartition("/")[2] for body in bodies if "arguments" in body}
    ids = {body["id"] for body in bodies if body.get("tenant") == who.tenant}
    assert keys <= ids
    news = [body["body"] for body in bodies if body.get("whose") == who.tenant]
    assert [id for id in ids if not any(f"/{id}/" in text for text in news)] == []


async def test_writes_of_users_items_do_not_disturb(stores: GraphStores, monkeypatch: pytest.MonkeyPatch) -> None:
    dump, touch = (
        GraphDump(stores.bolt, ontology()),
        f"MERGE (l:{LOCKS} {{key: 'acme/ann/'}}) SET l.turns = coalesce(l.turns, 0) + 1",
    )
    read = dump._nodes

    async def busy(sink: Any) -> None:
        await read(sink)
        await stores.run(touch)

    monkeypatch.setattr(dump, "_nodes", busy)
    nodes = Records()
    await dump.run(nodes, Records())
    assert NEWS not in [frame.header["label"] for frame in nodes.frames()]


async def test_a_link_to_a_node_that_came_later_is_left_out(stores: GraphStores, monkeypatch: pytest.MonkeyPatch) -> None:
    await stores.run("CREATE (:MemoryUnit {key: 'acme/ann/1', tenant: 'acme'})")
    dump = GraphDump(stores.bolt, ontology())
    read = dump._nodes

    async def busy(sink: Any) -> None:
        await read(sink)
        await stores.run(
            "MATCH (a:MemoryUnit {key: 'acme/ann/1'}) CREATE (a)-[:MENTIONS]->(:Concept {key: 'acme/ann/2', tenant: 'acme'})"
        )

    monkeypatch.setattr(dump, "_nodes", busy)
    nodes, relationships = Records(), Records()
    await dump.run(nodes, relationships)
    assert (len(nodes.frames()), relationships.frames()) == (1, [])


async def test_a_tenants_own_ontology_moves_with_its_nodes(stores: GraphStores) -> None:
    """Into a store that was emptied, under another name: the ontology is active there, and its nodes are found."""
    text = "name: yard\nnodes:\n  Tug:\n  Pier:\nrelationships:\n  MOORED_AT: {from: [Tug], to: [Pier]}\n"
    who, names = somebody(**Persona.ADMIN.rights), StoreNames(stores.bolt)
    kept = BoltOntologies(stores.bolt, stores.schema, activate_packaged())
    handlers = OntologyHandlers(kept, BoltMisfits(stores.bolt), names, stores.schema.declare_types, lambda: None)
    await handlers.publish(Call(who, "gateway"), PublishOntology(text=text))
    moored = joined("MOORED_AT", ref("t", "Tug"), ref("p", "Pier"))
    await stores.upsert(who, Upsert(nodes=(node("t", type="Tug"), node("p", type="Pier")), relationships=(moored,)))
    nodes, relationships = Records(), Records()
    await GraphDump(stores.bolt, ontology(), who.tenant).run(nodes, relationships)
    assert await GraphLoad(stores.bolt, ontology()).of_tenant(who.tenant) == len(nodes.held)
    await GraphLoad(stores.bolt, ontology()).empty()
    declared: list[str] = []

    async def declare(own: Ontology) -> None:
        declared.append(own.name)
        await stores.schema.declare_types(own)

    new = who.model_copy(update={"tenant": f"{who.tenant}-new"})
    load = GraphLoad(stores.bolt, ontology(), Tenancy(who.tenant, new.tenant), declare)
    frames = ([frame for one in held for frame in unpack(one)] for held in (nodes.held, relationships.held))
    assert await load.nodes(iter(next(frames))) == len(nodes.held)
    assert await load.relationships(iter(next(frames))) == 1
    assert declared == ["yard"]
    found = await BoltOntologies(stores.bolt, stores.schema, activate_packaged()).of(new.tenant)
    assert (found.ontology.name, found.ontology.version) == ("yard", 1)
    assert [each.id for each in await stores.nodes(new, ref("t", "Tug"))] == ["t"]
    await GraphLoad(stores.bolt, ontology()).remove(new.tenant)
    assert await load.of_tenant(new.tenant) == 0
