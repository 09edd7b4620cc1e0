"""What lists tell, and what they leave out."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from pydantic import ValidationError

from phronesis_bus import Metrics
from phronesis_contracts import BadRequest, Message, NotFound
from phronesis_contracts.constitution.lists import GetAll, GetConstitutionNode, ListFoundation, ListLayer, ListVision
from phronesis_contracts.constitution.registry import Layer
from phronesis_graph.constitution.layers import AnswerCache, WholeLayers
from phronesis_graph.constitution.lists import LIST_SECONDS, ListHandlers, ListMeasures, WholeLayerHandlers
from tests.support.bus import somebody
from tests.support.listed import call, link, node, words
from tests.support.logs import logged
from tests.unit.graph.fakes_lists import Graph

BAGS: dict[str, Any] = {"properties": {"a": 1}, "metadata": {"b": 2}, "provenance": {"actor": "c"}}
COMMON = {"id", "type", "layer", "title", "summary", "description", "status", "createdAt", "updatedAt"}


def lists(graph: Graph, metrics: Metrics | None = None) -> ListHandlers:
    return ListHandlers(graph, ListMeasures(metrics or Metrics()))


async def foundation(graph: Graph, **question: Any) -> dict[str, dict[str, Any]]:
    listing = WholeLayerHandlers(WholeLayers(graph), AnswerCache(), ListMeasures(Metrics()))
    found = await listing.foundation(call(somebody()), ListFoundation(**question))
    return {item["id"]: item for item in found.model_dump(mode="json")["items"]}


async def vision(graph: Graph, **question: Any) -> dict[str, dict[str, Any]]:
    listing = WholeLayerHandlers(WholeLayers(graph), AnswerCache(), ListMeasures(Metrics()))
    found = await listing.vision(call(somebody()), ListVision(**question))
    return {item["id"]: item for item in found.model_dump(mode="json")["items"]}


@pytest.mark.req("O-123", "O-126", "O-128", "O-330", "O-372", "O-423", "C-31")
async def test_the_foundation_has_the_fields_of_its_contract_and_no_others() -> None:
    graph = Graph([node("v", summary="s", description="d", statement="t", priority=5, **BAGS), node("w")])
    found = await foundation(graph)
    assert (set(found["v"]), set(found["w"])) == (COMMON, COMMON - {"summary", "description"})


@pytest.mark.req("O-123")
async def test_who_excludes_nothing_gets_everything_that_is_stored() -> None:
    graph = Graph([node("v", summary="s", description="d", statement="t", priority=5, **BAGS)])
    found = await foundation(graph, exclude_fields=())
    assert set(found["v"]) == COMMON | {"properties", "metadata", "provenance", "statement", "priority"}


@pytest.mark.req("O-129")
async def test_what_names_a_node_cannot_be_excluded() -> None:
    graph = Graph([node("v", summary="s"), node("g", "goal")])
    everything = ("id", "type", "layer", "title", *COMMON, "properties", "metadata", "provenance", "nonsense")
    assert set((await foundation(graph, exclude_fields=everything))["v"]) == {"id", "type", "layer", "title"}
    assert set((await vision(graph, exclude_fields=everything))["g"]) == {"id", "type", "layer", "title"}


@pytest.mark.req("O-127", "C-30")
async def test_a_description_is_told_of_values_principles_and_guardrails_alone() -> None:
    kinds = ("value", "principle", "guardrail", "human", "ai", "policy", "context")
    graph = Graph([node(kind, kind, summary="s", description="d") for kind in kinds])
    found = await foundation(graph)
    assert {id for id, one in found.items() if "description" in one} == {"value", "principle", "guardrail"}
    wider = await foundation(graph, description_types=("POLICY", "ai"))
    assert {id for id, one in wider.items() if "description" in one} == {"policy", "ai"}
    assert {id for id, one in (await foundation(graph, description_types=())).items() if "description" in one} == set()


@pytest.mark.req("C-91")
async def test_a_type_without_its_description_has_its_beginning_where_it_has_no_summary() -> None:
    long = words(200)
    found = await foundation(Graph([node("p", "policy", description=long), node("q", "policy", description="short")]))
    assert "description" not in found["p"]
    assert long.startswith(found["p"]["summary"].removesuffix("…"))
    assert (found["p"]["summary"][-1], len(found["p"]["summary"]) < 500, found["q"]["summary"]) == ("…", True, "short")


@pytest.mark.req("O-141", "C-33")
async def test_the_vision_has_the_fields_of_its_contract_and_no_others() -> None:
    whole: dict[str, Any] = {
        "summary": "s",
        "description": "d",
        "horizon": "2030",
        "deadline": "2030-01-01",
        "target": "t",
        "narrative": "n",
    }
    found = await vision(Graph([node("g", "goal", **whole, **BAGS), node("v", "vision")]))
    assert found["g"] == {
        "id": "g",
        "type": "goal",
        "layer": "vision",
        "title": "The g",
        "summary": "s",
        "horizon": "2030",
        "deadline": "2030-01-01",
        "target": "t",
        "status": "active",
    }
    assert set(found["v"]) == {"id", "type", "layer", "title", "status"}


@pytest.mark.req("O-138", "C-33")
async def test_an_own_list_of_exclusions_overrides_the_visions() -> None:
    found = await vision(Graph([node("g", "goal", description="d", narrative="n", **BAGS)]), exclude_fields=("metadata",))
    assert {"description", "narrative", "properties", "provenance"} <= set(found["g"])
    assert "metadata" not in found["g"]


@pytest.mark.req("O-139", "O-142", "O-143", "O-144", "O-146", "O-373", "O-424", "C-35", "C-36")
async def test_active_parents_of_whatever_layer_stand_inline_and_an_orphan_has_none() -> None:
    nodes = [node("goal", "goal"), node("orphan", "vision"), node("vision", "vision"), node("season", "season"), node("value")]
    links = [
        link("goal", "SUPPORTED_BY", "value"),
        link("goal", "SERVES", "vision"),
        link("goal", "ALIGNS_WITH", "season"),
        link("goal", "SUPPORTED_BY", "gone"),
        link("goal", "MENTIONS", "orphan"),
    ]
    graph = Graph([*nodes, node("gone", status="archived")], links)
    found = await vision(graph)
    assert found["goal"]["parents"] == [
        {"id": "value", "type": "value", "title": "The value", "relationship": "SUPPORTED_BY"},
        {"id": "vision", "type": "vision", "title": "The vision", "relationship": "SERVES"},
        {"id": "season", "type": "season", "title": "The season", "relationship": "ALIGNS_WITH"},
    ]
    assert [id for id, one in found.items() if "parents" in one] == ["goal"]
    assert [id for id, one in (await vision(graph, include_hierarchy=False)).items() if "parents" in one] == []


@pytest.mark.req("O-132", "O-133", "O-137", "O-147", "O-328", "O-372", "C-32")
async def test_figures_say_what_a_list_came_to() -> None:
    graph = Graph([node("a"), node("b"), node("p", "principle"), node("g", "goal")], [link("a", "ENFORCED_BY", "p")])
    listing, who = WholeLayerHandlers(WholeLayers(graph), AnswerCache(), ListMeasures(Metrics())), somebody()
    found = await listing.foundation(call(who), ListFoundation())
    without = await listing.foundation(call(who), ListFoundation(include_relationships=False))
    goals = await listing.vision(call(who), ListVision())
    empty = await listing.foundation(call(who), ListFoundation(status="deprecated"))
    assert (found.stats.total_nodes, found.stats.by_type) == (3, {"value": 2, "principle": 1})
    assert (goals.stats.total_nodes, goals.stats.by_type) == (1, {"goal": 1})
    assert found.stats.token_estimate > without.stats.token_estimate > goals.stats.token_estimate > 0
    assert (empty.items, empty.relationships, empty.stats.total_nodes, empty.stats.by_type) == ((), (), 0, {})
    assert empty.stats.token_estimate < 60


@pytest.mark.req("O-103", "C-25", "C-26")
async def test_the_first_version_tells_whole_records_of_every_status() -> None:
    kept = [node("a", statement="t", **BAGS), node("b", status="archived")]
    found = await lists(Graph([*kept, node("g", "goal")])).layer(Layer.FOUNDATION, call(somebody()), ListLayer())
    assert found.items == tuple(kept)


@pytest.mark.req("O-102", "O-105", "C-25")
async def test_the_first_version_is_narrowed_by_type_and_status() -> None:
    nodes = [node("o", "observation", value=1.5), node("m", "metric"), node("p", "observation", status="archived")]
    listing, who = lists(Graph(nodes)), somebody()
    found = await listing.layer(Layer.TRACK, call(who), ListLayer(types=("Observation",), status="active"))
    assert [one.id for one in found.items] == ["o"]
    with pytest.raises(BadRequest, match="vision layer") as caught:
        await listing.layer(Layer.TRACK, call(who), ListLayer(types=("metric", "goal")))
    assert caught.value.field == "types.1"


@pytest.mark.req("O-118", "C-27")
async def test_the_whole_graph_leaves_heavy_fields_out_and_is_narrowed() -> None:
    nodes = [node("a", description="d", summary="s", statement="t", **BAGS), node("g", "goal"), node("z", status="archived")]
    links = [link("g", "SERVES", "a"), link("a", "ENFORCED_BY", "z")]
    listing, who = lists(Graph(nodes, links)), somebody()
    found = await listing.get_all(call(who), GetAll())
    told = COMMON - {"description"} | {"version"}
    assert [set(one.model_dump()) for one in found.nodes] == [told, told - {"summary"}]
    assert [one.id for one in found.relationships] == ["g-SERVES-a"]
    narrow = await listing.get_all(call(who), GetAll(layers=(Layer.VISION,), types=("GOAL",)))
    assert ([one.id for one in narrow.nodes], narrow.relationships) == (["g"], ())
    whole = await listing.get_all(call(who), GetAll(exclude_fields=()))
    assert whole.nodes[0] == nodes[0]


@pytest.mark.req("O-101", "C-24")
async def test_one_node_is_told_in_full_with_its_relationships_if_wanted() -> None:
    whole = node("a", statement="t", description="d", **BAGS)
    links = [link("a", "ENFORCED_BY", "b"), link("g", "SERVES", "a"), link("g", "SERVES", "b")]
    listing, who = lists(Graph([whole, node("b"), node("g", "goal")], links)), somebody()
    alone = await listing.node(call(who), GetConstitutionNode(id="a"))
    assert (alone.node, alone.relationships, alone.truncated) == (whole, (), False)
    among = await listing.node(call(who), GetConstitutionNode(id="a", include_relationships=True))
    assert [one.id for one in among.relationships] == ["a-ENFORCED_BY-b", "g-SERVES-a"]
    with pytest.raises(NotFound) as caught:
        await listing.node(call(who), GetConstitutionNode(id="x"))
    assert caught.value.field == "id"


@pytest.mark.req("O-012", "O-101")
async def test_a_node_with_too_many_relationships_says_that_some_are_left_out() -> None:
    nodes = [node(f"n{i:03}") for i in range(900)]
    links = [link("n000", "ENFORCED_BY", f"n{i:03}") for i in range(1, 900)]
    found = await lists(Graph(nodes, links)).node(call(somebody()), GetConstitutionNode(id="n000", include_relationships=True))
    assert (found.truncated, 100 < len(found.relationships) < 899) == (True, True)


@pytest.mark.req("O-335", "O-364", "O-404")
async def test_every_list_leaves_a_line_and_figures(caplog: pytest.LogCaptureFixture) -> None:
    graph, metrics, who = Graph([node("a"), node("g", "goal")]), Metrics(), somebody()
    listing, essentials = lists(graph, metrics), WholeLayerHandlers(WholeLayers(graph), AnswerCache(), ListMeasures(metrics))
    with caplog.at_level(logging.INFO, "phronesis_graph.constitution.lists"):
        first = await listing.layer(Layer.FOUNDATION, call(who), ListLayer())
        await listing.get_all(call(who), GetAll())
        for _ in range(2):
            await essentials.foundation(call(who), ListFoundation())
        await essentials.vision(call(who), ListVision())
        with pytest.raises(BadRequest):
            await listing.layer(Layer.MIND, call(who), ListLayer(types=("goal",)))
    lines: list[Any] = list(logged(caplog, "graph"))
    assert [(line.tool, line.outcome, line.nodes, line.cached) for line in lines] == [
        ("foundation.list.v1", "ok", 1, False),
        ("graph.getAll.v1", "ok", 2, False),
        ("foundation.list.v2", "ok", 1, False),
        ("foundation.list.v2", "ok", 1, True),
        ("vision.list.v2", "ok", 1, False),
        ("mind.list.v1", "bad_request", 0, False),
    ]
    assert lines[2].arguments == lines[3].arguments != lines[4].arguments
    assert (lines[0].tokens, lines[0].milliseconds > 0) == (first.stats.token_estimate, True)
    read = metrics.registry.get_sample_value
    assert [read(f"{LIST_SECONDS.name}_count", {"tool": "foundation.list.v2", "cached": how}) for how in ("no", "yes")] == [
        1,
        1,
    ]


@pytest.mark.req("O-125", "O-140", "C-34")
@pytest.mark.parametrize("question", [ListFoundation, ListVision, GetAll, ListLayer])
def test_a_status_that_there_is_not_is_refused(question: type[Message]) -> None:
    with pytest.raises(ValidationError):
        question.model_validate({"status": "asleep"})
