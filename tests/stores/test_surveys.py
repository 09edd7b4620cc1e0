from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from phronesis_contracts import BadRequest, Principal
from phronesis_contracts.twin import Entity, FindEntities, LinksOf, RunChain, Survey, Surveyed, Upsert
from tests.support.bus import somebody
from tests.support.graph import Stores, joined, node, opened, ref
from tests.support.servers import GraphServer
from tests.support.twins import call, reasoning


@pytest.fixture(scope="module")
async def stores(graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stores]:
    async with opened(graph_server, tmp_path_factory.mktemp("surveys")) as found:
        yield found


@pytest.fixture(scope="module")
async def who(stores: Stores) -> Principal:
    """Whose few projects they are; another tenant has some of the same ids."""
    one, other = somebody(), somebody()
    projects = (
        node("a", rating="Red", whole_life_cost=30.0, category="ICT"),
        node("b", rating="Green", whole_life_cost=10.0, category="ICT"),
        node("c", whole_life_cost=5.0, category="Military"),
        node("d", rating="Red"),
        node("a", year=2022, rating="Amber", category="ICT"),
        node("top", level="L1", category="ICT"),
    )
    departments = (node("MOD", "L1", "SectorGovEntity"), node("DFT", "L1", "SectorGovEntity"))
    delivered = tuple(
        joined("DELIVERED_BY", ref(project), ref(department, "SectorGovEntity"))
        for project, department in (("a", "MOD"), ("b", "MOD"), ("b", "DFT"), ("c", "DFT"))
    )
    await stores.upsert(one, Upsert(nodes=(*projects, *departments), relationships=delivered))
    await stores.upsert(other, Upsert(nodes=(node("a", rating="Red"), node("z", rating="Red"))))
    return one


async def survey(stores: Stores, who: Principal, **question: Any) -> Surveyed:
    return await reasoning(stores).survey(call(who), Survey.model_validate({"type": "EntityProject"} | question))


def row(group: Any, value: Any, known: int, unknown: int = 0) -> dict[str, Any]:
    return {"group": group, "value": value, "known": known, "unknown": unknown}


async def test_what_is_not_published_is_counted_apart(stores: Stores, who: Principal) -> None:
    found = await survey(stores, who, years=(2023,), level="L3", group_by=({"property": "rating"},))
    assert (found.total, found.rows) == (4, (row("Green", 1, 1), row("Red", 2, 2), row(None, 1, 0, 1)))


async def test_a_sum_of_nothing_known_is_unknown_and_not_zero(stores: Stores, who: Principal) -> None:
    by = {"measure": "sum", "of": "whole_life_cost", "group_by": ({"property": "category"},), "order": "-value"}
    found = await survey(stores, who, years=(2023,), level="L3", **by)
    assert found.rows == (row("ICT", 40.0, 2), row("Military", 5.0, 1), row(None, None, 0, 1))


async def test_rows_are_grouped_by_year_and_by_a_joined_nodes_property(stores: Stores, who: Principal) -> None:
    by_year = await survey(stores, who, level="L3", group_by=({"property": "year"},))
    assert by_year.rows == (row(2022, 1, 1), row(2023, 4, 4))
    department = {"property": "id", "via": "DELIVERED_BY", "to": "SectorGovEntity"}
    by_department = await survey(stores, who, years=(2023,), level="L3", group_by=(department,))
    assert by_department.rows == (row("DFT", 2, 2), row("MOD", 2, 2), row(None, 1, 0, 1))
    assert by_department.total == 4


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ({"property": "rating", "value": "Red"}, ["a", "d"]),
        ({"property": "rating", "op": "<>", "value": "Red"}, ["b"]),
        ({"property": "rating", "op": "in", "value": ["Red", "Green"]}, ["a", "b", "d"]),
        ({"property": "rating", "op": "unknown"}, ["c"]),
        ({"property": "whole_life_cost", "op": ">=", "value": 10}, ["a", "b"]),
        ({"property": "category", "value": "ict"}, ["a", "b"]),
        ({"property": "name", "op": "contains", "value": "E C"}, ["c"]),
        ({"property": "id", "value": "a"}, ["a"]),
        ({"property": "id", "value": "MOD", "via": "DELIVERED_BY", "to": "SectorGovEntity"}, ["a", "b"]),
        ({"property": "name", "op": "unknown", "via": "DELIVERED_BY", "to": "SectorGovEntity"}, ["d"]),
        ({"property": "category", "value": "x' OR 1=1 //"}, []),
        ({"property": "rating", "op": "known"}, ["a", "b", "d"]),
        ({"property": "name", "op": "known", "via": "DELIVERED_BY", "to": "SectorGovEntity"}, ["a", "b", "c"]),
        ({"property": "id", "op": "linked", "via": "DELIVERED_BY"}, ["a", "b", "c"]),
        ({"property": "id", "op": "unlinked", "via": "DELIVERED_BY"}, ["d"]),
        ({"property": "id", "op": "linked", "via": "DELIVERED_BY", "negated": True}, ["d"]),
        ({"property": "id", "op": "linked", "via": "DELIVERED_BY", "forward": True}, ["a", "b", "c"]),
        ({"property": "id", "op": "unlinked", "via": "RATED", "to": "EntityRisk"}, ["a", "b", "c", "d"]),
        ({"property": "id", "value": "MOD", "via": "DELIVERED_BY", "to": "SectorGovEntity", "negated": True}, ["c", "d"]),
    ],
)
async def test_a_condition_finds(stores: Stores, who: Principal, where: dict[str, Any], ids: list[str]) -> None:
    found = await survey(stores, who, years=(2023,), level="L3", where=(where,), measure="list")
    assert [one["id"] for one in found.rows] == ids


