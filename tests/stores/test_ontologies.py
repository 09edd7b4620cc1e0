from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from phronesis_bus import Call, News
from phronesis_contracts import BadRequest, NotFound, Principal
from phronesis_contracts.ontology import (
    ONTOLOGY_CHANGED,
    AskVocabulary,
    GetOntology,
    ListOntologies,
    Misfit,
    OntologyChanged,
    OntologyPublished,
    OntologyRefused,
    PublishOntology,
    RollBackOntology,
)
from phronesis_contracts.twin import (
    DiagnoseGaps,
    FindEntities,
    GapQuestion,
    Level,
    QueryRefused,
    ReadCypher,
    RunChain,
    Survey,
    Upsert,
)
from phronesis_graph.knowledge.store import StoreNames
from phronesis_graph.twin.active import activate_packaged
from phronesis_graph.twin.handlers import TwinHandlers
from phronesis_graph.twin.ontology_handlers import OntologyHandlers, UnfitNodes
from phronesis_graph.twin.ontology_store import BoltMisfits, BoltOntologies
from tests.support.bus import somebody
from tests.support.curators import Curators
from tests.support.graph import Stores, joined, node, opened, ref
from tests.support.personas import Persona
from tests.support.servers import GraphServer
from tests.support.twins import call, reasoning, telling

SHIPYARD = """
name: shipyard
nodes:
  Vessel:
    properties:
      tonnage: {type: number, unit: t}
      state: {type: string, enum: [afloat, docked]}
  DryDock:
  KPI:
    properties:
      order: {type: string}
relationships:
  BUILT_AT: {from: [Vessel], to: [DryDock]}
  CONTAINS: {from: [DryDock], to: [KPI]}
chains:
  Building: {steps: [Vessel, BUILT_AT, DryDock, CONTAINS, KPI]}
"""


@pytest.fixture(scope="module")
async def stores(graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stores]:
    async with opened(graph_server, tmp_path_factory.mktemp("ontologies")) as found:
        yield found


def governing(stores: Stores, ontologies: BoltOntologies | None = None) -> OntologyHandlers:
    kept = ontologies or stores.ontologies
    assert isinstance(kept, BoltOntologies)
    names = StoreNames(stores.bolt)
    return OntologyHandlers(kept, BoltMisfits(stores.bolt), names, stores.schema.declare_types, lambda: None)


def admin() -> Principal:
    return somebody(**Persona.ADMIN.rights)


async def publish(stores: Stores, who: Principal, text: str, dry_run: bool = False) -> OntologyPublished:
    return await governing(stores).publish(call(who), PublishOntology(text=text, dry_run=dry_run))


def fleet() -> Upsert:
    ships = (
        node("ann", type="Vessel", tonnage=100.0, state="afloat"),
        node("bob", type="Vessel", tonnage=40.0, state="docked"),
    )
    joins = (
        joined("BUILT_AT", ref("ann", "Vessel"), ref("north", "DryDock")),
        joined("CONTAINS", ref("north", "DryDock"), ref("days", "KPI")),
    )
    return Upsert(nodes=(*ships, node("north", type="DryDock"), node("days", type="KPI", order="first")), relationships=joins)


@pytest.fixture(scope="module")
async def who(stores: Stores) -> Principal:
    """Whose twin is a shipyard."""
    found = admin()
    await publish(stores, found, SHIPYARD)
    await stores.upsert(found, fleet())
    return found


async def survey(stores: Stores, who: Principal, **question: Any) -> Any:
    return (await reasoning(stores).survey(call(who), Survey.model_validate({"type": "Vessel"} | question))).rows


async def test_a_twin_is_surveyed_walked_and_searched_by_the_tenants_own_ontology(stores: Stores, who: Principal) -> None:
    rows = await survey(stores, who, measure="sum", of="tonnage", group_by=({"property": "state"},), order="-value")
    assert [(row["group"], row["value"]) for row in rows] == [("afloat", 100.0), ("docked", 40.0)]
    handlers = reasoning(stores)
    run = await handlers.run_chain(call(who), RunChain(chain="Building", year=2023, level=Level.L3))
    assert [[each.id for each in path.nodes] for path in run.paths if path.whole] == [["ann", "north", "days"]]
    asked = GapQuestion(id="q", node=ref("bob", "Vessel"), level=Level.L3, relationship="BUILT_AT")
    [gap] = (await handlers.diagnose_gaps(call(who), DiagnoseGaps(questions=(asked,)))).gaps
    assert (gap.type, gap.missing_step) == ("DirectRelationshipMissing", "BUILT_AT -> DryDock")
    [entity] = (await handlers.find_entities(call(who), FindEntities(text="the ann"))).entities
    assert (entity.type, entity.id) == ("Vessel", "ann")
    told = await telling(stores).vocabulary(call(who), AskVocabulary())
    assert ([each.type for each in told.names], told.version) == (["DryDock", "KPI", "Vessel", "Vessel"], "1")


