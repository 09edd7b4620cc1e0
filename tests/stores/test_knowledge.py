"""The store of items and its full-text index, on a real Postgres."""

from __future__ import annotations

import math
import random
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from phronesis_bus import News
from phronesis_contracts import BadRequest, KeyReused, Nothing, Principal
from phronesis_contracts.memory import ItemKind, Profile, Recall, Remember, RememberItem
from phronesis_contracts.orchestrator import TurnEndedNews, TurnStatus
from phronesis_contracts.twin import ChangedNode, Level, Node, NodeChanged, NodeText
from phronesis_memory.values import Audience
from phronesis_memory.words.analysis import stems
from phronesis_memory.words.store import PostgresTexts
from phronesis_postgres import EVERY_TENANT
from tests.support.memory import Memory, WordEmbedder, calling, open_memory, someone
from tests.support.servers import PostgresServer, VectorServer


@pytest.fixture(scope="module")
async def memory(postgres: PostgresServer, weaviate: VectorServer | None) -> AsyncIterator[Memory]:
    async with open_memory(postgres, weaviate) as opened:
        yield opened


async def _remember(memory: Memory, who: Principal, *items: RememberItem, key: str | None = None) -> list[tuple[str, str]]:
    done = await memory.handlers.remember(calling(who, key), Remember(items=items))
    return [(item.id, item.status) for item in done.items]


async def _rows(memory: Memory, statement: str, *arguments: Any) -> list[Any]:
    async with memory.database.transaction(EVERY_TENANT) as connection:
        return [tuple(row) for row in await connection.fetch(statement, *arguments)]


def _fact(text: str, **more: Any) -> RememberItem:
    return RememberItem(text=text, **more)


async def test_the_same_external_id_keeps_its_item_and_says_what_became_of_it(memory: Memory) -> None:
    who = someone()
    first = await _remember(memory, who, _fact("tea", external_id="a"))
    same = await _remember(memory, who, _fact("tea", external_id="a"))
    other = await _remember(memory, who, _fact("coffee", external_id="a"))
    id = first[0][0]
    assert [first, same, other] == [[(id, "created")], [(id, "unchanged")], [(id, "updated")]]
    recalled = await memory.handlers.recall(calling(who), Recall(query="coffee tea"))
    assert [(item.id, item.text) for item in recalled.items] == [(id, "coffee")]


async def test_what_is_unchanged_is_not_embedded_again(memory: Memory) -> None:
    who, text = someone(), f"only once {uuid4().hex}"
    for _ in range(2):
        await _remember(memory, who, _fact(text, external_id="a"))
    assert memory.embedder.texts.count(text) == 1


async def test_a_key_gives_the_first_result_again_and_writes_once(memory: Memory) -> None:
    who, key = someone(), uuid4().hex
    first = await _remember(memory, who, _fact("without an id"), key=key)
    again = await _remember(memory, who, _fact("without an id"), key=key)
    assert first == again
    assert await _rows(memory, "SELECT count(*) FROM items WHERE tenant = $1", who.tenant) == [(1,)]
    with pytest.raises(KeyReused):
        await _remember(memory, who, _fact("something else"), key=key)


async def test_a_batch_is_stored_whole_or_not_at_all(memory: Memory) -> None:
    who = someone()
    with pytest.raises(BadRequest) as error:
        await _remember(memory, who, _fact("one", external_id="a"), _fact("two", links=("nowhere",)))
    assert error.value.field == "items.1.links"
    for table in ("items", "texts", "scopes", "outbox"):
        assert await _rows(memory, f"SELECT count(*) FROM {table} WHERE tenant = $1", who.tenant) == [(0,)]
    assert await memory.entries(who.tenant) == []


@pytest.mark.parametrize(
    ("items", "field"),
    [
        ((_fact("x", kind=ItemKind.NODE),), "items.0.kind"),
        ((_fact("x", external_id="a"), _fact("y", external_id="a")), "items.1.external_id"),
        ((_fact("a\x00b"),), "items.0.text"),
        ((_fact("x", metadata={"a": [{"b": "\x00"}]}),), "items.0.metadata"),
        ((_fact("x", metadata={"a": math.inf}),), "items.0.metadata"),
    ],
)
async def test_what_cannot_be_stored_is_refused_by_name(memory: Memory, items: tuple[RememberItem, ...], field: str) -> None:
    who = someone()
    with pytest.raises(BadRequest) as error:
        await _remember(memory, who, *items)
    assert error.value.field == field
    assert await _rows(memory, "SELECT id FROM items WHERE tenant = $1", who.tenant) == []