@pytest.mark.req("N-133")
async def test_pages_follow_each_other_without_a_repeat(stores: Stores, who: Principal) -> None:
    seen, after = [], None
    for _ in range(3):
        page = await survey(stores, who, level="L3", measure="list", limit=2, after=after)
        seen.append([(one["id"], one["year"]) for one in page.rows])
        after = page.next
    assert seen == [[("a", 2022), ("a", 2023)], [("b", 2023), ("c", 2023)], [("d", 2023)]]
    assert (after, page.total) == (None, 5)
    back = await survey(stores, who, level="L3", measure="list", limit=1, order="-group", after="d/2023")
    assert [one["id"] for one in back.rows] == ["c"]


async def test_a_list_by_value_has_the_greatest_first_and_the_unknown_last(stores: Stores, who: Principal) -> None:
    by = {"measure": "list", "of": "whole_life_cost", "order": "-value", "show": ("rating",)}
    found = await survey(stores, who, years=(2023,), level="L3", **by)
    assert [(one["id"], one["rating"], one["whole_life_cost"]) for one in found.rows] == [
        ("a", "Red", 30.0),
        ("b", "Green", 10.0),
        ("c", None, 5.0),
        ("d", "Red", None),
    ]


async def test_the_middle_of_two_figures_is_halfway_between_them(stores: Stores, who: Principal) -> None:
    by = {"measure": "median", "of": "whole_life_cost", "group_by": ({"property": "category"},)}
    found = await survey(stores, who, years=(2023,), level="L3", **by)
    assert found.rows == (row("ICT", 20.0, 2), row("Military", 5.0, 1), row(None, None, 0, 1))


async def test_a_list_by_linked_nodes_counts_each_of_them_once(stores: Stores, who: Principal) -> None:
    by = {"measure": "list", "via": "DELIVERED_BY", "to": "SectorGovEntity", "order": "-value"}
    found = await survey(stores, who, years=(2023,), level="L3", **by)
    assert [(one["id"], one["linked"]) for one in found.rows] == [("b", 2), ("a", 1), ("c", 1), ("d", 0)]


async def test_links_are_seen_from_both_ends_and_inside_their_year(stores: Stores, who: Principal) -> None:
    keys = ("EntityProject/b/2023", "EntityProject/a/2022", "SectorGovEntity/MOD/2023")
    found = await reasoning(stores).links(call(who), LinksOf(keys=keys))
    assert [(one.node, one.forward, one.type, one.id, one.name, one.level) for one in found.links] == [
        ("EntityProject/b/2023", True, "SectorGovEntity", "DFT", "The DFT", "L1"),
        ("EntityProject/b/2023", True, "SectorGovEntity", "MOD", "The MOD", "L1"),
        ("SectorGovEntity/MOD/2023", False, "EntityProject", "a", "The a", "L3"),
        ("SectorGovEntity/MOD/2023", False, "EntityProject", "b", "The b", "L3"),
    ]
    assert not found.truncated
    one = await reasoning(stores).links(call(who), LinksOf(keys=keys, limit=1))
    assert (len(one.links), one.truncated) == (1, True)
    assert (await reasoning(stores).links(call(who), LinksOf(keys=keys[:1], forward=False))).links == ()
    assert (await reasoning(stores).links(call(who), LinksOf(keys=keys[:1], relationships=("RATED",)))).links == ()
    assert (await reasoning(stores).links(call(somebody()), LinksOf(keys=keys))).links == ()


