"""Memory as other programs use it: messages and texts on a real Postgres, found with what was said around them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from phronesis_contracts import BadRequest, NotFound, Principal
from phronesis_contracts.deletions import ConversationDeleted
from phronesis_contracts.memories import (
    AddMemories,
    BuildContext,
    DeleteMemories,
    GetMemory,
    ListMemories,
    NewMemory,
    SearchMemories,
    UpdateMemory,
)
from phronesis_contracts.memory import Recall
from phronesis_memory.embedding.queries import QueryVectors
from phronesis_memory.items.drafts import Drafter
from phronesis_memory.items.rows import MOST_VERSIONS, ItemRemover
from phronesis_memory.items.search import HybridSearch
from phronesis_memory.memories.handlers import MemoryEmbedder, MemoryHandlers
from phronesis_memory.memories.search import ASKING, MemorySearch
from phronesis_memory.memories.store import PostgresMemories
from phronesis_memory.words.store import PostgresTexts
from tests.support.memory import Memory, WordEmbedder, calling, open_memory, someone
from tests.support.servers import PostgresServer, VectorServer

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Memories:
    """The handlers, for one caller at a time."""

    handlers: MemoryHandlers
    memory: Memory
    stored: PostgresMemories
    embedder: MemoryEmbedder

    async def add(
        self, who: Principal, *texts: str | dict[str, Any], conversation: str | None = None, wait: bool = True
    ) -> list[str]:
        new = tuple(NewMemory(text=one) if isinstance(one, str) else NewMemory(**one) for one in texts)
        done = await self.handlers.add(calling(who), AddMemories(memories=new, conversation_id=conversation, wait=wait))
        return [one.id for one in done.memories]

    async def search(self, who: Principal, query: str, **more: Any) -> list[str]:
        found = await self.handlers.search(calling(who), SearchMemories(query=query, **more))
        return [one.text for one in found.memories]

    async def update(self, who: Principal, id: str, **more: Any) -> str:
        return (await self.handlers.update(calling(who), UpdateMemory(id=id, **more))).text


@pytest.fixture(scope="module")
async def memories(postgres: PostgresServer, weaviate: VectorServer | None) -> AsyncIterator[Memories]:
    embedder = WordEmbedder(same={"hound": "puppi", "landlord": "rent"})
    async with open_memory(postgres, weaviate, embedder) as memory:
        stored = PostgresMemories(memory.database, memory.vectors, lambda: None)
        queries = QueryVectors(memory.embedder, 60, 100)
        hybrid = HybridSearch(memory.vectors, PostgresTexts(memory.database), queries, candidates=50, seconds=10)
        search = MemorySearch(hybrid, stored, memory.embedder.floor)
        removing = ItemRemover(memory.database, memory.vectors, lambda: None)
        drafting = Drafter(memory.embedder)
        handlers = MemoryHandlers(stored, search, removing, drafting, asyncio.Event())
        yield Memories(handlers, memory, stored, MemoryEmbedder(stored, drafting))


async def test_a_message_is_read_as_it_was_said(memories: Memories) -> None:
    who = someone()
    [id] = await memories.add(
        who,
        {"text": "The launch is on 4 May", "speaker": "Ada", "occurred_at": NOON, "metadata": {"channel": "mail"}},
        conversation="c1",
    )
    found = await memories.handlers.get(calling(who), GetMemory(id=id))
    told = (found.kind, found.text, found.speaker, found.conversation_id, found.occurred_at, found.metadata)
    assert told == ("message", "The launch is on 4 May", "Ada", "c1", NOON, {"channel": "mail"})


async def test_messages_of_a_conversation_know_their_order_whatever_their_times(memories: Memories) -> None:
    who = someone()
    said = [{"text": f"line {n}", "speaker": "Ada", "occurred_at": NOON - timedelta(days=n % 2)} for n in range(3)]
    await memories.add(who, *said, conversation="c1")
    await memories.add(who, "a note")
    page = (await memories.handlers.list(calling(who), ListMemories())).memories
    assert [one.text for one in sorted(page, key=lambda one: one.position or 0)] == ["a note", "line 0", "line 1", "line 2"]
    assert [one.position for one in page if one.kind == "note"] == [None]


async def test_what_is_there_already_is_not_embedded_again(memories: Memories, monkeypatch: pytest.MonkeyPatch) -> None:
    who = someone()
    embedded: list[str] = []
    embed = memories.memory.embedder.embed_texts

    async def count(texts: Sequence[str]) -> Any:
        embedded.extend(texts)
        return await embed(texts)

    monkeypatch.setattr(memories.memory.embedder, "embed_texts", count)
    await memories.add(who, {"text": "the oven is hot", "speaker": "Ada", "external_id": "x"})
    once = len(embedded)
    await memories.add(who, {"text": "the oven is hot", "speaker": "Ada", "external_id": "x"})
    assert (once > 0, len(embedded)) == (True, once)
    await memories.add(who, {"text": "the oven is cold", "speaker": "Ada", "external_id": "x"})
    assert len(embedded) > once


async def test_a_message_is_found_by_its_speaker_and_by_what_was_said_beside_it(memories: Memories) -> None:
    who = someone()
    said = [
        {"text": "Where did you leave the bicycle?", "speaker": "Bo"},
        {"text": "Behind the bakery", "speaker": "Ada"},
        {"text": "It is going to rain", "speaker": "Bo"},
        {"text": "Shall we eat first?", "speaker": "Bo"},
    ]
    await memories.add(who, *said, conversation="c1")
    assert (await memories.search(who, "where is the bicycle"))[:2] == ["Where did you leave the bicycle?", "Behind the bakery"]
    assert (await memories.search(who, "Ada"))[0] == "Behind the bakery"


async def test_what_follows_a_question_comes_before_what_went_ahead_of_it(memories: Memories) -> None:
    who = someone()
    said = ("It was a fine day", "Where did you leave the bicycle?", "Well, let me think", "Behind the bakery")
    await memories.add(who, *({"text": text, "speaker": "Bo"} for text in said), conversation="c1")
    found = await memories.handlers.search(calling(who), SearchMemories(query="where did you leave the bicycle"))
    scores = {one.text: one.score for one in found.memories}
    assert scores["Well, let me think"] > scores["Behind the bakery"] > scores["It was a fine day"]


@pytest.mark.parametrize("mark", ["?", "？", "؟"])
async def test_a_message_that_asks_scores_less_than_one_that_tells_the_same(memories: Memories, mark: str) -> None:
    who = someone()
    await memories.add(who, {"text": "The boiler is mended", "speaker": "Bo"}, conversation="c1")
    await memories.add(who, {"text": f"The boiler is mended{mark}", "speaker": "Bo"}, conversation="c2")
    found = await memories.handlers.search(calling(who), SearchMemories(query="the boiler"))
    scores = {one.text: one.score for one in found.memories}
    told, asked = "The boiler is mended", f"The boiler is mended{mark}"
    assert scores.keys() == {told, asked}
    assert scores[asked] == pytest.approx(ASKING * scores[told], abs=1e-5)


async def test_a_note_is_not_outranked_for_standing_alone(memories: Memories) -> None:
    who = someone()
    await memories.add(who, "The cellar key")
    said = [{"text": "The cellar", "speaker": "Bo"}, {"text": "The cellar key hangs", "speaker": "Ada"}]
    await memories.add(who, *said, conversation="c1")
    assert (await memories.search(who, "cellar key"))[0] == "The cellar key"


async def test_a_model_that_hangs_is_asked_once_and_the_words_find_what_was_said(memories: Memories) -> None:
    who = someone()
    said = [{"text": "Where did you leave the bicycle?", "speaker": "Bo"}, {"text": "Behind the bakery", "speaker": "Ada"}]
    await memories.add(who, *said, conversation="c1")
    model = _Hanging()
    texts, queries = PostgresTexts(memories.memory.database), QueryVectors(model, 60, 100)
    hybrid = HybridSearch(memories.memory.vectors, texts, queries, candidates=50, seconds=0.5)
    found = await MemorySearch(hybrid, memories.stored, model.floor).find(who, SearchMemories(query="leave the bicycle"))
    answers = [one.text for one in found.memories]
    assert (model.calls, found.degraded, answers) == (1, ("vector",), [one["text"] for one in said])


class _Hanging(WordEmbedder):
    """A model that never answers."""

    async def embed_queries(self, texts: Sequence[str]) -> list[Any]:
        self.calls += 1
        await asyncio.Event().wait()
        return []


async def test_what_has_nothing_to_do_with_a_question_is_not_found(memories: Memories) -> None:
    who = someone()
    await memories.add(who, "The cellar key hangs behind the door")
    assert await memories.search(who, "population of Mongolia") == []


async def test_a_user_finds_reads_and_deletes_nothing_of_another(memories: Memories) -> None:
    ada = someone()
    bo = someone(tenant=ada.tenant)
    [id] = await memories.add(ada, "The cellar key hangs behind the door", conversation="c1")
    assert await memories.search(bo, "cellar key") == []
    with pytest.raises(NotFound):
        await memories.handlers.get(calling(bo), GetMemory(id=id))
    assert (await memories.handlers.delete(calling(bo), DeleteMemories(ids=(id,)))).ids == ()
    assert await memories.search(ada, "cellar key") == ["The cellar key hangs behind the door"]


async def test_a_search_keeps_to_kind_conversation_time_and_metadata(memories: Memories) -> None:
    who = someone()
    for day, channel in enumerate(("mail", "chat", "mail")):
        at = NOON + timedelta(days=day)
        text = {"text": f"report {day}", "occurred_at": at, "metadata": {"channel": channel, "n": day}}
        await memories.add(who, text, conversation=f"c{day}")
    await memories.add(who, "report of nobody")
    found = {
        "kind": await memories.search(who, "report", kinds=("note",)),
        "conversation": await memories.search(who, "report", conversation_id="c1"),
        "since": await memories.search(who, "report", since=NOON + timedelta(days=1), until=NOON + timedelta(days=2)),
        "metadata": sorted(await memories.search(who, "report", metadata={"channel": "mail"})),
        "nothing": await memories.search(who, "report", metadata={"channel": "post"}),
    }
    assert found == {
        "kind": ["report of nobody"],
        "conversation": ["report 1"],
        "since": ["report 1"],
        "metadata": ["report 0", "report 2"],
        "nothing": [],
    }


async def test_memory_is_told_as_it_was_at_a_moment(memories: Memories) -> None:
    who = someone()
    [id] = await memories.add(who, "the gate code is 1234")
    before = (await memories.handlers.get(calling(who), GetMemory(id=id))).created_at
    assert await memories.update(who, id, text="the gate code is 9876") == "the gate code is 9876"
    await memories.add(who, "the gate is green")
    assert await memories.search(who, "gate code", as_of=before) == ["the gate code is 1234"]
    assert (await memories.search(who, "gate code"))[0] == "the gate code is 9876"


async def test_what_a_memory_said_before_stays_in_its_history(memories: Memories) -> None:
    who = someone()
    [id] = await memories.add(who, {"text": "one", "metadata": {"n": 1}})
    for number in range(MOST_VERSIONS + 2):
        await memories.update(who, id, text=f"text {number}")
    await memories.update(who, id, metadata={"n": 2})
    history = await memories.handlers.history(calling(who), GetMemory(id=id))
    texts = [one.text for one in history.versions]
    assert (history.memory.text, history.memory.metadata) == (f"text {MOST_VERSIONS + 1}", {"n": 2})
    assert (len(texts), texts[0], texts[-1]) == (MOST_VERSIONS, f"text {MOST_VERSIONS + 1}", "text 2")


async def test_a_change_by_external_id_keeps_history_too_and_nothing_is_stored_twice(memories: Memories) -> None:
    who = someone()
    for text in ("tea", "tea", "coffee"):
        await memories.add(who, {"text": text, "external_id": "drink"})
    history = await memories.handlers.history(calling(who), GetMemory(id="drink"))
    assert (history.memory.text, [one.text for one in history.versions]) == ("coffee", ["tea"])


async def test_pages_hold_every_memory_once_the_newest_first(memories: Memories) -> None:
    who = someone()
    texts = [{"text": f"memory {n}", "occurred_at": NOON + timedelta(hours=n // 2)} for n in range(7)]
    await memories.add(who, *texts)
    found: list[str] = []
    cursor = None
    while True:
        page = await memories.handlers.list(calling(who), ListMemories(limit=2, cursor=cursor))
        found += [one.text for one in page.memories]
        if (cursor := page.next) is None:
            break
    assert (sorted(found), found[0], set(found[-2:])) == (
        [f"memory {n}" for n in range(7)],
        "memory 6",
        {"memory 0", "memory 1"},
    )
    with pytest.raises(BadRequest) as error:
        await memories.handlers.list(calling(who), ListMemories(cursor="yesterday"))
    assert error.value.field == "cursor"


async def test_pages_and_findings_with_much_metadata_stay_within_what_an_answer_may_have(memories: Memories) -> None:
    who = someone()
    large = [{"text": f"ledger {n}", "metadata": {"page": n, "scan": "x" * 150_000}} for n in range(5)]
    for one in large:
        await memories.add(who, one)
    seen: list[Any] = []
    sizes: list[int] = []
    cursor: str | None = None
    while cursor is not None or not sizes:
        page = await memories.handlers.list(calling(who), ListMemories(cursor=cursor))
        seen += [one.metadata["page"] for one in page.memories]
        sizes.append(len(page.memories))
        cursor = page.next
    assert (seen, sizes) == ([4, 3, 2, 1, 0], [2, 2, 1])
    found = await memories.handlers.search(calling(who), SearchMemories(query="ledger"))
    assert (len(found.memories), found.degraded) == (2, ("size",))


async def test_a_deleted_memory_is_gone_with_its_history(memories: Memories) -> None:
    who = someone()
    [id] = await memories.add(who, {"text": "the cellar key", "external_id": "key"})
    await memories.update(who, id, text="the attic key")
    assert (await memories.handlers.delete(calling(who), DeleteMemories(ids=("key",)))).ids == (id,)
    async with memories.memory.database.connection(who.tenant) as connection:
        left = await connection.fetchval("SELECT count(*) FROM item_versions WHERE item_id = $1", id)
    assert (left, await memories.search(who, "attic key")) == (0, [])


async def test_messages_go_with_their_conversation_and_do_not_come_back(memories: Memories) -> None:
    who = someone()
    await memories.add(who, "the cellar key", conversation="c1")
    gone = ConversationDeleted(deletion_id="d1", conversation_id="c1", user=who.user, turn_ids=(), media_ids=())
    await ItemRemover(memories.memory.database, memories.memory.vectors, lambda: None).forget_conversation(who.tenant, gone)
    assert await memories.search(who, "cellar key") == []
    with pytest.raises(NotFound) as error:
        await memories.add(who, "the cellar key", conversation="c1")
    assert error.value.field == "conversation_id"


async def test_a_block_for_a_prompt_keeps_to_its_budget_and_to_the_order_of_saying(memories: Memories) -> None:
    who = someone()
    said = [
        {"text": f"the budget of part {n}\nis settled", "speaker": "Ada", "occurred_at": NOON + timedelta(days=n)}
        for n in range(20)
    ]
    await memories.add(who, *reversed(said), conversation="c1")
    block = await memories.handlers.context(calling(who), BuildContext(query="budget of part", budget_tokens=100))
    lines = block.text.splitlines()
    assert 2 <= len(lines) == len(block.memories) < 20
    assert re.fullmatch(r"\[1] 2026-03-\d\d Ada: the budget of part \d+ is settled", lines[0])
    assert [one.occurred_at for one in block.memories] == sorted(one.occurred_at for one in block.memories)


async def test_no_text_and_no_name_of_a_speaker_makes_a_line_of_its_own(memories: Memories) -> None:
    who = someone()
    said = {"text": "the harbour\n[2] 2026-01-01 Bo: is closed", "speaker": "Ada\n[3] 2026-01-01 Cy", "occurred_at": NOON}
    await memories.add(who, said)
    block = await memories.handlers.context(calling(who), BuildContext(query="harbour"))
    told = "[1] 2026-03-04 Ada [3] 2026-01-01 Cy: the harbour [2] 2026-01-01 Bo: is closed"
    assert (block.text, len(block.memories)) == (told, 1)


async def test_what_no_store_takes_is_refused_in_every_call(memories: Memories) -> None:
    who, nul = calling(someone()), "a\x00"
    handlers = memories.handlers
    for call in (
        handlers.search(who, SearchMemories(query="a", metadata={"n": nul})),
        handlers.list(who, ListMemories(conversation_id=nul)),
        handlers.get(who, GetMemory(id=nul)),
        handlers.history(who, GetMemory(id=nul)),
        handlers.update(who, UpdateMemory(id=nul, text="a")),
        handlers.delete(who, DeleteMemories(ids=(nul,))),
        handlers.context(who, BuildContext(query=nul)),
        handlers.add(who, AddMemories(memories=(NewMemory(text="a"),), conversation_id=nul)),
    ):
        with pytest.raises(BadRequest):
            await call


async def test_messages_are_no_part_of_what_the_agents_recall(memories: Memories) -> None:
    who = someone()
    await memories.add(who, "the cellar key", conversation="c1")
    recalled = await memories.memory.handlers.recall(calling(who), Recall(query="cellar key"))
    assert recalled.items == ()


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ((NewMemory(text="a\x00b"),), "memories.0.text"),
        ((NewMemory(text="a", external_id="x"), NewMemory(text="b", external_id="x")), "memories.1.external_id"),
        ((NewMemory(text="a", metadata={"n": float("inf")}),), "memories.0.metadata"),
    ],
)
async def test_what_cannot_be_stored_is_refused_by_name(memories: Memories, given: Any, field: str) -> None:
    with pytest.raises(BadRequest) as error:
        await memories.handlers.add(calling(someone()), AddMemories(memories=given))
    assert error.value.field == field


async def waits(memories: Memories, who: Principal) -> int:
    return await memories.stored.waiting(who.tenant, 1_000, who.user)


async def embed_all(memories: Memories) -> None:
    while await memories.embedder.step():
        pass


async def test_a_memory_is_found_by_its_words_at_once_and_by_its_meaning_once_it_is_embedded(memories: Memories) -> None:
    who = someone()
    await memories.add(who, "The vet looked after our puppy", wait=False)
    before = (await waits(memories, who), await memories.search(who, "vet"), await memories.search(who, "hound"))
    await embed_all(memories)
    after = (await waits(memories, who), await memories.search(who, "hound"))
    assert before == (1, ["The vet looked after our puppy"], [])
    assert after == (0, ["The vet looked after our puppy"])


async def test_a_search_waits_for_the_few_memories_that_were_just_added(
    memories: Memories, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("phronesis_memory.memories.search.PATIENCE", 10.0)
    who = someone()
    await memories.add(who, "The vet looked after our puppy", wait=False)
    embedding = asyncio.create_task(embed_all(memories))
    assert await memories.search(who, "hound") == ["The vet looked after our puppy"]
    await embedding


async def test_a_memory_that_is_changed_while_it_is_embedded_is_found_by_what_it_says_now(memories: Memories) -> None:
    who = someone()
    await embed_all(memories)
    await memories.add(who, {"text": "The vet looked after our puppy", "external_id": "one"}, wait=False)
    waiting = await memories.stored.claim("", 10)
    assert waiting is not None
    await memories.add(who, {"text": "The rent was paid in advance", "external_id": "one"}, wait=False)
    vectors = await Drafter(memories.memory.embedder).vectors(list(waiting.drafts.values()))
    await memories.stored.embedded(waiting, vectors)
    assert await waits(memories, who) == 1
    await embed_all(memories)
    assert (await memories.search(who, "hound"), await memories.search(who, "landlord")) == (
        [],
        ["The rent was paid in advance"],
    )


async def test_a_memory_that_is_deleted_while_it_is_embedded_stays_deleted(memories: Memories) -> None:
    who = someone()
    await embed_all(memories)
    [id] = await memories.add(who, "The vet looked after our puppy", wait=False)
    waiting = await memories.stored.claim("", 10)
    assert waiting is not None
    await memories.handlers.delete(calling(who), DeleteMemories(ids=(id,)))
    await memories.stored.embedded(waiting, await Drafter(memories.memory.embedder).vectors(list(waiting.drafts.values())))
    assert (await waits(memories, who), await memories.search(who, "hound")) == (0, [])


async def test_one_with_much_to_embed_lets_the_others_in(memories: Memories) -> None:
    much, little = someone(), someone()
    await embed_all(memories)
    await memories.add(much, *(f"page {n} of the long report" for n in range(60)), wait=False)
    await memories.add(little, "The vet looked after our puppy", wait=False)
    await memories.embedder.step()
    await memories.embedder.step()
    assert (await waits(memories, much) > 0, await waits(memories, little)) == (True, 0)
    await embed_all(memories)


async def test_a_tenant_with_many_users_lets_another_in(memories: Memories) -> None:
    many, one = someone(), someone()
    await embed_all(memories)
    for _ in range(5):
        await memories.add(someone(tenant=many.tenant), "page of the long report", wait=False)
    await memories.add(one, "The vet looked after our puppy", wait=False)
    await memories.embedder.step()
    await memories.embedder.step()
    assert (await memories.stored.waiting(many.tenant, 10), await waits(memories, one)) == (4, 0)
    await embed_all(memories)


async def test_what_is_added_behind_a_long_queue_is_embedded_before_it_is_stored(
    memories: Memories, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("phronesis_memory.memories.handlers._MOST_WAITING", 2)
    who = someone()
    await memories.add(who, "first", "second", wait=False)
    await memories.add(who, "The vet looked after our puppy", wait=False)
    assert (await waits(memories, who), await memories.search(who, "hound")) == (2, ["The vet looked after our puppy"])
    await embed_all(memories)
