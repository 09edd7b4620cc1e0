"""Insights, precedents, and the goal that is spoken of, over scripted vectors."""

from __future__ import annotations

import pytest

from phronesis_contracts import BadRequest
from phronesis_contracts.constitution.search import (
    SEARCH_TOKENS,
    EmbeddingUnavailable,
    GoalSearch,
    InsightSearch,
    NoSuchGoal,
    PrecedentSearch,
    SemanticSearch,
)
from phronesis_contracts.constitution.values import Mention
from phronesis_tokens import count
from tests.unit.memory.fakes_constitution import Ground, calling, flushed, ids


def insights(**more: object) -> InsightSearch:
    return InsightSearch.model_validate({"query": "what did we learn"} | more)


def precedents(**more: object) -> PrecedentSearch:
    return PrecedentSearch.model_validate({"query": "shall we hire"} | more)


@pytest.mark.req("O-271", "O-439", "C-67")
async def test_insights_are_sure_and_near_enough() -> None:
    ground = Ground()
    ground.add("sure", "insight", 0.8, confidence=0.6)
    ground.add("unsure", "insight", 0.9, confidence=0.59)
    ground.add("far", "pattern", 0.38, confidence=0.9)
    ground.add("at", "pattern", 0.4, confidence=0.7)
    ground.add("old", "insight", 0.9, confidence=0.9, status="archived")
    ground.add("note", "note", 0.9, confidence=0.9)
    ground.add("silent", "insight", 0.9)
    found = await ground.searching.insight_search(calling(), insights())
    assert ids(found.results) == ["at", "sure"]


@pytest.mark.req("O-272")
async def test_the_surest_insight_comes_before_the_nearest() -> None:
    ground = Ground()
    ground.add("near", "insight", 0.9, confidence=0.8)
    ground.add("sure", "insight", 0.5, confidence=0.9)
    ground.add("nearer", "insight", 0.6, confidence=0.9)
    found = await ground.searching.insight_search(calling(), insights())
    assert ids(found.results) == ["nearer", "sure", "near"]


@pytest.mark.req("O-271")
async def test_of_many_insights_the_ten_nearest_that_are_sure_are_told() -> None:
    ground = Ground()
    for place in range(30):
        ground.add(f"i{place:02}", "insight", 0.5 + place / 100, confidence=0.9 if place % 2 else 0.1)
    found = await ground.searching.insight_search(calling(), insights())
    assert ids(found.results) == [f"i{place:02}" for place in range(29, 9, -2)]


@pytest.mark.req("O-273")
async def test_each_insight_has_its_evidence() -> None:
    ground = Ground()
    ground.add("i", "insight", 0.9, confidence=0.9)
    ground.add("bare", "insight", 0.8, confidence=0.8)
    ground.add("e1", "evidence", title="A survey")
    ground.add("e2", "evidence", title="A trial")
    ground.add("d", "decision")
    ground.link(("i", "SUPPORTED_BY", "e1"), ("i", "SUPPORTED_BY", "e2"), ("i", "LEADS_TO", "d"))
    found = await ground.searching.insight_search(calling(), insights())
    assert [[one.id for one in result.linked] for result in found.results] == [["e1", "e2"], []]


@pytest.mark.req("O-274", "O-440", "C-66")
async def test_insights_stay_within_their_tokens_and_say_when_they_are_many() -> None:
    ground = Ground()
    for place in range(10):
        ground.add(f"i{place}", "insight", 0.9, confidence=0.9, description="Long words of experience. " * 270)
    found = await ground.searching.insight_search(calling(), insights())
    assert 12_000 < found.stats.token_estimate <= SEARCH_TOKENS
    assert count(found.model_dump_json()) <= SEARCH_TOKENS
    assert found.warnings == ("over the usual 12000 tokens",)


@pytest.mark.req("O-281", "O-438", "O-446", "C-69", "C-70", "C-71")
async def test_precedents_are_near_enough_and_pay_enough() -> None:
    ground = Ground()
    ground.add("best", "decision", 0.3, roi={"total": 5})
    ground.add("at", "decision", 0.2, roi={"total": 2})
    ground.add("poor", "decision", 0.9, roi={"total": 1})
    ground.add("far", "decision", 0.18, roi={"total": 9})
    ground.add("unknown", "decision", 0.9)
    ground.add("task", "task", 0.9)
    ground.add("old", "decision", 0.9, roi={"total": 9}, status="archived")
    found = await ground.searching.precedent_search(calling(), precedents(minRoi=2))
    assert ids(found.results) == ["best", "at"]
    assert ground.vectors.asked[-1][0].types == {"decision"}


@pytest.mark.req("O-281", "O-290", "C-13", "C-71")
async def test_decisions_are_ordered_by_return_then_likeness_and_those_without_one_come_last() -> None:
    ground = Ground()
    ground.add("none", "decision", 0.95)
    ground.add("loss", "decision", 0.9, roi={"total": -2})
    ground.add("less like", "decision", 0.5, roi={"total": 3})
    ground.add("like", "decision", 0.8, roi={"total": 3})
    found = await ground.searching.precedent_search(calling(), precedents())
    assert ids(found.results) == ["like", "less like", "loss", "none"]
    told = found.results[0].model_dump(mode="json")["node"]["roi"]
    assert told == {"total": 3}


