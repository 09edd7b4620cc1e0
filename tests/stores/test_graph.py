from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from types import MappingProxyType

import pytest

from phronesis_contracts import BadRequest, Internal, KeyReused, Principal, ServiceError, Unavailable
from phronesis_contracts.twin import Level, Node, NodeText, Upsert, Upserted
from phronesis_graph.bolt.driver import Bolt
from phronesis_graph.bolt.schema import PLATFORM
from phronesis_graph.twin.ontology import LevelRule, RelationshipType
from phronesis_graph.twin.ontology_file import load
from phronesis_graph.twin.store import BoltTwin
from phronesis_local.loopback import free_port
from phronesis_samples.portfolio.reports import batches, count_nodes
from tests.support.bus import somebody
from tests.support.graph import Stores, joined, node, opened, ref, settings
from tests.support.servers import GraphServer

PAIR = Upsert(
    nodes=(node("a", budget=5, aims="To build it"), node("r", type="EntityRisk")),
    relationships=(joined("RATED", ref("a"), ref("r", "EntityRisk")),),
)


@pytest.fixture(scope="module")
async def stores(graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stores]:
    async with opened(graph_server, tmp_path_factory.mktemp("graph")) as found:
        yield found


async def count(stores: Stores, who: Principal) -> int:
    rows = await stores.run("MATCH (n) WHERE n.tenant = $tenant RETURN count(n) AS found", tenant=who.tenant)
    return int(rows[0]["found"])


async def news_of(stores: Stores, who: Principal) -> list[tuple[str, object]]:
    rows = await stores.outbox.unsent(10_000)
    return [(row.subject.split(".", 2)[2], json.loads(row.body)) for row in rows if row.tenant == who.tenant]


async def test_a_node_is_read_as_it_was_written(stores: Stores) -> None:
    who = somebody()
    result = await stores.upsert(who, PAIR)
    assert result == Upserted(nodes_created=2, relationships_created=1)
    assert await stores.nodes(who, ref("missing"), ref("a"), ref("a", "Nothing")) == [
        Node(
            key="EntityProject/a/2023",
            type="EntityProject",
            id="a",
            year=2023,
            name="The a",
            level=Level.L3,
            version=1,
            properties={"budget": 5.0},
            texts=(NodeText(field="aims", text="To build it"),),
        )
    ]


async def test_nodes_come_in_the_order_asked(stores: Stores) -> None:
    who = somebody()
    await stores.upsert(who, PAIR)
    found = await stores.nodes(who, ref("r", "EntityRisk"), ref("a"), ref("r", "EntityRisk"))
    assert [node.id for node in found] == ["r", "a"]


async def test_the_same_batch_again_changes_nothing(stores: Stores) -> None:
    who = somebody()
    await stores.upsert(who, PAIR)
    assert await stores.upsert(who, PAIR) == Upserted(nodes_unchanged=2, relationships_unchanged=1)
    assert [node.version for node in await stores.nodes(who, ref("a"))] == [1]


async def test_a_change_counts_the_version_and_drops_absent_properties(stores: Stores) -> None:
    who = somebody()
    await stores.upsert(who, PAIR)
    assert await stores.upsert(who, Upsert(nodes=(node("a", status="Active"),))) == Upserted(nodes_updated=1)
    [found] = await stores.nodes(who, ref("a"))
    assert (found.version, found.properties, found.texts) == (2, {"status": "Active"}, ())


async def test_a_batch_with_a_missing_end_leaves_nothing(stores: Stores) -> None:
    who = somebody()
    batch = Upsert(nodes=(node("a"),), relationships=(joined("RATED", ref("a"), ref("gone", "EntityRisk")),))
    with pytest.raises(BadRequest) as caught:
        await stores.upsert(who, batch)
    assert caught.value.field == "relationships.0.target"
    assert (await count(stores, who), await news_of(stores, who)) == (0, [])


