"""The analyst without a model on a made-up twin of all 17 types: counts, lists, groups, gaps and impact over any of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from phronesis_contracts.twin import UpsertNode
from phronesis_samples.twin.generator import Twin
from tests.questions.asking import Asker
from tests.questions.checks import groups, names, number

YEAR = 2025
PLURALS = {
    "objectives": ("SectorObjective", None),
    "policy tools": ("SectorPolicyTool", None),
    "KPIs": ("SectorPerformance", None),
    "admin records": ("SectorAdminRecord", None),
    "business sectors": ("SectorBusiness", "L1"),
    "agencies": ("SectorGovEntity", "L2"),
    "citizen groups": ("SectorCitizen", None),
    "data transactions": ("SectorDataTransaction", None),
    "capabilities": ("EntityCapability", None),
    "risks": ("EntityRisk", None),
    "projects": ("EntityProject", "L3"),
    "org units": ("EntityOrgUnit", None),
    "processes": ("EntityProcess", "L3"),
    "IT systems": ("EntityITSystem", None),
    "vendors": ("EntityVendor", None),
    "culture health indicators": ("EntityCultureHealth", None),
    "change adoptions": ("EntityChangeAdoption", None),
    "strategic goals": ("SectorObjective", "L1"),
    "platforms": ("EntityITSystem", "L1"),
    "teams": ("EntityOrgUnit", "L3"),
    "competencies": ("EntityCapability", "L3"),
    "ministries": ("SectorGovEntity", "L1"),
}
KINDS = {
    "TemporalGap": "missing in the year",
    "LevelMismatch": "at another level",
    "ChainBreak": "the chain stops early",
    "DirectRelationshipMissing": "direct link missing",
}


@pytest.fixture
def asker(twin: Asker) -> Asker:
    """Somebody who asks the made-up twin."""
    return twin


def _of(made: Twin, type: str, level: str | None = None, year: int = YEAR, **stated: Any) -> list[UpsertNode]:
    return [
        node
        for node in made.nodes
        if node.type == type
        and node.year == year
        and level in (None, node.level.value)
        and all(node.properties.get(name) == value for name, value in stated.items())
    ]


@pytest.mark.parametrize("said", PLURALS)
async def test_things_of_every_type_are_counted(made: Twin, asker: Asker, said: str) -> None:
    answer = await asker.ask(f"How many {said} are there in {YEAR}?")
    assert number(len(_of(made, *PLURALS[said])))(answer) == "", answer.answer


@pytest.mark.parametrize("said", ["objectives", "vendors", "teams", "capabilities", "projects"])
async def test_things_of_any_type_are_listed(made: Twin, asker: Asker, said: str) -> None:
    answer = await asker.ask(f"List the {said} of {YEAR}")
    assert names(node.name for node in _of(made, *PLURALS[said]))(answer) == "", answer.answer


@pytest.mark.parametrize("said", ["objectives", "risks", "IT systems"])
async def test_things_of_any_type_are_counted_by_year(made: Twin, asker: Asker, said: str) -> None:
    answer = await asker.ask(f"How has the number of {said} changed over the years?")
    expected = {year: len(_of(made, *PLURALS[said], year=year)) for year in (2024, 2025)}
    assert groups(expected)(answer) == "", answer.answer


@pytest.mark.xfail(strict=True, reason="no plan groups by level")
async def test_levels_have_business_names(made: Twin, asker: Asker) -> None:
    answer = await asker.ask(f"How many capabilities per level in {YEAR}?")
    counts = Counter(node.level.value for node in _of(made, "EntityCapability"))
    expected = {"business domains": counts["L1"], "functions": counts["L2"], "competencies": counts["L3"]}
    assert groups(expected)(answer) == "", answer.answer


async def test_properties_of_a_type_filter_and_group(made: Twin, asker: Asker) -> None:
    opened = await asker.ask(f"How many open risks are there in {YEAR}?")
    assert number(len(_of(made, "EntityRisk", risk_status="Open")))(opened) == "", opened.answer
    high = await asker.ask(f"How many risks with a risk score above 7 are there in {YEAR}?")
    above = [node for node in _of(made, "EntityRisk") if float(str(node.properties.get("risk_score") or 0)) > 7]
    assert number(len(above))(high) == "", high.answer
    grown = await asker.ask(f"How many capabilities by maturity in {YEAR}?")
    expected = Counter(str(node.properties.get("maturity_level") or "none on record") for node in _of(made, "EntityCapability"))
    assert groups(dict(expected))(grown) == "", grown.answer


async def test_figures_of_a_type_are_averaged(made: Twin, asker: Asker) -> None:
    answer = await asker.ask(f"What is the average efficiency of processes in {YEAR}?")
    stated = [node.properties.get("efficiency_score") for node in _of(made, "EntityProcess", "L3")]
    values = [float(str(value)) for value in stated if value is not None]
    [row] = answer.data.query_results
    assert list(row.values()) == [pytest.approx(sum(values) / len(values))]
    assert f"from {len(values)} published figures; not published for {len(stated) - len(values)}" in answer.answer


@pytest.mark.req("N-160", "N-163", "N-165")
async def test_planted_gaps_are_told_by_a_table_that_comes_first(made: Twin, asker: Asker) -> None:
    nodes = {node.key: node for node in made.nodes}
    by_id = {(node.type, node.id): node for node in made.nodes}
    asked = 0
    for question in made.questions:
        planted = (question.type, question.chain is not None)
        if planted not in (("TemporalGap", False), ("ChainBreak", True)) or question.other or question.relationship:
            continue
        type, id, year = question.node.split("/")
        node = nodes.get(question.node) or by_id[type, id]
        answer = await asker.ask(f"What is missing for “{node.name}” in {year}?")
        kinds = {row["kind of gap"] for row in answer.data.query_results if row["year"] == int(year)}
        assert KINDS[question.type] in kinds, (question, answer.answer)
        assert answer.visualizations[0].type == "table"
        asked += 1
        if asked == 12:
            return
    assert asked > 3


@pytest.mark.req("N-028")
async def test_the_impact_of_a_thing_is_its_links_and_chains(made: Twin, asker: Asker) -> None:
    project = next(node for node in _of(made, "EntityProject", "L3") if _links(made, node))
    answer = await asker.ask(f"What is the impact of “{project.name}” in {YEAR}?")
    assert answer.mode == "B"
    assert _links(made, project) <= {row["name"] for row in answer.data.query_results if row["from"] == project.name}


def _links(made: Twin, node: UpsertNode) -> set[str]:
    """Names of what the node's own relationships lead to; the hierarchy apart."""
    called = {other.key: other.name for other in made.nodes}
    return {called[one.target.key] for one in made.relationships if one.source.key == node.key and one.type != "PARENT_OF"}
