"""The memory service on a real broker and a real Postgres; the graph is scripted, the embedder made of words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import uuid4

import pytest

from phronesis_bus import Bus, Call, News, announce, ask, connect, follow, serve
from phronesis_contracts import BadRequest, Forbidden, Nothing, Principal, Unavailable
from phronesis_contracts.memory import (
    KNOWLEDGE_STORED,
    PROFILE_GET,
    PROFILE_PUT,
    RECALL,
    REMEMBER,
    RETRIEVE,
    AugmentedMemoryContext,
    ItemKind,
    KnowledgeStored,
    Profile,
    Recall,
    Recalled,
    Remember,
    RememberItem,
    Retrieve,
)
from phronesis_contracts.orchestrator import TURN_ENDED, Audited, TurnEndedNews, TurnStatus
from phronesis_contracts.service import AUDITED, HEALTH
from phronesis_contracts.twin import (
    EXPAND,
    NODE_CHANGED,
    NODES,
    ChangedNode,
    Expand,
    Expanded,
    Level,
    Node,
    NodeChanged,
    NodeKeys,
    Nodes,
    NodeText,
)
from phronesis_memory.app import assemble, build
from phronesis_memory.settings import MemorySettings
from phronesis_postgres import Database
from tests.support.bus import eventually
from tests.support.memory import ScriptedGraph, WordEmbedder, open_index, someone
from tests.support.personas import Persona
from tests.support.servers import NatsServer, PostgresServer, VectorServer


@dataclass
class World:
    """The service, its neighbours, and what they have heard."""

    gateway: Bus
    graph: Bus
    orchestrator: Bus
    embedder: WordEmbedder
    script: ScriptedGraph
    stored: list[tuple[str, KnowledgeStored]] = field(default_factory=list)
    audits: list[tuple[str, Audited]] = field(default_factory=list)

    async def remember(self, who: Principal, *items: RememberItem) -> list[str]:
        done = await ask(self.gateway, who, REMEMBER, Remember(items=items), key=uuid4().hex)
        return [item.id for item in done.items]

    async def recall(self, who: Principal, query: str, *kinds: ItemKind) -> Recalled:
        return await ask(self.gateway, who, RECALL, Recall(query=query, kinds=kinds))

    async def retrieve(self, who: Principal, *phrases: str) -> AugmentedMemoryContext:
        return await ask(self.orchestrator, who, RETRIEVE, Retrieve(key_phrases=phrases))


@asynccontextmanager
async def _world(nats: NatsServer, postgres: PostgresServer, weaviate: VectorServer | None) -> AsyncIterator[World]:
    embedder, script = WordEmbedder(same={"hospit": "clinic"}), ScriptedGraph()
    async with (
        postgres.fresh_schema("memory") as where,
        Database.open(where, "memory") as database,
        open_index(weaviate, database, embedder) as index,
        connect("gateway", nats.settings("gateway")) as gateway,
        connect("graph", nats.settings("graph")) as graph,
        connect("orchestrator", nats.settings("orchestrator")) as orchestrator,
        connect("memory", nats.settings("memory")) as memory,
    ):
        world = World(gateway, graph, orchestrator, embedder, script)
        await _neighbours(world)
        await build(memory, database, embedder, MemorySettings(stage_seconds=4), index)
        yield world
        await memory.stop()


async def _neighbours(world: World) -> None:
    async def expand(call: Call, request: Expand) -> Expanded:
        return Expanded(items=await world.script.expand(call.who, request.ids, request.hops, request.limit))

    async def nodes(call: Call, request: NodeKeys) -> Nodes:
        return Nodes(nodes=await world.script.nodes(call.who.tenant, request.keys))

    async def on_stored(news: News, event: KnowledgeStored) -> None:
        world.stored.append((news.tenant, event))

    async def on_audited(news: News, event: Audited) -> None:
        world.audits.append((news.tenant, event))

    await serve(world.graph, EXPAND, expand)
    await serve(world.graph, NODES, nodes)
    await follow(world.graph, KNOWLEDGE_STORED, on_stored)
    await follow(world.orchestrator, AUDITED["memory"], on_audited)


@pytest.fixture(scope="module")
async def world(nats_server: NatsServer, postgres: PostgresServer, weaviate: VectorServer | None) -> AsyncIterator[World]:
    async with _world(nats_server, postgres, weaviate) as opened:
        yield opened


def _fact(text: str, external_id: str | None = None, *links: str) -> RememberItem:
    return RememberItem(text=text, external_id=external_id, links=links)


def _node(key: str, text: str, version: int = 1) -> Node:
    type, id, year = key.split("/")
    texts = (NodeText(field="aims", text=text),)
    return Node(key=key, type=type, id=id, year=int(year), name="Named", level=Level.L2, version=version, texts=texts)


async def test_what_is_remembered_is_recalled_with_the_reason(world: World) -> None:
    who = someone()
    ids = await world.remember(who, _fact("an okapi", "a"), _fact("a zebra", "b"))
    found = await world.recall(who, "okapi")
    best = found.items[0]
    assert (best.id, best.external_id, best.text, found.degraded) == (ids[0], "a", "an okapi", ())
    assert 0.5 < best.score <= 1.0
    assert best.why["vector"] == pytest.approx(1.0, abs=1e-3)
    assert best.why["text"] > 0


@pytest.mark.req("D-071", "D-077")
async def test_a_phrase_without_a_word_of_the_item_finds_it(world: World) -> None:
    who = someone()
    ids = await world.remember(who, _fact("the hospital"))
    assert [seed.id for seed in (await world.retrieve(who, "clinics")).seeds] == ids


async def test_news_of_what_was_stored_reaches_the_graph_and_the_audit(world: World) -> None:
    who = someone()
    ids = await world.remember(who, _fact("one", "a"), _fact("two", "b", "a"))
    await eventually(lambda: any(t == who.tenant for t, _ in world.stored) and any(t == who.tenant for t, _ in world.audits))
    stored = next(event for tenant, event in world.stored if tenant == who.tenant)
    assert (stored.owner, [n.id for n in stored.nodes], [(k.source, k.target, k.type) for k in stored.links]) == (
        who.user,
        ids,
        [(ids[1], ids[0], "RELATED_TO")],
    )
    entry = next(event for tenant, event in world.audits if tenant == who.tenant)
    assert (entry.who, entry.action, entry.arguments["items"]) == (who.user, "remember", 2)


async def test_an_editor_may_not_remember(world: World) -> None:
    who = someone().model_copy(update=Persona.EDITOR.rights)
    with pytest.raises(Forbidden):
        await world.remember(who, _fact("x"))


@pytest.mark.req("D-165")
async def test_two_users_with_the_same_words_share_no_row_at_any_step(world: World) -> None:
    ann = someone()
    bob, stranger = someone(ann.tenant), someone(user=ann.user)
    items = (_fact("the secret okapi", "a"), _fact("its keeper", "b"))
    ids = {who: await world.remember(who, *items) for who in (ann, bob, stranger)}
    # The graph is wrong on purpose: it joins all of them.
    world.script.links += [(ids[ann][0], ids[who][1]) for who in (ann, bob, stranger)]
    for who in (ann, bob, stranger):
        context = await world.retrieve(who, "okapi")
        assert {item.id for item in (*context.memory_units, *context.concepts)} <= set(ids[who])
        assert {seed.id for seed in context.seeds} == {ids[who][0]}
        assert {item.id for item in (await world.recall(who, "okapi secret keeper")).items} == set(ids[who])


@pytest.mark.req("D-066")
async def test_a_retrieval_without_phrases_is_refused_by_name(world: World) -> None:
    with pytest.raises(BadRequest) as error:
        await ask(world.orchestrator, someone(), RETRIEVE, Retrieve.model_construct(key_phrases=()))
    assert error.value.field == "key_phrases"


@pytest.mark.req("D-075", "D-100")
async def test_seeds_and_context_tell_memory_units_from_concepts(world: World) -> None:
    who = someone()
    concept = RememberItem(text="an animal of the forest", title="Okapi", kind=ItemKind.CONCEPT)
    unit, idea = await world.remember(who, _fact("we saw an okapi"), concept)
    context = await world.retrieve(who, "okapi")
    assert {seed.id: seed.type.value for seed in context.seeds} == {unit: "MemoryUnit", idea: "Concept"}
    assert ([item.id for item in context.memory_units], [item.id for item in context.concepts]) == ([unit], [idea])


@pytest.mark.req("D-067", "D-070", "D-085", "D-T06")
async def test_retrieval_goes_from_search_to_the_graph_to_the_store(world: World) -> None:
    who = someone()
    ids = await world.remember(who, _fact("an okapi"), _fact("something else entirely"))
    world.script.links.append((ids[1], ids[0]))
    context = await world.retrieve(who, "okapi")
    found = [(item.id, item.hop, item.matched_phrase) for item in context.memory_units]
    assert found == [(ids[0], 0, "okapi"), (ids[1], 1, None)]
    assert (context.missing_ids, context.dropped, context.degraded) == ((), 0, ())


@pytest.mark.req("D-079", "D-087")
async def test_a_phrase_of_nonsense_has_no_seeds(world: World) -> None:
    who = someone()
    await world.remember(who, _fact("an okapi"))
    asked = len(world.script.expanded)
    context = await world.retrieve(who, "flibber gronk")
    assert (context.seeds, context.memory_units, context.concepts, len(world.script.expanded)) == ((), (), (), asked)


@pytest.mark.req("D-138", "D-166")
async def test_without_the_graph_the_seeds_still_come(world: World) -> None:
    who = someone()
    ids = await world.remember(who, _fact("an okapi"))
    world.script.down = True
    try:
        context = await world.retrieve(who, "okapi")
    finally:
        world.script.down = False
    assert ([item.id for item in context.memory_units], context.degraded) == (ids, ("graph",))


@pytest.mark.req("D-163", "X-C05")
async def test_a_phrase_that_is_a_query_is_only_words(world: World) -> None:
    who = someone()
    ids = await world.remember(who, _fact("an okapi"))
    asked = len(world.script.expanded)
    context = await world.retrieve(who, "okapi' }) DETACH DELETE n // '; DROP TABLE items; --")
    assert {seed.id for seed in context.seeds} <= set(ids)
    assert all(asked_ids == tuple(ids) for asked_ids in world.script.expanded[asked:])
    assert [item.id for item in (await world.recall(who, "okapi")).items] == ids


async def test_the_texts_of_a_changed_node_are_found_by_the_whole_tenant_and_no_other(world: World) -> None:
    ann, stranger = someone(), someone()
    key = "Project/P1/2021"
    world.script.known[ann.tenant, key] = _node(key, "It digs a tunnel")
    changed = NodeChanged(nodes=(ChangedNode(key=key, version=1),))
    for _ in range(2):
        await announce(world.graph, ann.tenant, NODE_CHANGED, changed)

    async def found() -> bool:
        return bool((await world.recall(someone(ann.tenant), "tunnel")).items)

    await eventually(found)
    items = (await world.recall(ann, "tunnel", ItemKind.NODE)).items
    assert [(item.external_id, item.title, item.text) for item in items] == [(key, "Named", "It digs a tunnel")]
    assert (await world.recall(stranger, "tunnel")).items == ()


async def test_news_that_cannot_be_handled_yet_is_handled_later(world: World) -> None:
    who, key = someone(), "Project/P2/2021"
    world.script.known[who.tenant, key] = _node(key, "It builds a harbour")
    world.embedder.down = True
    tried = len(world.script.asked)
    await announce(world.graph, who.tenant, NODE_CHANGED, NodeChanged(nodes=(ChangedNode(key=key, version=1),)))
    await eventually(lambda: len(world.script.asked) >= tried + 2)
    world.embedder.down = False

    async def found() -> bool:
        return len((await world.recall(who, "harbour")).items) == 1

    await eventually(found)


async def test_a_turn_told_three_times_is_one_episode(world: World) -> None:
    who, turn = someone(), uuid4().hex
    ended = TurnEndedNews(
        turn_id=turn,
        conversation_id="c",
        user=who.user,
        agent="dialogue",
        status=TurnStatus.COMPLETED,
        user_text="Where is the okapi?",
        reply_text="In the forest.",
    )
    later = ended.model_copy(update={"turn_id": uuid4().hex, "user_text": "And the zebra, where is it?"})
    for event in (ended, ended, ended, later):
        await announce(world.orchestrator, who.tenant, TURN_ENDED, event)

    async def both() -> bool:
        return len((await world.recall(who, "where", ItemKind.EPISODE)).items) == 2

    await eventually(both)
    texts = {item.external_id: item.text for item in (await world.recall(who, "okapi", ItemKind.EPISODE)).items}
    assert texts[f"turn:{turn}"] == "User: Where is the okapi?\nAssistant: In the forest."
    assert len(texts) == 2


async def test_a_profile_is_kept_and_belongs_to_its_user(world: World) -> None:
    ann = someone()
    await ask(world.orchestrator, ann, PROFILE_PUT, Profile(profile={"name": "Ann"}), key=uuid4().hex)
    assert (await ask(world.orchestrator, ann, PROFILE_GET, Nothing())).profile == {"name": "Ann"}
    assert (await ask(world.orchestrator, someone(ann.tenant), PROFILE_GET, Nothing())).profile == {}


@pytest.mark.req("D-137", "D-166")
async def test_without_postgres_it_says_so_and_comes_back(tmp_path_factory: pytest.TempPathFactory) -> None:
    server = PostgresServer(tmp_path_factory.mktemp("own-postgres"))
    await server.start()
    try:
        async with server.fresh_schema("memory") as where, Database.open(where, "memory") as database:
            await _outage(server, database)
            await server.start()
            await _back(database)
    finally:
        await server.stop()


WHO = someone()


async def _outage(server: PostgresServer, database: Database) -> None:
    handlers, vectors = assemble(database, WordEmbedder(), ScriptedGraph(), MemorySettings(stage_seconds=4), lambda: None)
    call = Call(WHO, "orchestrator")
    await handlers.remember(call, Remember(items=(_fact("an okapi"),)))
    await server.kill()
    context = await handlers.retrieve(call, Retrieve(key_phrases=("okapi",)))
    assert (context.seeds, context.memory_units, context.degraded) == ((), (), ("vector", "text"))
    for work in (handlers.recall(call, Recall(query="okapi")), vectors.check(), database.ping()):
        with pytest.raises(Unavailable):
            await work


async def _back(database: Database) -> None:
    handlers, _ = assemble(database, WordEmbedder(), ScriptedGraph(), MemorySettings(stage_seconds=4), lambda: None)
    found = await handlers.recall(Call(WHO, "orchestrator"), Recall(query="okapi"))
    assert [item.text for item in found.items] == ["an okapi"]


async def test_its_health_names_nothing_when_all_is_well(world: World) -> None:
    health = await ask(world.gateway, someone(), HEALTH["memory"], Nothing())
    assert (health.service, health.ready, health.down) == ("memory", True, ())