async def test_a_batch_that_fails_after_its_first_writes_leaves_nothing(stores: Stores) -> None:
    """The store refuses a relationship whose name is no name; by then the nodes have been written."""
    who = somebody()
    wrong = RelationshipType("RATED BY", ("EntityProject",), ("EntityRisk",), LevelRule.ANY)
    ontology = load()
    wronged = replace(ontology, relationships=MappingProxyType({**ontology.relationships, "RATED BY": wrong}))
    broken = Stores(stores.bolt, wronged, stores.dialect)
    broken.twin = BoltTwin(stores.bolt, wronged, stores.schema)
    batch = Upsert(nodes=PAIR.nodes, relationships=(joined("RATED BY", ref("a"), ref("r", "EntityRisk")),))
    with pytest.raises(Internal):
        await broken.upsert(who, batch, key="k")
    assert (await count(stores, who), await news_of(stores, who)) == (0, [])
    assert await stores.upsert(who, PAIR, key="k") == Upserted(nodes_created=2, relationships_created=1)


async def test_a_level_is_checked_against_an_end_that_was_there_before(stores: Stores) -> None:
    who = somebody()
    await stores.upsert(who, Upsert(nodes=(node("top", "L1"),)))
    batch = Upsert(nodes=(node("low", "L3"),), relationships=(joined("PARENT_OF", ref("top"), ref("low")),))
    with pytest.raises(BadRequest, match="not L1 to L3"):
        await stores.upsert(who, batch)


async def test_two_tenants_see_nothing_of_each_other(stores: Stores) -> None:
    one, other = somebody(), somebody()
    await stores.upsert(one, PAIR)
    assert await stores.nodes(other, ref("a"), ref("r", "EntityRisk")) == []
    assert await stores.upsert(other, PAIR) == Upserted(nodes_created=2, relationships_created=1)
    await stores.upsert(other, Upsert(nodes=(node("a", budget=9),)))
    assert [found.properties for found in await stores.nodes(one, ref("a"))] == [{"budget": 5.0}]


async def test_no_relationship_joins_two_tenants(stores: Stores) -> None:
    one, other = somebody(), somebody()
    await stores.upsert(one, Upsert(nodes=(node("a"),)))
    foreign = ref(f"../{one.tenant}/EntityProject/a")
    for end in (ref("a"), foreign):
        batch = Upsert(nodes=(node("b", "L2"),), relationships=(joined("PARENT_OF", ref("b"), end),))
        with pytest.raises(BadRequest):
            await stores.upsert(other, batch)


async def test_a_repeated_key_answers_with_the_first_result(stores: Stores) -> None:
    who = somebody()
    first = await stores.upsert(who, PAIR, key="once")
    assert await stores.upsert(who, PAIR, key="once") == first == Upserted(nodes_created=2, relationships_created=1)
    assert await stores.upsert(who, PAIR, key="twice") == Upserted(nodes_unchanged=2, relationships_unchanged=1)


async def test_a_key_with_another_batch_is_refused(stores: Stores) -> None:
    who = somebody()
    await stores.upsert(who, PAIR, key="once")
    with pytest.raises(KeyReused):
        await stores.upsert(who, Upsert(nodes=(node("other"),)), key="once")
    assert await stores.nodes(who, ref("other")) == []


async def test_twenty_repeats_at_once_write_once(stores: Stores) -> None:
    who = somebody()
    results = await asyncio.gather(*(stores.upsert(who, PAIR, key="once") for _ in range(20)))
    assert set(map(repr, results)) == {repr(Upserted(nodes_created=2, relationships_created=1))}
    assert len(await news_of(stores, who)) == 2


async def test_news_names_the_changed_nodes_and_the_deed(stores: Stores) -> None:
    who = somebody()
    await stores.upsert(who, PAIR)
    await stores.upsert(who, Upsert(nodes=(node("a"), node("r", type="EntityRisk"))))
    changed = [body for subject, body in await news_of(stores, who) if subject == "graph.v1.node.changed"]
    assert changed == [
        {"nodes": [{"key": "EntityProject/a/2023", "version": 1}, {"key": "EntityRisk/r/2023", "version": 1}]},
        {"nodes": [{"key": "EntityProject/a/2023", "version": 2}]},
    ]
    assert [subject for subject, _ in await news_of(stores, who)].count("graph.v1.audited") == 2


async def test_one_event_names_a_hundred_nodes_at_most(stores: Stores) -> None:
    who = somebody()
    await stores.upsert(who, Upsert(nodes=tuple(node(f"n{i}") for i in range(250))))
    bodies = [body for subject, body in await news_of(stores, who) if subject == "graph.v1.node.changed"]
    assert [len(body["nodes"]) for body in bodies if isinstance(body, dict)] == [100, 100, 50]


