"""What the statements of surveys, chains and gaps are made of."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_contracts import BadRequest
from phronesis_contracts.twin import Survey
from phronesis_graph.twin.chains import build_walks
from phronesis_graph.twin.entities import NamedNode, score, split_words
from phronesis_graph.twin.ontology import Chain
from phronesis_graph.twin.ontology_file import load
from phronesis_graph.twin.reasoning_store import chain_statements, standing_statement, ties_statement
from phronesis_graph.twin.surveys import survey_statement
from tests.support.cases import for_each

ONTOLOGY = load()
WALKS = build_walks(ONTOLOGY)
TEXTS = [text for of_chain in WALKS.values() for walk in of_chain.values() for text in chain_statements(walk).texts]
_NODE = re.compile(r"\((\w+):")


@pytest.mark.req("N-175")
def test_every_chain_has_a_walk_from_each_place_but_its_last() -> None:
    assert set(WALKS) == set(ONTOLOGY.chains)
    for name, steps in ((each.name, each.steps) for each in ONTOLOGY.chains.values()):
        assert set(WALKS[name]) == set(chain.from_iterable(steps[:-1:2]))
        assert next(iter(WALKS[name])) == steps[0][0]


@for_each("text", TEXTS)
def test_every_node_of_a_walk_is_held_to_tenant_year_and_level(text: str) -> None:
    nodes = set(_NODE.findall(text))
    assert nodes
    for node in nodes:
        assert f"{node}.tenant = $tenant AND {node}.year = " in text
        assert f"{node}.level = " in text
    assert text.endswith("LIMIT $limit")


@for_each("type", ONTOLOGY.nodes)
def test_gap_statements_hold_every_node_to_the_tenant_and_are_limited(type: str) -> None:
    assert "n.tenant = $tenant" in standing_statement(type)
    assert "a.tenant = $tenant AND b.tenant = $tenant" in ties_statement(type)
    assert {text.rsplit(" ", 2)[-2:] == ["LIMIT", "$limit"] for text in (standing_statement(type), ties_statement(type))} == {
        True
    }


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ((("EntityProject", "EntityRisk"), ("RATED",), ("EntityRisk",)), "more than one node type"),
        ((("EntityProject",), ("RATED",), ("EntityRisk",)), "join levels"),
    ],
)
def test_a_chain_that_no_level_can_walk_stops_the_service_at_its_start(steps: Any, says: str) -> None:
    odd = replace(ONTOLOGY, chains=MappingProxyType({"Odd": Chain("Odd", steps)}))
    with pytest.raises(ValueError, match=says):
        build_walks(odd)


_NAMES = st.sampled_from(["EntityProject", "EntityRisk", "rating", "name", "RATED", "DELIVERED_BY", "year", "id"]) | st.text(
    max_size=20
)


@pytest.mark.req("N-129")
@given(
    type=_NAMES,
    property=_NAMES,
    value=st.text(max_size=20),
    via=st.none() | _NAMES,
    to=st.none() | _NAMES,
    group=_NAMES,
    after=st.none() | st.text(max_size=10),
)
def test_nothing_of_a_caller_gets_into_a_survey_but_the_ontologys_names(
    type: str, property: str, value: str, via: str | None, to: str | None, group: str, after: str | None
) -> None:
    """What it takes is a name of the ontology or a parameter; anything else is refused."""
    where = ({"property": property, "value": value, "via": via, "to": to},)
    listed = {"measure": "list", "after": after}
    for more in ({"group_by": ({"property": group, "via": via, "to": to},)}, listed):
        survey = Survey.model_validate({"type": type, "where": where} | more)
        try:
            made = survey_statement(ONTOLOGY, survey)
        except BadRequest:
            continue
        marked = {*ONTOLOGY.nodes, *ONTOLOGY.relationships} | {p for node in ONTOLOGY.nodes.values() for p in node.properties}
        written = set(re.findall(r"[A-Za-z_]\w*", f"{made.rows} {made.total}"))
        own = {
            "n",
            "m",
            "m0",
            "g0",
            "id",
            "name",
            "year",
            "level",
            "quarter",
            "tenant",
            "limit",
            "value",
            "known",
            "nodes",
            "total",
        }
        cypher = {
            *"MATCH WHERE AND OR NOT EXISTS RETURN ORDER BY LIMIT IS NULL OPTIONAL WITH DISTINCT AS CASE WHEN THEN END".split()
        }
        functions = {"count", "toLower"}
        assert written - marked - own - cypher - functions <= {f"v{i}" for i in range(9)} | {"p0"}


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("HIGH speed  rail", 1.0, 1.0),
        ("hsr-1", 1.0, 1.0),
        ("speed rail", 0.6, 0.95),
        ("rail speed", 0.3, 0.6),
        ("what became of high speed rail?", 0.05, 0.3),
        ("what became of high speed railways?", 0.0, 0.0),
        ("roads", 0.0, 0.0),
    ],
)
def test_the_whole_name_scores_most_then_its_parts_then_a_sentence_about_it(text: str, least: float, most: float) -> None:
    named = NamedNode("EntityProject", "HSR-1", "High Speed Rail", 2023, next(iter(ONTOLOGY.nodes["EntityProject"].levels)))
    assert least <= score(text, named) <= most


def test_words_are_few_and_long_enough_to_tell_something() -> None:
    assert split_words("What's missing for the HS2, of it?") == ("what", "missing", "for", "the", "hs2")
    assert len(split_words(" ".join(f"word{i}" for i in range(50)))) == 12