async def test_the_guard_knows_each_tenants_labels_and_properties_only(stores: Stores, who: Principal) -> None:
    mine, other = Curators(stores, who), Curators(stores)
    read = "MATCH (v:Vessel)-[:BUILT_AT]->(d:DryDock) RETURN v.id, v.tonnage, d.id"
    assert (await mine.read(read)).rows == ({"v.id": "ann", "v.tonnage": 100.0, "d.id": "north"},)
    for curators, statement in (
        (other, read),
        (other, "MATCH (p:EntityProject) RETURN p.tonnage"),
        (mine, "MATCH (p:EntityProject) RETURN p.id"),
        (mine, "MATCH (v:Vessel) RETURN v.whole_life_cost"),
    ):
        with pytest.raises(QueryRefused):
            await curators.reading.read_cypher(Call(curators.who, "gateway"), ReadCypher(cypher_query=statement))


async def test_a_label_that_two_tenants_share_shows_each_its_own_nodes(stores: Stores, who: Principal) -> None:
    other = admin()
    await publish(stores, other, SHIPYARD)
    assert await survey(stores, other, measure="list") == ()
    await stores.upsert(other, Upsert(nodes=(node("ann", type="Vessel", tonnage=7.0),)))
    sums = [(await survey(stores, each, measure="sum", of="tonnage"))[0]["value"] for each in (other, who)]
    assert sums == [7.0, 140.0]
    found = await Curators(stores, other).read("MATCH (v:Vessel) RETURN v.id, v.tonnage")
    assert found.rows == ({"v.id": "ann", "v.tonnage": 7.0},)
    assert [each.properties["tonnage"] for each in await stores.nodes(other, ref("ann", "Vessel"))] == [7.0]
    [entity] = (await reasoning(stores).find_entities(call(other), FindEntities(text="ann"))).entities
    assert entity.id == "ann"


async def test_a_curator_reads_no_node_of_another_tenant_by_its_label(stores: Stores, who: Principal) -> None:
    other = Curators(stores)
    assert await other.rows("MATCH (v:Vessel) RETURN v.id AS id") == []
    assert (await other.call("search_nodes", label="Vessel", properties={}))["nodes"] == []
    assert not (await Curators(stores, who).call("create_node", label="Vessel", properties={}))["success"]


async def test_a_tenant_without_an_ontology_has_the_packaged_one_and_takes_no_foreign_types(
    stores: Stores, who: Principal
) -> None:
    other = somebody()
    assert (await stores.upsert(other, Upsert(nodes=(node("a"),)))).nodes_created == 1
    with pytest.raises(BadRequest) as refused:
        await stores.upsert(other, fleet())
    assert refused.value.field == "nodes.0.type"
    with pytest.raises(BadRequest):
        await survey(stores, other)


async def test_a_type_without_levels_has_its_nodes_at_one(stores: Stores, who: Principal) -> None:
    with pytest.raises(BadRequest) as refused:
        await stores.upsert(who, Upsert(nodes=(node("x", "L1", "Vessel"),)))
    assert refused.value.field == "nodes.0.level"


async def test_a_dry_run_says_what_would_change_and_what_would_not_fit_and_changes_nothing(stores: Stores) -> None:
    who = admin()
    await publish(stores, who, SHIPYARD)
    await stores.upsert(who, fleet())
    text = SHIPYARD.replace("[afloat, docked]", "[afloat]").replace(
        "  KPI:\n    properties:\n      order: {type: string}\n", ""
    )
    text = text.replace("  CONTAINS: {from: [DryDock], to: [KPI]}\n", "")
    text = text.partition("chains:")[0] + "hierarchy: PART_OF\n"
    found = await publish(stores, who, text, dry_run=True)
    assert (found.version, found.dry_run) == (1, True)
    assert (found.changes.added, found.changes.changed) == (("PART_OF",), ("Vessel.state",))
    assert found.changes.removed == ("Building", "CONTAINS", "KPI")
    gone, state, lost = sorted(found.changes.misfits, key=lambda misfit: (misfit.property or "", misfit.type), reverse=False)[
        -3:
    ]
    assert {(m.type, m.property, m.relationship, m.count, m.blocking) for m in (gone, state, lost)} == {
        ("KPI", None, None, 1, False),
        ("Vessel", "state", None, 1, False),
        ("DryDock", None, "CONTAINS", 1, False),
    }
    assert (await governing(stores).get(call(who), GetOntology())).version == 1
    assert (await publish(stores, who, text)).version == 2
    with pytest.raises(BadRequest):
        await survey(stores, who, type="KPI")
    rows = await survey(stores, who, measure="list", show=("state",))
    assert [row["state"] for row in rows] == ["afloat", "docked"]


