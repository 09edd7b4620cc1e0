"""Contradictions, duplicates and analogies in planted graphs."""

from __future__ import annotations

import pytest

from phronesis_contracts import NotFound
from phronesis_contracts.constitution.registry import Layer
from phronesis_memory.constitution.contradictions import Contradictions
from phronesis_memory.constitution.evolution import Duplicates
from phronesis_memory.constitution.patterns import Analogies, GoalOutcome, outcome_of_goal
from phronesis_memory.constitution.ports import Pair
from tests.support.cases import for_each
from tests.unit.memory.fakes_constitution import Ground, ScriptedHistory, at_cosine, calling, ids, pair_ids
from tests.unit.memory.fakes_nodes import node

WHO = calling().who
TYPES = frozenset({"principle", "value", "guardrail", "goal"})


@pytest.fixture
def ground() -> Ground:
    """Two principles that oppose each other, one that agrees, and one that speaks of something else."""
    made = Ground()
    made.add("open", "principle", at_cosine(0.95), title="Always publish our data openly")
    made.add("shut", "principle", at_cosine(0.9), title="Never publish our data openly")
    made.add("near", "principle", at_cosine(0.92), title="Publish data with its description")
    made.add("far", "principle", at_cosine(0.0, 5), title="Never publish our data openly, in another sense")
    made.add("task", "task", at_cosine(0.95), title="Never publish our data openly")
    return made


@pytest.mark.req("O-398", "O-399")
async def test_a_planted_contradiction_is_told_with_its_reason_and_no_consistent_pair(ground: Ground) -> None:
    pairs, compared = await Contradictions(ground.vectors, ground.graph).find(WHO, TYPES, 20)
    [pair] = pairs
    assert (pair.one.id, pair.other.id, compared) == ("open", "shut", 4)
    assert pair.because == "“Always publish our data openly” against “Never publish our data openly”"
    assert 0.9 < pair.score <= 1


@pytest.mark.req("O-398")
async def test_what_is_stated_comes_first_and_once(ground: Ground) -> None:
    ground.add("rest", "value", at_cosine(0.1, 7), title="Rest well")
    ground.link(("rest", "CONTRADICTS", "near"), ("near", "CONTRADICTS", "rest"))
    pairs, _ = await Contradictions(ground.vectors, ground.graph).find(WHO, TYPES, 20)
    assert [(pair.one.id, pair.other.id) for pair in pairs] == [("near", "rest"), ("open", "shut")]
    assert pairs[0].because == "stated (CONTRADICTS)"


async def test_archived_nodes_contradict_nobody(ground: Ground) -> None:
    ground.add("shut", "principle", at_cosine(0.9), title="Never publish our data openly", status="archived")
    assert await Contradictions(ground.vectors, ground.graph).find(WHO, TYPES, 20) == ([], 3)


async def test_finding_contradictions_changes_nothing(ground: Ground) -> None:
    before = dict(ground.graph.nodes_by_id)
    await Contradictions(ground.vectors, ground.graph).find(WHO, TYPES, 20)
    assert ground.graph.nodes_by_id == before
    assert {"create", "relate"} & set(ground.graph.asked) == set()


@pytest.mark.req("O-413")
async def test_near_duplicates_are_pairs_of_one_type() -> None:
    ground, history = Ground(), ScriptedHistory()
    ground.add("a", "value", 1.0)
    ground.add("b", "value", 0.99)
    ground.add("c", "goal", 0.99)
    ground.add("d", "value", 0.7)
    history.noted.append(Pair("a", "b", "value", Layer.FOUNDATION, 0.99))
    found = Duplicates(ground.vectors, history, ground.graph)
    assert pair_ids(await found.find(WHO, 0.9, frozenset(), 50)) == [("a", "b")]
    assert pair_ids(await found.find(WHO, 0.75, frozenset(), 50)) == [("a", "b"), ("b", "d")]
    assert pair_ids(await found.find(WHO, 0.5, frozenset(), 1)) == [("a", "b")]
    assert await found.find(WHO, 0.9, frozenset({Layer.MIND}), 50) == []


@for_each(
    ("fields", "how"),
    [
        ({"outcome": "Achieved in March, two weeks early"}, GoalOutcome.ACHIEVED),
        ({"outcome": "reached", "status": "archived"}, GoalOutcome.ACHIEVED),
        ({"metadata": {"outcome": "success"}, "status": "archived"}, GoalOutcome.ACHIEVED),
        ({"outcome": "Not achieved: the grant was refused"}, GoalOutcome.FAILED),
        ({"outcome": "It was never really reached"}, GoalOutcome.FAILED),
        ({"outcome": "We missed it by a quarter"}, GoalOutcome.FAILED),
        ({"outcome": "abandoned"}, GoalOutcome.FAILED),
        ({"outcome": "We didn't succeed"}, GoalOutcome.FAILED),
        ({"status": "archived"}, GoalOutcome.FAILED),
        ({"status": "deprecated"}, GoalOutcome.FAILED),
        ({}, GoalOutcome.OPEN),
        ({"outcome": "still under way"}, GoalOutcome.OPEN),
    ],
)
def test_how_a_goal_ended_is_read_from_what_it_says(fields: dict[str, object], how: GoalOutcome) -> None:
    assert outcome_of_goal(node("g", "goal", **fields)) is how


@pytest.mark.req("O-397", "O-399")
async def test_the_analogous_achieved_goal_comes_first_with_what_was_done_for_it() -> None:
    ground = Ground()
    ground.add("new", "goal", 1.0, title="Win ten partners abroad")
    ground.add("alike", "goal", 0.9, title="Win five partners", status="archived", outcome="Achieved")
    ground.add("other", "goal", 0.3, title="Balance the books", outcome="achieved", status="archived")
    ground.add("failed", "goal", 0.95, title="Win two sponsors", status="archived", outcome="not reached")
    ground.add("open", "goal", 0.97, title="Win readers")
    ground.add("s1", "strategy", 0.1, status="archived", title="Visit them")
    ground.add("s2", "strategy", 0.1, title="Write to them")
    ground.link(("s1", "SERVES", "alike"), ("s2", "ALIGNS_WITH", "alike"), ("s2", "SERVES", "open"))
    found = await Analogies(ground.meaning).find(WHO, "new", 5)
    assert [(one.node.id, [(s.id, s.status, s.relationship) for s in one.strategies]) for one in found] == [
        ("alike", [("s1", "archived", "SERVES"), ("s2", "active", "ALIGNS_WITH")]),
        ("other", []),
    ]
    assert ids(await Analogies(ground.meaning).find(WHO, "new", 1)) == ["alike"]


async def test_a_goal_without_a_vector_has_no_analogies() -> None:
    with pytest.raises(NotFound):
        await Analogies(Ground().meaning).find(WHO, "nobody", 5)
