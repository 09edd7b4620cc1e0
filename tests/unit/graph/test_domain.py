from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from phronesis_contracts import BadRequest
from phronesis_contracts.twin import Level, NodeRef, Upsert, UpsertNode
from phronesis_graph.twin.ontology import Kind, LevelRule, Property, check_value, suggest_nearest
from phronesis_graph.twin.ontology_file import load
from phronesis_graph.twin.upserts import Stored, check_levels, plan_batch
from tests.support.cases import for_each
from tests.support.graph import joined, node, ref

ONTOLOGY = load()
TYPES = st.sampled_from(sorted(ONTOLOGY.nodes))
LEVELS = st.sampled_from(list(Level))


def refusal(batch: Upsert, stored: dict[str, Stored] | None = None) -> tuple[str | None, str]:
    with pytest.raises(BadRequest) as caught:
        check_levels(ONTOLOGY, plan_batch(ONTOLOGY, "acme", batch), stored or {})
    return caught.value.field, caught.value.detail


@for_each(
    ("batch", "field", "detail"),
    [
        (Upsert(nodes=(node("a", type="EntityProjct"),)), "nodes.0.type", "no such node type; the nearest is EntityProject"),
        (
            Upsert(nodes=(node("a"), node("b", ratng="Red"))),
            "nodes.1.properties.ratng",
            "EntityProject has no such property; the nearest is rating",
        ),
        (
            Upsert(nodes=(node("a", rating="red"),)),
            "nodes.0.properties.rating",
            "no such choice; the nearest is Red",
        ),
        (
            Upsert(nodes=(node("a", type="EntityRisk", risk_score=11),)),
            "nodes.0.properties.risk_score",
            "the range is 1 to 10; the nearest is 10",
        ),
        (Upsert(nodes=(node("a", budget=True),)), "nodes.0.properties.budget", "a number is needed"),
        (Upsert(nodes=(node("a", budget="5"),)), "nodes.0.properties.budget", "a number is needed"),
        (Upsert(nodes=(node("a", budget=float("nan")),)), "nodes.0.properties.budget", "a finite number is needed"),
        (Upsert(nodes=(node("a", budget=10**400),)), "nodes.0.properties.budget", "the number is too great"),
        (Upsert(nodes=(node("a", start_date="2023-02-30"),)), "nodes.0.properties.start_date", "there is no such day"),
        (Upsert(nodes=(node("a", aims=5),)), "nodes.0.properties.aims", "text is needed"),
        (Upsert(nodes=(node("a", aims="x" * 20_001),)), "nodes.0.properties.aims", "the text is over 20000 characters"),
        (Upsert(nodes=(node("a"), node("a", "L1"))), "nodes.1", "the batch holds this node twice"),
        (
            Upsert(relationships=(joined("RATD", ref("a"), ref("a", "EntityRisk")),)),
            "relationships.0.type",
            "no such relationship type; the nearest is RATED",
        ),
        (
            Upsert(relationships=(joined("RATED", ref("a"), ref("b", "EntityVendor")),)),
            "relationships.0.target.type",
            "RATED cannot end there; the nearest is EntityRisk",
        ),
        (
            Upsert(relationships=(joined("PARENT_OF", ref("a"), ref("b", "EntityRisk")),)),
            "relationships.0.target.type",
            "PARENT_OF joins nodes of one type",
        ),
        (
            Upsert(nodes=(node("a"),), relationships=(joined("RATED", ref("a"), ref("b", "EntityRisk")),)),
            "relationships.0.target",
            "there is no such node",
        ),
    ],
)
def test_a_batch_that_breaks_the_ontology_is_refused_at_the_value_at_fault(batch: Upsert, field: str, detail: str) -> None:
    assert refusal(batch) == (field, detail)


@pytest.mark.req("N-179")
def test_a_quarter_is_one_of_four() -> None:
    quarters = {f"Q{n}" for n in range(1, 5)}
    assert {UpsertNode.model_validate(node("a").model_dump() | {"quarter": name}).quarter for name in quarters} == quarters
    with pytest.raises(ValidationError, match="quarter"):
        UpsertNode.model_validate(node("a").model_dump() | {"quarter": "Q5"})


def test_a_relationship_has_no_properties() -> None:
    relationship = joined("RATED", ref("a"), ref("b", "EntityRisk")).model_copy(update={"properties": {"weight": 1}})
    assert refusal(Upsert(relationships=(relationship,)))[0] == "relationships.0.properties.weight"