async def test_the_way_back_finds_again_what_was_not_declared_meanwhile(stores: Stores) -> None:
    who = admin()
    await publish(stores, who, SHIPYARD)
    await stores.upsert(who, fleet())
    handlers = governing(stores)
    packaged = await handlers.rollback(call(who), RollBackOntology(version=0))
    assert (packaged.version, {misfit.type for misfit in packaged.changes.misfits}) == (0, {"Vessel", "DryDock", "KPI"})
    with pytest.raises(BadRequest):
        await survey(stores, who)
    back = await handlers.rollback(call(who), RollBackOntology(version=1))
    assert (back.version, back.ontology.name, back.changes.misfits) == (1, "shipyard", ())
    assert len(await survey(stores, who, measure="list")) == 2
    listed = (await handlers.versions(call(who), ListOntologies())).versions
    assert [(each.version, each.active, each.by) for each in listed] == [(1, True, who.user), (0, False, None)]
    with pytest.raises(NotFound):
        await handlers.rollback(call(who), RollBackOntology(version=7))


async def test_the_active_file_published_again_makes_no_version(stores: Stores) -> None:
    who = admin()
    first, again = await publish(stores, who, SHIPYARD), await publish(stores, who, SHIPYARD)
    assert (first.version, again.version, again.changes.added) == (1, 1, ())


async def test_values_of_another_kind_keep_a_property_from_changing_its_kind(stores: Stores) -> None:
    who = admin()
    await publish(stores, who, SHIPYARD)
    await stores.upsert(who, fleet())
    text = SHIPYARD.replace("state: {type: string, enum: [afloat, docked]}", "state: {type: number}")
    found = await publish(stores, who, text, dry_run=True)
    assert found.changes.misfits == (
        Misfit(type="Vessel", property="state", count=2, because="a number is needed", blocking=True),
    )
    with pytest.raises(UnfitNodes) as refused:
        await publish(stores, who, text)
    assert refused.value.field == "nodes.Vessel.properties.state.type"


async def test_a_label_that_the_tenants_agents_use_is_no_type(stores: Stores) -> None:
    curators = Curators(stores, admin())
    await curators.node("Freighter")
    text = "name: x\nnodes:\n  Freighter:\n"
    with pytest.raises(OntologyRefused) as refused:
        await publish(stores, curators.who, text)
    assert refused.value.field == "nodes.Freighter"
    other = admin()
    assert (await publish(stores, other, text)).version == 1
    await stores.upsert(other, Upsert(nodes=(node("f", type="Freighter"),)))
    assert await survey(stores, other, type="Freighter", measure="count") == ({"value": 1, "known": 1, "unknown": 0},)


async def test_a_type_with_the_name_of_another_tenants_relationship_is_refused(stores: Stores, who: Principal) -> None:
    with pytest.raises(OntologyRefused) as refused:
        await publish(stores, admin(), "name: x\nnodes:\n  CONTAINS:\n")
    assert refused.value.field == "nodes.CONTAINS"


async def test_another_copy_drops_what_it_kept_when_it_hears_of_a_change(stores: Stores) -> None:
    who = admin()
    copy = BoltOntologies(stores.bolt, stores.schema, activate_packaged())
    assert (await copy.of(who.tenant)).ontology.version == 0
    await publish(stores, who, SHIPYARD)
    assert (await copy.of(who.tenant)).ontology.version == 0
    sent = [each for each in await stores.outbox.unsent(10_000) if each.tenant == who.tenant]
    assert ONTOLOGY_CHANGED.on(who.tenant) in [each.subject for each in sent]
    await copy.on_ontology_changed(News(who.tenant, "1", 1), OntologyChanged(version=1))
    assert (await copy.of(who.tenant)).ontology.version == 1


async def test_a_copy_that_heard_of_no_change_writes_nothing_by_the_ontology_before(stores: Stores) -> None:
    who = admin()
    copy = BoltOntologies(stores.bolt, stores.schema, activate_packaged())
    assert (await copy.of(who.tenant)).ontology.version == 0
    await publish(stores, who, SHIPYARD)
    late = TwinHandlers(copy, stores.twin, lambda: None)
    with pytest.raises(BadRequest) as refused:
        await late.upsert(call(who), Upsert(nodes=(node("a"),)))
    assert refused.value.field == "nodes.0.type"
    assert (await late.upsert(call(who), Upsert(nodes=(node("ann", type="Vessel"),)))).nodes_created == 1


async def test_of_two_who_publish_at_once_one_is_told_so(stores: Stores) -> None:
    who = admin()
    texts = [SHIPYARD.replace("shipyard", name) for name in ("one", "two")]
    found = await asyncio.gather(*(publish(stores, who, text) for text in texts), return_exceptions=True)
    versions = [each.version for each in found if isinstance(each, OntologyPublished)]
    assert versions in ([1], [1, 2], [2, 1])
    assert len((await governing(stores).versions(call(who), ListOntologies())).versions) == len(versions) + 1
