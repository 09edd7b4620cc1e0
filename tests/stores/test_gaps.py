from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

import pytest

from phronesis_contracts import BadRequest, Principal
from phronesis_contracts.twin import DiagnoseGaps, Gap, GapQuestion, GapType, Level, NodeRef, Upsert
from phronesis_samples.twin.generator import generate
from tests.support.bus import somebody
from tests.support.graph import Stores, joined, node, opened, ref
from tests.support.servers import GraphServer
from tests.support.twins import call, diagnosed, found, load, planted, reasoning

SEED = 11


@pytest.fixture(scope="module")
async def stores(graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stores]:
    async with opened(graph_server, tmp_path_factory.mktemp("gaps")) as found:
        yield found


async def gap(stores: Stores, who: Principal, question: GapQuestion) -> Gap | None:
    answer = await reasoning(stores).diagnose_gaps(call(who), DiagnoseGaps(questions=(question,)))
    return answer.gaps[0] if answer.gaps else None


def about(
    node: NodeRef, level: str = "L3", other: NodeRef | None = None, chain: str | None = None, relationship: str | None = None
) -> GapQuestion:
    return GapQuestion(id="q", node=node, level=Level(level), other=other, chain=chain, relationship=relationship)


@pytest.mark.req("N-160", "N-162", "N-163", "N-164", "N-165", "NC-078")
@pytest.mark.timeout(300)
async def test_every_planted_gap_is_found_and_nothing_else(stores: Stores) -> None:
    """Recall and precision are 1.0 on a made-up twin, whose planter shares no code with the finder."""
    who, twin = somebody(), generate(2_000, SEED)
    await load(stores, who, twin.batches())
    answers = await diagnosed(reasoning(stores), who, twin)
    assert found(gap for answer in answers for gap in answer.gaps) == planted(twin)
    assert sum(answer.asked for answer in answers) == len(twin.questions)
    assert not [id for answer in answers for id in answer.unknown]
    assert set(Counter(one.type for one in twin.questions)) == {None, *(type.value for type in GapType)}


@pytest.mark.req("N-190")
@pytest.mark.timeout(300)
async def test_a_made_up_twin_joins_no_two_levels(stores: Stores) -> None:
    who = somebody()
    await load(stores, who, generate(500, SEED).batches())
    rows = await stores.run(
        "MATCH (a)-[r]->(b) WHERE a.tenant = $tenant AND b.tenant = $tenant AND type(r) <> 'PARENT_OF' "
        "AND (a.level <> b.level OR a.year <> b.year) RETURN count(r) AS found",
        tenant=who.tenant,
    )
    assert rows == [{"found": 0}]


UNIT, PROJECT = ref("u", "EntityOrgUnit"), ref("p")


@pytest.mark.req("N-162", "N-159")
async def test_a_project_without_any_gap_closing_relationship_lacks_it(stores: Stores) -> None:
    who = somebody()
    await stores.upsert(who, Upsert(nodes=(node("p"), node("u", type="EntityOrgUnit"))))
    assert await gap(stores, who, about(PROJECT, relationship="CLOSE_GAPS")) == Gap(
        question="q",
        type=GapType.DIRECT,
        year=2023,
        level=Level.L3,
        last_node="EntityProject/p/2023",
        missing_step="CLOSE_GAPS -> EntityOrgUnit | EntityProcess | EntityITSystem",
        because="EntityProject/p/2023 is there at L3 and has none.",
    )
    of_two = await gap(stores, who, about(PROJECT, other=UNIT))
    assert of_two is not None
    assert (of_two.type, of_two.pair) == (GapType.DIRECT, ("EntityProject/p/2023", "EntityOrgUnit/u/2023"))
    await stores.upsert(who, Upsert(relationships=(joined("CLOSE_GAPS", PROJECT, UNIT),)))
    assert await gap(stores, who, about(PROJECT, relationship="CLOSE_GAPS")) is None
    assert await gap(stores, who, about(PROJECT, other=UNIT)) is None
    narrowed = await gap(stores, who, about(PROJECT, other=UNIT, relationship="GAPS_SCOPE"))
    assert narrowed is not None
    assert narrowed.missing_step == "GAPS_SCOPE -> EntityOrgUnit/u/2023"


@pytest.mark.req("N-163")
async def test_what_only_another_year_has_is_a_temporal_gap(stores: Stores) -> None:
    who = somebody()
    past = ref("p", year=2025)
    await stores.upsert(who, Upsert(nodes=(node("p", year=2025),)))
    missing = await gap(stores, who, about(ref("p", year=2026)))
    assert missing is not None
    assert (missing.type, missing.missing_step) == (GapType.TEMPORAL, "EntityProject/p/2026")
    assert missing.because == "EntityProject/p/2026 is not there; EntityProject/p is in 2025."
    assert await gap(stores, who, about(past)) is None


