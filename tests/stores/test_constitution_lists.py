"""Lists of the constitutional graph, over a real store."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from itertools import pairwise
from statistics import median
from typing import Any

import pytest

from phronesis_bus import Metrics, audit_entry
from phronesis_contracts import NotFound
from phronesis_contracts.constitution.lists import (
    GetAll,
    GetConstitutionNode,
    ListFoundation,
    ListLayer,
    ListVision,
    ReadNodes,
    WalkNodes,
)
from phronesis_contracts.constitution.registry import TYPES, Layer, types_of_layer
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_contracts.constitution.writes import NodeWritten
from phronesis_graph.constitution.layers import AnswerCache, WholeLayers
from phronesis_graph.constitution.list_store import BoltLists
from phronesis_graph.constitution.lists import ListHandlers, ListMeasures, WholeLayerHandlers
from phronesis_graph.constitution.ports import Order
from phronesis_graph.constitution.store import BoltConstitution, BoltLinks, WriteTurns
from phronesis_graph.knowledge.store import StoreNames
from phronesis_tokens import count
from tests.support.bus import somebody
from tests.support.graph import Stores, opened
from tests.support.listed import call, keep, link, node, words
from tests.support.servers import GraphServer


@pytest.fixture(scope="module")
async def stores(graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stores]:
    async with opened(graph_server, tmp_path_factory.mktemp("lists")) as found:
        yield found


@pytest.fixture
def lists(stores: Stores) -> ListHandlers:
    return ListHandlers(BoltLists(stores.bolt, stores.schema), ListMeasures(Metrics()))


@pytest.fixture
def essentials(stores: Stores) -> WholeLayerHandlers:
    return WholeLayerHandlers(WholeLayers(BoltLists(stores.bolt, stores.schema)), AnswerCache(), ListMeasures(Metrics()))


def starting() -> list[ConstitutionNode]:
    """The seed's starting point: 45 nodes of the foundation, whose whole records come to about 44,000 tokens."""
    kinds = ("value", "principle", "guardrail", "human", "ai", "policy", "context")
    bag: dict[str, Any] = {
        "properties": {"notes": words(240)},
        "metadata": {"imported": words(150)},
        "provenance": {"source": words(90)},
    }
    return [node(f"n{i:02}", kinds[i % 7], day=i, summary=words(20, i), description=words(400, i), **bag) for i in range(45)]


@pytest.mark.req("O-102", "O-103", "O-104")
async def test_pages_of_a_layer_give_each_of_its_nodes_once_and_none_of_another(stores: Stores, lists: ListHandlers) -> None:
    who, other = somebody(), somebody()
    whole = [node(f"o{i:03}", "observation", value=float(i), description=words(300, i)) for i in range(180)]
    await keep(stores, who, [*whole, node("m", "metric"), node("task", "task")])
    await keep(stores, other, [node("o000", "observation"), node("zz", "observation")])
    found, after, pages = list[ConstitutionNode](), None, 0
    while True:
        page = await lists.layer(Layer.TRACK, call(who), ListLayer(types=("observation",), cursor=after))
        assert count(page.model_dump_json()) <= 25_000
        found += page.items
        pages, after = pages + 1, page.next_cursor
        if after is None:
            break
    assert (found, pages > 2) == (whole, True)


@pytest.mark.req("O-102", "C-25")
async def test_each_layers_list_has_the_nodes_of_its_types(stores: Stores, lists: ListHandlers) -> None:
    who = somebody()
    await keep(stores, who, [node(f"a-{name}", name) for name in TYPES])
    for layer in Layer:
        found = await lists.layer(layer, call(who), ListLayer())
        assert sorted(one.type for one in found.items) == sorted(kind.name for kind in types_of_layer(layer))


@pytest.mark.req("O-118")
async def test_pages_of_the_graph_come_to_what_the_store_holds(stores: Stores, lists: ListHandlers) -> None:
    who = somebody()
    nodes = [*(node(f"v{i:02}") for i in range(40)), node("gone", status="archived"), node("g", "goal")]
    links = [link(f"v{i:02}", "ENFORCED_BY", f"v{j:02}") for i in range(0, 40, 4) for j in range(1, 40, 3)]
    dead = [link("v00", "MENTIONS", "gone"), link("gone", "MENTIONS", "v00")]
    await keep(stores, who, nodes, [*links, *dead, link("g", "SERVES", "v00")])
    await keep(stores, somebody(), nodes, links)
    seen, told, after = list[str](), list[str](), None
    while True:
        page = await lists.get_all(call(who), GetAll(limit=33, cursor=after))
        seen += [one.id for one in page.nodes]
        told += [one.id for one in page.relationships]
        after = page.next_cursor
        if after is None:
            break
    assert seen == sorted(one.id for one in nodes if one.status == "active")
    assert told == sorted(told)
    assert set(told) == {one.id for one in links} | {"g-SERVES-v00"}
    narrow = await lists.get_all(call(who), GetAll(layers=(Layer.FOUNDATION,), types=("value",)))
    assert len(narrow.relationships) == len(links)


