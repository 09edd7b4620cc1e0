"""Patterns in planted graphs: what is found, how sure it is, and drafts that are made once."""

from __future__ import annotations

import pytest

from phronesis_contracts.constitution.insight import DetectPatterns
from phronesis_contracts.constitution.writes import GuardrailHit
from phronesis_memory.constitution.contradictions import Contradictions
from phronesis_memory.constitution.evolution import Drift, Duplicates, Evolution
from phronesis_memory.constitution.patterns import Analogies, Patterns, Proposals, high_returns
from phronesis_memory.constitution.search_handlers import ReasoningHandlers
from phronesis_memory.constitution.topics import Topics
from tests.unit.memory.fakes_constitution import Ground, ScriptedHistory, at_cosine, calling
from tests.unit.memory.fakes_nodes import node
from tests.unit.memory.test_topics import KeptTopics

WHO = calling().who


def reasoning(ground: Ground) -> ReasoningHandlers:
    """All handlers on one graph."""
    vectors, graph, history = ground.vectors, ground.graph, ScriptedHistory()
    return ReasoningHandlers(
        Topics(vectors, vectors, graph, KeptTopics()),
        Evolution(history),
        Drift(history, vectors, graph, ground.embedder),
        Patterns(vectors, graph),
        Proposals(vectors, graph),
        Analogies(ground.meaning),
        Contradictions(vectors, graph),
        Duplicates(vectors, history, graph),
    )


@pytest.fixture
def ground() -> Ground:
    """Three like goals that failed, one like them that was achieved, and others."""
    made = Ground()
    for place, cosine in enumerate((0.9, 0.92, 0.94)):
        made.add(f"fail{place}", "goal", cosine, title=f"Launch newsletter number {place}", status="archived")
    made.add("won", "goal", 0.91, title="Launch a podcast", outcome="achieved")
    made.add("open", "goal", 0.93, title="Launch a journal")
    made.add("other", "goal", at_cosine(0.1, 5), title="Plant trees", status="archived")
    return made


@pytest.mark.req("O-391", "O-399")
async def test_three_like_failures_are_one_pattern_that_cites_them(ground: Ground) -> None:
    [pattern] = await Patterns(ground.vectors, ground.graph).detect(WHO, ["recurring_failure"], None)
    assert pattern.ids == ("fail0", "fail1", "fail2")
    assert pattern.against == 1
    assert pattern.confidence == pytest.approx(4 / 6, abs=1e-4)
    assert pattern.title.startswith("Goals that were not reached: ")
    assert "newsletter" in pattern.title


async def test_two_failures_are_no_pattern(ground: Ground) -> None:
    ground.add("fail2", "goal", 0.94, title="Launch newsletter number 2", outcome="reached", status="archived")
    assert await Patterns(ground.vectors, ground.graph).detect(WHO, ["recurring_failure"], None) == []


@pytest.mark.req("O-392")
async def test_like_decisions_with_a_high_return_are_one_pattern() -> None:
    ground = Ground()
    for place in range(3):
        ground.add(f"high{place}", "decision", 0.9 + place / 100, roi={"total": 8 + place}, title="Pilot first")
    ground.add("far", "decision", at_cosine(0.0, 6), roi={"total": 9})
    for place in range(9):
        ground.add(f"low{place}", "decision", at_cosine(0.2, 3 + place), roi={"total": 1})
    ground.add("unknown", "decision", 0.92)
    for least in (None, 8.0):
        [pattern] = await Patterns(ground.vectors, ground.graph).detect(WHO, ["high_roi_decision"], least)
        assert (pattern.ids, pattern.against, pattern.confidence) == (("high0", "high1", "high2"), 0, 0.8)


def test_a_high_return_is_in_the_upper_quarter_and_above_zero() -> None:
    def returns(*totals: float) -> dict[str, bool]:
        return high_returns(
            {str(place): node(str(place), "decision", roi={"total": total}) for place, total in enumerate(totals)}, None
        )

    assert [id for id, is_high in returns(1, 2, 3, 4, 5).items() if is_high] == ["3", "4"]
    assert [id for id, is_high in returns(-5, -4, -3, -2).items() if is_high] == []
    assert high_returns({"a": node("a", "decision")}, None) == {}