@pytest.mark.req("N-164", "NC-069")
async def test_a_project_joined_to_a_unit_of_another_level_alone_is_a_level_mismatch(stores: Stores) -> None:
    """The service refuses to write such a relationship; data that came another way may have it."""
    who = somebody()
    await stores.upsert(who, Upsert(nodes=(node("p"), node("u", "L2", type="EntityOrgUnit"))))
    await stores.run(
        "MATCH (p:EntityProject {key: $p}) MATCH (u:EntityOrgUnit {key: $u}) CREATE (p)-[:CLOSE_GAPS]->(u)",
        p=f"{who.tenant}/{PROJECT.key}",
        u=f"{who.tenant}/{UNIT.key}",
    )
    mismatch = await gap(stores, who, about(PROJECT, relationship="CLOSE_GAPS"))
    assert mismatch is not None
    assert mismatch.type is GapType.LEVEL
    assert mismatch.because == "In 2023 EntityProject/p/2023 has this at L2, not at L3."
    walked = await gap(stores, who, about(PROJECT, chain="Tactical_to_Strategy"))
    assert walked is not None
    assert (walked.type, walked.last_node) == (GapType.LEVEL, "EntityProject/p/2023")
    assert (await gap(stores, who, about(PROJECT, other=UNIT))) is not None


@pytest.mark.req("N-165", "N-160")
async def test_a_chain_whose_middle_step_is_missing_breaks_there(stores: Stores) -> None:
    who = somebody()
    capability, risk, tool = ref("c", "EntityCapability"), ref("r", "EntityRisk"), ref("t", "SectorPolicyTool")
    nodes = (node("c", type="EntityCapability"), node("r", type="EntityRisk"), node("t", type="SectorPolicyTool"))
    await stores.upsert(who, Upsert(nodes=nodes, relationships=(joined("MONITORED_BY", capability, risk),)))
    broken = await gap(stores, who, about(capability, chain="Risk_Build_Mode"))
    assert broken == Gap(
        question="q",
        type=GapType.CHAIN,
        year=2023,
        level=Level.L3,
        chain="Risk_Build_Mode",
        last_node="EntityRisk/r/2023",
        missing_step="INFORMS -> SectorPolicyTool",
        because="From EntityCapability/c/2023 the chain takes 1 of 2 steps in 2023 at L3 and stops at EntityRisk/r/2023.",
    )
    await stores.upsert(who, Upsert(relationships=(joined("INFORMS", risk, tool),)))
    assert await gap(stores, who, about(capability, chain="Risk_Build_Mode")) is None


async def test_a_chain_ends_neither_in_another_year_nor_in_another_tenant(stores: Stores) -> None:
    """Relationships that no service would write join both; the walk takes neither."""
    one, other = somebody(), somebody()
    await stores.upsert(one, Upsert(nodes=(node("c", type="EntityCapability"), node("r", type="EntityRisk", year=2022))))
    await stores.upsert(other, Upsert(nodes=(node("r", type="EntityRisk"),)))
    for tenant, year in ((one.tenant, 2022), (other.tenant, 2023)):
        await stores.run(
            "MATCH (c:EntityCapability {key: $c}) MATCH (r:EntityRisk {key: $r}) CREATE (c)-[:MONITORED_BY]->(r)",
            c=f"{one.tenant}/EntityCapability/c/2023",
            r=f"{tenant}/EntityRisk/r/{year}",
        )
    broken = await gap(stores, one, about(ref("c", "EntityCapability"), chain="Risk_Build_Mode"))
    assert broken is not None
    assert (broken.type, broken.last_node) == (GapType.CHAIN, "EntityCapability/c/2023")


async def test_a_node_that_is_there_in_no_year_is_unknown_and_no_gap(stores: Stores) -> None:
    one, other = somebody(), somebody()
    await stores.upsert(other, Upsert(nodes=(node("p"),)))
    answer = await reasoning(stores).diagnose_gaps(call(one), DiagnoseGaps(questions=(about(PROJECT),)))
    assert (answer.gaps, answer.asked, answer.unknown) == ((), 1, ("q",))


@pytest.mark.parametrize(
    ("question", "field", "says"),
    [
        (about(ref("p", "EntityProjekt")), "questions.0.node.type", "EntityProject"),
        (about(PROJECT, chain="SectorOp"), "questions.0.chain", "SectorOps"),
        (about(ref("v", "EntityVendor"), chain="SectorOps"), "questions.0.node.type", "leads on from no EntityVendor"),
        (about(PROJECT, other=ref("v", "EntityVendor")), "questions.0.other.type", "joins no EntityProject and EntityVendor"),
        (about(PROJECT, other=ref("u", "EntityOrgUnit", 2022)), "questions.0.other.year", "one year"),
        (about(PROJECT, relationship="CLOSE_GAP"), "questions.0.relationship", "CLOSE_GAPS"),
        (about(PROJECT, relationship="INFORMS"), "questions.0.relationship", "EntityProject has no INFORMS"),
        (about(PROJECT, other=UNIT, relationship="INFORMS"), "questions.0.relationship", "GAPS_SCOPE"),
        (about(PROJECT, chain="SectorOps", relationship="INFORMS"), "questions.0.chain", "names no pair"),
    ],
)
async def test_a_question_that_does_not_fit_the_ontology_is_refused(
    stores: Stores, question: GapQuestion, field: str, says: str
) -> None:
    with pytest.raises(BadRequest, match=says) as caught:
        await gap(stores, somebody(), question)
    assert caught.value.field == field


async def test_two_questions_of_one_id_are_refused(stores: Stores) -> None:
    with pytest.raises(BadRequest) as caught:
        await reasoning(stores).diagnose_gaps(call(somebody()), DiagnoseGaps(questions=(about(PROJECT), about(PROJECT))))
    assert caught.value.field == "questions.1.id"
