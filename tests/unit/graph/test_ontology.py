from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import yaml

from phronesis_contracts.ontology import OntologyRefused
from phronesis_contracts.twin import Level
from phronesis_graph.twin.ontology import Kind, LevelRule
from phronesis_graph.twin.ontology_file import load, packaged_text, parse


def content() -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(packaged_text())
    return data


def refused(data: dict[str, Any]) -> tuple[str | None, str]:
    with pytest.raises(OntologyRefused) as error:
        parse(yaml.safe_dump(data, allow_unicode=True, sort_keys=False))
    return error.value.field, error.value.detail.partition(": ")[2]


@pytest.mark.req("NC-080")
def test_it_has_17_node_types_27_relationships_and_7_chains() -> None:
    ontology = load()
    rules = Counter(relationship.rule for relationship in ontology.relationships.values())
    assert (len(ontology.nodes), len(ontology.chains)) == (17, 7)
    assert rules == {LevelRule.SAME: 27, LevelRule.ANY: 2, LevelRule.DOWN: 1}


def test_every_node_type_gives_each_level_a_meaning() -> None:
    assert {tuple(node.levels) for node in load().nodes.values()} == {(Level.L1, Level.L2, Level.L3)}


def test_a_risk_score_has_a_range_and_a_value_above_which_it_is_high() -> None:
    score = load().nodes["EntityRisk"].properties["risk_score"]
    assert (score.kind, score.lowest, score.highest, score.high_above) == (Kind.NUMBER, 1, 10, 7)


def test_the_texts_of_a_project_are_the_departments_own_words_and_the_published_facts() -> None:
    texts = load().nodes["EntityProject"].texts
    assert set(texts) == {"aims", "facts", "rating_comment", "schedule_comment", "budget_comment"}


def test_the_hierarchy_joins_nodes_of_one_type_only() -> None:
    parent_of = load().relationships["PARENT_OF"]
    assert parent_of.joins("EntityRisk", "EntityRisk")
    assert not parent_of.joins("EntityRisk", "EntityProject")


def test_a_chain_has_alternatives() -> None:
    assert load().chains["Risk_Build_Mode"].steps == (
        ("EntityCapability",),
        ("MONITORED_BY",),
        ("EntityRisk",),
        ("INFORMS",),
        ("SectorPolicyTool",),
    )
    assert load().chains["SectorOps"].steps[6] == ("SectorBusiness", "SectorGovEntity", "SectorCitizen")


def test_a_chain_that_cannot_be_walked_is_refused_at_load() -> None:
    data = content()
    data["chains"]["Risk_Build_Mode"]["steps"] = ["EntityCapability", "MONITORED_BY", "SectorCitizen"]
    assert refused(data) == ("chains.Risk_Build_Mode.steps.2", "the step before does not lead to SectorCitizen")


def test_a_relationship_to_an_unknown_type_is_refused_at_load() -> None:
    data = content()
    data["relationships"]["APPLY"]["to"] = ["Nothing"]
    assert refused(data) == ("relationships.APPLY.to.0", "there is no node type Nothing")


def test_a_property_with_the_name_of_a_common_one_is_refused_at_load() -> None:
    data = content()
    data["nodes"]["EntityVendor"]["properties"] = {"tenant": {"type": "string"}}
    assert refused(data) == ("nodes.EntityVendor.properties.tenant", "every node has tenant, so that no type declares it")


def test_a_relationship_with_the_name_of_a_node_type_is_refused_at_load() -> None:
    data = content()
    data["nodes"]["APPLY"] = None
    assert refused(data) == ("relationships.APPLY", "APPLY is the name of a node type too")
