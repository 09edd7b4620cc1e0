"""Vectors and links are projections: they can be made again from the items, beside a service that goes on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import uuid4

import pytest

from phronesis_bus import News
from phronesis_contracts import Principal
from phronesis_contracts.memory import ItemKind, Recall, Recalled, Remember, RememberItem
from phronesis_contracts.orchestrator import TurnEndedNews, TurnStatus
from phronesis_contracts.twin import ChangedNode, Level, Node, NodeChanged, NodeText
from phronesis_memory.app import assemble
from phronesis_memory.items.drafts import Drafter
from phronesis_memory.rebuild import rebuild_links, rebuild_vectors
from phronesis_memory.settings import MemorySettings
from phronesis_memory.values import Vector
from phronesis_postgres import EVERY_TENANT
from tests.support.memory import Memory, WordEmbedder, calling, open_index, open_memory, someone
from tests.support.servers import PostgresServer, VectorServer

QUESTIONS = ("okapi in the forest", "heron by the lake", "the lighthouse keeper", "nothing of the kind")


@pytest.fixture
async def memory(postgres: PostgresServer, weaviate: VectorServer | None) -> AsyncIterator[Memory]:
    async with open_memory(postgres, weaviate) as opened:
        yield opened


def silent(what: str, done: int, total: int) -> None:
    """Nobody watches."""


async def remember(memory: Memory, who: Principal, *items: RememberItem) -> list[str]:
    return [item.id for item in (await memory.handlers.remember(calling(who), Remember(items=items))).items]


async def settled(memory: Memory, who: Principal) -> None:
    """Items of every kind: the caller's, another's, a node's and a turn's."""
    await remember(
        memory,
        who,
        RememberItem(text="The okapi lives in the forest.", external_id="okapi"),
        RememberItem(text="A heron stood by the lake. " * 30, kind=ItemKind.NOTE, title="Heron"),
        RememberItem(text="Who keeps a lighthouse.", kind=ItemKind.CONCEPT, title="Lighthouse keeper"),
    )
    await remember(memory, someone(who.tenant), RememberItem(text="Another's okapi in another forest."))
    key = f"EntityProject/{uuid4().hex}/2023"
    memory.graph.known[who.tenant, key] = Node(
        key=key, type="EntityProject", id=key.split("/")[1], year=2023, name="Forest road", level=Level.L3, version=1,
        properties={}, texts=(NodeText(field="aims", text="A road through the forest, past the lake."),),
    )  # fmt: skip
    await memory.handlers.on_node_changed(News(who.tenant, "1", 1), NodeChanged(nodes=(ChangedNode(key=key, version=1),)))
    turn = TurnEndedNews(
        turn_id=str(uuid4()), conversation_id=str(uuid4()), user=who.user, agent="dialogue",
        status=TurnStatus.COMPLETED, user_text="Where does the okapi live?",
    )  # fmt: skip
    await memory.handlers.on_turn_ended(News(who.tenant, "1", 1), turn)


async def recalled(memory: Memory, who: Principal) -> list[Recalled]:
    kinds = tuple(ItemKind)
    return [await memory.handlers.recall(calling(who), Recall(query=question, kinds=kinds)) for question in QUESTIONS]


async def entries(memory: Memory, who: Principal) -> dict[str, tuple[Any, ...]]:
    found = await memory.entries(who.tenant)
    return {e.id: (e.owner, e.kind, e.family, e.vector.tolist(), [p.tolist() for p in e.passages]) for e in found}


async def rebuild(memory: Memory) -> int:
    return await rebuild_vectors(memory.database, memory.vectors, Drafter(memory.embedder), silent)


async def test_after_the_index_was_dropped_a_rebuild_gives_the_same_recalls(memory: Memory) -> None:
    who = someone()
    await settled(memory, who)
    before, stored = await recalled(memory, who), await entries(memory, who)
    await memory.vectors.clear()
    assert await entries(memory, who) == {}
    assert await rebuild(memory) == len(stored) == 6
    assert (await recalled(memory, who), await entries(memory, who)) == (before, stored)


async def test_a_rebuild_tells_how_far_it_is(memory: Memory) -> None:
    await settled(memory, someone())
    told: list[tuple[str, int, int]] = []
    await rebuild_vectors(memory.database, memory.vectors, Drafter(memory.embedder), lambda *said: told.append(said))
    assert told == [("vectors", 0, 6), ("vectors", 6, 6)]


async def test_an_item_that_changes_meanwhile_keeps_the_vector_of_what_it_says_now(memory: Memory) -> None:
    who = someone()
    [id] = await remember(memory, who, RememberItem(text="An okapi.", external_id="animal"))

    class Interrupted(WordEmbedder):
        async def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
            made = await super().embed_texts(texts)
            await remember(memory, who, RememberItem(text="A heron.", external_id="animal"))
            return made

    await rebuild_vectors(memory.database, memory.vectors, Drafter(Interrupted()), silent)
    [heron] = await memory.embedder.embed_texts(["A heron."])
    [vector] = [vector for _, _, _, vector, _ in [(await entries(memory, who))[id]]]
    assert vector == pytest.approx(heron.tolist(), abs=1e-3)


async def test_vectors_of_items_that_are_gone_go_too(memory: Memory) -> None:
    who = someone()
    [id] = await remember(memory, who, RememberItem(text="An okapi."))
    async with memory.database.transaction(EVERY_TENANT) as connection:
        await connection.execute("DELETE FROM items WHERE id = $1", id)
    assert list(await entries(memory, who)) == [id]
    await rebuild(memory)
    assert await entries(memory, who) == {}


async def test_another_model_takes_over_the_index_by_a_rebuild(memory: Memory, weaviate: VectorServer | None) -> None:
    who, other = someone(), WordEmbedder({"okapi": "heron"}, model="another")
    await settled(memory, who)
    async with open_index(weaviate, memory.database, other) as index:
        handlers, vectors = assemble(memory.database, other, memory.graph, MemorySettings(stage_seconds=5), lambda: None, index)
        second = Memory(handlers, memory.profiles, memory.database, other, memory.graph, vectors)
        assert [answer.degraded for answer in await recalled(second, who)] == [("vector",)] * len(QUESTIONS)
        assert await rebuild(second) == 6
        assert [answer.degraded for answer in await recalled(second, who)] == [()] * len(QUESTIONS)


async def stored_news(memory: Memory, who: Principal) -> list[dict[str, Any]]:
    async with memory.database.transaction(EVERY_TENANT) as connection:
        rows = await connection.fetch(
            "DELETE FROM outbox WHERE tenant = $1 AND subject LIKE '%item.stored' RETURNING id, body", who.tenant
        )
    return [json.loads(row["body"]) for row in sorted(rows, key=lambda row: row["id"])]


def joined(news: list[dict[str, Any]]) -> tuple[set[str], set[tuple[str, str, str]]]:
    """All nodes and links of the news, whatever message they stand in."""
    links = {(link["source"], link["target"], link["type"]) for message in news for link in message["links"]}
    return {node["id"] for message in news for node in message["nodes"]}, links


async def test_the_graph_hears_every_item_with_its_links_once_more_in_a_newer_version(memory: Memory) -> None:
    who = someone()
    await settled(memory, who)
    ids = await remember(
        memory,
        who,
        RememberItem(text="The lighthouse keeper saw an okapi.", external_id="sight", links=("okapi",)),
        RememberItem(text="Somebody changed this.", external_id="okapi", links=("sight",)),
    )
    first = await stored_news(memory, who)
    assert len(ids) == 2
    assert await rebuild_links(memory.database, silent) == 5
    again = await stored_news(memory, who)
    assert joined(again) == joined(first)
    assert min(message["version"] for message in again) > max(message["version"] for message in first)


async def test_links_end_with_the_item_that_states_them(memory: Memory) -> None:
    who = someone()
    await remember(memory, who, RememberItem(text="one", external_id="one"), RememberItem(text="two", external_id="two"))
    await remember(memory, who, RememberItem(text="three", external_id="three", links=("one", "two")))
    await remember(memory, who, RememberItem(text="three, changed", external_id="three", links=("two",)))
    await stored_news(memory, who)
    await rebuild_links(memory.database, silent)
    _, links = joined(await stored_news(memory, who))
    assert len(links) == 1