@pytest.mark.parametrize(
    ("question", "field"),
    [
        (LinksOf(keys=("EntityProjekt/a/2023",)), "keys.0"),
        (LinksOf(keys=("EntityProject/a/2023",), relationships=("DELIVERED",)), "relationships.0"),
        (LinksOf(keys=("EntityProject/a/2023",), types=("x",)), "types.0"),
    ],
)
async def test_links_of_what_the_ontology_lacks_are_refused(
    stores: Stores, who: Principal, question: LinksOf, field: str
) -> None:
    with pytest.raises(BadRequest) as refused:
        await reasoning(stores).links(call(who), question)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("question", "field", "says"),
    [
        ({"type": "EntityProjekt"}, "type", "EntityProject"),
        ({"where": ({"property": "ratings", "value": "Red"},)}, "where.0.property", "rating"),
        ({"where": ({"property": "rating", "value": "red"},)}, "where.0.value", "Red"),
        ({"where": ({"property": "rating", "op": "in", "value": "Red"},)}, "where.0.value", "list"),
        ({"where": ({"property": "rating", "op": ">", "value": "Red"},)}, "where.0.op", "numbers and dates"),
        ({"where": ({"property": "whole_life_cost", "value": "much"},)}, "where.0.value", "number"),
        ({"where": ({"property": "id", "value": "x", "via": "DELIVERED"},)}, "where.0.via", "DELIVERED_BY"),
        ({"where": ({"property": "id", "value": "x", "via": "DELIVERED_BY"},)}, "where.0.to", "SectorGovEntity"),
        ({"group_by": ({"property": "aims"},)}, "group_by.0.property", "long texts"),
        ({"measure": "sum", "of": "rating"}, "of", "budget"),
        ({"measure": "list", "show": ("whole_life_costs",)}, "show.0", "whole_life_cost"),
        ({"show": ("rating",)}, "show", "list"),
        ({"measure": "list", "group_by": ({"property": "year"},)}, "group_by", "no groups"),
        ({"measure": "list", "order": "value"}, "of", "needs `of`"),
        ({"where": ({"property": "x} RETURN n //", "value": "1"},)}, "where.0.property", "no such property"),
    ],
)
async def test_what_the_ontology_has_not_is_refused_by_name(
    stores: Stores, who: Principal, question: dict[str, Any], field: str, says: str
) -> None:
    with pytest.raises(BadRequest, match=says) as caught:
        await survey(stores, who, **question)
    assert caught.value.field == field


async def test_a_chain_that_nothing_walks_whole_shows_the_walks_that_stop(stores: Stores) -> None:
    one = somebody()
    nodes = (node("c", type="EntityCapability"), node("lone", type="EntityCapability"), node("r", type="EntityRisk"))
    risk = ref("r", "EntityRisk")
    await stores.upsert(one, Upsert(nodes=nodes, relationships=(joined("MONITORED_BY", ref("c", "EntityCapability"), risk),)))
    ran = await reasoning(stores).run_chain(call(one), RunChain.model_validate(CHAIN))
    assert [([each.id for each in path.nodes], path.relationships, path.whole) for path in ran.paths] == [
        (["c", "r"], ("MONITORED_BY",), False),
        (["lone"], (), False),
    ]
    await stores.upsert(one, Upsert(nodes=(node("t", type="SectorPolicyTool"),)))
    await stores.upsert(one, Upsert(relationships=(joined("INFORMS", risk, ref("t", "SectorPolicyTool")),)))
    whole = await reasoning(stores).run_chain(call(one), RunChain.model_validate(CHAIN))
    assert [([each.id for each in path.nodes], path.whole) for path in whole.paths] == [(["c", "r", "t"], True)]


CHAIN = {"chain": "Risk_Build_Mode", "year": 2023, "level": "L3"}


@pytest.mark.parametrize(
    ("changes", "field"), [({"chain": "Risk_Build"}, "chain"), ({"start_type": "EntityVendor"}, "start_type")]
)
async def test_a_chain_that_there_is_not_is_refused(stores: Stores, changes: dict[str, str], field: str) -> None:
    with pytest.raises(BadRequest, match="nearest") as caught:
        await reasoning(stores).run_chain(call(somebody()), RunChain.model_validate(CHAIN | changes))
    assert caught.value.field == field


async def test_the_years_of_one_id_are_one_entity_and_the_whole_name_comes_first(stores: Stores, who: Principal) -> None:
    found = await reasoning(stores).find_entities(call(who), FindEntities(text="THE A", types=("EntityProject",)))
    assert found.entities[0] == Entity(type="EntityProject", id="a", name="The a", level="L3", years=(2022, 2023), score=1.0)
    by_id = await reasoning(stores).find_entities(call(who), FindEntities(text="mod", limit=1))
    assert [(one.type, one.id, one.score) for one in by_id.entities] == [("SectorGovEntity", "MOD", 1.0)]
    foreign = await reasoning(stores).find_entities(call(who), FindEntities(text="the z"))
    assert "z" not in {one.id for one in foreign.entities}


async def test_a_name_inside_a_sentence_is_found(stores: Stores, who: Principal) -> None:
    question = FindEntities(text="What became of the top in 2023?", year=2023, types=("EntityProject",))
    found = await reasoning(stores).find_entities(call(who), question)
    assert [(one.id, one.years) for one in found.entities] == [("top", (2023,))]