@pytest.mark.req("O-101", "O-063")
async def test_a_node_is_read_in_full_by_its_tenant_alone(stores: Stores, lists: ListHandlers) -> None:
    who = somebody()
    more: dict[str, Any] = {"properties": {"a": {"b": [1]}}, "metadata": {"c": "d"}, "provenance": {"actor": "somebody"}}
    whole = node("d", "decision", roi={"total": 2.5}, decidedAt="2026-02-01", reasoning="r", summary="s", **more)
    links = [link("d", "LEADS_TO", "t"), link("d", "ON", "e")]
    await keep(stores, who, [whole, node("t", "task"), node("e", "evidence")], links)
    found = await lists.node(call(who), GetConstitutionNode(id="d", include_relationships=True))
    assert found.node == whole
    assert found.relationships == tuple(links)
    incoming = await lists.node(call(who), GetConstitutionNode(id="t", include_relationships=True))
    assert incoming.relationships == (links[0],)
    with pytest.raises(NotFound):
        await lists.node(call(somebody()), GetConstitutionNode(id="d"))
    read = await lists.read_nodes(call(who), ReadNodes(ids=("e", "nobody", "d")))
    assert sorted(one.id for one in read.nodes) == ["d", "e"]
    assert (await lists.read_nodes(call(somebody()), ReadNodes(ids=("d",)))).nodes == ()


async def test_every_node_is_walked_in_the_order_of_ids(stores: Stores, lists: ListHandlers) -> None:
    who = somebody()
    nodes = [node(f"n{i:02}", list(TYPES)[i % 35]) for i in range(50)]
    await keep(stores, who, [*nodes, node("z", status="archived")])
    seen, after = list[str](), ""
    while page := (await lists.walk_nodes(call(who), WalkNodes(after=after, limit=20))).nodes:
        seen += [one.id for one in page]
        after = page[-1].id
    assert seen == [*(one.id for one in nodes), "z"]


@pytest.mark.req("O-016", "O-124", "O-125", "O-131", "O-076")
async def test_the_foundation_is_told_whole_with_relationships_between_its_nodes_alone(
    stores: Stores, essentials: WholeLayerHandlers
) -> None:
    who = somebody()
    nodes = [node(f"v{i:02}", "value") for i in range(78)]
    others = [node("p", "principle"), node("g", "guardrail"), node("goal", "goal"), node("old", status="archived")]
    links = [link("v00", "ENFORCED_BY", "p"), link("p", "ENFORCED_BY", "g")]
    elsewhere = [link("goal", "SERVES", "v00"), link("v00", "ENFORCED_BY", "old"), link("old", "ENFORCED_BY", "p")]
    await keep(stores, who, [*nodes, *others], [*links, *elsewhere])
    found = await essentials.foundation(call(who), ListFoundation())
    assert [one.id for one in found.items] == ["g", "p", *(one.id for one in nodes)]
    assert {one.layer for one in found.items} == {Layer.FOUNDATION}
    assert set(found.relationships) == set(links)
    without = await essentials.foundation(call(who), ListFoundation(include_relationships=False))
    assert (len(without.items), without.relationships) == (80, ())
    archived = await essentials.foundation(call(who), ListFoundation(status="archived"))
    assert ([one.id for one in archived.items], archived.relationships) == (["old"], ())
    assert (await essentials.foundation(call(who), ListFoundation(status="deprecated"))).items == ()
    assert (await essentials.foundation(call(somebody()), ListFoundation())).items == ()


