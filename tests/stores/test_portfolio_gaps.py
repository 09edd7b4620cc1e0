"""Surveys and gaps of the sample portfolio, held against its table."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

import pytest

from phronesis_contracts import Principal
from phronesis_contracts.twin import DiagnoseGaps, FindEntities, GapQuestion, GapType, GroupBy, Level, Survey
from phronesis_samples.portfolio.reports import batches, read_rows, split_departments
from tests.support.bus import somebody
from tests.support.graph import Stores, opened, ref
from tests.support.servers import GraphServer
from tests.support.twins import call, load, reasoning

pytestmark = pytest.mark.timeout(300)
ROWS = read_rows()
BY_YEAR = {year: {row["project_number"]: row for row in ROWS if row["year"] == str(year)} for year in (2020, 2021, 2022, 2023)}


@pytest.fixture(scope="module")
async def stores(graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stores]:
    async with opened(graph_server, tmp_path_factory.mktemp("portfolio")) as found:
        yield found


@pytest.fixture(scope="module")
async def who(stores: Stores) -> Principal:
    """Whose portfolio it is."""
    one = somebody()
    await load(stores, one, batches())
    return one


async def gaps(stores: Stores, who: Principal, *questions: GapQuestion) -> dict[str, tuple[GapType, str | None, str]]:
    answer = await reasoning(stores).diagnose_gaps(call(who), DiagnoseGaps(questions=questions))
    assert answer.unknown == ()
    return {gap.question: (gap.type, gap.last_node, gap.missing_step) for gap in answer.gaps}


@pytest.mark.req("N-163", "N-159")
async def test_projects_of_one_year_that_the_next_has_not_are_temporal_gaps_and_no_others(
    stores: Stores, who: Principal
) -> None:
    ids = list(BY_YEAR[2021])[:200]
    questions = [GapQuestion(id=id[:64], node=ref(id, year=2022), level=Level.L3) for id in ids]
    gone = {id for id in ids if id not in BY_YEAR[2022]}
    assert gone
    assert await gaps(stores, who, *questions) == {id: (GapType.TEMPORAL, None, f"EntityProject/{id}/2022") for id in gone}


@pytest.mark.req("N-165")
async def test_chains_stop_at_a_project_since_nothing_further_is_published(stores: Stores, who: Principal) -> None:
    node = ref(next(iter(BY_YEAR[2023])))
    chains = ("Tactical_to_Strategy", "Strategy_to_Tactics_Priority")
    found = await gaps(stores, who, *(GapQuestion(id=name, node=node, level=Level.L3, chain=name) for name in chains))
    assert found == {
        "Tactical_to_Strategy": (
            GapType.CHAIN,
            node.key,
            "CLOSE_GAPS -> EntityOrgUnit | EntityProcess | EntityITSystem",
        ),
        "Strategy_to_Tactics_Priority": (GapType.CHAIN, node.key, "ADOPTION_RISKS -> EntityChangeAdoption"),
    }


@pytest.mark.req("N-162", "N-163")
async def test_a_rating_that_is_not_published_is_missing_or_of_another_year(stores: Stores, who: Principal) -> None:
    unrated = [id for id, row in BY_YEAR[2023].items() if not row["rating"]]
    assert unrated
    found = await gaps(
        stores,
        who,
        *(GapQuestion(id=id[:64], node=ref(id), level=Level.L3, relationship="RATED") for id in unrated),
    )
    others = {id for year in (2020, 2021, 2022) for id, row in BY_YEAR[year].items() if row["rating"]}
    kinds = {id: GapType.TEMPORAL if id in others else GapType.DIRECT for id in unrated}
    assert {id: type for id, (type, _, _) in found.items()} == kinds


async def test_a_project_is_joined_to_its_department_and_to_no_other(stores: Stores, who: Principal) -> None:
    id, row = next(iter(BY_YEAR[2023].items()))
    [own, *_] = split_departments(row["department"])
    other = next(name for each in BY_YEAR[2023].values() for name in split_departments(each["department"]) if name != own)
    pairs = (GapQuestion(id=name, node=ref(id), level=Level.L3, other=ref(name, "SectorGovEntity")) for name in (own, other))
    assert await gaps(stores, who, *pairs) == {
        other: (GapType.DIRECT, f"EntityProject/{id}/2023", f"DELIVERED_BY -> SectorGovEntity/{other}/2023")
    }


async def test_ratings_of_each_year_are_counted_as_published(stores: Stores, who: Principal) -> None:
    by = (GroupBy(property="year"), GroupBy(property="rating"))
    question = Survey(type="EntityProject", level=Level.L3, group_by=by)
    found = await reasoning(stores).survey(call(who), question)
    counted = {(row["group"], row["group2"]): row["value"] for row in found.rows}
    assert counted == Counter((int(row["year"]), row["rating"] or None) for row in ROWS)
    assert {row["group2"] for row in found.rows if row["unknown"]} == {None}


async def test_costs_by_category_leave_out_what_is_not_published(stores: Stores, who: Principal) -> None:
    question = Survey(
        type="EntityProject",
        years=(2022,),
        level=Level.L3,
        group_by=(GroupBy(property="category"),),
        measure="sum",
        of="whole_life_cost",
    )
    found = await reasoning(stores).survey(call(who), question)
    of_2022 = BY_YEAR[2022].values()
    for row in found.rows:
        costs = [each["whole_life_cost_gbp_m"] for each in of_2022 if each["category"] == row["group"]]
        assert row["value"] == pytest.approx(sum(float(cost) for cost in costs if cost))
        assert (row["known"], row["unknown"]) == (sum(map(bool, costs)), costs.count(""))


async def test_departments_are_counted_with_the_projects_of_two(stores: Stores, who: Principal) -> None:
    by = GroupBy(property="id", via="DELIVERED_BY", to="SectorGovEntity")
    found = await reasoning(stores).survey(
        call(who), Survey(type="EntityProject", years=(2022,), level=Level.L3, group_by=(by,))
    )
    assert {row["group"]: row["value"] for row in found.rows} == Counter(
        name for row in BY_YEAR[2022].values() for name in split_departments(row["department"])
    )
    assert found.total == len(BY_YEAR[2022])


async def test_a_project_is_found_by_its_name_over_the_years(stores: Stores, who: Principal) -> None:
    question = FindEntities(text="geological disposal facility programme (gdf)", types=("EntityProject",), limit=1)
    found = await reasoning(stores).find_entities(call(who), question)
    assert [(one.name, one.score) for one in found.entities] == [("Geological Disposal Facility Programme (GDF)", 1.0)]
    [entity] = found.entities
    assert entity.years == tuple(year for year, rows in BY_YEAR.items() if entity.id in rows)