async def test_the_news_holds_nodes_stated_links_and_mentions(memory: Memory) -> None:
    who = someone()
    done = await _remember(
        memory,
        who,
        _fact("About heating.", title="Heat Networks", kind=ItemKind.CONCEPT, external_id="c"),
        _fact("The heat networks are late", external_id="f", links=("c",)),
    )
    concept, fact = done[0][0], done[1][0]
    news = await _rows(memory, "SELECT subject, convert_from(body, 'utf8')::jsonb FROM outbox WHERE tenant = $1", who.tenant)
    stored = next(body for subject, body in news if "item.stored" in subject)
    assert stored["nodes"] == [{"id": concept, "type": "Concept"}, {"id": fact, "type": "MemoryUnit"}]
    assert stored["links"] == [
        {"source": fact, "target": concept, "type": "RELATED_TO"},
        {"source": fact, "target": concept, "type": "MENTIONS"},
    ]
    entry = next(body for subject, body in news if "audited" in subject)
    assert (entry["who"], entry["action"], entry["outcome"]) == (who.user, "remember", "done")
    assert "late" not in str(entry)


async def test_another_users_item_is_no_target_of_a_link(memory: Memory) -> None:
    ann = someone()
    bob = someone(ann.tenant)
    await _remember(memory, bob, _fact("bob's", external_id="b", title="late", kind=ItemKind.CONCEPT))
    with pytest.raises(BadRequest):
        await _remember(memory, ann, _fact("ann's", links=("b",)))
    await _remember(memory, ann, _fact("it is late"))
    news = await _rows(
        memory, "SELECT convert_from(body, 'utf8')::jsonb FROM outbox WHERE subject LIKE $1", f"%{ann.tenant}%stored"
    )
    assert [body["links"] for (body,) in news if body["owner"] == ann.user] == [[]]


async def test_the_news_of_a_large_batch_is_cut_into_messages_that_fit(memory: Memory) -> None:
    who = someone()
    names = [f"name{n}" for n in range(60)]
    concepts = [_fact("x", title=name, kind=ItemKind.CONCEPT, external_id=name) for name in names]
    facts = [_fact(" ".join(names), external_id=f"f{n}", links=tuple(names[:50])) for n in range(60)]
    await _remember(memory, who, *concepts, *facts)
    news = await _rows(memory, "SELECT body FROM outbox WHERE tenant = $1 AND subject LIKE '%stored'", who.tenant)
    assert max(len(body) for (body,) in news) < 300_000
    assert len(news) > 2


async def test_counts_of_words_follow_updates_and_deletes(memory: Memory) -> None:
    who = someone()
    await _remember(memory, who, _fact("red red green", external_id="a"), _fact("red blue", external_id="b"))
    await _remember(memory, who, _fact("yellow", external_id="a", kind=ItemKind.NOTE))
    sizes = await _rows(memory, "SELECT kind, items, words FROM scopes WHERE tenant = $1 ORDER BY kind", who.tenant)
    assert sizes == [("fact", 1, 2), ("note", 1, 1)]
    assert await _words_as_counted(memory) == await _words_in_texts(memory)


async def _words_as_counted(memory: Memory) -> list[Any]:
    return await _rows(memory, "SELECT term, items FROM words ORDER BY term")


async def _words_in_texts(memory: Memory) -> list[Any]:
    return await _rows(memory, "SELECT t, count(*)::int FROM texts, unnest(terms) t GROUP BY t ORDER BY t")


async def test_bm25_is_the_textbooks_whatever_was_stored_changed_and_deleted(memory: Memory) -> None:
    who, rng = someone(), random.Random(7)
    vocabulary = [f"word{n}" for n in range(30)]
    bodies: dict[str, str] = {}
    for _ in range(6):
        batch = {f"n{rng.randrange(40)}": " ".join(rng.choices(vocabulary, k=rng.randint(1, 25))) for _ in range(15)}
        bodies |= batch
        await _remember(memory, who, *(_fact(text, external_id=id, kind=ItemKind.NOTE) for id, text in batch.items()))
    query = "word1 word2 word2 word29 absent"
    [(_, hits)] = await PostgresTexts(memory.database).search(Audience.of(who), [query], 100)
    by_id = dict(await _rows(memory, "SELECT id::text, external_id FROM items WHERE tenant = $1", who.tenant))
    assert {by_id[hit.id]: pytest.approx(hit.bm25) for hit in hits} == _textbook(bodies, query)


