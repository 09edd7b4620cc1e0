"""Hybrid search over scripted vectors and a scripted graph: numeric cases, paths, and what is left when a half fails."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from phronesis_contracts import BadRequest, NotFound, ServiceError, Unavailable
from phronesis_contracts.constitution.paths import Step
from phronesis_contracts.constitution.search import HybridSearch
from tests.unit.memory.fakes_constitution import Ground, at_cosine, calling, flushed, ids


def asked(**more: object) -> HybridSearch:
    return HybridSearch.model_validate({"query": "what serves it", "anchorNodeId": "goal"} | more)


@pytest.fixture
def ground() -> Ground:
    """A goal with a chain of three strategies, and some that nothing joins to it."""
    made = Ground()
    made.add("goal", "goal", 0.95)
    made.add("one", "strategy", 0.9)
    made.add("two", "strategy", 0.5)
    made.add("three", "strategy", 0.4)
    made.add("apart", "strategy", 0.9)
    made.link(("one", "SERVES", "goal"), ("two", "SERVES", "one"), ("three", "SERVES", "two"))
    return made


@pytest.mark.req("O-169", "O-171", "O-172", "O-173", "O-174", "O-175", "C-46")
@pytest.mark.parametrize(
    "wrong",
    [{"query": ""}, {"structuralWeight": 1.1}, {"semanticWeight": -0.1}, {"maxDepth": 0}, {"maxDepth": 6}, {"topK": 51}],
)
def test_a_question_that_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        asked(**wrong)


@pytest.mark.req("O-178", "O-179", "O-176", "O-427", "C-43")
async def test_the_final_score_is_the_weighed_sum(ground: Ground) -> None:
    ground.add("mute", "strategy")
    ground.link(("mute", "SERVES", "goal"))
    found = await ground.searching.hybrid_search(calling(), asked())
    figures = {one.node.id: (one.structural_score, one.semantic_score, one.final_score) for one in found.results}
    assert figures == {
        "one": (1.0, pytest.approx(0.9), pytest.approx(0.96)),
        "two": (0.5, pytest.approx(0.5), pytest.approx(0.5)),
        "mute": (1.0, 0.0, 0.6),
        "apart": (0.0, pytest.approx(0.9), pytest.approx(0.36)),
        "three": (0.0, pytest.approx(0.4), pytest.approx(0.16)),
    }


@pytest.mark.req("O-178", "O-255", "C-42")
async def test_a_node_that_both_halves_find_is_one_result(ground: Ground) -> None:
    found = await ground.searching.hybrid_search(calling(), asked())
    assert sorted(ids(found.results)) == ["apart", "one", "three", "two"]


@pytest.mark.req("O-259")
async def test_the_project_that_is_joined_to_an_initiative_comes_before_those_that_only_sound_like_it() -> None:
    ground = Ground()
    ground.add("initiative", "initiative", 0.9)
    ground.add("joined", "project", 0.5)
    ground.add("alike", "project", 0.9)
    ground.add("strategy", "strategy", 0.9)
    ground.link(("joined", "SUPPORTED_BY", "initiative"), ("initiative", "SERVES", "strategy"))
    of = asked(query="which projects support it", anchorNodeId="initiative", types=["project"])
    assert ids((await ground.searching.hybrid_search(calling(), of)).results) == ["joined", "alike"]


@pytest.mark.req("O-173", "O-179")
async def test_depth_says_how_far_structure_counts(ground: Ground) -> None:
    near = await ground.searching.hybrid_search(calling(), asked())
    far = await ground.searching.hybrid_search(calling(), asked(maxDepth=3))
    assert {one.node.id: one.structural_score for one in near.results}["three"] == 0
    assert {one.node.id: one.structural_score for one in far.results}["three"] == pytest.approx(1 / 3)


@pytest.mark.req("O-177")
async def test_a_path_has_a_step_for_each_hop_and_ends_at_the_result(ground: Ground) -> None:
    found = {one.node.id: one for one in (await ground.searching.hybrid_search(calling(), asked())).results}
    assert found["two"].path == (
        Step(node_id="one", type="strategy", title="one", relationship="SERVES", direction="in"),
        Step(node_id="two", type="strategy", title="two", relationship="SERVES", direction="in"),
    )
    assert found["apart"].path is None
    assert "path" not in found["apart"].model_dump(mode="json")


@pytest.mark.req("O-170")
async def test_an_anchor_that_there_is_not_is_an_error(ground: Ground) -> None:
    with pytest.raises(NotFound):
        await ground.searching.hybrid_search(calling(), asked(anchorNodeId="nobody"))


@pytest.mark.req("O-181", "O-170", "C-44")
async def test_without_an_anchor_meaning_alone_ranks(ground: Ground) -> None:
    found = await ground.searching.hybrid_search(calling(), asked(anchorNodeId=None))
    assert ids(found.results) == ["goal", "apart", "one", "two", "three"]
    assert [one.structural_score for one in found.results] == [0.0] * 5
    assert found.results[0].final_score == pytest.approx(0.4 * 0.95)
    assert all(one.path is None for one in found.results)


@pytest.mark.req("O-175", "O-180")
async def test_the_floor_is_for_what_nothing_joins_to_the_anchor() -> None:
    ground = Ground()
    ground.add("goal", "goal")
    ground.add("linked", "strategy", 0.2)
    ground.add("above", "strategy", 0.32)
    ground.add("at", "strategy", 0.3)
    ground.add("below", "strategy", 0.28)
    ground.link(("linked", "SERVES", "goal"))
    found = await ground.searching.hybrid_search(calling(), asked())
    assert [(one.node.id, round(one.semantic_score, 2)) for one in found.results] == [
        ("linked", 0.2),
        ("above", 0.32),
        ("at", 0.3),
    ]


@pytest.mark.req("O-182", "C-45")
async def test_weights_are_divided_by_their_sum(ground: Ground) -> None:
    found = await ground.searching.hybrid_search(calling(), asked(structuralWeight=1, semanticWeight=1))
    assert found.results[0].final_score == pytest.approx(0.95)
    assert all(0 <= one.final_score <= 1 for one in found.results)


@pytest.mark.req("O-182", "C-45")
async def test_both_weights_at_zero_are_refused(ground: Ground) -> None:
    with pytest.raises(BadRequest):
        await ground.searching.hybrid_search(calling(), asked(structuralWeight=0, semanticWeight=0))


@pytest.mark.req("O-183")
async def test_an_archived_node_breaks_the_path_and_is_no_result(ground: Ground) -> None:
    ground.add("one", "strategy", 0.9, status="archived")
    found = await ground.searching.hybrid_search(calling(), asked())
    assert {one.node.id: one.structural_score for one in found.results} == {"apart": 0.0, "two": 0.0, "three": 0.0}


@pytest.mark.req("O-184", "O-257", "C-46")
async def test_types_and_layers_restrict_both_halves(ground: Ground) -> None:
    ground.add("project", "project", 0.6)
    ground.add("area", "area", 0.5)
    ground.add("vision", "vision", 0.9)
    ground.link(("goal", "SERVES", "vision"), ("project", "SERVES", "goal"))
    strategies = await ground.searching.hybrid_search(calling(), asked(types=["strategy"]))
    tactics = await ground.searching.hybrid_search(calling(), asked(layers=["tactics"], topK=15))
    assert {one.node.type for one in strategies.results} == {"strategy"}
    assert ids(tactics.results) == ["project", "area"]


@pytest.mark.req("O-185", "O-428")
async def test_equals_are_ordered_as_in_a_semantic_search() -> None:
    ground = Ground()
    ground.add("goal", "goal")
    ground.add("b", "strategy", 0.5)
    ground.add("a", "strategy", 0.5)
    ground.add("c", "strategy", 0.5, updatedAt=datetime(2026, 6, 1, tzinfo=UTC))
    for _ in range(2):
        assert ids((await ground.searching.hybrid_search(calling(), asked())).results) == ["c", "a", "b"]


@pytest.mark.req("O-186")
async def test_the_figures_are_means_of_the_results(ground: Ground) -> None:
    found = await ground.searching.hybrid_search(calling(), asked(types=["strategy"], topK=2))
    assert found.stats.total_results == 2
    assert found.stats.avg_structural_score == pytest.approx(0.75)
    assert found.stats.avg_semantic_score == pytest.approx(0.7)
    assert found.stats.token_estimate > 0
    nothing = await Ground().searching.hybrid_search(calling(), asked(anchorNodeId=None))
    assert set(nothing.stats.model_dump().values()) == {0}


@pytest.mark.req("O-174", "O-255")
async def test_ten_of_many_are_told_each_once() -> None:
    ground = Ground()
    ground.add("goal", "goal")
    for place in range(8):
        ground.add(f"linked{place}", "strategy", 0.5)
        ground.link((f"linked{place}", "SERVES", "goal"))
    for place in range(20):
        ground.add(f"like{place:02}", "strategy", 0.7 + place / 100)
    found = await ground.searching.hybrid_search(calling(), asked())
    assert (len(found.results), len(set(ids(found.results)))) == (10, 10)
    assert ids(found.results)[8:] == ["like19", "like18"]


@pytest.mark.req("O-188")
@pytest.mark.parametrize("down", ["model", "index"])
async def test_structure_alone_answers_where_meaning_is_down(ground: Ground, down: str) -> None:
    ground.embedder.down, ground.vectors.down = down == "model", down == "index"
    found = await ground.searching.hybrid_search(calling(), asked())
    assert [(one.node.id, one.semantic_score, one.final_score) for one in found.results] == [
        ("one", 0.0, 0.6),
        ("two", 0.0, 0.3),
    ]
    assert found.degraded == ("semantic",)
    with pytest.raises(ServiceError) as failed:
        await ground.searching.hybrid_search(calling(), asked(anchorNodeId=None))
    assert failed.value.status == 503
    ground.embedder.down = ground.vectors.down = False
    again = await ground.searching.hybrid_search(calling(), asked())
    assert (again.degraded, again.cached) == ((), False)


@pytest.mark.req("O-188")
async def test_meaning_alone_answers_where_walks_are_down(ground: Ground) -> None:
    ground.graph.near_down = True
    found = await ground.searching.hybrid_search(calling(), asked())
    assert ids(found.results) == ["apart", "one", "two", "three"]
    assert found.degraded == ("structural",)


async def test_without_the_graph_there_is_no_answer(ground: Ground) -> None:
    ground.graph.down = True
    with pytest.raises(Unavailable):
        await ground.searching.hybrid_search(calling(), asked())


@pytest.mark.req("O-171", "O-172", "O-096")
async def test_the_log_tells_the_defaults_that_were_used(ground: Ground) -> None:
    await ground.searching.hybrid_search(calling(), asked())
    [row] = await flushed(ground)
    told = {name: row.arguments[name] for name in ("structuralWeight", "semanticWeight", "maxDepth", "topK", "minSimilarity")}
    assert told == {"structuralWeight": 0.6, "semanticWeight": 0.4, "maxDepth": 2, "topK": 10, "minSimilarity": 0.3}


async def test_words_in_common_order_the_best_anew_where_that_is_asked_for() -> None:
    ground = Ground()
    ground.add("near", "strategy", 0.62, title="Something else entirely")
    ground.add("worded", "strategy", 0.60, title="Weekly newsletter for partners")
    question = {"query": "newsletter for partners", "anchorNodeId": None}
    plain = await ground.searching.hybrid_search(calling(), asked(**question))
    ordered = await ground.searching.hybrid_search(calling(), asked(**question, rerank=True))
    assert (ids(plain.results), ids(ordered.results)) == (["near", "worded"], ["worded", "near"])
    assert {one.node.id: one.final_score for one in plain.results} == {one.node.id: one.final_score for one in ordered.results}


@pytest.mark.req("O-386")
async def test_a_topic_restricts_both_halves(ground: Ground) -> None:
    await ground.vectors.assign("acme", {"two": "topic-1", "apart": "topic-1"})
    found = await ground.searching.hybrid_search(calling(), asked(topic="topic-1"))
    assert ids(found.results) == ["two", "apart"]


@pytest.mark.req("O-176")
async def test_results_are_whole_nodes_without_their_provenance() -> None:
    ground = Ground()
    ground.add("goal", "goal")
    ground.add("linked", "strategy", 0.5, description="All of it.", provenance={"actor": "ann"})
    ground.add("gone", "strategy", 0.9)
    ground.link(("linked", "SERVES", "goal"))
    ground.remove("gone")
    [hit] = (await ground.searching.hybrid_search(calling(), asked(topK=1))).results
    assert (hit.node.id, hit.node.description, hit.node.provenance) == ("linked", "All of it.", None)


async def test_what_has_gone_gives_its_place_to_the_next() -> None:
    ground = Ground()
    for name, cosine in (("gone", 0.9), ("there", 0.8), ("worse", 0.7)):
        ground.add(name, "strategy", cosine)
    ground.remove("gone")
    found = await ground.searching.hybrid_search(calling(), asked(anchorNodeId=None, topK=1))
    assert ids(found.results) == ["there"]


async def test_a_negative_cosine_counts_as_none() -> None:
    ground = Ground()
    ground.add("goal", "goal")
    ground.add("linked", "strategy", -at_cosine(0.5))
    ground.link(("linked", "SERVES", "goal"))
    [hit] = (await ground.searching.hybrid_search(calling(), asked())).results
    assert (hit.semantic_score, hit.final_score) == (0.0, 0.6)