@pytest.mark.req("O-017", "O-140", "O-142", "O-143", "O-146")
async def test_the_vision_is_told_whole_with_its_parents(stores: Stores, essentials: WholeLayerHandlers) -> None:
    who = somebody()
    nodes = [
        node("value"),
        node("gone", status="deprecated"),
        node("strategy", "strategy"),
        node("vision", "vision"),
        node("old", "goal", status="archived"),
        *(node(f"goal{i:02}", "goal", horizon=f"{2026 + i}") for i in range(23)),
        node("season", "season"),
    ]
    links = [
        link("goal00", "SUPPORTED_BY", "value"),
        link("goal00", "SERVES", "vision"),
        link("goal00", "ALIGNS_WITH", "season"),
        link("goal00", "SERVES", "gone"),
        link("goal01", "SUPPORTED_BY", "old"),
        link("strategy", "SERVES", "goal00"),
        link("vision", "SUPPORTED_BY", "strategy"),
    ]
    await keep(stores, who, nodes, links)
    found = await essentials.vision(call(who), ListVision())
    assert [one.id for one in found.items] == ["vision", *(f"goal{i:02}" for i in range(23)), "season"]
    parents = {one.id: [(p.relationship, p.id, p.type) for p in one.parents or ()] for one in found.items}
    assert {id: told for id, told in parents.items() if told} == {
        "vision": [("SUPPORTED_BY", "strategy", "strategy")],
        "goal00": [("SUPPORTED_BY", "value", "value"), ("SERVES", "vision", "vision"), ("ALIGNS_WITH", "season", "season")],
    }
    archived = await essentials.vision(call(who), ListVision(status="archived"))
    assert [one.id for one in archived.items] == ["old"]


@pytest.mark.req("O-011", "O-134", "O-333", "O-374", "O-425", "C-86")
async def test_a_foundation_of_44_thousand_tokens_is_told_in_15_thousand(
    stores: Stores, lists: ListHandlers, essentials: WholeLayerHandlers
) -> None:
    """The first of the old system's defects: with whole records, or without the budget, the second version would not fit."""
    who = somebody()
    await keep(stores, who, starting())
    whole, after = 0, None
    while True:
        page = await lists.layer(Layer.FOUNDATION, call(who), ListLayer(status="active", cursor=after))
        whole += page.stats.token_estimate
        after = page.next_cursor
        if after is None:
            break
    found = await essentials.foundation(call(who), ListFoundation())
    assert 40_000 < whole < 48_000
    assert count(found.model_dump_json()) <= 15_000
    assert (len(found.items), found.truncated) == (45, False)
    heavy = await essentials.foundation(call(who), ListFoundation(exclude_fields=(), description_types=tuple(TYPES)))
    assert (len(heavy.items), heavy.truncated, count(heavy.model_dump_json()) <= 15_000) == (45, True, True)


@pytest.mark.req("O-011", "O-063", "O-123", "O-128", "O-348")
async def test_heavy_fields_are_left_out_by_default_and_any_other_field_on_request(
    stores: Stores, lists: ListHandlers, essentials: WholeLayerHandlers
) -> None:
    """The second of the old system's defects: fields could not be chosen."""
    who = somebody()
    await keep(stores, who, [*starting()[:3], node("g", "goal", description="d", provenance={"source": "s"})])
    heavy = {"properties", "metadata", "embedding", "provenance"}
    first = await lists.layer(Layer.FOUNDATION, call(who), ListLayer())
    assert all({"properties", "metadata", "provenance"} <= keys(one) for one in first.items)
    found = await essentials.foundation(call(who), ListFoundation())
    assert [keys(one) & heavy for one in found.items] == [set()] * 3
    narrow = await essentials.foundation(call(who), ListFoundation(exclude_fields=(*heavy, "summary", "createdAt", "id")))
    assert [keys(one) for one in narrow.items] == [{"id", "type", "layer", "title", "description", "status", "updatedAt"}] * 3
    [goal] = (await essentials.vision(call(who), ListVision())).items
    assert keys(goal) == {"id", "type", "layer", "title", "status"}


@pytest.mark.req("O-097", "O-135", "O-403")
async def test_both_versions_tell_the_same_nodes(stores: Stores, lists: ListHandlers, essentials: WholeLayerHandlers) -> None:
    who = somebody()
    await keep(stores, who, [*starting(), node("old", status="archived")])
    first, tokens, after = dict[str, set[str]](), 0, None
    while True:
        page = await lists.layer(Layer.FOUNDATION, call(who), ListLayer(status="active", cursor=after))
        first |= {one.id: keys(one) for one in page.items}
        tokens += page.stats.token_estimate
        after = page.next_cursor
        if after is None:
            break
    found = await essentials.foundation(call(who), ListFoundation())
    second = {one.id: keys(one) for one in found.items}
    assert second.keys() == first.keys()
    assert [id for id, fields in second.items() if not fields < first[id]] == []
    assert found.stats.token_estimate < tokens / 2