def _textbook(bodies: dict[str, str], query: str) -> dict[str, float]:
    documents = {id: stems(text) for id, text in bodies.items()}
    average = sum(map(len, documents.values())) / len(documents)
    scores: dict[str, float] = {}
    for stem in set(stems(query)):
        holding = sum(stem in words for words in documents.values())
        idf = math.log(1 + (len(documents) - holding + 0.5) / (holding + 0.5))
        for id, words in documents.items():
            if n := words.count(stem):
                scores[id] = scores.get(id, 0) + idf * n * 1.9 / (n + 0.9 * (0.25 + 0.75 * len(words) / average))
    return scores


async def test_text_search_stays_inside_the_audience(memory: Memory) -> None:
    ann = someone()
    bob, stranger = someone(ann.tenant), someone(user=ann.user)
    for who in (ann, bob, stranger):
        await _remember(memory, who, _fact("a quetzal"))
    texts = PostgresTexts(memory.database)
    [(weights, hits)] = await texts.search(Audience.of(ann), ["quetzals"], 10)
    everything = [id for (id,) in await _rows(memory, "SELECT id::text FROM items")]
    assert len(hits) == 1
    [scored] = await texts.score(Audience.of(ann), [weights], [everything])
    assert [hit.id for hit in scored if hit.bm25 > 0] == [hits[0].id]
    assert len(scored) == 1


