"""Plans on the sample portfolio, held against its table by code that knows nothing of the graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from statistics import median
from typing import Any

import pytest

from phronesis_contracts import Principal
from phronesis_contracts.twin import GroupBy, Level, Upsert
from phronesis_orchestrator.understanding.executor import execute
from phronesis_orchestrator.understanding.finding import Finding
from phronesis_orchestrator.understanding.plan import (
    Aggregate,
    Change,
    Compare,
    Coverage,
    Describe,
    EntityRef,
    Filter,
    Gaps,
    Having,
    Plan,
    Rank,
    Relate,
    Select,
    Selection,
)
from phronesis_samples.portfolio.reports import batches, read_rows, split_departments
from tests.support.bus import somebody
from tests.support.graph import Stores, opened
from tests.support.plans import reader
from tests.support.servers import GraphServer
from tests.support.twins import load

pytestmark = pytest.mark.timeout(300)
DEPARTMENTS = {"MOJ", "DFT", "HMRC", "BEIS", "HO"}
ROWS = [row for row in read_rows() if set(split_departments(row["department"])) & DEPARTMENTS]
YEARS = (2020, 2021, 2022, 2023)
PROJECTS = Selection(type="EntityProject", years=(2022,), level=Level.L3)
DEPARTMENT = {"via": "DELIVERED_BY", "to": "SectorGovEntity"}
BY_DEPARTMENT = GroupBy(property="id", **DEPARTMENT)


@pytest.fixture(scope="module")
async def stores(graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stores]:
    async with opened(graph_server, tmp_path_factory.mktemp("plans")) as found:
        yield found


@pytest.fixture(scope="module")
async def who(stores: Stores) -> Principal:
    """Whose part of the portfolio it is: the projects of five departments."""
    kept = {("EntityProject", row["project_number"], int(row["year"])) for row in ROWS}
    kept |= {("EntityRisk", id, year) for _, id, year in kept}
    whole = batches()
    nodes = [one for batch in whole for one in batch.nodes if one.level is not Level.L3 or (one.type, one.id, one.year) in kept]
    keys = {one.key for one in nodes}
    links = [one for batch in whole for one in batch.relationships if {one.source.key, one.target.key} <= keys]
    one = somebody()
    await load(stores, one, (Upsert(nodes=tuple(nodes[at : at + 250])) for at in range(0, len(nodes), 250)))
    await load(stores, one, (Upsert(relationships=tuple(links[at : at + 500])) for at in range(0, len(links), 500)))
    return one


async def run(stores: Stores, who: Principal, plan: Plan) -> Finding:
    return await execute(plan, reader(stores, who))


def of_year(year: int) -> list[dict[str, str]]:
    return [row for row in ROWS if row["year"] == str(year)]


def number(row: dict[str, str], name: str = "whole_life_cost_gbp_m") -> float | None:
    return float(row[name]) if row[name] else None


def among(**changes: Any) -> Selection:
    return PROJECTS.model_copy(update=changes)


def ref(year: int, name: str) -> EntityRef:
    row = next(row for row in of_year(year) if row["project_name"] == name)
    years = tuple(int(one["year"]) for one in ROWS if one["project_name"] == name)
    return EntityRef(type="EntityProject", id=row["project_number"], name=name, level=Level.L3, years=years)


async def test_members_with_a_condition_are_listed_and_the_undecided_are_counted(stores: Stores, who: Principal) -> None:
    dear = Filter(property="whole_life_cost", op=">", value=1000)
    found = await run(stores, who, Select(of=among(filters=(dear,))))
    costs = {row["project_name"]: number(row) for row in of_year(2022)}
    assert {row["name"]: row["whole_life_cost"] for row in found.rows} == {n: c for n, c in costs.items() if c and c > 1000}
    [note] = found.notes
    assert (note.key, note.values["n"]) == ("undecided", sum(cost is None for cost in costs.values()))
    assert [one.name for one in found.entities] == [row["name"] for row in found.rows]
    assert found.statements


@pytest.mark.parametrize("value", ["MOJ", "DFT"])
async def test_not_of_a_linked_node_means_that_it_is_not_linked_to_such_a_node(
    stores: Stores, who: Principal, value: str
) -> None:
    other = Filter(property="id", op="<>", value=value, **DEPARTMENT)
    found = await run(stores, who, Select(of=among(filters=(other,))))
    names = [row["project_name"] for row in of_year(2022) if value not in split_departments(row["department"])]
    assert sorted(row["name"] for row in found.rows) == sorted(names)


async def test_what_no_year_of_the_data_holds_is_said_with_the_years_that_it_covers(stores: Stores, who: Principal) -> None:
    found = await run(stores, who, Select(of=among(years=(2019,))))
    assert (found.outcome, found.rows) == ("empty", ())
    assert found.notes[-1].values == {"years": (2019,), "covered": YEARS, "type": "EntityProject"}


async def test_a_count_over_several_years_is_one_for_each_year(stores: Stores, who: Principal) -> None:
    found = await run(stores, who, Aggregate(of=among(years=YEARS)))
    assert {row["group"]: row["value"] for row in found.rows} == {year: len(of_year(year)) for year in YEARS}


async def test_groups_stand_in_the_declared_order_and_what_is_not_published_apart(stores: Stores, who: Principal) -> None:
    found = await run(stores, who, Aggregate(of=among(years=(2021,)), group_by=(GroupBy(property="rating"),)))
    counts = Counter(row["rating"] or None for row in of_year(2021))
    declared = ["Green", "Amber/Green", "Amber", "Amber/Red", "Red", None]
    assert [(row["group"], row["value"]) for row in found.rows] == [(one, counts[one]) for one in declared if one in counts]
    assert found.unknown == counts[None]


async def test_what_two_departments_deliver_counts_for_both_and_once_in_the_whole(stores: Stores, who: Principal) -> None:
    year = next(year for year in YEARS if any("&" in row["department"] for row in of_year(year)))
    found = await run(stores, who, Aggregate(of=among(years=(year,)), group_by=(BY_DEPARTMENT,), order="-value"))
    counts = Counter(one for row in of_year(year) for one in split_departments(row["department"]))
    assert {row["group"]: row["value"] for row in found.rows} == counts
    assert [row["value"] for row in found.rows] == sorted(counts.values(), reverse=True)
    assert found.total == len(of_year(year))
    [note] = [note for note in found.notes if note.key == "in_two_groups"]
    assert note.values["n"] == counts.total() - len(of_year(year))


@pytest.mark.parametrize(
    ("measure", "truth"),
    [("sum", sum), ("mean", lambda known: sum(known) / len(known)), ("median", median), ("min", min), ("max", max)],
)
async def test_a_figure_is_made_of_what_is_published(stores: Stores, who: Principal, measure: Any, truth: Any) -> None:
    found = await run(stores, who, Aggregate(of=PROJECTS, measure=measure, property="whole_life_cost"))
    known = [cost for row in of_year(2022) if (cost := number(row)) is not None]
    assert found.figures[0].value == pytest.approx(truth(known))
    assert (found.figures[0].known, found.unknown) == (len(known), len(of_year(2022)) - len(known))


async def test_groups_with_a_condition_are_counted(stores: Stores, who: Principal) -> None:
    plan = Aggregate(of=PROJECTS, group_by=(BY_DEPARTMENT,), having=Having(op=">", value=10), count_groups=True)
    found = await run(stores, who, plan)
    counts = Counter(one for row in of_year(2022) for one in split_departments(row["department"]))
    assert found.value == sum(n > 10 for n in counts.values())


async def test_the_most_expensive_come_first_and_the_second_is_the_second(stores: Stores, who: Principal) -> None:
    costs = sorted((cost for row in of_year(2022) if (cost := number(row)) is not None), reverse=True)
    first = await run(stores, who, Rank(of=PROJECTS, by="whole_life_cost", limit=3))
    assert [row["value"] for row in first.rows] == costs[:3]
    second = await run(stores, who, Rank(of=PROJECTS, by="whole_life_cost", position=2))
    assert [row["value"] for row in second.rows] == [costs[1]]
    assert first.unknown == sum(number(row) is None for row in of_year(2022))


async def test_the_department_with_the_most_projects_is_found_by_its_links(stores: Stores, who: Principal) -> None:
    of = Selection(type="SectorGovEntity", years=(2022,))
    filters = (Filter(property="level", value="L3", via="DELIVERED_BY", to="EntityProject"),)
    found = await run(stores, who, Rank(of=of.model_copy(update={"filters": filters}), via="DELIVERED_BY", to="EntityProject"))
    shares = Counter(department for department, _ in {(split_departments(r["department"])[0], r["category"]) for r in ROWS})
    assert found.rows[0]["name"] in shares
    assert found.rows[0]["value"] >= max(
        Counter(one for row in of_year(2022) for one in split_departments(row["department"])).values()
    )


async def test_a_share_has_both_its_figures(stores: Stores, who: Principal) -> None:
    red = Aggregate(of=among(filters=(Filter(property="rating", value="Red"),)))
    found = await run(stores, who, Compare(sides=(red, Aggregate(of=PROJECTS)), how="share"))
    part, whole = sum(row["rating"] == "Red" for row in of_year(2022)), len(of_year(2022))
    assert [one.value for one in found.figures] == [part, whole]
    assert found.value == pytest.approx(100 * part / whole)


async def test_a_change_over_time_is_the_later_less_the_earlier(stores: Stores, who: Principal) -> None:
    def cost(year: int) -> Aggregate:
        return Aggregate(of=among(years=(year,)), measure="sum", property="whole_life_cost")

    found = await run(stores, who, Compare(sides=(cost(2023), cost(2021)), how="change"))
    sums = [sum(number(row) or 0 for row in of_year(year)) for year in (2023, 2021)]
    assert found.value == pytest.approx(sums[0] - sums[1])
    assert found.percent == pytest.approx(100 * (sums[0] - sums[1]) / sums[1])


def same(one: dict[str, str], other: dict[str, str]) -> bool:
    return any(one[name].casefold() == other[name].casefold() for name in ("project_number", "project_name"))


@pytest.mark.parametrize(("what", "mine", "theirs"), [("joined", 2022, 2021), ("left", 2021, 2022)])
async def test_what_came_and_what_left_goes_by_the_identity_of_things(
    stores: Stores, who: Principal, what: Any, mine: int, theirs: int
) -> None:
    found = await run(stores, who, Change(of=PROJECTS, since=2021, until=2022, what=what))
    moved = [row["project_name"] for row in of_year(mine) if not any(same(row, other) for other in of_year(theirs))]
    assert sorted(row["name"] for row in found.rows) == sorted(moved)
    assert [one.value for one in found.figures] == [len(of_year(2021)), len(of_year(2022))]


async def test_ratings_rise_in_their_declared_order_and_a_changed_scale_is_noted(stores: Stores, who: Principal) -> None:
    found = await run(stores, who, Change(of=PROJECTS, since=2021, until=2022, what="rose", property="rating"))
    places = {colour: n for n, colour in enumerate(("Green", "Amber/Green", "Amber", "Amber/Red", "Red"))}
    both = [(a, b) for a in of_year(2021) for b in of_year(2022) if same(a, b)]
    rose = [b["project_name"] for a, b in both if a["rating"] and b["rating"] and places[a["rating"]] < places[b["rating"]]]
    assert sorted(row["name"] for row in found.rows) == sorted(rose)
    assert found.unknown == sum(not a["rating"] or not b["rating"] for a, b in both)
    [scale] = [note for note in found.notes if note.key == "scale"]
    assert scale.values["dropped"] == ("Amber/Green", "Amber/Red")


async def test_costs_fell_by_value(stores: Stores, who: Principal) -> None:
    found = await run(stores, who, Change(of=PROJECTS, since=2022, until=2023, what="fell", property="whole_life_cost"))
    both = [(number(a), number(b), b["project_name"]) for a in of_year(2022) for b in of_year(2023) if same(a, b)]
    assert {row["name"]: row["step"] for row in found.rows} == pytest.approx(
        {name: b - a for a, b, name in both if a is not None and b is not None and b < a}
    )


async def test_a_thing_is_one_under_the_ids_of_all_its_years(stores: Stores, who: Principal) -> None:
    crossing = ref(2023, "Lower Thames Crossing")
    found = await run(stores, who, Describe(entities=(crossing,), properties=("rating",), years=YEARS, history=True))
    truth = {int(row["year"]): row["rating"] or None for row in ROWS if row["project_name"] == "Lower Thames Crossing"}
    assert {row["year"]: row["rating"] for row in found.rows} == truth
    assert len({row["id"] for row in found.rows}) == 2


async def test_all_that_is_on_record_has_links_and_lacks_years(stores: Stores, who: Principal) -> None:
    name = next(row["project_name"] for row in of_year(2020) if not any(same(row, one) for one in of_year(2021)))
    found = await run(stores, who, Describe(entities=(ref(2020, name),), years=YEARS))
    kinds = {(row["relationship"], row["type"]): row["names"] for row in found.links}
    row = next(row for row in of_year(2020) if row["project_name"] == name)
    assert kinds["DELIVERED_BY", "SectorGovEntity"] == tuple(sorted(split_departments(row["department"])))
    assert {one["year"] for one in found.absent} >= {2021}


async def test_what_is_supposed_is_right_wrong_or_not_published(stores: Stores, who: Principal) -> None:
    for row in (
        next(row for row in of_year(2022) if row["rating"] == "Red"),
        next(row for row in of_year(2022) if row["rating"] == "Green"),
        next(row for row in of_year(2022) if not row["rating"]),
    ):
        plan = Describe(
            entities=(ref(2022, row["project_name"]),), years=(2022,), expect=Filter(property="rating", value="Red")
        )
        found = await run(stores, who, plan)
        assert found.holds is (row["rating"] == "Red" if row["rating"] else None)


async def test_whether_a_department_delivers_it_is_told_by_the_link(stores: Stores, who: Principal) -> None:
    row = next(row for row in of_year(2022) if row["department"] == "DFT")
    for department in ("DFT", "MOJ"):
        expect = Filter(property="id", value=department, **DEPARTMENT)
        found = await run(stores, who, Describe(entities=(ref(2022, row["project_name"]),), years=(2022,), expect=expect))
        assert found.holds is (department == "DFT")


async def test_neighbours_and_the_shortest_way(stores: Stores, who: Principal) -> None:
    one, other = [row for row in of_year(2022) if row["department"] == "DFT" and row["rating"]][:2]
    source, target = ref(2022, one["project_name"]), ref(2022, other["project_name"])
    found = await run(stores, who, Relate(source=source, year=2022, relationship="DELIVERED_BY"))
    assert [(row["type"], row["name"]) for row in found.rows] == [("SectorGovEntity", "DFT")]
    every = await run(stores, who, Relate(source=source, year=2022))
    assert {row["relationship"] for row in every.rows} == {"DELIVERED_BY", "RATED", "PARENT_OF"}
    way = await run(stores, who, Relate(source=source, target=target, year=2022))
    assert (way.value, way.links[0]["from"], way.links[-1]["name"]) == (2, source.name, target.name)
    department = EntityRef(type="SectorGovEntity", id="DFT", name="DFT", level=Level.L1, years=YEARS)
    delivers = await run(stores, who, Relate(source=department, year=2022, to="EntityProject", count=True, forward=False))
    shares = {row["category"] for row in of_year(2022) if split_departments(row["department"])[0] == "DFT"}
    projects = [row for row in of_year(2022) if "DFT" in split_departments(row["department"])]
    assert delivers.value == len(projects) + len(shares)


async def test_gaps_of_a_set_are_what_others_have(stores: Stores, who: Principal) -> None:
    found = await run(stores, who, Gaps(of=PROJECTS, years=(2022,), relationship="RATED"))
    assert sorted(row["name"] for row in found.rows) == sorted(r["project_name"] for r in of_year(2022) if not r["rating"])
    costs = await run(stores, who, Gaps(of=PROJECTS, years=(2022,), properties=("whole_life_cost",)))
    assert costs.value == sum(number(row) is None for row in of_year(2022))
    every = await run(stores, who, Gaps(of=PROJECTS, years=(2022,)))
    assert {row.get("relationship") for row in every.rows} == {"RATED", None}
    assert {row["kind"] for row in every.rows} == {"DirectRelationshipMissing", "TemporalGap", "unpublished"}


async def test_gaps_of_a_thing_name_the_years_that_lack_it(stores: Stores, who: Principal) -> None:
    row = next(row for row in of_year(2020) if not any(same(row, one) for one in of_year(2021)))
    found = await run(stores, who, Gaps(entities=(ref(2020, row["project_name"]),), years=(2020, 2021)))
    assert [(one["year"], one["kind"]) for one in found.rows if one["kind"] == "TemporalGap"] == [(2021, "TemporalGap")]


async def test_what_there_is_at_all(stores: Stores, who: Principal) -> None:
    types = await run(stores, who, Coverage())
    assert {row["type"] for row in types.rows} == {"EntityProject", "EntityRisk", "SectorGovEntity"}
    years = await run(stores, who, Coverage(about="years"))
    assert [row["group"] for row in years.rows] == list(YEARS)
    ratings = await run(stores, who, Coverage(about="values", type="EntityProject", property="rating"))
    assert {row["group"]: row["value"] for row in ratings.rows if row["group"]} == Counter(
        row["rating"] for row in ROWS if row["rating"]
    )
    costs = await run(stores, who, Coverage(about="values", type="EntityProject", property="whole_life_cost"))
    known = [cost for row in ROWS if (cost := number(row)) is not None]
    assert [row["value"] for row in costs.rows] == [min(known), max(known)]