async def test_sent_news_is_gone_and_other_news_stays(stores: Stores) -> None:
    one, other = somebody(), somebody()
    await stores.upsert(one, PAIR)
    await stores.upsert(other, PAIR)
    await stores.outbox.sent([row.id for row in await stores.outbox.unsent(10_000) if row.tenant == one.tenant])
    assert (len(await news_of(stores, one)), len(await news_of(stores, other))) == (0, 2)


async def test_what_the_service_keeps_for_itself_is_in_no_tenants_count(stores: Stores) -> None:
    who = somebody()
    await stores.upsert(who, PAIR, key="k")
    assert await count(stores, who) == 2
    assert len(await news_of(stores, who)) == 2
    labels = await stores.run("MATCH (n) WHERE n.tenant IS NULL UNWIND labels(n) AS label RETURN DISTINCT label")
    assert {row["label"] for row in labels} <= set(PLATFORM)
    refs = tuple(f"{label}/{who.tenant}/2023" for label in PLATFORM)
    assert await stores.twin.nodes(who.tenant, refs) == []


async def test_an_id_that_holds_cypher_is_only_an_id(stores: Stores) -> None:
    who = somebody()
    id = "x'\"`}) DETACH DELETE n //\\u0027"
    await stores.upsert(who, Upsert(nodes=(node(id), node("a"))))
    assert [found.id for found in await stores.nodes(who, ref(id), ref("a"))] == [id, "a"]


async def test_writers_in_two_processes_lose_no_version(graph_server: GraphServer, stores: Stores) -> None:
    """Two copies of the service change one node, each many times at once: every change counts."""
    who = somebody()
    await stores.schema.declared()
    copies = [Stores(stores.bolt, stores.ontology, stores.dialect) for _ in range(2)]
    changes = [Upsert(nodes=(node("a", budget=i), node("b", budget=i))) for i in range(10)]
    await asyncio.gather(*(copies[i % 2].upsert(who, change) for i, change in enumerate(changes)))
    assert [found.version for found in await stores.nodes(who, ref("a"), ref("b"))] == [10, 10]


async def test_the_portfolio_loads_once_and_again_without_a_change(stores: Stores) -> None:
    who = somebody()
    first = [await stores.upsert(who, batch) for batch in batches()]
    assert sum(result.nodes_created for result in first) == count_nodes() == await count(stores, who)
    again = [await stores.upsert(who, batch) for batch in batches()]
    assert {(r.nodes_created, r.nodes_updated, r.relationships_created) for r in again} == {(0, 0, 0)}
    [found] = await stores.nodes(who, ref("DECC_0005_1112-Q1", year=2021))
    assert [text.field for text in found.texts] == ["aims", "facts", "rating_comment", "schedule_comment", "budget_comment"]


@pytest.mark.req("D-090", "K-088", "K-089", "KC-028")
async def test_the_reading_user_cannot_write(stores: Stores) -> None:
    who = somebody()
    with pytest.raises(ServiceError):
        await stores.bolt.read(
            lambda transaction: transaction.rows("CREATE (n:EntityVendor {key: $key, tenant: $key})", key=who.tenant)
        )
    assert await count(stores, who) == 0


async def test_a_store_that_is_away_is_unavailable_at_once(
    stores: Stores, graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    away = settings(graph_server, tmp_path_factory.mktemp("away"), url=f"bolt://127.0.0.1:{free_port()}")
    async with asyncio.timeout(3), Bolt.open(away) as bolt:
        with pytest.raises(Unavailable):
            await Stores(bolt, stores.ontology, stores.dialect).upsert(somebody(), PAIR)


async def test_a_wrong_password_is_unavailable_and_says_nothing_of_the_store(
    stores: Stores, graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("wrong")
    wrong = settings(graph_server, folder)
    (folder / f"{graph_server.root.user}.password").write_text("wrong")
    async with Bolt.open(wrong) as bolt:
        with pytest.raises(Unavailable) as caught:
            await Stores(bolt, stores.ontology, stores.dialect).upsert(somebody(), PAIR)
    assert caught.value.detail == "the graph store does not let the service in"
