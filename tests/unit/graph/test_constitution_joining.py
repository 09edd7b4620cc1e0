"""Relationships of the constitutional graph, held against its registry."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_contracts import Agent, BadRequest, Forbidden
from phronesis_contracts.constitution.registry import LABELS, NODE_LABEL, RELATIONSHIPS, TYPES, Layer, NodeType, declared_types
from phronesis_contracts.constitution.values import WRITERS
from phronesis_contracts.constitution.writes import RegistryRefused, Relate
from phronesis_contracts.twin import QueryRefused
from phronesis_graph.bolt.schema import INDEXES, KEY, constitution_statements
from phronesis_graph.constitution.validation import check_cycle, check_ends, check_relationship_name, check_writer
from phronesis_graph.guard import KNOWLEDGE, KNOWLEDGE_WRITING, Guard, Rules
from phronesis_graph.knowledge.model import allowed_names
from phronesis_graph.settings import Dialect
from phronesis_graph.twin.ontology_file import load
from tests.support.cases import for_each
from tests.support.personas import Persona

kinds = st.sampled_from(list(TYPES.values()))


@pytest.mark.req("O-069", "O-070", "O-071", "O-072", "O-073", "O-074")
@for_each(
    ("source", "name", "target"),
    [
        ("goal", "SUPPORTED_BY", "goal"),
        ("goal", "SUPPORTED_BY", "vision"),
        ("strategy", "SUPPORTED_BY", "initiative"),
        ("insight", "SUPPORTED_BY", "evidence"),
        ("strategy", "SERVES", "goal"),
        ("season", "SERVES", "business"),
        ("strategy", "ALIGNS_WITH", "goal"),
        ("vision", "ALIGNS_WITH", "value"),
        ("observation", "MEASURES", "metric"),
        ("decision", "LEADS_TO", "task"),
        ("decision", "LEADS_TO", "metric"),
        ("value", "ENFORCED_BY", "principle"),
        ("principle", "ENFORCED_BY", "guardrail"),
        ("note", "SPEAKS_OF", "human"),
    ],
)
def test_the_relationships_of_the_seed_are_taken(source: str, name: str, target: str) -> None:
    check_relationship_name(name)
    check_ends(name, TYPES[source], TYPES[target])


@given(st.sampled_from(list(RELATIONSHIPS)), kinds, kinds)
def test_declared_types_join_the_declared_ends_and_no_others(name: str, source: NodeType, target: NodeType) -> None:
    if RELATIONSHIPS[name].joins(source, target):
        check_ends(name, source, target)
    else:
        with pytest.raises(RegistryRefused) as caught:
            check_ends(name, source, target)
        assert caught.value.field == "type"
        assert f"{name} does not lead from a {source.name} to a {target.name}; " in caught.value.detail
        assert all(choice in caught.value.detail for choice in declared_types(source, target))


@pytest.mark.parametrize(
    ("source", "name", "target", "hint"),
    [
        ("goal", "MEASURES", "metric", "MEASURES leads the other way"),
        ("observation", "MEASURES", "goal", "from a observation it leads to metric"),
        ("note", "MEASURES", "value", "it never leads from a note"),
        ("observation", "SERVES", "metric", "MEASURES does"),
    ],
)
def test_a_refusal_names_the_nearest_legal_choice(source: str, name: str, target: str, hint: str) -> None:
    with pytest.raises(RegistryRefused) as caught:
        check_ends(name, TYPES[source], TYPES[target])
    assert hint in caught.value.detail


@pytest.mark.parametrize(
    ("source", "given_", "target", "hint"),
    [
        ("strategy", "SERVE", "goal", "did you mean SERVES?"),
        ("decision", "LEAD_TO", "task", "did you mean LEADS_TO?"),
        ("observation", "SERVE", "metric", "from a observation to a metric lead MEASURES"),
        ("note", "ENFORCE_BY", "human", "no declared one leads from a note to a human"),
    ],
)
def test_a_misspelt_type_is_told_what_the_registry_allows_between_its_ends(
    source: str, given_: str, target: str, hint: str
) -> None:
    with pytest.raises(RegistryRefused) as caught:
        check_ends(given_, TYPES[source], TYPES[target])
    assert f"; {hint}" in caught.value.detail


@given(st.sampled_from([name[:-1] for name in RELATIONSHIPS] + list(RELATIONSHIPS)), kinds, kinds)
def test_no_hint_names_a_relationship_that_is_not_allowed_between_the_ends(
    name: str, source: NodeType, target: NodeType
) -> None:
    try:
        check_ends(name, source, target)
    except RegistryRefused as refused:
        hint = refused.detail.partition("; ")[2]
    else:
        return
    turned = hint.endswith("leads the other way")
    for hinted in set(re.findall(r"[A-Z_]{4,}", hint)):
        ends = (target, source) if turned else (source, target)
        assert RELATIONSHIPS[hinted].joins(*ends), (name, source.name, target.name, hint)


@pytest.mark.req("O-351")
@pytest.mark.parametrize("name", ["X]->() DETACH", "serves", "A-B", "A__B", "_A", "", "A" * 65, "A`B", "SERVES\n"])
def test_a_type_that_is_no_name_in_capitals_never_reaches_a_statement(name: str) -> None:
    with pytest.raises(ValueError, match="type"):
        Relate(from_id="a", to_id="b", type=name)
    with pytest.raises(RegistryRefused):
        check_relationship_name(name)


def test_a_closed_chain_is_named() -> None:
    check_cycle("SERVES", [])
    with pytest.raises(RegistryRefused) as caught:
        check_cycle("SERVES", ["a", "b", "a"])
    assert caught.value.detail.endswith("a -SERVES-> b -SERVES-> a")


@pytest.mark.req("O-013")
@for_each("layer, role", product(Layer, Persona))
def test_a_layer_is_written_by_its_writers_alone(layer: Layer, role: Persona) -> None:
    if role is Persona.ADMIN or Agent(role.value) in WRITERS[layer]:
        check_writer(role.principal, layer)
    else:
        with pytest.raises(Forbidden):
            check_writer(role.principal, layer)


@for_each("label", [NODE_LABEL, *LABELS, "goal", "ODEINODE"])
def test_no_query_tool_reaches_the_constitutional_graph(guard: Guard, label: str) -> None:
    rules = (Rules.READING, KNOWLEDGE, KNOWLEDGE_WRITING)
    for rule in rules:
        for statement in (f"MATCH (n:{label}) RETURN n.name AS name", f"MATCH (n:Product:`{label}`) RETURN n.name AS name"):
            with pytest.raises(QueryRefused):
                guard.check(statement, {}, "acme", rule)
    for statement in (f"CREATE (n:{label} {{name: 'x'}})", f"MATCH (n:Product {{name: 'x'}}) SET n:{label}"):
        with pytest.raises(QueryRefused):
            guard.check(statement, {}, "acme", KNOWLEDGE_WRITING)


@for_each("label", [NODE_LABEL, *LABELS])
def test_an_agent_gives_none_of_its_nodes_a_label_of_the_constitutional_graph(label: str) -> None:
    taken = allowed_names(load())
    for check in (taken.label, taken.type, taken.searched):
        with pytest.raises(BadRequest, match="name of the platform"):
            check(label)
    assert taken.label(f"{label}s") == f"{label}s"


@pytest.mark.req("O-064", "O-077", "O-078", "O-079", "O-080", "O-081", "O-082", "O-083", "C-15")
@pytest.mark.parametrize("dialect", Dialect)
def test_the_schema_is_made_from_the_registry_and_may_be_declared_again(dialect: Dialect) -> None:
    statements = list(constitution_statements(dialect))
    assert {index.name for index in (*INDEXES, KEY)} == {
        *("odei_node_status", "odei_node_layer", "odei_node_type", "odei_node_updated", "odei_node_key"),
        *("task_due_date", "decision_roi"),
    }
    declaring = [one for one in statements if "IF NOT EXISTS" in one]
    # beside them the unique key, the index of a tenant's layer and, on ArcadeDB, the kind of a number
    assert len(declaring) == len(INDEXES) + (3 if dialect is Dialect.ARCADEDB else 2)
    rest = "\n".join(one for one in statements if one not in declaring)
    assert all("DETACH DELETE" in one for one in statements if one not in declaring)
    for name in (*LABELS, *RELATIONSHIPS):
        assert (name in rest) is (dialect is Dialect.ARCADEDB)


def test_no_label_of_the_registry_is_a_name_of_the_twin() -> None:
    ontology = load()
    taken = {name.lower() for name in (*ontology.nodes, *ontology.relationships)}
    assert taken.isdisjoint(label.lower() for label in (NODE_LABEL, *LABELS))
    assert {*LABELS, NODE_LABEL}.isdisjoint(RELATIONSHIPS)
