"""What a list leaves out to keep to its budget, and in which order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phronesis_bus import Metrics
from phronesis_contracts.constitution.lists import (
    FOUNDATION_BUDGET,
    VISION_BUDGET,
    FoundationListed,
    ListFoundation,
    ListVision,
)
from phronesis_graph.constitution.budgets import allowed_tokens
from phronesis_graph.constitution.layers import AnswerCache, WholeLayers
from phronesis_graph.constitution.lists import ListMeasures, WholeLayerHandlers
from phronesis_graph.constitution.pages import message_tokens
from phronesis_tokens import count
from tests.support.bus import somebody
from tests.support.listed import call, link, node, words
from tests.unit.graph.fakes_lists import Graph


def essentials(graph: Graph) -> WholeLayerHandlers:
    return WholeLayerHandlers(WholeLayers(graph), AnswerCache(), ListMeasures(Metrics()))


async def foundation(graph: Graph, **question: Any) -> FoundationListed:
    return await essentials(graph).foundation(call(somebody()), ListFoundation(**question))


@pytest.mark.req("O-334", "O-340", "O-341")
def test_the_budget_grows_with_the_graph() -> None:
    sizes = (0, 45, 499, 500, 999, 1_000, 4_999, 5_000, 50_000)
    assert [allowed_tokens(FOUNDATION_BUDGET, size) // 1_000 for size in sizes] == [15, 15, 15, 17, 17, 18, 18, 20, 20]
    assert [allowed_tokens(VISION_BUDGET, size) // 1_000 for size in sizes] == [8, 8, 8, 9, 9, 10, 10, 10, 10]


@pytest.mark.req("O-334")
async def test_over_the_budget_the_longest_descriptions_go_first_and_no_node() -> None:
    nodes = [node(f"n{i:02}", description=words(100 * i), summary=words(20, i)) for i in range(20)]
    found = await foundation(Graph(nodes))
    without = [one.id for one in found.items if one.description is None]
    assert (len(found.items), found.truncated, found.next_cursor) == (20, True, None)
    assert without == ["n16", "n17", "n18", "n19"]
    assert all(one.summary for one in found.items)
    assert 15_000 - 1_600 < found.stats.token_estimate <= 15_000


@pytest.mark.req("O-334")
async def test_summaries_go_after_all_descriptions_the_longest_first() -> None:
    nodes = [node(f"n{i:02}", description=words(50), summary=words(100 * i)) for i in range(20)]
    found = await foundation(Graph(nodes))
    assert {one.description for one in found.items} == {None}
    assert [one.id for one in found.items if one.summary is None] == ["n16", "n17", "n18", "n19"]
    assert found.stats.token_estimate <= 15_000


@pytest.mark.req("O-334")
async def test_what_the_budget_of_a_larger_graph_holds_is_not_left_out() -> None:
    nodes = [node(f"n{i:02}", description=words(700, i)) for i in range(20)]
    small, large = (
        await foundation(Graph(nodes)),
        await foundation(Graph([*nodes, *(node(f"t{i}", "task") for i in range(980))])),
    )
    assert (small.truncated, large.truncated) == (True, False)
    assert 15_000 < large.stats.token_estimate <= 18_000


async def test_bags_that_were_asked_for_go_before_descriptions() -> None:
    bags: dict[str, Any] = {"provenance": {"x": words(90)}, "metadata": {"x": words(200)}, "properties": {"x": words(200)}}
    nodes = [node(f"n{i:02}", description=words(300), statement=words(200), **bags) for i in range(20)]
    found = await foundation(Graph(nodes), exclude_fields=())
    assert found.truncated
    assert [one.id for one in found.items if one.description is None] == []
    assert {(one.provenance, one.metadata) for one in found.items if not one.metadata} == {(None, None)}
    assert any((one.model_extra or {}).get("statement") for one in found.items)
    assert found.stats.token_estimate <= 15_000


@pytest.mark.req("O-012", "O-334")
async def test_a_layer_whose_nodes_alone_are_larger_than_an_answer_goes_on_behind_a_cursor() -> None:
    nodes = [node(f"n{i:04}", "value" if i % 2 else "human", day=i) for i in range(900)]
    links = [link(f"n{i:04}", "ENFORCED_BY", f"n{i + 1:04}") for i in range(0, 898, 3)]
    graph = Graph(nodes, links)
    seen, joined, pages, after = list[str](), list[str](), 0, None
    while True:
        page = await foundation(graph, cursor=after)
        assert message_tokens(page) <= 25_000
        assert {one.from_id for one in page.relationships} <= {one.id for one in page.items}
        seen += [one.id for one in page.items]
        joined += [one.id for one in page.relationships]
        pages, after = pages + 1, page.next_cursor
        if after is None:
            break
    assert pages > 2
    assert seen == [one.id for one in sorted(nodes, key=lambda one: (one.type, one.created_at))]
    assert sorted(joined) == sorted(one.id for one in links)


async def test_pages_of_the_vision_give_every_node_once() -> None:
    nodes = [node(f"n{i:04}", ("goal", "vision", "season")[i % 3], horizon=f"{2026 + i % 5}") for i in range(700)]
    links = [link(f"n{i:04}", "SERVES", "n0000") for i in range(1, 700)]
    listing, who, seen, after = essentials(Graph(nodes, links)), somebody(), list[str](), None
    while True:
        page = await listing.vision(call(who), ListVision(cursor=after))
        assert message_tokens(page) <= 25_000
        seen += [one.id for one in page.items]
        after = page.next_cursor
        if after is None:
            break
    assert (len(seen), set(seen)) == (700, {one.id for one in nodes})


@pytest.mark.req("O-012", "O-329", "C-32")
@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 1_500), st.integers(0, 500)), max_size=40), st.sampled_from((0, 1, 8)))
async def test_whatever_the_layer_holds_the_estimate_is_what_is_sent(sizes: list[tuple[int, int]], joined: int) -> None:
    nodes = [node(f"n{i:02}", description="ab " * long, summary="cd " * short) for i, (long, short) in enumerate(sizes)]
    links = [
        link(f"n{i:02}", "ENFORCED_BY", f"n{j:02}") for i in range(len(nodes)) for j in range(len(nodes)) if joined > i + j
    ]
    found = await foundation(Graph(nodes, links))
    sent = count(found.model_dump_json())
    assert [one.id for one in found.items] == [one.id for one in nodes]
    assert sent <= 15_000
    assert abs(found.stats.token_estimate - sent) <= 4


@pytest.mark.req("O-012")
async def test_a_node_with_more_relationships_than_an_answer_holds_is_told_with_as_many_as_fit() -> None:
    nodes = [node(f"n{i:03}") for i in range(60)]
    links = [link("n000", f"T{i}", f"n{i % 60:03}") for i in range(1_500)]
    found = await foundation(Graph(nodes, links))
    assert ([one.id for one in found.items], found.truncated, found.next_cursor is None) == (["n000"], True, False)
    assert 0 < len(found.relationships) < 1_500
    assert message_tokens(found) <= 25_000
