"""The rule sets of the curator's query_graph."""

from __future__ import annotations

import pytest

from phronesis_contracts.twin import QueryRefused
from phronesis_graph.guard import KNOWLEDGE, KNOWLEDGE_WRITING, Guard, Rules
from tests.guard.corpus import VALUES, knowledge
from tests.support.cases import for_each


def curated(verdict: str, rules: Rules) -> list[str]:
    return [each.text for each in knowledge() if (each.rule, each.rules) == (verdict, rules.value)]


def dangerous(guard: Guard, statement: str) -> str | None:
    return guard.check(statement, VALUES, "acme", KNOWLEDGE_WRITING).dangerous


def refusal(guard: Guard, statement: str, rules: Rules) -> str:
    with pytest.raises(QueryRefused) as refused:
        guard.check(statement, VALUES, "acme", rules)
    return refused.value.detail


@pytest.mark.req("K-030", "XC-003", "XC-004", "K-044")
@pytest.mark.parametrize("statement", curated("passed", Rules.KNOWLEDGE))
def test_the_curator_reads_any_label_that_is_not_hidden(guard: Guard, statement: str) -> None:
    assert guard.check(statement, VALUES, "acme", KNOWLEDGE).parameters["phronesis_tenant"] == "acme"


@pytest.mark.req("K-031", "K-032", "KC-008", "XC-005")
@pytest.mark.parametrize(
    "statement",
    ["create(n:Product)", "MATCH (n:Product) DELETE\nn", "MATCH (n:Product) set/**/n.a = 1", "MATCH (n:Product) REMOVE n.a"],
)
def test_a_reading_question_of_the_curator_writes_nothing(guard: Guard, statement: str) -> None:
    assert " writing: this tool is read-only" in refusal(guard, statement, KNOWLEDGE)


@pytest.mark.req("K-033")
@for_each("statement", curated("passed", Rules.KNOWLEDGE_WRITING))
def test_a_change_of_nodes_that_are_picked_needs_no_second_look(guard: Guard, statement: str) -> None:
    assert dangerous(guard, statement) is None


@pytest.mark.req("K-036")
@for_each("statement", curated("dangerous", Rules.KNOWLEDGE_WRITING))
def test_a_change_that_is_over_broad_wants_a_second_look(guard: Guard, statement: str) -> None:
    assert "that the pattern finds" in (dangerous(guard, statement) or "")


@pytest.mark.req("K-036")
def test_everything_cannot_be_deleted_at_once(guard: Guard) -> None:
    assert " label: " in refusal(guard, "MATCH (n) DETACH DELETE n", KNOWLEDGE_WRITING)


@pytest.mark.req("XC-006")
@pytest.mark.parametrize("rules", [KNOWLEDGE, KNOWLEDGE_WRITING])
@pytest.mark.parametrize(
    "label", ["Memory", "MemoryUnit", "Concept", "PlatformNews", "PlatformWrite", "PlatformLock", "memories"]
)
def test_hidden_labels_are_hidden_from_the_curator(guard: Guard, rules: Rules, label: str) -> None:
    hidden = label != "memories"
    if hidden:
        assert " label: " in refusal(guard, f"MATCH (n:{label}) RETURN n", rules)
    else:
        assert guard.check(f"MATCH (n:{label}) RETURN n", {}, "acme", rules)


@pytest.mark.req("K-091")
@pytest.mark.parametrize("label", ["`X) DETACH DELETE (n`", "`A B`", "`a-b`", "_a", "`" + "x" * 65 + "`"])
def test_a_label_is_an_identifier(guard: Guard, label: str) -> None:
    assert " label: " in refusal(guard, f"MATCH (n:{label}) RETURN n", KNOWLEDGE)