async def test_a_question_of_common_words_alone_still_finds_what_holds_them_together(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("phronesis_memory.words.store.BUDGET", 10)
    who = someone()
    items = [_fact(f"{'status' if n % 2 else 'project'} {n}", external_id=str(n)) for n in range(60)]
    await _remember(memory, who, *items, _fact("project status", external_id="both"))
    [(_, hits)] = await PostgresTexts(memory.database).search(Audience.of(who), ["project status"], 5)
    best = await _rows(memory, "SELECT external_id FROM items WHERE id = $1", hits[0].id)
    assert (best, len(hits)) == ([("both",)], 5)


async def test_several_queries_find_what_each_finds_alone(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("phronesis_memory.words.store.BUDGET", 12)
    who, rng = someone(), random.Random(11)
    vocabulary = [f"word{n}" for n in range(24) for _ in range(24 // (n + 1))]
    kinds = (ItemKind.FACT, ItemKind.NOTE)
    bodies = [_fact(" ".join(rng.choices(vocabulary, k=rng.randint(1, 9))), kind=kinds[n % 2]) for n in range(90)]
    for start in range(0, 90, 30):
        await _remember(memory, who, *bodies[start : start + 30])
    texts, audience = PostgresTexts(memory.database), Audience.of(who)
    queries = ["word0 word1", "the of", "word23 word0", "word0 word1 word2 word3", "absent", "word5 word20", "word0 word1"]
    together = await texts.search(audience, queries, 10)
    alone = [(await texts.search(audience, [query], 10))[0] for query in queries]
    assert [(w.idf, w.total, hits) for w, hits in together] == [(w.idf, w.total, hits) for w, hits in alone]
    ids = [id for (id,) in await _rows(memory, "SELECT id::text FROM items ORDER BY id")]
    weights, some = [weights for weights, _ in together], [ids[n :: n + 1] for n in range(6)] + [[]]
    scored = await texts.score(audience, weights, some)
    for n, one in enumerate(scored):
        [by_itself] = await texts.score(audience, weights[n : n + 1], some[n : n + 1])
        assert {hit.id: hit for hit in one} == {hit.id: hit for hit in by_itself}
    assert [bool(hits) for _, hits in together] == [True, False, True, True, False, True, True]


def _node(key: str, *texts: str, version: int = 1, name: str = "Heat Networks") -> Node:
    type, id, year = key.split("/")
    fields = tuple(NodeText(field=f"field{n}", text=text) for n, text in enumerate(texts))
    return Node(key=key, type=type, id=id, year=int(year), name=name, level=Level.L2, version=version, texts=fields)


async def _changed(memory: Memory, tenant: str, *changed: tuple[str, int]) -> None:
    event = NodeChanged(nodes=tuple(ChangedNode(key=key, version=version) for key, version in changed))
    await memory.handlers.on_node_changed(News(tenant, uuid4().hex, 1), event)


async def _node_items(memory: Memory, tenant: str) -> list[Any]:
    return await _rows(
        memory,
        "SELECT external_id, part, family, title, body, owner, kind FROM items WHERE tenant = $1 ORDER BY external_id, part",
        tenant,
    )


async def test_a_nodes_texts_become_shared_items_and_vanish_with_it(memory: Memory) -> None:
    who, key = someone(), "Project/P1/2020"
    memory.graph.known[who.tenant, key] = _node(key, "It builds pipes.", "It is late.")
    await _changed(memory, who.tenant, (key, 1))
    row = (key, "field0/0", "Project/P1", "Heat Networks", "It builds pipes.", "*", "node")
    assert await _node_items(memory, who.tenant) == [row, (key, "field1/0", *row[2:4], "It is late.", *row[5:])]
    memory.graph.known[who.tenant, key] = _node(key, "It builds pipes.", version=2)
    await _changed(memory, who.tenant, (key, 2))
    assert await _node_items(memory, who.tenant) == [row]
    found = await memory.handlers.recall(calling(who), Recall(query="networks pipes"))
    assert [(item.external_id, item.title, item.kind) for item in found.items] == [(key, "Heat Networks", ItemKind.NODE)]
    del memory.graph.known[who.tenant, key]
    await _changed(memory, who.tenant, (key, 3))
    assert await _node_items(memory, who.tenant) == []
    assert await memory.entries(who.tenant) == []
    assert await _words_as_counted(memory) == await _words_in_texts(memory)


async def test_each_chunk_of_a_node_is_embedded_once(memory: Memory) -> None:
    who, key = someone(), "Project/P6/2020"
    texts = [f"text {uuid4().hex}" for _ in range(3)]
    memory.graph.known[who.tenant, key] = _node(key, *texts)
    await _changed(memory, who.tenant, (key, 1))
    memory.graph.known[who.tenant, key] = _node(key, *texts, version=2)
    await _changed(memory, who.tenant, (key, 2))
    assert [memory.embedder.texts.count(f"Heat Networks. {text}") for text in texts] == [1, 1, 1]


async def test_one_sentence_of_a_long_note_is_found_by_its_own_vector_and_nodes_have_none(memory: Memory) -> None:
    who, key = someone(), "Project/P7/2020"
    beds = "The garden has beds of roses, and a pond with fish near the gate."
    told = f"{beds} Someone must repair the pump before the summer party begins."
    await _remember(memory, who, _fact(told, external_id="n", kind=ItemKind.NOTE))
    memory.graph.known[who.tenant, key] = _node(key, told)
    await _changed(memory, who.tenant, (key, 1))
    held = [(entry.kind, len(entry.passages)) for entry in await memory.entries(who.tenant)]
    assert sorted(held) == [(ItemKind.NODE, 0), (ItemKind.NOTE, 2)]
    question = Recall(query="repair pump summer party", kinds=(ItemKind.NOTE, ItemKind.NODE))
    found = (await memory.handlers.recall(calling(who), question)).items
    assert [(item.kind, item.why["vector"] > 0.7) for item in found] == [(ItemKind.NOTE, True), (ItemKind.NODE, False)]


async def test_news_of_a_node_that_comes_again_or_late_changes_nothing(memory: Memory) -> None:
    who, key = someone(), "Project/P2/2021"
    memory.graph.known[who.tenant, key] = _node(key, "Second text.", version=2)
    await _changed(memory, who.tenant, (key, 2))
    before = await _rows(memory, "SELECT id, version FROM items WHERE tenant = $1", who.tenant)
    asked = len(memory.graph.asked)
    await _changed(memory, who.tenant, (key, 1), (key, 2))
    assert len(memory.graph.asked) == asked
    assert await _rows(memory, "SELECT id, version FROM items WHERE tenant = $1", who.tenant) == before


async def test_an_answer_older_than_what_is_stored_is_dropped(memory: Memory) -> None:
    who, key = someone(), "Project/P3/2021"
    memory.graph.known[who.tenant, key] = _node(key, "New text.", version=5)
    await _changed(memory, who.tenant, (key, 5))
    memory.graph.known[who.tenant, key] = _node(key, "Old text.", version=4)
    await _changed(memory, who.tenant, (key, 6))
    assert [row[4] for row in await _node_items(memory, who.tenant)] == ["New text."]


async def test_a_node_that_comes_back_is_found_again(memory: Memory) -> None:
    who, key = someone(), "Project/P4/2021"
    await _changed(memory, who.tenant, (key, 7))
    memory.graph.known[who.tenant, key] = _node(key, "Back again.", version=1)
    await _changed(memory, who.tenant, (key, 1))
    assert [row[4] for row in await _node_items(memory, who.tenant)] == ["Back again."]


async def test_a_long_text_is_cut_and_each_chunk_is_found_by_the_nodes_name(memory: Memory) -> None:
    who, key = someone(), "Project/P5/2021"
    memory.graph.known[who.tenant, key] = _node(key, "word " * 400 + "end.", name="Okapi Reserve")
    await _changed(memory, who.tenant, (key, 1))
    found = await memory.handlers.recall(calling(who), Recall(query="okapi"))
    assert len(found.items) == 3
    assert all(item.why["text"] > 0 and item.why["vector"] > 0 for item in found.items)


async def test_a_completed_turn_is_one_episode_however_often_it_is_told(memory: Memory) -> None:
    who, turn = someone(), uuid4().hex
    event = TurnEndedNews(
        turn_id=turn,
        conversation_id="c",
        user=who.user,
        agent="dialogue",
        status=TurnStatus.COMPLETED,
        user_text="Where is the okapi?",
        reply_text="In the\x00 forest.",
    )
    for _ in range(3):
        await memory.handlers.on_turn_ended(News(who.tenant, "1", 1), event)
    rows = await _rows(memory, "SELECT external_id, owner, kind, body FROM items WHERE tenant = $1", who.tenant)
    assert rows == [(f"turn:{turn}", who.user, "episode", "User: Where is the okapi?\nAssistant: In the  forest.")]
    assert (await memory.handlers.recall(calling(who), Recall(query="okapi"))).items == ()
    episodes = await memory.handlers.recall(calling(who), Recall(query="okapi", kinds=(ItemKind.EPISODE,)))
    assert [item.external_id for item in episodes.items] == [f"turn:{turn}"]


async def test_a_turn_that_was_cancelled_leaves_no_episode(memory: Memory) -> None:
    who, cancelled = someone(), TurnStatus.CANCELLED
    event = TurnEndedNews(turn_id="t", conversation_id="c", user=who.user, agent="a", status=cancelled, user_text="x")
    await memory.handlers.on_turn_ended(News(who.tenant, "1", 1), event)
    assert await _rows(memory, "SELECT id FROM items WHERE tenant = $1", who.tenant) == []


@pytest.mark.req("D-C05")
async def test_a_profile_is_its_users_alone_and_is_replaced_whole(memory: Memory) -> None:
    ann = someone()
    bob = someone(ann.tenant)
    await memory.profiles.put(calling(ann), Profile(profile={"name": "Ann", "likes": ["tea"]}))
    await memory.profiles.put(calling(ann, uuid4().hex), Profile(profile={"name": "Ann B."}))
    assert (await memory.profiles.get(calling(ann), Nothing())).profile == {"name": "Ann B."}
    assert await memory.profiles.get(calling(bob), Nothing()) == Profile(version=0)
    audits = await _rows(
        memory, "SELECT convert_from(body, 'utf8')::jsonb FROM outbox WHERE tenant = $1 ORDER BY id", ann.tenant
    )
    assert [body["arguments"] for (body,) in audits] == [{"fields": 2, "bytes": 33}, {"fields": 1, "bytes": 18}]


async def test_a_profile_over_its_limit_is_refused(memory: Memory) -> None:
    with pytest.raises(BadRequest) as error:
        await memory.profiles.put(calling(someone()), Profile(profile={"a": "x" * 33_000}))
    assert (error.value.status, error.value.field) == (413, "profile")


async def test_without_the_model_words_alone_are_searched_and_the_answer_says_so(
    postgres: PostgresServer, weaviate: VectorServer | None
) -> None:
    async with open_memory(postgres, weaviate, WordEmbedder()) as memory:
        who = someone()
        await _remember(memory, who, _fact("an okapi"), _fact("a zebra"))
        memory.embedder.down = True
        found = await memory.handlers.recall(calling(who), Recall(query="okapi"))
        assert ([item.text for item in found.items], found.degraded) == (["an okapi"], ("vector",))
        assert "vector" not in found.items[0].why
