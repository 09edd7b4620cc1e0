from __future__ import annotations

import re
from contextlib import suppress

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from phronesis_contracts.ontology import OntologyRefused
from phronesis_graph.twin.ontology import LevelRule
from phronesis_graph.twin.ontology_file import MAX_TEXT, parse

SMALL = """name: shipyard
nodes:
  Vessel:
    properties:
      tonnage: {type: number}
  Yard:
relationships:
  BUILT_AT: {from: [Vessel], to: [Yard]}
"""


def refusal(text: str) -> tuple[str | None, str]:
    with pytest.raises(OntologyRefused) as error:
        parse(text)
    return error.value.field, error.value.detail


@pytest.mark.parametrize(
    ("old", "new", "field", "detail"),
    [
        ("number", "integer", "nodes.Vessel.properties.tonnage.type", "line 5: Input should be"),
        ("{type: number}", "{type: number, colour: x}", "nodes.Vessel.properties.tonnage.colour", "line 5: there is no such"),
        ("{type: number}", "{unit: t}", "nodes.Vessel.properties.tonnage.type", "line 5: this is required"),
        ("  Yard:", "  yard:", "nodes.yard", "line 6: this is no name of the right form"),
        ("tonnage", "Tonnage", "nodes.Vessel.properties.Tonnage", "line 5: this is no name of the right form"),
        ("tonnage", "year", "nodes.Vessel.properties.year", "line 5: every node has year"),
        ("tonnage", "name_embedding", "nodes.Vessel.properties.name_embedding", "line 5: names with"),
        ("BUILT_AT", "Built_At", "relationships.Built_At", "line 8: this is no name of the right form"),
        ("BUILT_AT", "MENTIONS", "relationships.MENTIONS", "line 8: MENTIONS is a name of the platform's own"),
        ("to: [Yard]", "to: [Dock]", "relationships.BUILT_AT.to.0", "line 8: there is no node type Dock"),
        ("to: [Yard]", "to: []", "relationships.BUILT_AT.to", "line 8: this is empty"),
        ("  Yard:", "  Project:", "nodes.Project", "line 6: Project is a name of the platform's own"),
        ("  Yard:", "  MemoryBank:", "nodes.MemoryBank", "line 6: MemoryBank is a name of the platform's own"),
        ("  Yard:", "  VESSEL:", "nodes.VESSEL", "line 6: VESSEL and Vessel differ in case alone"),
        ("  Yard:", "  Vessel:", "nodes.Vessel", "line 6: Vessel stands here twice"),
        ("  Yard:", "  Null:", "nodes.Null", "line 6: Null is a name of the platform's own"),
        ("name: shipyard\n", "", "name", "line 1: this is required"),
        ("nodes:", "nodes: &a", "text", "line 2: anchors and aliases"),
        ("number}", "number", "text", "line 6: "),
    ],
)
def test_what_is_at_fault_is_told_with_its_path_and_line(old: str, new: str, field: str, detail: str) -> None:
    found = refusal(SMALL.replace(old, new, 1))
    assert (found[0], found[1][: len(detail)]) == (field, detail)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("{type: number, enum: [a]}", "only a string"),
        ("{type: string, enum: [a, a]}", "twice"),
        ("{type: number, range: [5, 1]}", "a range is two numbers"),
        ("{type: text, range: [1, 5]}", "a range is two numbers"),
        ("{type: string, high_above: 5}", "only a number is high"),
        ("{type: text, most: {en: [longest]}}", "have an order"),
        ("{type: string, enum: [a], values: {b: {en: [x]}}}", "none of the property's values"),
        ("{type: string, words: {english: [a]}}", "no name of the right form"),
        ("{type: string, words: {en: [" + "x" * 200 + "]}}", "at most 120 characters"),
    ],
)
def test_a_property_that_cannot_be_meant_is_refused(body: str, says: str) -> None:
    assert says in refusal(SMALL.replace("{type: number}", body))[1]


def test_words_stay_words_where_yaml_would_make_something_else_of_them() -> None:
    vessel = parse(SMALL.replace("{type: number}", "{type: string, enum: [on, off, no, 007]}")).nodes["Vessel"]
    assert vessel.properties["tonnage"].choices == ("on", "off", "no", "007")


def test_a_relationship_of_types_without_levels_stays_at_their_one_level() -> None:
    assert parse(SMALL).relationships["BUILT_AT"].rule is LevelRule.SAME
    with_levels = SMALL.replace("  Yard:\n", "  Yard: {levels: {L1: yard, L2: dock}}\n")
    assert parse(with_levels).relationships["BUILT_AT"].rule is LevelRule.ANY


def test_a_chain_stays_within_one_level() -> None:
    chain = "chains:\n  Building: {steps: [Vessel, BUILT_AT, Yard]}\n"
    assert list(parse(SMALL + chain).chains) == ["Building"]
    field, detail = refusal(SMALL.replace("[Yard]}", "[Yard], rule: any}") + chain)
    assert field == "chains.Building.steps.1"
    assert "`rule: same`" in detail


@pytest.mark.parametrize("text", ["", "[]", "- a", "nodes", "{", "a: b: c", "name: x\nnodes: 5", "\x00", "name: [" * 50])
def test_what_is_no_ontology_is_refused(text: str) -> None:
    refusal(text)


def test_a_file_that_is_too_large_or_too_deep_is_refused_unread() -> None:
    assert refusal("#" * (MAX_TEXT + 1))[1].startswith("the file has over")
    assert "nested too deeply" in refusal("name: x\nnodes: " + "{a: " * 5_000)[1]


@given(st.text(max_size=70))
def test_a_type_is_taken_by_its_name_alone_and_never_as_a_statement(name: str) -> None:
    text = yaml.safe_dump({"name": "x", "nodes": {name: {}}}, allow_unicode=True)
    try:
        made = parse(text)
    except OntologyRefused:
        return
    assert all(re.fullmatch(r"[A-Z][A-Za-z0-9]{0,62}", each) for each in made.nodes)


@given(st.text(max_size=400))
def test_no_text_breaks_the_reader(text: str) -> None:
    with suppress(OntologyRefused):
        parse(text)
