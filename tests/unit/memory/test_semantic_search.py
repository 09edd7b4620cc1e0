"""Semantic search over scripted vectors: what is found, in which order, and what its figures say."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from phronesis_contracts import BadRequest, Unavailable
from phronesis_contracts.constitution.registry import Layer, Lifecycle
from phronesis_contracts.constitution.search import SEARCH_TOKENS, EmbeddingUnavailable, SemanticSearch
from phronesis_contracts.constitution.values import ConstitutionLink
from phronesis_memory.constitution.semantic import INDEX_FILLING
from phronesis_tokens import count
from tests.support.logs import logged
from tests.unit.memory.fakes_constitution import DIMENSION, Ground, calling, ids


def asked(**more: object) -> SemanticSearch:
    return SemanticSearch.model_validate({"query": "what matters"} | more)


@pytest.mark.req("O-150", "O-151", "O-153", "O-154", "O-426")
@pytest.mark.parametrize(
    "wrong",
    [
        {"query": ""},
        {"query": " \n"},
        {"layers": ["nonsense"]},
        {"topK": 0},
        {"topK": 51},
        {"minSimilarity": -0.1},
        {"minSimilarity": 1.1},
        {"minSimilarty": 0.5},
    ],
)
def test_a_question_that_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        asked(**wrong)


@pytest.mark.req("O-150")
def test_a_question_has_words() -> None:
    with pytest.raises(ValidationError):
        SemanticSearch.model_validate({})


@pytest.mark.req("O-158", "O-154", "O-157")
async def test_the_score_is_the_cosine() -> None:
    ground = Ground()
    for name, cosine in (("same", 1.0), ("like", 0.4), ("other", 0.0)):
        ground.add(name, "value", cosine)
    found = await ground.searching.semantic_search(calling(), asked(minSimilarity=0))
    assert [(one.node.id, round(one.score, 3)) for one in found.results] == [("same", 1.0), ("like", 0.4), ("other", 0.0)]


@pytest.mark.req("O-159", "O-426", "O-254", "C-39")
@pytest.mark.parametrize(
    ("floor", "expected"),
    [(0, 6), (0.39, 5), (0.4, 4), (0.6, 3), (0.8, 2), (1, 1)],
    ids=["none", "0.695 of the seed", "0.7 of the seed", "0.8", "0.9", "1"],
)
async def test_a_score_equal_to_the_floor_stays(floor: float, expected: int) -> None:
    ground = Ground()
    for cosine in (1.0, 0.8, 0.6, 0.4, 0.39, -0.2):
        ground.add(f"node{cosine}", "strategy", cosine)
    found = await ground.searching.semantic_search(calling(), asked(minSimilarity=floor))
    assert len(found.results) == expected


@pytest.mark.req("O-254", "O-154")
async def test_the_default_floor_is_the_seeds_as_a_cosine() -> None:
    ground = Ground()
    for name, cosine in (("a", 0.8), ("b", 0.42), ("c", 0.38)):
        ground.add(name, "strategy", cosine)
    found = await ground.searching.semantic_search(calling(), asked(types=["strategy"]))
    assert ids(found.results) == ["a", "b"]


@pytest.mark.req("O-160", "O-428")
async def test_equals_are_ordered_by_their_last_change_and_then_by_id() -> None:
    ground = Ground()
    later = datetime(2026, 5, 1, tzinfo=UTC)
    ground.add("b", "value", 0.8)
    ground.add("a", "value", 0.8)
    ground.add("c", "value", 0.8, updatedAt=later)
    ground.add("best", "value", 0.9)
    for _ in range(2):
        found = await ground.searching.semantic_search(calling(), asked())
        assert ids(found.results) == ["best", "c", "a", "b"]


@pytest.mark.req("O-151", "O-152", "O-429")
async def test_layers_and_types_are_filters_of_the_index() -> None:
    ground = Ground()
    ground.add("goal", "goal", 0.9)
    ground.add("insight", "insight", 0.8)
    ground.add("value", "value", 0.7)

    async def found(**more: object) -> list[str]:
        return ids((await ground.searching.semantic_search(calling(), asked(**more))).results)

    assert await found() == ["goal", "insight", "value"]
    assert await found(layers=["mind"]) == ["insight"]
    assert await found(types=["GOAL"]) == ["goal"]
    assert await found(layers=["mind"], types=["goal"]) == []
    assert [chosen.layers for chosen, _ in ground.vectors.asked] == [
        frozenset(),
        {Layer.MIND},
        frozenset(),
        {Layer.MIND},
    ]


@pytest.mark.req("O-152")
async def test_a_type_that_there_is_not_is_refused() -> None:
    with pytest.raises(BadRequest, match="goall"):
        await Ground().searching.semantic_search(calling(), asked(types=["goall"]))


@pytest.mark.req("O-156", "C-10")
async def test_an_archived_match_appears_only_where_it_is_asked_for() -> None:
    ground = Ground()
    ground.add("old", "goal", 0.99, status="archived")
    ground.add("new", "goal", 0.5)
    ground.add("open", "task", 0.45, status="in_progress")
    assert ids((await ground.searching.semantic_search(calling(), asked())).results) == ["new", "open"]
    archived = await ground.searching.semantic_search(calling(), asked(status=Lifecycle.ARCHIVED))
    assert ids(archived.results) == ["old"]


@pytest.mark.req("O-153")
async def test_ten_are_told_where_nothing_else_is_said() -> None:
    ground = Ground()
    for place in range(60):
        ground.add(f"n{place:02}", "value", 0.5 + place / 200)
    assert len((await ground.searching.semantic_search(calling(), asked())).results) == 10
    assert len((await ground.searching.semantic_search(calling(), asked(topK=50))).results) == 50


@pytest.mark.req("O-155")
async def test_relationships_stand_only_in_an_answer_that_was_asked_for_them() -> None:
    ground = Ground()
    ground.add("goal", "goal", 0.9)
    ground.add("vision", "vision")
    ground.link(("goal", "SUPPORTED_BY", "vision"))
    plain = await ground.searching.semantic_search(calling(), asked())
    linked = await ground.searching.semantic_search(calling(), asked(includeRelationships=True))
    assert "relationships" not in plain.model_dump(mode="json")["results"][0]
    assert linked.results[0].relationships == (
        ConstitutionLink(id="goal-SUPPORTED_BY-vision", type="SUPPORTED_BY", from_id="goal", to_id="vision"),
    )


@pytest.mark.req("O-161", "O-162")
async def test_the_figures_are_those_of_the_results() -> None:
    ground = Ground()
    ground.add("a", "value", 0.9)
    ground.add("b", "value", 0.7)
    found = await ground.searching.semantic_search(calling(), asked())
    assert found.stats.total_results == 2
    assert found.stats.avg_score == pytest.approx(0.8, abs=1e-6)
    real = count(found.model_dump_json())
    assert found.stats.token_estimate == pytest.approx(real, rel=0.1, abs=60)


@pytest.mark.req("O-162", "C-40")
async def test_nothing_found_has_a_mean_of_zero() -> None:
    found = await Ground().searching.semantic_search(calling(), asked())
    assert (found.results, found.stats.model_dump(by_alias=True)) == (
        (),
        {"totalResults": 0, "avgScore": 0.0, "tokenEstimate": 0},
    )


@pytest.mark.req("O-163", "O-165", "O-353", "C-41")
async def test_vectors_are_told_only_where_the_questions_own_is_asked_for() -> None:
    ground = Ground()
    ground.add("a", "value", 0.9)
    plain = (await ground.searching.semantic_search(calling(), asked())).model_dump(mode="json")
    assert "queryEmbedding" not in plain
    assert "embedding" not in plain["results"][0]["node"]
    opted = await ground.searching.semantic_search(calling(), asked(includeQueryEmbedding=True))
    assert opted.query_embedding is not None
    assert len(opted.query_embedding) == DIMENSION


@pytest.mark.req("O-164", "O-325")
async def test_a_question_is_embedded_once() -> None:
    ground = Ground()
    ground.add("a", "value", 0.9)
    await ground.searching.semantic_search(calling(), asked())
    await ground.searching.semantic_search(calling(), asked(topK=3))
    assert ground.embedder.calls == 1


@pytest.mark.req("O-166")
async def test_a_hit_whose_node_has_gone_is_left_out_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    ground = Ground()
    ground.add("gone", "value", 0.9)
    ground.add("there", "value", 0.8)
    ground.remove("gone")
    with caplog.at_level(logging.INFO, "phronesis_memory.constitution.semantic"):
        found = await ground.searching.semantic_search(calling(), asked(topK=1))
    assert ids(found.results) == ["there"]
    assert [record.getMessage() for record in logged(caplog, "memory")] == ["stale hits of the index: gone"]


@pytest.mark.req("O-168", "O-355")
async def test_a_model_that_is_down_is_told_and_what_is_kept_still_answers() -> None:
    ground = Ground()
    ground.add("a", "value", 0.9)
    await ground.searching.semantic_search(calling(), asked())
    ground.embedder.down = True
    with pytest.raises(EmbeddingUnavailable) as refused:
        await ground.searching.semantic_search(calling(), asked(query="something new"))
    assert (refused.value.status, refused.value.retry_after) == (503, 1)
    assert ids((await ground.searching.semantic_search(calling(), asked(topK=2))).results) == ["a"]


async def test_an_index_that_is_down_is_an_error_and_no_empty_answer() -> None:
    ground = Ground()
    ground.vectors.down = True
    with pytest.raises(Unavailable):
        await ground.searching.semantic_search(calling(), asked())


@pytest.mark.req("O-086")
async def test_types_that_are_never_embedded_are_named() -> None:
    ground = Ground()
    by_type = await ground.searching.semantic_search(calling(), asked(types=["human", "value"]))
    by_layer = await ground.searching.semantic_search(calling(), asked(layers=["track"]))
    everything = await ground.searching.semantic_search(calling(), asked())
    assert by_type.warnings == ("never embedded, and so not found by meaning: human",)
    assert by_layer.warnings == ("never embedded, and so not found by meaning: metric, observation",)
    assert everything.warnings == ()


@pytest.mark.req("O-361")
async def test_an_index_that_is_being_filled_is_told_and_its_answer_is_not_kept() -> None:
    ground = Ground()
    ground.vectors.filling = frozenset({Layer.MIND})
    one = await ground.searching.semantic_search(calling(), asked(layers=["mind"]))
    other = await ground.searching.semantic_search(calling(), asked(layers=["vision"]))
    assert one.warnings == (f"{INDEX_FILLING} (mind): results may be missing",)
    assert other.warnings == ()
    assert not (await ground.searching.semantic_search(calling(), asked(layers=["mind"]))).cached


@pytest.mark.req("O-386")
async def test_a_topic_is_a_filter() -> None:
    ground = Ground()
    ground.add("a", "value", 0.9)
    ground.add("b", "value", 0.8)
    await ground.vectors.assign("acme", {"a": None, "b": "topic-1"})
    assert ids((await ground.searching.semantic_search(calling(), asked(topic="topic-1"))).results) == ["b"]


async def test_strong_consistency_waits_for_the_writes_before_and_reads_no_kept_answer() -> None:
    ground = Ground()
    ground.add("a", "value", 0.9)
    for _ in range(2):
        found = await ground.searching.semantic_search(calling(), asked(consistency="strong"))
        assert not found.cached
    assert ground.vectors.settlings == 2


@pytest.mark.req("O-256", "O-264", "O-288", "O-440")
async def test_what_is_too_long_is_cut_at_the_end_and_said_to_be_cut() -> None:
    ground = Ground()
    for place in range(50):
        ground.add(f"n{place:02}", "strategy", 0.9, description=f"A long story of {place}. " * 60)
    found = await ground.searching.semantic_search(calling(), asked(topK=50))
    assert found.truncated
    assert 10 < len(found.results) < 50
    assert count(found.model_dump_json()) <= SEARCH_TOKENS
    assert ids(found.results) == sorted(ids(found.results))


async def test_one_node_that_is_too_long_is_told_by_its_name() -> None:
    ground = Ground()
    ground.add("huge", "strategy", 0.9, narrative="word and " * 20_000)
    found = await ground.searching.semantic_search(calling(), asked())
    assert found.truncated
    assert [set(one.node.model_dump(exclude_none=True)) for one in found.results] == [
        {"id", "type", "layer", "title", "status"}
    ]


@pytest.mark.req("O-348")
async def test_a_search_tells_no_provenance() -> None:
    ground = Ground()
    ground.add("a", "value", 0.9, provenance={"actor": "ann"}, metadata={"kept": 1})
    [hit] = (await ground.searching.semantic_search(calling(), asked())).results
    assert (hit.node.provenance, hit.node.metadata) == (None, {"kept": 1})


@pytest.mark.req("O-350")
async def test_a_question_that_looks_like_a_statement_is_only_words() -> None:
    ground = Ground()
    ground.add("a", "value", 0.9)
    found = await ground.searching.semantic_search(calling(), asked(query="'; DROP TABLE x; MATCH (n) DETACH DELETE n //"))
    assert ids(found.results) == ["a"]


@pytest.mark.req("O-447", "C-98")
async def test_five_related_values_are_found_without_a_floor() -> None:
    ground = Ground()
    for place in range(6):
        ground.add(f"v{place}", "value", 0.1 * (place + 1))
    found = await ground.searching.semantic_search(
        calling(), asked(query="solo entrepreneurship values", topK=5, minSimilarity=0)
    )
    assert (len(found.results), all(one.score > 0 for one in found.results)) == (5, True)
