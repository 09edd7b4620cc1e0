"""Documents of conversations, on a real Postgres and both vector indexes: kept, found, cited, deleted and forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest

from phronesis_bus import News
from phronesis_contracts import BadRequest, NotFound, Principal
from phronesis_contracts.deletions import ConversationDeleted
from phronesis_contracts.documents import (
    CompareTexts,
    FoundPassage,
    FoundPassages,
    KeepDocument,
    KeptDocument,
    ListDocuments,
    SearchDocuments,
)
from phronesis_contracts.facts import ForgetFor
from phronesis_contracts.media import TextPart
from phronesis_memory.documents.handlers import DocumentHandlers, PassageEmbedder, assemble_documents
from phronesis_memory.facts.handlers import FactHandlers, assemble_facts
from phronesis_memory.indexes import make_queries
from phronesis_memory.settings import MemorySettings
from phronesis_postgres import EVERY_TENANT
from tests.support.memory import Memory, WordEmbedder, calling, open_memory, someone
from tests.support.postgres_text import holding
from tests.support.servers import PostgresServer, VectorServer

PAGES = (
    "The warehouse in Ostend stores fireworks. Nobody may smoke there.",
    "The rent is 4,200 a month. It is paid by the tenant on the first.",
    "The contract ends in the autumn of 2031, unless both sides prolong it.",
)
TEXT = "\n\n".join(PAGES)
PARTS = tuple(TextPart(page=n, start=TEXT.index(page), end=TEXT.index(page) + len(page)) for n, page in enumerate(PAGES, 1))


@dataclass(frozen=True)
class Kept:
    """The handlers of documents and of facts beside those of items, on one database."""

    memory: Memory
    documents: DocumentHandlers
    embedding: PassageEmbedder
    facts: FactHandlers


@pytest.fixture(scope="module")
async def kept(postgres: PostgresServer, weaviate: VectorServer | None) -> AsyncIterator[Kept]:
    async with open_memory(postgres, weaviate, WordEmbedder(same={"leas": "contract"})) as memory:
        settings = MemorySettings(stage_seconds=5)
        queries = make_queries(memory.embedder, settings)
        handlers, embedding = assemble_documents(
            memory.database, memory.embedder, settings, memory.vectors, queries, asyncio.Event()
        )
        facts, _ = assemble_facts(memory.database, memory.embedder, settings, lambda: None, memory.vectors, queries)
        yield Kept(memory, handlers, embedding, facts)


async def keep(kept: Kept, who: Principal, conversation: str, text: str = TEXT, **more: Any) -> KeptDocument:
    fields = {"media_id": "m1", "name": "lease.pdf", "length": len(text), "parts": PARTS, "pages": 3} | more
    request = KeepDocument.model_validate({"conversation_id": conversation, "text": text, **fields})
    return await kept.documents.keep(calling(who, str(uuid4())), request)


async def embed_all(kept: Kept) -> None:
    while await kept.embedding.step():
        pass


async def search(kept: Kept, who: Principal, conversation: str, query: str, **more: Any) -> FoundPassages:
    return await kept.documents.search(calling(who), SearchDocuments(conversation_id=conversation, query=query, **more))


async def best(kept: Kept, who: Principal, conversation: str, query: str) -> FoundPassage:
    return (await search(kept, who, conversation, query)).passages[0]


async def test_a_document_is_found_by_its_words_at_once_and_by_its_meaning_soon_after(kept: Kept) -> None:
    who, conversation = someone(), str(uuid4())
    done = await keep(kept, who, conversation)
    assert (done.passages, done.complete, done.searched_by_meaning, done.name) == (3, True, False, "lease.pdf")
    at_once = await search(kept, who, conversation, "What is the rent?")
    assert (at_once.passages[0].name, at_once.passages[0].page, at_once.degraded) == ("lease.pdf", 2, ("pending",))
    assert at_once.passages[0].text == PAGES[1]
    await embed_all(kept)
    found = await search(kept, who, conversation, "Until when is the lease?")
    assert (found.passages[0].page, found.documents, found.degraded) == (3, 1, ())
    assert (found.passages[0].bm25, (found.passages[0].vector or 0) > 0.2) == (None, True)


async def test_a_short_document_is_found_whole_whatever_is_asked(kept: Kept) -> None:
    who, conversation = someone(), str(uuid4())
    await keep(kept, who, conversation)
    found = await search(kept, who, conversation, "rent", limit=3)
    assert (found.passages[0].text, sorted(one.text for one in found.passages)) == (PAGES[1], sorted(PAGES))
    assert len((await search(kept, who, conversation, "rent", limit=2)).passages) == 1


async def test_only_its_owner_finds_it_and_only_in_its_conversation(kept: Kept) -> None:
    who, conversation = someone(), str(uuid4())
    await keep(kept, who, conversation)
    await embed_all(kept)
    for other, place in (
        (who, str(uuid4())),
        (someone(tenant=who.tenant), conversation),
        (someone(user=who.user), conversation),
    ):
        assert await search(kept, other, place, "rent") == FoundPassages()
        listed = await kept.documents.list(calling(other), ListDocuments(conversation_id=place))
        assert listed.documents == ()
    async with kept.memory.database.transaction(someone().tenant) as connection:
        assert await connection.fetchval("SELECT count(*) FROM documents") == 0


async def test_the_same_attachment_again_changes_nothing(kept: Kept) -> None:
    who, conversation = someone(), str(uuid4())
    first = await keep(kept, who, conversation)
    again = await keep(kept, who, conversation)
    assert again == first
    assert len((await search(kept, who, conversation, "rent contract warehouse")).passages) == 3


async def test_a_long_text_is_kept_whole_slice_after_slice(kept: Kept) -> None:
    who, conversation = someone(), str(uuid4())
    text = " ".join(f"Clause {number} speaks of {number * 7919}." for number in range(900))
    middle = text.index("Clause 450")
    await keep(kept, who, conversation, text[:middle], length=len(text), parts=())
    with pytest.raises(BadRequest) as gap:
        await keep(kept, who, conversation, text[middle + 500 :], offset=middle + 500, length=len(text), parts=())
    assert gap.value.field == "offset"
    done = await keep(kept, who, conversation, text[middle:], offset=middle, length=len(text), parts=())
    assert (done.characters, done.complete) == (len(text), True)
    for number in (3, 449, 450, 899):
        assert f"Clause {number} speaks" in (await best(kept, who, conversation, f"clause {number * 7919}")).text


async def test_what_is_left_out_is_said(kept: Kept) -> None:
    who, conversation = someone(), str(uuid4())
    done = await keep(kept, who, conversation, limits=("scans",))
    assert (done.complete, done.limits) == (False, ("scans",))
    small = DocumentHandlers(kept.documents._store, kept.documents._search, kept.documents._embedder, 4, kept.documents._wake)
    request = KeepDocument(conversation_id=conversation, media_id="m2", name="b.txt", text=TEXT, length=len(TEXT), parts=PARTS)
    cut = await small.keep(calling(who, "k2"), request)
    assert (cut.passages, cut.limits, cut.complete) == (1, ("passages",), False)


async def test_texts_are_compared_with_a_question_by_what_they_mean(kept: Kept) -> None:
    request = CompareTexts(query="where does the heron nest", texts=("the heron nests in the alder", "tea costs four euros"))
    heron, tea = (await kept.documents.compare(calling(someone()), request)).cosines
    assert heron > tea


async def test_one_document_of_several_is_searched_alone_where_it_is_named(kept: Kept) -> None:
    who, conversation = someone(), str(uuid4())
    await keep(kept, who, conversation)
    await keep(kept, who, conversation, "The rent of the boat is 90.", media_id="m2", name="boat.md", parts=())
    found = await search(kept, who, conversation, "rent", media_id="m2")
    assert [one.name for one in found.passages] == ["boat.md"]
    listed = await kept.documents.list(calling(who), ListDocuments(conversation_id=conversation))
    assert [one.name for one in listed.documents] == ["lease.pdf", "boat.md"]


async def remains(kept: Kept, who: Principal, word: str) -> tuple[dict[str, int], int, list[Any]]:
    """Where a word still stands, how many vectors the tenant has, and its counts."""
    async with kept.memory.database.transaction(EVERY_TENANT) as connection:
        scopes = await connection.fetch(
            "SELECT owner FROM scopes WHERE tenant = $1 AND starts_with(owner, 'documents:')", who.tenant
        )
    return await holding(kept.memory.database, word), len(await kept.memory.entries(who.tenant)), list(scopes)


@pytest.mark.parametrize("way", ["deleted", "forgotten by its conversation", "forgotten by its medium"])
async def test_a_document_goes_with_its_conversation_and_by_forgetting(kept: Kept, way: str) -> None:
    who, conversation, word = someone(), str(uuid4()), f"canary{uuid4().hex}"
    await keep(kept, who, conversation, f"The word is {word}. {TEXT}", name=f"{word}.pdf", parts=())
    await embed_all(kept)
    assert len(await kept.memory.entries(who.tenant)) == 1
    if way == "deleted":
        event = ConversationDeleted(deletion_id=str(uuid4()), conversation_id=conversation, user=who.user)
        await kept.memory.handlers.on_conversation_deleted(News(who.tenant, "1", 1), event)
        with pytest.raises(NotFound):
            await keep(kept, who, conversation)
    else:
        what = ForgetFor(conversation_id=conversation) if "conversation" in way else ForgetFor(ids=("m1",))
        shown = await kept.facts.preview_forgetting(calling(who), what)
        assert (shown.removed["documents"], shown.removed["passages"], shown.removed["vectors"]) == (1, 1, 1)
        await kept.facts.forget_for_good(calling(who, "k"), what)
    assert await remains(kept, who, word) == ({}, 0, [])
    assert await search(kept, who, conversation, word) == FoundPassages()


async def test_passages_of_a_document_that_went_meanwhile_get_no_vector(kept: Kept) -> None:
    who, conversation = someone(), str(uuid4())
    await embed_all(kept)
    await keep(kept, who, conversation)
    waiting = await kept.documents._store.claim("", 32)
    assert waiting is not None
    assert await kept.documents._store.claim("", 32) is None, "it is somebody else's for a minute"
    event = ConversationDeleted(deletion_id=str(uuid4()), conversation_id=conversation, user=who.user)
    await kept.memory.handlers.on_conversation_deleted(News(who.tenant, "1", 1), event)
    await kept.documents._store.embedded(waiting, await kept.memory.embedder.embed_texts(waiting.texts))
    assert await kept.memory.entries(who.tenant) == []


async def test_a_model_that_is_down_leaves_the_words_and_comes_again(kept: Kept) -> None:
    who, conversation = someone(), str(uuid4())
    await keep(kept, who, conversation)
    kept.memory.embedder.down = True
    found = await search(kept, who, conversation, "rent")
    assert (found.passages[0].page, found.degraded) == (2, ("vector", "pending"))
    kept.memory.embedder.down = False