@pytest.mark.req("O-148")
async def test_a_vision_of_25_nodes_with_its_parents_is_told_in_8_thousand_tokens(
    stores: Stores, essentials: WholeLayerHandlers
) -> None:
    who = somebody()
    told: dict[str, Any] = {"horizon": "2028", "deadline": "2028-06-30", "target": words(12), "narrative": words(200)}
    goals = [node(f"goal-{i:02}", "goal", day=i, summary=words(60, i), description=words(300, i), **told) for i in range(25)]
    links = [link(a.id, "SUPPORTED_BY", b.id) for b, a in pairwise(goals)]
    await keep(stores, who, goals, links)
    found = await essentials.vision(call(who), ListVision())
    assert (len(found.items), found.truncated) == (25, False)
    assert 2_000 < count(found.model_dump_json()) <= 8_000


@pytest.mark.req("O-136", "O-149")
async def test_both_lists_answer_well_within_a_second_or_two(stores: Stores) -> None:
    who, whole = somebody(), WholeLayers(BoltLists(stores.bolt, stores.schema))
    values = [node(f"v{i:02}", summary=words(30, i), description=words(60, i)) for i in range(80)]
    goals = [node(f"g{i:02}", "goal", summary=words(30, i)) for i in range(25)]
    await keep(stores, who, [*values, *goals], [link(one.id, "SUPPORTED_BY", "v00") for one in goals])
    foundation, vision = list[float](), list[float]()
    await whole.warm()
    for _ in range(20):
        began = time.perf_counter()
        await whole.foundation(who.tenant, ListFoundation())
        foundation.append(time.perf_counter() - began)
        await whole.vision(who.tenant, ListVision())
        vision.append(time.perf_counter() - began - foundation[-1])
    assert (median(foundation) < 2, max(foundation) < 3, median(vision) < 1, max(vision) < 2) == (True, True, True, True)


@pytest.mark.req("O-350")
async def test_ids_and_types_that_hold_cypher_find_nothing_and_break_nothing(stores: Stores, lists: ListHandlers) -> None:
    who = somebody()
    await keep(stores, who, [node("a")])
    for id in ("a' OR true //", "a}) DETACH DELETE n //", "../other/constitution/a", "`"):
        with pytest.raises(NotFound):
            await lists.node(call(who), GetConstitutionNode(id=id))
    assert [one.id for one in (await lists.layer(Layer.FOUNDATION, call(who), ListLayer())).items] == ["a"]


async def test_a_tenant_whose_name_begins_with_anothers_sees_nothing_of_it(stores: Stores, lists: ListHandlers) -> None:
    who = somebody()
    longer = who.model_copy(update={"tenant": f"{who.tenant}-b"})
    await keep(stores, who, [node("a")])
    await keep(stores, longer, [node("b")], [])
    assert [one.id for one in (await lists.get_all(call(who), GetAll())).nodes] == ["a"]
    assert [one.id for one in (await lists.get_all(call(longer), GetAll())).nodes] == ["b"]


@pytest.mark.req("O-323")
async def test_a_write_of_the_same_process_is_in_the_next_answer_before_its_news_is_heard(stores: Stores) -> None:
    who, kept, turn = somebody(), AnswerCache(), WriteTurns(stores.schema)
    essentials = WholeLayerHandlers(WholeLayers(BoltLists(stores.bolt, stores.schema)), kept, ListMeasures(Metrics()))
    names = StoreNames(stores.bolt)
    writing, linking = BoltConstitution(stores.bolt, turn, names), BoltLinks(stores.bolt, turn, names)
    turn.subscribe(kept.changed)
    entry = audit_entry(who, "test", {})
    assert (await essentials.foundation(call(who), ListFoundation())).items == ()
    for id in ("a", "b"):
        await writing.create(Order(call(who), id), NodeWritten(node=node(id)), entry)
        found = await essentials.foundation(call(who), ListFoundation())
        assert found.items[-1].id == id
    await linking.relate(Order(call(who), "r"), link("a", "ENFORCED_BY", "b"), lambda ends: None, None, entry)
    found = await essentials.foundation(call(who), ListFoundation())
    assert found.relationships == (link("a", "ENFORCED_BY", "b"),)


def keys(one: ConstitutionNode) -> set[str]:
    return set(json.loads(one.model_dump_json()))
