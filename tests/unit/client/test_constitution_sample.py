"""The sample constitution: what it holds, that the registry takes it, and what its questions are answered with."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

import pytest

from phronesis.constitution.files import Unreadable, read
from phronesis_contracts.constitution.registry import TYPES, Layer
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_contracts.constitution.writes import LoadNode
from phronesis_graph.constitution.guardrails import Rule, RuleCache, Subject, rule_of_node, subject_of
from phronesis_graph.constitution.validation import check_ends, check_relationship_name, find_type, merge_content, node_fields
from phronesis_samples.institute import sample

TODAY = date(2026, 11, 23)
SAMPLE = sample(TODAY)
NODES = {node.id: node for node in SAMPLE.nodes}
LINKS = [(link.from_id, link.type, link.to_id) for link in SAMPLE.relationships]


def of_type(type: str) -> list[LoadNode]:
    """The nodes of a type."""
    return [node for node in SAMPLE.nodes if node.type == type]


def said(node: LoadNode, name: str) -> object:
    """What a node says in a typed property."""
    return (node.model_extra or {}).get(name)


def guardrails() -> list[Rule]:
    """The sample's rules, as the graph service reads them."""
    nodes = [node.model_dump(by_alias=True, exclude_none=True) for node in of_type("guardrail")]
    found = [rule_of_node(ConstitutionNode.model_validate({**node, "layer": Layer.FOUNDATION})) for node in nodes]
    return [one for one in found if one is not None]


class NoSource:
    async def read(self, tenant: str) -> Sequence[ConstitutionNode]:
        return ()


RULING = RuleCache(NoSource())


def broken_by(of: Subject) -> list[str]:
    """The sample's rules that a node goes against."""
    return [hit.rule.id for hit in asyncio.run(RULING.find_hits("acme", guardrails(), of))]


def above(id: str, without: str | None = None) -> set[str]:
    """All that a node comes to by what it serves, aligns with or rests on, and by what enforces a value."""
    found: set[str] = set()
    edge = {id}
    while edge:
        up = {to for source, name, to in LINKS if source in edge and name in ("SERVES", "ALIGNS_WITH", "SUPPORTED_BY")}
        up |= {source for source, name, to in LINKS if to in edge and name == "ENFORCED_BY"}
        edge = up - found - {without or ""}
        found |= edge
    return found


def test_the_sample_has_45_nodes_in_all_seven_layers_and_names_nobody() -> None:
    assert len(NODES) == len(SAMPLE.nodes) == 45
    assert {TYPES[node.type].layer for node in SAMPLE.nodes} == set(Layer)
    assert [human.title for human in of_type("human")] == ["The director"]


def test_the_registry_takes_every_node_and_every_relationship() -> None:
    for node in SAMPLE.nodes:
        kind = find_type(node.type)
        content = merge_content(kind, {}, node_fields(node.model_dump(by_alias=True, exclude_none=True)))
        assert content["title"] == node.title
        assert set(content.get("properties", {})) == set(node.properties or {}), node.id
    for source, name, target in LINKS:
        check_relationship_name(name)
        check_ends(name, find_type(NODES[source].type), find_type(NODES[target].type))


def test_days_are_moved_to_today_so_that_there_is_work_due_this_week_and_room_for_a_little_more() -> None:
    week = [(TODAY + timedelta(days=day)).isoformat() for day in range(8)]
    due = [task for task in of_type("task") if task.status != "done" and said(task, "dueDate") in week]
    assert sum(float(str(said(task, "effortHours"))) for task in due) == 31
    assert {TODAY.isoformat() >= str(said(seen, "observedAt"))[:10] for seen in of_type("observation")} == {True}


def test_a_goal_stands_on_a_ladder_to_a_vision() -> None:
    ladder = ["goal-open-sediment"]
    while up := [
        to for source, name, to in LINKS if (source, name) == (ladder[-1], "SUPPORTED_BY") and NODES[to].type != "value"
    ]:
        ladder += up
    assert ladder == ["goal-open-sediment", "goal-trusted-record", "vision-living-shore"]


def test_decisions_of_one_kind_paid_off_differently_and_led_somewhere() -> None:
    returns = {node.id: said(node, "roi") for node in of_type("decision")}
    assert returns == {
        "decision-borrow-corer": {"total": 3.4},
        "decision-rent-boat": {"total": 1.6},
        "decision-buy-drone": {"total": -0.7},
        "decision-release-early": {"total": 4.2},
    }
    assert {target for source, name, target in LINKS if name == "LEADS_TO" and source in returns} == {
        "task-train-volunteers",
        "metric-readings-public",
    }


def test_without_one_principle_something_stands_for_nothing() -> None:
    values = {node.id for node in SAMPLE.nodes if node.type in ("value", "vision")}
    standing = {node.id for node in SAMPLE.nodes if above(node.id) & values}
    orphaned = {id for id in standing if not above(id, without="principle-raw-first") & values} - {"principle-raw-first"}
    assert orphaned == {"process-two-readers", "policy-ninety-days"}


def test_two_goals_contradict_each_other() -> None:
    assert [link for link in LINKS if link[1] == "CONTRADICTS"] == [
        ("goal-more-field-days", "CONTRADICTS", "goal-fewer-field-days")
    ]


@pytest.mark.parametrize(
    ("type", "fields", "broken"),
    [
        ("task", {"title": "Core all banks", "effortHours": 40.0}, ["guardrail-long-task"]),
        ("decision", {"title": "Publish the map with the residents' addresses"}, ["guardrail-personal-data"]),
        ("task", {"title": "Ring the county archive", "effortHours": 2.0}, []),
    ],
)
def test_guardrails_say_when_they_are_broken(type: str, fields: dict[str, object], broken: list[str]) -> None:
    assert broken_by(subject_of(type, fields)) == broken


@pytest.mark.verify
def test_nothing_of_the_sample_breaks_its_own_guardrails() -> None:
    broken = {
        node.id: found
        for node in SAMPLE.nodes
        if node.type != "guardrail"
        and (found := broken_by(subject_of(node.type, node.model_dump(by_alias=True, exclude_none=True))))
    }
    assert (len(guardrails()), broken) == (2, {})


def test_a_metric_has_observations_and_an_insight_has_evidence() -> None:
    assert [said(seen, "value") for seen in of_type("observation")] == [41, 68, 93]
    measured = [target for _, name, target in LINKS if name == "MEASURES"]
    assert measured.count("metric-readings-public") == 3
    assert ("insight-borrowed-tools", "SUPPORTED_BY", "evidence-usage-log") in LINKS


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("nodes: [", "neither YAML nor JSON"),
        ("name: x", "no list `nodes`"),
        ("nodes: [1]", "node 1 is no mapping"),
        ("nodes: [{id: a, title: t}]", "node 1 (a), type: Field required"),
        ("nodes: []\nrelationships: ['a b']", "relationship 1 is not of the form"),
        ("nodes: []\nrelationships: ['a serves b']", "relationship 1 (a serves b)"),
    ],
)
def test_a_file_that_holds_no_constitution_says_where(text: str, where: str, tmp_path: Path) -> None:
    file = tmp_path / "file.yaml"
    file.write_text(text)
    with pytest.raises(Unreadable) as refused:
        read(file)
    assert where in str(refused.value)


def test_a_file_without_a_day_keeps_its_days(tmp_path: Path) -> None:
    file = tmp_path / "file.yaml"
    file.write_text("nodes: [{id: a, type: task, title: t, dueDate: 2020-02-03}]")
    assert said(read(file, TODAY).nodes[0], "dueDate") == "2020-02-03"