def test_a_node_keeps_its_level() -> None:
    stored = {"acme/EntityProject/a/2023": Stored("", Level.L1, 3)}
    assert refusal(Upsert(nodes=(node("a", "L2"),)), stored) == (
        "nodes.0.level",
        "the node stands at L1, and a node keeps its level",
    )


@given(LEVELS, LEVELS)
def test_the_hierarchy_goes_one_level_down(above: Level, below: Level) -> None:
    batch = Upsert(nodes=(node("a", above), node("b", below)), relationships=(joined("PARENT_OF", ref("a"), ref("b")),))
    if (above, below) in {(Level.L1, Level.L2), (Level.L2, Level.L3)}:
        check_levels(ONTOLOGY, plan_batch(ONTOLOGY, "acme", batch), {})
    else:
        assert refusal(batch)[0] == "relationships.0"


@given(st.sampled_from(sorted(ONTOLOGY.relationships)), TYPES, TYPES, LEVELS, LEVELS)
@pytest.mark.req("NC-083")
def test_what_is_accepted_joins_declared_ends_at_allowed_levels(
    name: str, source: str, target: str, above: Level, below: Level
) -> None:
    kind = ONTOLOGY.relationships[name]
    ends = node("a", above, source), node("b", below, target)
    batch = Upsert(nodes=ends, relationships=(joined(name, *ends),))
    allowed = {
        LevelRule.SAME: above is below,
        LevelRule.ANY: True,
        LevelRule.DOWN: above.value + below.value in ("L1L2", "L2L3"),
    }
    if kind.joins(source, target) and allowed[kind.rule]:
        check_levels(ONTOLOGY, plan_batch(ONTOLOGY, "acme", batch), {})
    else:
        assert (refusal(batch)[0] or "").startswith("relationships.0")


@given(TYPES, st.text(max_size=30), st.one_of(st.text(max_size=5), st.floats(), st.booleans(), st.dates()))
def test_every_value_is_taken_as_declared_or_refused_with_its_path(type: str, name: str, given: Any) -> None:
    """Whatever comes as a property ends as a finite float or as text, or names its own place."""
    declared = ONTOLOGY.nodes[type].properties
    for each in {name, *declared}:
        batch = Upsert(nodes=(node("a", type=type).model_copy(update={"properties": {each: given}}),))
        try:
            record = plan_batch(ONTOLOGY, "acme", batch).nodes[0]
        except BadRequest as error:
            found = error.field == f"nodes.0.properties.{each}"
        else:
            found = isinstance(record.properties[each], (str, float))
        assert found


@given(st.floats(allow_nan=False))
def test_a_number_outside_its_range_never_passes(number: float) -> None:
    declared = Property("n", Kind.NUMBER, 1, 10)
    if 1 <= number <= 10:
        assert check_value(declared, number, "n") == number
    else:
        with pytest.raises(BadRequest):
            check_value(declared, number, "n")


@given(st.dates())
def test_a_date_and_its_text_are_one_value(day: date) -> None:
    declared = Property("d", Kind.DATE)
    assert check_value(declared, day, "d") == check_value(declared, day.isoformat(), "d") == day.isoformat()


@given(st.sampled_from(sorted(ONTOLOGY.nodes)))
def test_a_name_in_other_case_finds_its_nearest(name: str) -> None:
    assert suggest_nearest(name.upper(), ONTOLOGY.nodes) == f"; the nearest is {name}"


def test_content_alone_makes_the_hash() -> None:
    def hash_of(tenant: str, **properties: Any) -> str:
        return plan_batch(ONTOLOGY, tenant, Upsert(nodes=(node("a", **properties),))).nodes[0].hash

    assert hash_of("acme", budget=1, aims=None) == hash_of("acme", budget=1.0) == hash_of("other", budget=1.0)
    assert hash_of("acme", budget=1) != hash_of("acme", budget=2)


@given(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20))
def test_no_key_of_one_tenant_is_a_key_of_another(one: str, other: str) -> None:
    keys = [
        plan_batch(ONTOLOGY, tenant, Upsert(nodes=(node(id),))).nodes[0].key
        for tenant, id in (("acme", one), ("acme", other), ("acme-2", one), ("acme-2", other))
    ]
    assert len(set(keys)) == 2 * len({one, other})


def test_a_reference_has_its_text_form() -> None:
    record = plan_batch(ONTOLOGY, "acme", Upsert(nodes=(node("a/b"),))).nodes[0]
    assert (record.key, record.ref) == ("acme/EntityProject/a/b/2023", NodeRef(type="EntityProject", id="a/b", year=2023).key)