@pytest.mark.req("O-393")
async def test_like_strategies_of_achieved_goals_are_one_archetype() -> None:
    ground = Ground()
    for place in range(3):
        ground.add(f"goal{place}", "goal", outcome="achieved", status="archived")
        ground.add(f"pilot{place}", "strategy", 0.9 + place / 100, title="Pilot with one partner")
        ground.link((f"pilot{place}", "SERVES" if place else "ALIGNS_WITH", f"goal{place}"))
    ground.add("lost", "goal", outcome="not reached")
    ground.add("push", "strategy", 0.91, title="Push everywhere at once")
    ground.add("loose", "strategy", 0.92, title="For nothing yet")
    ground.link(("push", "SERVES", "lost"))
    [pattern] = await Patterns(ground.vectors, ground.graph).detect(WHO, ["strategy_archetype"], None)
    assert (pattern.ids, pattern.against) == (("pilot0", "pilot1", "pilot2"), 1)


@pytest.mark.req("O-394")
async def test_a_pattern_becomes_a_draft_with_its_evidence(ground: Ground) -> None:
    told = await reasoning(ground).detect_patterns(calling(), DetectPatterns(propose=True))
    assert told.proposed == 1
    [pattern] = told.patterns
    draft = ground.graph.nodes_by_id[pattern.node_id or ""]
    assert (draft.type, draft.layer, draft.metadata) == (
        "pattern",
        "mind",
        {"draft": True, "patternKind": "recurring_failure", "cites": ["fail0", "fail1", "fail2"]},
    )
    assert (draft.model_extra or {})["confidence"] == pattern.confidence
    [evidence] = [end for start, name, end in ground.graph.links if (start, name) == (draft.id, "SUPPORTED_BY")]
    assert ground.graph.nodes_by_id[evidence].type == "evidence"
    cited = {end for start, name, end in ground.graph.links if (start, name) == (evidence, "CITES")}
    assert cited == {"fail0", "fail1", "fail2"}


@pytest.mark.req("O-394")
async def test_nothing_is_proposed_unless_that_is_asked_for(ground: Ground) -> None:
    told = await reasoning(ground).detect_patterns(calling(), DetectPatterns())
    assert (told.proposed, told.patterns[0].node_id) == (0, None)
    assert {"create", "relate"} & set(ground.graph.asked) == set()


@pytest.mark.req("O-394")
async def test_a_second_run_makes_no_second_draft(ground: Ground) -> None:
    first = await reasoning(ground).detect_patterns(calling(), DetectPatterns(propose=True))
    nodes, links = len(ground.graph.nodes_by_id), len(ground.graph.links)
    again = await reasoning(ground).detect_patterns(calling(), DetectPatterns(propose=True))
    assert [one.node_id for one in again.patterns] == [one.node_id for one in first.patterns]
    assert (len(ground.graph.nodes_by_id), len(ground.graph.links)) == (nodes, links)


@pytest.mark.req("O-394")
async def test_a_pattern_that_grew_or_that_somebody_archived_is_not_proposed_again(ground: Ground) -> None:
    told = await reasoning(ground).detect_patterns(calling(), DetectPatterns(propose=True))
    id = told.patterns[0].node_id or ""
    draft = ground.graph.nodes_by_id[id]
    ground.graph.nodes_by_id[id] = draft.model_copy(update={"status": "archived"})
    ground.vectors.kept[id] = at_cosine(0.9)
    ground.add("fail3", "goal", 0.95, title="Launch newsletter number 3", status="archived")
    again = await reasoning(ground).detect_patterns(calling(), DetectPatterns(propose=True))
    assert (again.proposed, again.patterns[0].node_id, len(again.patterns[0].nodes)) == (0, id, 4)


async def test_a_draft_that_somebody_deleted_does_not_come_back(ground: Ground) -> None:
    told = await reasoning(ground).detect_patterns(calling(), DetectPatterns(propose=True))
    del ground.graph.nodes_by_id[told.patterns[0].node_id or ""]
    again = await reasoning(ground).detect_patterns(calling(), DetectPatterns(propose=True))
    assert (again.proposed, again.patterns[0].node_id) == (0, None)


async def test_a_guardrail_may_be_against_a_proposal(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_: object) -> None:
        raise GuardrailHit("no patterns of goals")

    monkeypatch.setattr(ground.graph, "create", refused)
    told = await reasoning(ground).detect_patterns(calling(), DetectPatterns(propose=True))
    assert (told.proposed, [one.node_id for one in told.patterns]) == (0, [None])


async def test_an_empty_graph_has_no_patterns() -> None:
    assert (await reasoning(Ground()).detect_patterns(calling(), DetectPatterns(propose=True))).patterns == ()
