from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phronesis_bus import Metrics
from phronesis_contracts import BadRequest
from phronesis_contracts.constitution.lists import GetAll, ListLayer, ReadNodes, WalkNodes
from phronesis_contracts.constitution.registry import Layer
from phronesis_graph.constitution.lists import ListHandlers, ListMeasures
from phronesis_graph.constitution.pages import make_cursor, message_tokens, read_cursor
from tests.support.bus import somebody
from tests.support.listed import call, link, node, words
from tests.unit.graph.fakes_lists import Graph

TEXTS = st.text(max_size=60)


@given(TEXTS, TEXTS)
def test_a_cursor_gives_its_place_back(first: str, second: str) -> None:
    assert read_cursor(make_cursor("list", first, second), {"list": 2}) == ("list", first, second)


@given(st.text(max_size=200))
def test_a_forged_cursor_is_refused(given: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read_cursor(given, {"list": 1})
    assert caught.value.field == "cursor"


@pytest.mark.parametrize(
    "told", [["other", "a"], ["list"], ["list", "a", "b"], ["list", 1], [], {"list": "a"}, "list", None, [["list"], "a"]]
)
def test_a_cursor_of_another_list_or_of_another_shape_is_refused(told: object) -> None:
    forged = base64.urlsafe_b64encode(json.dumps(told).encode()).decode().rstrip("=")
    with pytest.raises(BadRequest):
        read_cursor(forged, {"list": 1})


def test_a_cursor_of_a_thousand_brackets_is_refused() -> None:
    with pytest.raises(BadRequest):
        read_cursor(base64.urlsafe_b64encode(b"[" * 1_100).decode().rstrip("="), {"list": 1})


SIZES = st.lists(st.integers(0, 4_000), max_size=60)


@pytest.mark.req("O-012", "O-104")
@settings(max_examples=30)
@given(SIZES, st.integers(5, 2_000))
async def test_pages_give_every_node_of_a_layer_once_and_none_is_larger_than_an_answer(sizes: list[int], limit: int) -> None:
    nodes = [node(f"n{i:03}", "observation", description="w " * size) for i, size in enumerate(sizes)]
    lists, who = ListHandlers(Graph([*nodes, node("task", "task")]), ListMeasures(Metrics())), somebody()
    seen, after = list[str](), None
    while True:
        page = await lists.layer(Layer.TRACK, call(who), ListLayer(limit=limit, cursor=after))
        assert len(page.items) <= limit
        assert message_tokens(page) <= 25_000
        seen += [one.id for one in page.items]
        after = page.next_cursor
        if after is None:
            break
        assert page.items
    assert seen == [one.id for one in nodes]


@settings(max_examples=50)
@given(st.integers(0, 20), st.integers(0, 40), st.integers(1, 50))
@pytest.mark.req("C-27")
async def test_pages_of_the_graph_give_every_node_and_then_every_relationship_once(
    number: int, joined: int, limit: int
) -> None:
    nodes = [node(f"n{i:02}") for i in range(number)]
    links = [link(f"n{i % number:02}", f"T{i}", f"n{i * 7 % number:02}") for i in range(joined)] if number else []
    lists, who = ListHandlers(Graph(nodes, links), ListMeasures(Metrics())), somebody()
    seen, told, after = list[str](), list[str](), None
    while True:
        page = await lists.get_all(call(who), GetAll(limit=limit, cursor=after))
        assert len(page.nodes) + len(page.relationships) <= limit
        assert not (told and page.nodes)
        seen += [one.id for one in page.nodes]
        told += [one.id for one in page.relationships]
        after = page.next_cursor
        if after is None:
            break
    assert (seen, sorted(told)) == ([one.id for one in nodes], sorted(one.id for one in links))


async def test_a_node_that_is_larger_than_an_answer_is_cut_and_not_left_out() -> None:
    big = node("big", "note", content=words(19_000), description=words(19_000), metadata={"x": words(500)})
    page = await ListHandlers(Graph([big]), ListMeasures(Metrics())).layer(Layer.MIND, call(somebody()), ListLayer())
    [told] = page.items
    assert (told.id, told.title, page.truncated, page.next_cursor) == ("big", "The big", True, None)
    assert (told.metadata, (told.description or "")[:50]) == ({"x": words(500)}, words(19_000)[:50])
    assert 20_000 < message_tokens(page) <= 25_000


async def test_a_bag_that_is_larger_than_an_answer_is_left_out() -> None:
    big = node("big", "note", properties={str(i): words(2_000, i) for i in range(20)})
    page = await ListHandlers(Graph([big]), ListMeasures(Metrics())).layer(Layer.MIND, call(somebody()), ListLayer())
    assert ([one.properties for one in page.items], page.truncated) == ([None], True)


async def test_nodes_are_walked_in_the_order_of_their_ids_to_a_page_without_any() -> None:
    lists, who = (
        ListHandlers(Graph([node(f"n{i}", "note", content=words(9_000)) for i in range(5)]), ListMeasures(Metrics())),
        somebody(),
    )
    seen, after = list[str](), ""
    while page := (await lists.walk_nodes(call(who), WalkNodes(after=after, limit=2))).nodes:
        seen += [one.id for one in page]
        after = page[-1].id
    assert seen == ["n0", "n1", "n2", "n3", "n4"]


async def test_what_is_read_by_id_is_told_in_full_and_what_there_is_not_is_left_out() -> None:
    whole = node("a", "decision", roi={"total": 2.5}, properties={"mood": "good"}, provenance={"actor": "somebody"})
    found = await ListHandlers(Graph([whole]), ListMeasures(Metrics())).read_nodes(
        call(somebody()), ReadNodes(ids=("a", "b", "a"))
    )
    assert found.nodes == (whole,)