@pytest.mark.req("O-281")
async def test_the_least_return_starves_no_search() -> None:
    ground = Ground()
    for place in range(40):
        ground.add(f"poor{place}", "decision", 0.9, roi={"total": 0})
    ground.add("rich", "decision", 0.5, roi={"total": 7})
    found = await ground.searching.precedent_search(calling(), precedents(minRoi=5))
    assert ids(found.results) == ["rich"]


@pytest.mark.req("O-284", "C-70")
@pytest.mark.parametrize("start", ["2026-03-01", "2026-03-01T00:00:00+00:00", "2026-03-01T02:00:00+02:00"])
async def test_decisions_before_the_start_are_left_out(start: str) -> None:
    ground = Ground()
    ground.add("before", "decision", 0.9, decidedAt="2026-02-28")
    ground.add("that day", "decision", 0.8, decidedAt="2026-03-01")
    ground.add("after", "decision", 0.7, decidedAt="2026-03-01T09:30:00.000000Z")
    ground.add("undated", "decision", 0.9)
    found = await ground.searching.precedent_search(calling(), precedents(startDate=start))
    assert ids(found.results) == ["that day", "after"]


async def test_a_start_that_is_no_date_is_refused() -> None:
    with pytest.raises(BadRequest) as refused:
        await Ground().searching.precedent_search(calling(), precedents(startDate="next week"))
    assert refused.value.field == "startDate"


@pytest.mark.req("O-282")
async def test_each_precedent_has_its_outcomes() -> None:
    ground = Ground()
    ground.add("d", "decision", 0.9)
    ground.add("done", "task", status="done")
    ground.add("open", "task", status="todo")
    ground.add("metric", "metric")
    for end in ("done", "open", "metric"):
        ground.link(("d", "LEADS_TO", end))
    [result] = (await ground.searching.precedent_search(calling(), precedents())).results
    assert result.linked == (
        Mention(id="done", type="task", title="done", status="done", relationship="LEADS_TO"),
        Mention(id="metric", type="metric", title="metric", status="active", relationship="LEADS_TO"),
    )


@pytest.mark.req("O-283")
async def test_ten_decisions_with_their_outcomes_stay_within_their_tokens() -> None:
    ground = Ground()
    for place in range(30):
        ground.add(f"d{place}", "decision", 0.9, reasoning="We weighed it with care. " * 300, roi={"total": place})
    found = await ground.searching.precedent_search(calling(), precedents(limit=30))
    assert found.truncated
    assert count(found.model_dump_json()) <= SEARCH_TOKENS


@pytest.mark.req("O-263")
async def test_execution_is_searched_by_its_own_floor() -> None:
    ground = Ground()
    ground.add("above", "task", 0.32, status="done")
    ground.add("below", "action", 0.28)
    asked = SemanticSearch(query="x", types=("decision", "task", "action"), min_similarity=0.3, top_k=15)
    assert ids((await ground.searching.semantic_search(calling(), asked)).results) == ["above"]


@pytest.mark.req("O-285", "O-286", "O-437", "O-445")
async def test_a_goal_is_found_by_its_words_and_its_strategies_around_it() -> None:
    ground = Ground()
    ground.add("goal", "goal", 0.7, title="Double the revenue of the first quarter")
    ground.add("vision", "vision", 0.9)
    ground.add("linked", "strategy", 0.5)
    ground.add("like", "strategy", 0.5)
    ground.add("task", "task", 0.9)
    ground.link(("linked", "SERVES", "goal"), ("goal", "SUPPORTED_BY", "vision"))
    found = await ground.searching.goal_search(calling(), GoalSearch(query="which strategies support my revenue goal"))
    assert found.goal.id == "goal"
    assert found.goal_score == pytest.approx(0.7)
    assert ids(found.found.results) == ["linked", "like"]
    assert [one.final_score for one in found.found.results] == pytest.approx([0.8, 0.2])
    assert [step.node_id for step in found.found.results[0].path or ()] == ["linked"]
    assert ground.embedder.calls == 1
    [row] = await flushed(ground)
    assert (row.tool, row.id, row.nodes) == ("goal.search.v1", found.found.retrieval_id, 2)


@pytest.mark.req("O-286", "O-366")
async def test_the_goals_search_has_the_tenants_weights() -> None:
    ground = Ground()
    ground.add("goal", "goal", 0.9)
    ground.add("linked", "strategy", 0.5)
    ground.link(("linked", "SERVES", "goal"))
    ground.kept.values = {"hybrid.structuralWeight": 0.2, "hybrid.semanticWeight": 0.8}
    found = await ground.searching.goal_search(calling(), GoalSearch(query="x"))
    assert found.found.results[0].final_score == pytest.approx(0.2 + 0.8 * 0.5)


@pytest.mark.req("O-287")
async def test_a_goal_that_is_not_near_enough_ends_the_search() -> None:
    ground = Ground()
    ground.add("goal", "goal", 0.58)
    with pytest.raises(NoSuchGoal, match="no goal matches"):
        await ground.searching.goal_search(calling(), GoalSearch(query="something else"))
    assert "near" not in ground.graph.asked
    assert [row.outcome for row in await flushed(ground)] == ["memory.no_such_goal"]


async def test_a_goal_cannot_be_looked_for_without_the_model() -> None:
    ground = Ground()
    ground.embedder.down = True
    with pytest.raises(EmbeddingUnavailable):
        await ground.searching.goal_search(calling(), GoalSearch(query="x"))
