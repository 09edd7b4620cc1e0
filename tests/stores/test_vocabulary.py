from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from phronesis_contracts import BadRequest, Principal
from phronesis_contracts.ontology import AskVocabulary, EntityName, PropertyValues, ValueCount
from phronesis_contracts.twin import Entity, FindEntities, Level, Upsert
from phronesis_graph.twin import vocabulary_store
from tests.support.bus import somebody
from tests.support.graph import Stores, node, opened, ref
from tests.support.servers import GraphServer
from tests.support.twins import call, reasoning, telling


@pytest.fixture(scope="module")
async def stores(graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stores]:
    async with opened(graph_server, tmp_path_factory.mktemp("vocabulary")) as found:
        yield found


@pytest.fixture(scope="module")
async def who(stores: Stores) -> Principal:
    """Whose few projects they are; another tenant has some too."""
    one, other = somebody(), somebody()
    old = node("a", year=2022, rating="Amber").model_copy(update={"name": "The former a"})
    department = node("MOD", "L1", "SectorGovEntity").model_copy(update={"aliases": ("Ministry of Defence", "Defence")})
    projects = (node("a", rating="Red", whole_life_cost=30.0), node("b/2022", rating="Red", aims="To try"), old)
    await stores.upsert(one, Upsert(nodes=(*projects, department)))
    await stores.upsert(other, Upsert(nodes=(node("z", rating="Green"), node("a", year=2001))))
    return one


async def test_the_first_page_has_years_values_and_names_of_the_callers_tenant_alone(stores: Stores, who: Principal) -> None:
    found = await telling(stores).vocabulary(call(who), AskVocabulary())
    assert found.version.startswith("packaged-")
    assert (found.ontology.hierarchy, found.years, found.next) == ("PARENT_OF", (2022, 2023), None)
    red, amber = ValueCount(value="Red", nodes=2), ValueCount(value="Amber", nodes=1)
    assert found.values == (
        PropertyValues(type="EntityProject", property="rating", known=3, values=(red, amber)),
        PropertyValues(type="EntityProject", property="whole_life_cost", known=1),
        PropertyValues(type="EntityProject", property="aims", known=1),
    )
    project = {"type": "EntityProject", "level": Level.L3}
    assert found.names == (
        EntityName(**project, id="a", name="The a", aliases=("The former a",), years=(2022, 2023)),
        EntityName(**project, id="b/2022", name="The b/2022", years=(2023,)),
        EntityName(
            type="SectorGovEntity",
            id="MOD",
            name="The MOD",
            aliases=("Ministry of Defence", "Defence"),
            level=Level.L1,
            years=(2023,),
        ),
    )


async def test_pages_together_hold_every_node_once(stores: Stores, who: Principal) -> None:
    after, seen = None, []
    for _ in range(10):
        page = await telling(stores).vocabulary(call(who), AskVocabulary(after=after, limit=1))
        assert (page.values == ()) is (after is not None)
        seen += [(name.id, name.years) for name in page.names]
        after = page.next
        if after is None:
            break
    assert seen == [("a", (2022,)), ("a", (2023,)), ("b/2022", (2023,)), ("MOD", (2023,))]


async def test_a_place_that_no_page_ends_at_is_refused(stores: Stores, who: Principal) -> None:
    with pytest.raises(BadRequest) as refused:
        await telling(stores).vocabulary(call(who), AskVocabulary(after="Nothing/a/2023"))
    assert refused.value.field == "after"


async def test_more_values_than_are_listed_are_marked(stores: Stores, who: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary_store, "MOST_VALUES", 1)
    found = await telling(stores).vocabulary(call(who), AskVocabulary())
    assert found.values[0] == PropertyValues(
        type="EntityProject", property="rating", known=3, values=(ValueCount(value="Red", nodes=2),), cut=True
    )


@pytest.mark.parametrize("text", ["ministry of defence", "defence", "who runs the ministry of defence today?"])
async def test_a_thing_is_found_by_its_aliases(stores: Stores, who: Principal, text: str) -> None:
    found = await reasoning(stores).find_entities(call(who), FindEntities(text=text))
    [entity] = found.entities
    assert entity == Entity(
        type="SectorGovEntity",
        id="MOD",
        name="The MOD",
        aliases=("Ministry of Defence", "Defence"),
        level=Level.L1,
        years=(2023,),
        score=entity.score,
    )
    assert (entity.score == 1.0) is (len(text) < 20)


async def test_a_node_is_told_with_its_aliases(stores: Stores, who: Principal) -> None:
    [found] = await stores.nodes(who, ref("MOD", "SectorGovEntity"))
    assert (found.aliases, found.properties) == (("Ministry of Defence", "Defence"), {})
