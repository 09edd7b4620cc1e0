"""Plans on a generated twin whose gaps are known because they were planted, on levels and with all types of the ontology."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import AsyncIterator

import pytest

from phronesis_contracts import Principal
from phronesis_contracts.twin import Level, UpsertNode
from phronesis_orchestrator.understanding.executor import execute
from phronesis_orchestrator.understanding.finding import Finding
from phronesis_orchestrator.understanding.plan import EntityRef, Filter, Gaps, Plan, Rank, Relate, Select, Selection
from phronesis_samples.twin import Question, generate
from tests.support.bus import somebody
from tests.support.graph import Stores, opened
from tests.support.plans import reader
from tests.support.servers import GraphServer
from tests.support.twins import load

pytestmark = pytest.mark.timeout(300)
TWIN = generate(nodes=700, seed=3)
YEAR = 2025
NODES = {node.key: node for node in TWIN.nodes}
LINKS = {(one.source.key, one.type, one.target.key) for one in TWIN.relationships}


@pytest.fixture(scope="module")
async def stores(graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stores]:
    async with opened(graph_server, tmp_path_factory.mktemp("generated")) as found:
        yield found


@pytest.fixture(scope="module")
async def who(stores: Stores) -> Principal:
    """Whose twin it is."""
    one = somebody()
    await load(stores, one, TWIN.batches())
    return one


async def run(stores: Stores, who: Principal, plan: Plan) -> Finding:
    return await execute(plan, reader(stores, who))


def thing(node: UpsertNode) -> EntityRef:
    years = tuple(sorted(one.year for one in TWIN.nodes if (one.type, one.id) == (node.type, node.id)))
    return EntityRef(type=node.type, id=node.id, name=node.name, level=node.level, years=years)


def neighbours(year: int) -> dict[str, set[str]]:
    """What each node of a year is linked to, in either direction."""
    found: dict[str, set[str]] = defaultdict(set)
    for source, _, target in LINKS:
        if source.endswith(f"/{year}"):
            found[source].add(target)
            found[target].add(source)
    return found


def planted(kind: str) -> list[Question]:
    """Questions about a node that stands where it is asked about."""
    return [
        one
        for one in TWIN.questions
        if getattr(one, kind) is not None and one.node in NODES and NODES[one.node].level == one.level
    ]


async def test_chains_break_where_a_step_was_taken_out_and_nowhere_else(stores: Stores, who: Principal) -> None:
    asked = planted("chain")
    assert {one.type for one in asked} >= {None, "ChainBreak", "TemporalGap"}
    for one in asked:
        plan = Gaps(entities=(thing(NODES[one.node]),), years=(one.year,), chain=one.chain)
        found = await run(stores, who, plan)
        steps = [f"{' | '.join(row['relationships'])} -> {' | '.join(row['to'])}" for row in found.rows]
        assert [row["kind"] for row in found.rows] == ([one.type] if one.type else []), one
        assert steps == ([one.missing_step] if one.type else [])


async def test_a_missing_relationship_is_missing(stores: Stores, who: Principal) -> None:
    asked = planted("relationship")
    assert asked
    for one in asked:
        plan = Gaps(entities=(thing(NODES[one.node]),), years=(one.year,), relationship=one.relationship)
        found = await run(stores, who, plan)
        truth = [(one.type, one.relationship)] if one.type else []
        assert [(row["kind"], row["relationship"]) for row in found.rows] == truth


@pytest.mark.parametrize(
    ("type", "to"),
    [
        ("EntityCapability", "EntityRisk"),
        ("SectorPerformance", "SectorObjective"),
        ("EntityCultureHealth", "EntityOrgUnit"),
        ("EntityOrgUnit", "EntityProcess"),
    ],
)
async def test_which_of_a_set_lack_a_link_to_a_type_is_known_for_every_type(
    stores: Stores, who: Principal, type: str, to: str
) -> None:
    near = neighbours(YEAR)
    members = [node for node in TWIN.nodes if node.type == type and node.year == YEAR]
    lacking = {node.id for node in members if not any(key.startswith(f"{to}/") for key in near[node.key])}
    assert lacking
    of = Selection(type=type, years=(YEAR,))
    found = await run(stores, who, Gaps(of=of, years=(YEAR,), to=to))
    assert ({row["id"] for row in found.rows}, found.value, found.total) == (lacking, len(lacking), len(members))
    names = reader(stores, who).schema.between(type, to)
    unlinked = tuple(Filter(property="id", op="unlinked", via=name, to=to) for name in names)
    same = await run(stores, who, Select(of=of.model_copy(update={"filters": unlinked})))
    assert {row["id"] for row in same.rows} == lacking


async def test_what_no_relationship_can_join_is_not_missing(stores: Stores, who: Principal) -> None:
    of = Selection(type="EntityVendor", years=(YEAR,))
    found = await run(stores, who, Gaps(of=of, years=(YEAR,), to="EntityRisk"))
    assert (found.outcome, found.rows, [note.key for note in found.notes]) == ("empty", (), ["no_such_link"])


async def test_everything_that_is_missing_names_what_was_taken_out(stores: Stores, who: Principal) -> None:
    one = next(one for one in planted("relationship") if one.type == "DirectRelationshipMissing")
    found = await run(stores, who, Gaps(entities=(thing(NODES[one.node]),), years=(one.year,)))
    assert one.relationship in {row.get("relationship") for row in found.rows}


async def test_the_way_between_two_things_is_the_shortest(stores: Stores, who: Principal) -> None:
    near = neighbours(YEAR)
    begin = next(node for node in TWIN.nodes if node.year == YEAR and node.type == "EntityVendor" and near[node.key])
    steps = {begin.key: 0}
    waiting = deque([begin.key])
    while waiting:
        at = waiting.popleft()
        for key in sorted(near[at]):
            if key not in steps:
                steps[key] = steps[at] + 1
                waiting.append(key)
    for length in (1, 2, 3, 4, 5):
        goal = NODES[min(key for key, n in steps.items() if n == length)]
        found = await run(stores, who, Relate(source=thing(begin), target=thing(goal), year=YEAR))
        assert found.value == (length if length <= 4 else None)
        names = [begin.name, *(row["name"] for row in found.links)]
        assert [row["from"] for row in found.links] == names[:-1]
        for row, (here, there) in zip(
            found.links, zip([begin.key, *found.sources[1:]], found.sources[1:], strict=False), strict=False
        ):
            ends = (here, there) if row["forward"] else (there, here)
            assert (ends[0], row["relationship"], ends[1]) in LINKS
    assert found.outcome == "no_way"


async def test_two_steps_reach_each_node_once(stores: Stores, who: Principal) -> None:
    near = neighbours(YEAR)
    begin = next(node for node in TWIN.nodes if node.year == YEAR and node.type == "EntityRisk" and near[node.key])
    two = {other for key in near[begin.key] for other in near[key]} | near[begin.key]
    found = await run(stores, who, Relate(source=thing(begin), year=YEAR, hops=2))
    assert {row["key"] for row in found.rows} == two - {begin.key}
    assert len(found.rows) == len(two - {begin.key})
    systems = await run(stores, who, Relate(source=thing(begin), year=YEAR, hops=2, to="EntityITSystem"))
    assert {row["key"] for row in systems.rows} == {key for key in two if key.startswith("EntityITSystem/")}


async def test_the_most_linked_things_come_first_with_all_that_are_level(stores: Stores, who: Principal) -> None:
    counts: dict[str, set[str]] = defaultdict(set)
    for source, name, target in LINKS:
        if name == "MONITORED_BY" and source.endswith(f"/{YEAR}"):
            counts[source].add(target)
    most = max(len(its) for its in counts.values())
    of = Selection(type="EntityCapability", years=(YEAR,))
    found = await run(stores, who, Rank(of=of, via="MONITORED_BY", to="EntityRisk"))
    first = {key.split("/")[1] for key, its in counts.items() if len(its) == most}
    assert ({row["id"] for row in found.rows}, {row["value"] for row in found.rows}) == (first, {most})


async def test_a_level_narrows_a_set(stores: Stores, who: Principal) -> None:
    of = Selection(type="EntityProcess", years=(YEAR,), level=Level.L2)
    found = await run(stores, who, Select(of=of))
    truth = {node.id for node in TWIN.nodes if (node.type, node.year, node.level) == ("EntityProcess", YEAR, Level.L2)}
    assert {row["id"] for row in found.rows} == truth
