"""Nodes of the constitutional graph, written on a real store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

from phronesis_contracts import Conflict, Forbidden, KeyReused, NotFound
from phronesis_contracts.constitution.insight import RuleHit
from phronesis_contracts.constitution.registry import NODE_LABEL, TYPES, Layer, Lifecycle
from phronesis_contracts.constitution.writes import GuardrailHit, NodeWritten, RegistryRefused
from phronesis_graph.bolt.schema import INDEXES, KEY, Schema, constitution_statements
from phronesis_graph.constitution.guardrails import Rule, RuleCache, Subject
from phronesis_graph.constitution.store import BoltRules
from phronesis_graph.settings import Dialect
from tests.support.constitution_writes import Constitution, declared
from tests.support.curators import Curators
from tests.support.graph import Stores, opened
from tests.support.personas import Persona
from tests.support.servers import GraphServer

pytestmark = pytest.mark.timeout(300)
LITERAL = (
    "'}) DETACH DELETE n //",
    "`]->() MATCH (n) DETACH DELETE n",
    "$row ${tenant} {{key}} %s",
    "\\u0027 OR 1=1; DROP TABLE nodes; --",
    '"quoted" \\" ünïcode ✓ 東京',
)


@pytest.fixture(scope="module")
async def stores(graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stores]:
    async with opened(graph_server, tmp_path_factory.mktemp("graph")) as found:
        yield found


@pytest.fixture
def graph(stores: Stores) -> Constitution:
    return Constitution(stores)


@pytest.mark.req("O-026", "O-027", "O-028", "O-029", "O-030", "O-031", "O-032", "O-033", "O-034", "O-035", "O-036", "O-037")
@pytest.mark.req("O-038", "O-039", "O-040", "O-041", "O-042", "O-043", "O-044", "O-045", "O-046", "O-047", "O-048", "O-049")
@pytest.mark.req("O-050", "O-051", "O-052", "O-053", "O-054", "O-055", "O-056", "O-057", "O-058", "O-059", "O-060", "C-09")
@pytest.mark.parametrize("name", list(TYPES))
async def test_each_type_is_read_as_it_was_written(graph: Constitution, name: str) -> None:
    kind = TYPES[name]
    given: dict[str, Any] = {"summary": "s", "description": "d", **declared(kind), "properties": {"a": [1, {"b": None}]}}
    written = await graph.create(name, title="T", **given, metadata={"n": 1.5}, provenance={"from": "a talk"})
    node = await graph.read(written.node.id)
    assert node == written.node
    told = node.model_dump(mode="json")
    assert (told["type"], told["layer"], told["version"], told["createdAt"]) == (name, kind.layer, 1, told["updatedAt"])
    assert {field: told[field] for field in given} == given
    assert {field: type(told[field]) for field in declared(kind)} == {field: type(v) for field, v in declared(kind).items()}


@pytest.mark.req("O-106", "O-062", "O-065", "O-115")
@pytest.mark.parametrize("name", list(TYPES))
async def test_a_title_is_enough_and_the_service_fills_the_rest(graph: Constitution, name: str) -> None:
    written = await graph.create(name)
    node, kind = written.node, TYPES[name]
    assert (node.status, node.created_at, node.version, node.summary) == (kind.statuses[0], node.updated_at, 1, None)
    assert (written.changed, written.acknowledged) == (("title", "status"), ())
    assert written.embedding_state == ("none" if kind.tier is None else "pending")
    assert [news.model_dump(mode="json") for news in await graph.news()] == [
        {
            "nodes": [
                {
                    "id": node.id,
                    "type": name,
                    "layer": kind.layer.value,
                    "operation": "create",
                    "version": 1,
                    "changed": ["title", "status"],
                }
            ],
            "relationships": [],
            "actor": graph.who.user,
            "number": 1,
        }
    ]


@pytest.mark.req("O-061", "C-07")
async def test_a_node_has_the_label_of_all_and_its_own(graph: Constitution) -> None:
    id = await graph.node("keyResult")
    for label in (NODE_LABEL, "KeyResult"):
        statement = f"MATCH (n:{label}) WHERE n.tenant = $tenant RETURN n.id AS id, labels(n) AS labels"
        rows = await graph.stores.run(statement, tenant=graph.who.tenant)
        assert [(row["id"], set(row["labels"])) for row in rows] == [(id, {NODE_LABEL, "KeyResult"})]


@pytest.mark.req("O-348")
async def test_a_node_tells_who_made_it_before_what_the_caller_says(graph: Constitution) -> None:
    given = {"actor": "somebody else", "from": "a talk"}
    node = (await graph.create("note", provenance=given)).node
    made = node.model_dump(mode="json")["createdAt"]
    assert node.provenance is not None
    assert list(node.provenance.items())[:3] == [("actor", graph.who.user), ("role", "admin"), ("source", "gateway")]
    assert node.provenance["at"][:23] == made[:23]
    assert node.provenance["from"] == "a talk"
    changed = (await graph.update("note", node.id, provenance={"from": "a book", "actor": "x"})).node.provenance
    assert changed == {**node.provenance, "from": "a book"}


@pytest.mark.req("O-064")
async def test_an_id_is_taken_once_in_a_tenant_and_the_first_node_stays(graph: Constitution) -> None:
    first = (await graph.create("goal", id="north-star", title="First")).node
    with pytest.raises(Conflict) as caught:
        await graph.create("value", id="north-star", title="Second")
    assert caught.value.field == "id"
    assert await graph.nodes() == [first]
    other = Constitution(graph.stores)
    await other.create("value", id="north-star", title="Theirs")
    assert [node.title for node in await other.nodes()] == ["Theirs"]
    assert await graph.nodes() == [first]


@pytest.mark.req("O-064")
async def test_of_creations_with_one_id_at_once_one_takes_place(graph: Constitution) -> None:
    tries = [graph.create("goal", id="one", title=f"Try {n}") for n in range(6)]
    found = await asyncio.gather(*tries, return_exceptions=True)
    assert sorted(type(one).__name__ for one in found) == ["Conflict"] * 5 + ["NodeWritten"]
    assert len(await graph.nodes()) == len(await graph.news()) == 1


@pytest.mark.req("O-108")
async def test_the_same_request_makes_one_node_by_its_own_id_and_by_the_calls_key(graph: Constitution) -> None:
    by_request = [await graph.create("goal", requestId="r-1") for _ in range(2)]
    by_key = [await graph.create("goal", "k-1", title="Other") for _ in range(2)]
    both = [await graph.create("goal", key, requestId="r-2", title="Both") for key in ("k-2", "k-3", None)]
    assert [len({one.node.id for one in made}) for made in (by_request, by_key, both)] == [1, 1, 1]
    assert by_request[0] == by_request[1]
    assert len(await graph.nodes()) == len(await graph.news()) == len(await graph.entries()) == 3
    for again in ({"requestId": "r-1", "title": "New"}, {"requestId": "r-2"}):
        with pytest.raises(KeyReused):
            await graph.create("goal", **again)
    await graph.by(Persona.MAESTRO).create("goal", requestId="r-1")
    assert len(await graph.nodes()) == 4


@pytest.mark.req("O-108")
async def test_the_same_request_at_once_makes_one_node(graph: Constitution) -> None:
    made = await asyncio.gather(*(graph.create("goal", requestId="r-1") for _ in range(6)))
    assert len({one.node.id for one in made}) == len(await graph.nodes()) == 1


@pytest.mark.req("O-107", "O-115")
@pytest.mark.parametrize(
    ("type", "field", "value"),
    [
        ("goal", "title", "  "),
        ("insight", "confidence", 1.5),
        ("task", "effortHours", -1),
        ("decision", "roi", {"total": float("inf")}),
        ("goal", "deadline", "soon"),
        ("task", "priority", "urgent"),
        ("goal", "status", "done"),
        ("goal", "layer", "mind"),
    ],
)
async def test_what_the_registry_does_not_allow_is_not_written_and_not_announced(
    graph: Constitution, type: str, field: str, value: Any
) -> None:
    with pytest.raises(RegistryRefused) as caught:
        await graph.create(type, **{field: value})
    assert caught.value.field == field
    assert (await graph.nodes(), await graph.news(), await graph.entries()) == ([], [], [])


@pytest.mark.req("O-109", "O-115", "O-117")
async def test_an_update_changes_what_it_names_and_tells_what_really_changed(graph: Constitution) -> None:
    before = (await graph.create("goal", title="T", summary="s", deadline="2026-11-22", colour="green")).node
    written = await graph.update("goal", before.id, title="U", summary="s", deadline="2026-12-01", colour=None)
    after = await graph.read(before.id)
    assert after == written.node
    assert (written.changed, written.embedding_state) == (("title", "deadline", "properties"), "pending")
    assert after.updated_at is not None
    assert before.updated_at is not None
    assert (after.version, after.updated_at > before.updated_at) == (2, True)
    stays = {"version", "updatedAt", "title", "deadline", "properties"}
    told = [{k: v for k, v in node.model_dump(mode="json").items() if k not in stays} for node in (before, after)]
    assert told[0] == told[1]
    assert [(news.nodes[0].operation, news.nodes[0].version, news.nodes[0].changed) for news in (await graph.news())[1:]] == [
        ("update", 2, ("title", "deadline", "properties"))
    ]


@pytest.mark.req("O-117")
async def test_an_update_with_the_same_again_changes_nothing_and_says_nothing(graph: Constitution) -> None:
    before = (await graph.create("task", dueDate="2026-11-22", effortHours=2, priority="high", a=1)).node
    again = {"title": before.title, "dueDate": "20261122", "effortHours": 2.0, "priority": 4, "a": 1, "status": "todo"}
    written = await graph.update("task", before.id, **again)
    assert written == NodeWritten(node=before, changed=(), embedding_state="current")
    assert await graph.read(before.id) == before
    assert len(await graph.news()) == len(await graph.entries()) == 1


@pytest.mark.req("O-117", "O-304")
async def test_a_field_that_is_not_embedded_leaves_the_vector_as_it_is(graph: Constitution) -> None:
    task, person = await graph.node("task"), await graph.node("human")
    assert (await graph.update("task", task, status="in_progress", priority=5)).embedding_state == "current"
    assert (await graph.update("task", task, description="More")).embedding_state == "pending"
    assert (await graph.update("human", person, description="More")).embedding_state == "none"


@pytest.mark.req("O-066", "O-065", "C-10")
async def test_a_task_goes_through_its_statuses(graph: Constitution) -> None:
    id = await graph.node("task")
    for status in ("in_progress", "done", "todo", "archived", "deprecated"):
        await graph.update("task", id, status=status)
        statement = f"MATCH (n:{NODE_LABEL}) WHERE n.tenant = $tenant RETURN n.status AS status, n.lifecycle AS lifecycle"
        lifecycle = status if status in ("archived", "deprecated") else "active"
        assert await graph.stores.run(statement, tenant=graph.who.tenant) == [{"status": status, "lifecycle": lifecycle}]
    with pytest.raises(RegistryRefused):
        await graph.update("task", id, status="blocked")


@pytest.mark.req("O-110")
async def test_an_update_by_another_types_tool_is_refused(graph: Constitution) -> None:
    node = (await graph.create("value")).node
    with pytest.raises(RegistryRefused) as caught:
        await graph.update("principle", node.id, title="Changed")
    assert (caught.value.field, "value.update.v1" in caught.value.detail) == ("id", True)
    assert await graph.read(node.id) == node


@pytest.mark.req("O-111")
async def test_a_node_of_any_type_is_changed_by_one_tool(graph: Constitution) -> None:
    task = await graph.node("task")
    written = await graph.update_node(task, title="New", fields={"effortHours": 3, "colour": "red"})
    assert written.changed == ("title", "effortHours", "properties")
    with pytest.raises(RegistryRefused) as caught:
        await graph.update_node(task, fields={"effortHours": "much"})
    assert caught.value.field == "effortHours"
    with pytest.raises(NotFound):
        await graph.update_node("nothing", title="x")


async def test_an_update_of_another_version_is_a_conflict(graph: Constitution) -> None:
    id = await graph.node("goal")
    await graph.update("goal", id, title="B", version=1)
    with pytest.raises(Conflict) as caught:
        await graph.update("goal", id, title="C", version=1)
    assert caught.value.field == "version"
    assert [node.title for node in await graph.nodes()] == ["B"]


async def test_updates_at_once_follow_each_other(graph: Constitution) -> None:
    id = await graph.node("goal")
    await asyncio.gather(*(graph.update("goal", id, **{f"p{n}": n}) for n in range(8)))
    node = await graph.read(id)
    assert node is not None
    assert (node.version, node.properties) == (9, {f"p{n}": n for n in range(8)})


@pytest.mark.req("O-112", "O-115")
async def test_a_node_goes_with_its_relationships(graph: Constitution) -> None:
    goal, vision, strategy = await graph.node("goal"), await graph.node("vision"), await graph.node("strategy")
    up = (await graph.relate(goal, "SUPPORTED_BY", vision)).relationship
    down = (await graph.relate(strategy, "SERVES", goal)).relationship
    gone = await graph.delete(goal, "once")
    assert gone.model_dump() == {"id": goal, "type": "goal", "relationships": 2}
    assert (sorted(node.id for node in await graph.nodes()), await graph.links()) == (sorted((vision, strategy)), [])
    last = (await graph.news())[-1]
    assert [(node.id, node.operation, node.version) for node in last.nodes] == [(goal, "delete", 2)]
    assert {(link.id, link.operation, link.layers) for link in last.relationships} == {
        (up.id, "delete", (Layer.VISION,)),
        (down.id, "delete", (Layer.STRATEGY, Layer.VISION)),
    }
    assert await graph.delete(goal, "once") == gone
    with pytest.raises(NotFound):
        await graph.delete(goal)


@pytest.mark.req("O-112")
async def test_a_node_with_many_relationships_is_announced_in_several_messages(graph: Constitution) -> None:
    hub = await graph.node("human")
    statement = f"MATCH (n:{NODE_LABEL} {{key: $key}}) UNWIND range(1, 300) AS i CREATE (n)-[r:KNOWS]->(n) SET r.id = 'r' + i"
    await graph.stores.run(statement, key=f"{graph.who.tenant}/constitution/{hub}")
    assert (await graph.delete(hub)).relationships == 300
    sizes = [(len(news.nodes), len(news.relationships)) for news in (await graph.news())[1:]]
    assert sizes == [(1, 250), (0, 50)]


@pytest.mark.req("O-347")
async def test_every_write_is_audited_with_what_it_did(graph: Constitution) -> None:
    goal, vision = await graph.node("goal", api_key="hush"), await graph.node("vision")
    link = (await graph.relate(goal, "SERVES", vision)).relationship
    await graph.update_node(goal, title="B")
    await graph.unrelate(link.id)
    await graph.delete(vision)
    found = await graph.entries()
    assert {(one.who, one.role, one.outcome) for one in found} == {(graph.who.user, "admin", "done")}
    ends = {"fromId": goal, "toId": vision, "type": "SERVES"}
    assert [(one.action, one.arguments) for one in found] == [
        ("goal.create.v1", {"title": "A goal", "api_key": "***", "id": goal}),
        ("vision.create.v1", {"title": "A vision", "id": vision}),
        ("relationship.create.v1", {"id": link.id, **ends}),
        ("node.update.v1", {"id": goal, "title": "B", "changed": ["title"], "version": 2}),
        ("relationship.delete.v1", {"id": link.id, **ends}),
        ("node.delete.v1", {"id": vision, "type": "vision", "relationships": 0}),
    ]
    assert graph.woken == 6


async def test_a_node_of_another_tenant_is_not_there(graph: Constitution) -> None:
    other = Constitution(graph.stores)
    theirs = (await other.create("goal", id="shared-id")).node
    for attempt in (graph.update("goal", theirs.id, title="x"), graph.update_node(theirs.id, title="x")):
        with pytest.raises(NotFound):
            await attempt
    with pytest.raises(NotFound):
        await graph.delete(theirs.id)
    assert await other.nodes() == [theirs]


@pytest.mark.req("O-350")
@pytest.mark.parametrize("text", LITERAL)
async def test_text_that_looks_like_a_statement_is_text(graph: Constitution, text: str) -> None:
    texts = {"title": text, "summary": text, "statement": text, "properties": {text: text}, "metadata": {"a": [text]}}
    id = await graph.node("value", **texts)
    node = await graph.read(id)
    assert node is not None
    assert {name: node.model_dump()[name] for name in texts} == texts
    with pytest.raises(NotFound):
        await graph.update("value", text, title="x")
    assert len(await graph.nodes()) == 1


@pytest.mark.req("O-013")
async def test_a_role_writes_its_own_layers(graph: Constitution) -> None:
    guardrail, task = await graph.node("guardrail"), await graph.node("task")
    execute = graph.by(Persona.EXECUTE)
    with pytest.raises(Forbidden):
        await execute.update_node(guardrail, title="Weaker")
    await execute.update_node(task, title="Done soon")
    assert {node.title for node in await graph.nodes()} == {"A guardrail", "Done soon"}


async def test_a_guardrail_is_enforced_on_everybody(graph: Constitution) -> None:
    rule = await graph.node("guardrail", title="No overtime", trigger="effortHours > 40", response="Split it", severity="high")
    execute = graph.by(Persona.EXECUTE)
    with pytest.raises(GuardrailHit) as caught:
        await execute.create("task", effortHours=41, acknowledge=[rule])
    assert all(part in caught.value.detail for part in (rule, "No overtime", "Split it", "effortHours is 41"))
    assert execute.refusals == [("task.create.v1", "constitution.guardrail")]
    task = await execute.node("task", effortHours=40)
    with pytest.raises(GuardrailHit):
        await execute.update("task", task, effortHours=60)
    with pytest.raises(GuardrailHit):
        await execute.update_node(task, fields={"effortHours": 60})
    assert [node.model_dump().get("effortHours") for node in await graph.nodes() if node.type == "task"] == [40.0]
    with pytest.raises(GuardrailHit):
        await graph.update("task", task, effortHours=60)


async def test_an_admin_overrides_a_rule_for_one_write_with_a_reason_that_is_audited(graph: Constitution) -> None:
    rule = await graph.node("guardrail", title="No overtime", trigger="effortHours > 40", severity="high")
    made = await graph.create("task", title="Sandbags", effortHours=60, override="the river is rising")
    assert (made.overridden, made.acknowledged) == ((rule,), ())
    entries = [one.arguments for one in await graph.entries() if one.action == "task.create.v1"]
    assert [(one["override"], one["overridden"]) for one in entries] == [("the river is rising", [rule])]
    with pytest.raises(GuardrailHit):
        await graph.create("task", title="More sandbags", effortHours=60)


async def test_nobody_but_an_admin_overrides_a_rule(graph: Constitution) -> None:
    await graph.node("guardrail", title="No overtime", trigger="effortHours > 40", severity="high")
    with pytest.raises(Forbidden) as caught:
        await graph.by(Persona.EXECUTE).create("task", title="Sandbags", effortHours=60, override="the river is rising")
    assert caught.value.field == "override"
    assert [node for node in await graph.nodes() if node.type == "task"] == []


async def test_a_guardrail_without_a_trigger_is_marked_as_enforced_by_nothing(graph: Constitution) -> None:
    idle = await graph.create("guardrail", title="Be kind")
    rule = await graph.create("guardrail", title="No overtime", trigger="effortHours > 40")
    assert (idle.enforced, rule.enforced) == (False, True)
    assert [one.id for one in (await graph.check("anything")).unenforced] == [idle.node.id]
    archived = await graph.update("guardrail", rule.node.id, status="archived")
    assert archived.enforced is False


async def test_a_mild_rule_has_to_be_named(graph: Constitution) -> None:
    rule = await graph.node("principle", title="Rest", properties={"trigger": "work at night", "severity": "low"})
    decisions = graph.by(Persona.DECISIONS)
    with pytest.raises(GuardrailHit) as caught:
        await decisions.create("decision", title="Ship", reasoning="We worked all night")
    assert caught.value.field == "acknowledge"
    made = await decisions.create("decision", title="Ship", reasoning="We worked all night", acknowledge=[rule])
    assert made.acknowledged == (rule,)
    assert (await decisions.check("to work at night")).hits[0].rule.id == rule
    assert (await decisions.check("to work by day")).hits == ()


async def test_a_rule_counts_from_its_writing_to_its_archiving(graph: Constitution) -> None:
    mind = graph.by(Persona.MIND)
    await mind.create("insight", title="Gossip")
    rule = await graph.node("guardrail", trigger="gossip", severity="block")
    with pytest.raises(GuardrailHit):
        await mind.create("insight", title="Gossip")
    await graph.update("guardrail", rule, status="archived")
    await mind.create("insight", title="Gossip")
    await graph.update_node(rule, status="active")
    assert not (await mind.check("gossip")).allowed
    await graph.delete(rule)
    assert (await mind.check("gossip")).allowed


async def test_a_change_is_held_against_rules_in_words_whatever_words_it_uses(graph: Constitution) -> None:
    rule = await graph.node("guardrail", title="Safe barn", trigger="open fire in the barn", severity="block")
    task = await graph.node("task", title="Decorate the barn")
    with pytest.raises(GuardrailHit) as caught:
        await graph.update("task", task, metadata={"lights": ["an open f1re in the ba\u200brn"]})
    assert rule in caught.value.detail
    assert (await graph.update("task", task, title="Check that there is no open fire in the barn")).node.version == 2


async def test_what_is_written_is_the_version_that_was_checked(graph: Constitution) -> None:
    await graph.node("guardrail", trigger="open fire in the barn", severity="block")
    task = await graph.node("task", title="Candles", description="for the guests")
    checked: list[int] = []

    class Overtaken(RuleCache):
        """While the first change is checked, somebody else writes."""

        async def find_hits(
            self, tenant: str, rules: Iterable[Rule], of: Subject, changed: frozenset[str] | None = None
        ) -> tuple[RuleHit, ...]:
            checked.append(len(checked))
            if len(checked) == 1:
                await graph.update("task", task, description="an open fire in the barn", override="a drill")
            return await super().find_hits(tenant, rules, of, changed)

    slow = Constitution(graph.stores, graph.who, Overtaken(BoltRules(graph.stores.bolt, graph.stores.schema)))
    with pytest.raises(GuardrailHit):
        await slow.update("task", task, title="Supper")
    assert len(checked) == 2
    assert [node.title for node in await graph.nodes() if node.id == task] == ["Candles"]


async def test_one_tenants_rules_are_not_anothers(graph: Constitution) -> None:
    await graph.node("guardrail", trigger="gossip", severity="block")
    assert (await Constitution(graph.stores).by(Persona.MIND).check("gossip")).allowed


async def test_rules_may_speak_of_what_they_forbid(graph: Constitution) -> None:
    await graph.node("guardrail", trigger="gossip", severity="block")
    await graph.by(Persona.MAESTRO).create("principle", title="No gossip")


@pytest.mark.req("O-083", "O-064")
async def test_the_schema_is_declared_again_without_a_change(stores: Stores, graph: Constitution) -> None:
    id = await graph.node("goal")
    for _ in range(2):
        await Schema(stores.bolt, stores.ontology, stores.dialect).declared()
    for statement in constitution_statements(stores.dialect):
        await stores.run(statement)
    assert [node.id for node in await graph.nodes()] == [id]
    leftovers = await stores.run(f"MATCH (n:{NODE_LABEL}) WHERE n.tenant IS NULL RETURN count(n) AS left")
    assert leftovers == [{"left": 0}]


@pytest.mark.req("O-077", "O-078", "O-079", "O-080", "O-081", "O-082")
async def test_every_index_of_the_seed_is_there(stores: Stores) -> None:
    await stores.schema.declared()
    rows = await stores.run("SHOW INDEXES YIELD name, state, labelsOrTypes, properties RETURN *")
    there = {(*(row["labelsOrTypes"] or ()), *(row["properties"] or ())): row for row in rows}
    for index in (*INDEXES, KEY):
        row = there[index.label, index.property]
        assert row["state"] == "ONLINE"
        if index is not KEY or stores.dialect is Dialect.NEO4J:  # the other store names a key's index after what it is on
            assert row["name"] == index.name


@pytest.mark.req("O-067", "O-081", "O-082", "C-13")
async def test_dates_and_returns_are_found_between_bounds_that_count(graph: Constitution) -> None:
    for day in ("2026-11-21", "2026-11-22", "2026-11-23T10:00:00+02:00", "2026-11-24"):
        await graph.create("task", title=day, dueDate=day)
    for total in (-1.5, 0, 2, 10):
        await graph.create("decision", title=str(total), roi=total)
    due = "MATCH (t:Task) WHERE t.tenant = $tenant AND t.dueDate >= $from AND t.dueDate <= $to RETURN t.title AS title"
    bounds = {"from": "2026-11-22", "to": "2026-11-24"}
    rows = await graph.stores.run(f"{due} ORDER BY t.dueDate", tenant=graph.who.tenant, **bounds)
    assert [row["title"] for row in rows] == ["2026-11-22", "2026-11-23T10:00:00+02:00", "2026-11-24"]
    best = "MATCH (d:Decision) WHERE d.tenant = $tenant AND d.roiTotal >= $least RETURN d.title AS title, d.roiTotal AS roi"
    rows = await graph.stores.run(f"{best} ORDER BY d.roiTotal DESC", tenant=graph.who.tenant, least=0)
    assert [(row["title"], row["roi"], type(row["roi"])) for row in rows] == [
        *(("10", 10.0, float), ("2", 2.0, float), ("0", 0.0, float))
    ]


async def test_no_query_tool_finds_a_node(stores: Stores, graph: Constitution) -> None:
    id = await graph.node("goal", title="Hidden")
    curator = Curators(stores, graph.who.model_copy(update=Persona.CURATOR.rights))
    mine = await curator.node("Product", name="Hidden")
    assert [one["id"] for one in (await curator.call("search_nodes", limit=100))["nodes"]] == [mine]
    for node_id in (id, f"constitution/{id}", f"Goal/{id}"):
        assert not (await curator.call("get_node_details", node_id=node_id))["success"]
        assert not (await curator.call("delete_node", node_id=node_id, force_delete=True))["success"]
    for statement in ("MATCH (n:Goal) RETURN n", f"MATCH (n:{NODE_LABEL}) RETURN n.title AS title"):
        assert not (await curator.call("query_graph", cypher_query=statement, parameters={}, read_only=True))["success"]
    assert not (await curator.call("create_node", label="Goal"))["success"]
    assert [node.status for node in await graph.nodes()] == [Lifecycle.ACTIVE]
