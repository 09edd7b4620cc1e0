from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from phronesis_contracts.twin import NODE_CHANGED, UPSERT, Upsert, UpsertNode
from phronesis_graph.twin.ontology_file import load
from phronesis_graph.twin.upserts import Plan, Stored, check_levels, plan_batch
from phronesis_samples.portfolio.reports import batches, count_nodes, read_rows, split_departments, status_at


@cache
def loaded() -> tuple[Upsert, ...]:
    return tuple(batches())


def nodes(type: str, level: str) -> dict[str, UpsertNode]:
    found = [node for batch in loaded() for node in batch.nodes if (node.type, node.level) == (type, level)]
    return {node.key: node for node in found}


def relationships(type: str) -> list[tuple[str, str]]:
    return [(r.source.key, r.target.key) for batch in loaded() for r in batch.relationships if r.type == type]


def test_every_row_becomes_a_project_of_its_year() -> None:
    rows = read_rows()
    assert len(rows) == 788
    assert set(nodes("EntityProject", "L3")) == {f"EntityProject/{row['project_number']}/{row['year']}" for row in rows}


def test_no_project_stands_twice_in_a_year() -> None:
    assert max(Counter((row["project_number"], row["year"]) for row in read_rows()).values()) == 1


def test_every_batch_fits_the_contract_and_the_ontology() -> None:
    """Written in order, each batch finds the ends of its relationships in itself or in those before it."""
    ontology, stored = load(), dict[str, Stored]()
    for batch in loaded():
        assert len(batch.nodes) <= 500
        assert len(batch.relationships) <= 1_000
        assert len(batch.model_dump_json().encode()) < UPSERT.max_bytes
        checked: Plan = plan_batch(ontology, "acme", batch)
        check_levels(ontology, checked, stored)
        stored |= {node.key: Stored(node.hash, node.level, 1) for node in checked.nodes}
    assert count_nodes() == len(stored) == 1777
    assert NODE_CHANGED.max_bytes >= 100 * 300


def test_every_project_has_its_place_below_a_share_of_its_category() -> None:
    parents = Counter(child for _, child in relationships("PARENT_OF"))
    below = nodes("EntityProject", "L3") | nodes("EntityProject", "L2")
    assert parents == dict.fromkeys(below, 1)
    assert len(nodes("EntityProject", "L1")) == 16


@pytest.mark.parametrize(
    ("published", "folded"),
    [("MOJ", ("MOJ",)), ("MoJ", ("MOJ",)), ("DfT", ("DFT",)), ("DEFRA & DFT", ("DEFRA", "DFT"))],
)
def test_departments_are_spelt_alike(published: str, folded: tuple[str, ...]) -> None:
    assert split_departments(published) == folded


def test_a_department_is_one_node_in_a_year() -> None:
    names = {node.id for node in nodes("SectorGovEntity", "L1").values()}
    assert len(names) == 25
    assert {"MOJ", "DFE", "DFT"} <= names
    assert names == {name.upper() for name in names}


def test_a_report_of_two_departments_is_delivered_by_both() -> None:
    row = next(row for row in read_rows() if "&" in row["department"])
    project = f"EntityProject/{row['project_number']}/{row['year']}"
    found = {target for source, target in relationships("DELIVERED_BY") if source == project}
    assert found == {f"SectorGovEntity/DEFRA/{row['year']}", f"SectorGovEntity/DFT/{row['year']}"}


def test_what_is_not_published_is_absent() -> None:
    row = next(row for row in read_rows() if not row["rating"] and not row["whole_life_cost_gbp_m"])
    node = nodes("EntityProject", "L3")[f"EntityProject/{row['project_number']}/{row['year']}"]
    assert {"rating", "whole_life_cost"}.isdisjoint(node.properties)
    assert None not in node.properties.values()


def test_a_published_zero_stays_a_zero() -> None:
    row = next(row for row in read_rows() if row["year_forecast_gbp_m"] in ("0", "0.0"))
    node = nodes("EntityProject", "L3")[f"EntityProject/{row['project_number']}/{row['year']}"]
    assert node.properties["year_forecast"] == 0.0


def test_a_project_with_a_rating_has_one_risk_and_one_without_has_none() -> None:
    rated = {f"EntityProject/{r['project_number']}/{r['year']}" for r in read_rows() if r["rating"]}
    assert len(rated) == 752
    assert Counter(source for source, _ in relationships("RATED")) == dict.fromkeys(rated, 1)


def test_only_the_ratings_in_doubt_are_high_risks() -> None:
    scores = {
        (
            str(nodes("EntityProject", "L3")[source].properties["rating"]),
            nodes("EntityRisk", "L3")[target].properties["risk_score"],
        )
        for source, target in relationships("RATED")
    }
    high_above = load().nodes["EntityRisk"].properties["risk_score"].high_above or 0
    assert scores == {("Green", 1.0), ("Amber/Green", 3.0), ("Amber", 5.0), ("Amber/Red", 8.0), ("Red", 10.0)}
    assert {rating for rating, score in scores if isinstance(score, float) and score > high_above} == {"Amber/Red", "Red"}


@pytest.mark.parametrize(
    ("year", "end", "expected"),
    [
        (2023, "2023-03-30", "Closed"),
        (2023, "2023-03-31", "Active"),
        (2023, "", "Active"),
        (2020, "2019-09-29", "Closed"),
        (2020, "2020-01-01", "Active"),
    ],
)
def test_a_project_is_closed_where_its_published_end_lies_before_the_report(year: int, end: str, expected: str) -> None:
    assert status_at(year, end) == expected


def test_no_text_holds_a_control_character() -> None:
    assert not [c for row in read_rows() for value in row.values() for c in value if ord(c) < 32 or 0x7F <= ord(c) < 0xA0]
