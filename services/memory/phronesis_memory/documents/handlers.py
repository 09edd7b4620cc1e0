"""The handlers of documents, the embedding of their passages, and their wiring."""

from __future__ import annotations

import asyncio
import base64
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from phronesis_bus import Bus, Call, serve, work_in_background
from phronesis_contracts import BadRequest, NotFound, documents
from phronesis_contracts.memory import ItemKind
from phronesis_postgres import Database
from phronesis_tokens import clean, count

from ..embedding.queries import QueryVectors
from ..indexes import make_search
from ..items.search import Candidate, HybridSearch
from ..ports import Embedder, VectorIndex
from ..settings import DocumentSettings, MemorySettings
from ..tracing import trace_handler
from ..values import Audience, is_storable, owner_of_documents
from ..words.analysis import Words, count_words
from ..words.ranking import TEXT
from .passages import Passage, split_document
from .store import PostgresDocuments, StoredPassage

STORE = "documents"
"""The store, as spans name it."""
_BATCH = 32
"""Passages that are embedded together."""
_WIDER = 6
"""Candidates that are looked at for each passage of one document that is asked for."""


class DocumentHandlers:
    """The handlers of documents.

    Args:
        most: passages that one conversation may have.
        wake: called when passages wait for their vectors.
    """

    def __init__(
        self, store: PostgresDocuments, search: HybridSearch, embedder: Embedder, most: int, wake: asyncio.Event
    ) -> None:
        self._store, self._search, self._embedder = store, search, embedder
        self._most, self._wake = most, wake

    async def keep(self, call: Call, request: documents.KeepDocument) -> documents.KeptDocument:
        """Keep the text of an attachment in its conversation, in passages; a slice that is kept already changes nothing."""
        if not is_storable(request.model_dump(mode="json")):
            raise BadRequest("no NUL characters and no infinite numbers", field="text")
        passages, counted = await asyncio.to_thread(_prepare, request)
        kept = await self._store.keep(call, request, passages, counted, self._most)
        self._wake.set()
        return kept

    async def search(self, call: Call, request: documents.SearchDocuments) -> documents.FoundPassages:
        """Passages of a conversation's documents that bear on a question, by words and by meaning; short documents whole."""
        known = {one.media_id: one for one in await self._store.list(call.who, request.conversation_id)}
        if request.media_id is not None:
            known = {id: one for id, one in known.items() if id == request.media_id}
        if not any(one.passages for one in known.values()):
            return documents.FoundPassages()
        owner = owner_of_documents(call.who.user, request.conversation_id)
        audience = Audience(call.who.tenant, (owner,), (ItemKind.PASSAGE,))
        wanted = request.limit if request.media_id is None else _WIDER * request.limit
        [found] = await self._search.find(audience, [request.query], wanted)
        ranked = found.candidates if all(one.searched_by_meaning for one in known.values()) else _rank_pending(found.candidates)
        near = [one for one in ranked if request.media_id in (None, one.family.removeprefix("document/"))]
        if sum(one.passages for one in known.values()) <= request.limit:
            stored = await self._store.whole(call.who, request.conversation_id, list(known), request.limit)
            found_ids = {one.id for one in near}
            beside = (id for id in stored if id not in found_ids)
            near += [Candidate(id, ItemKind.PASSAGE, "", 0.0, cosine=None, bm25=None, coverage=0.0) for id in beside]
        else:
            stored = await self._store.passages(call.who, request.conversation_id, [one.id for one in near[: request.limit]])
        pending = [] if all(one.searched_by_meaning for one in known.values()) else ["pending"]
        return documents.FoundPassages(
            passages=tuple(
                _passage(one, stored[one.id], known[stored[one.id].media_id])
                for one in near[: request.limit]
                if one.id in stored and stored[one.id].media_id in known
            ),
            documents=len(known),
            degraded=(*sorted(found.degraded), *pending),
        )

    async def compare(self, call: Call, request: documents.CompareTexts) -> documents.ComparedTexts:
        """How near texts are to a question. Nothing is stored, or read. Raises `Unavailable`: the model does not answer."""
        [asked] = await self._embedder.embed_queries([request.query])
        found = await self._embedder.embed_texts(request.texts)
        return documents.ComparedTexts(cosines=tuple(round(float(vector @ asked), 6) for vector in found))

    async def embed(self, call: Call, request: documents.EmbedTexts) -> documents.EmbeddedTexts:
        """The vectors of texts. Nothing is stored.

        Raises:
            NotFound: another model is asked for.
            BadRequest: vectors of another size are.
            Unavailable: the model does not answer.
        """
        embedder = self._embedder
        if request.model not in (None, embedder.model):
            raise NotFound(f"there is no such model of vectors; there is {embedder.model}", field="model")
        if request.dimensions not in (None, embedder.dimension):
            raise BadRequest(f"vectors of {embedder.model} have {embedder.dimension} numbers", field="dimensions")
        found = await embedder.embed_texts(request.texts)
        return documents.EmbeddedTexts(
            model=embedder.model,
            dimensions=embedder.dimension,
            vectors=tuple(base64.b64encode(vector.astype("<f4").tobytes()).decode() for vector in found),
            tokens=await asyncio.to_thread(lambda: sum(count(clean(text)) for text in request.texts)),
        )

    async def list(self, call: Call, request: documents.ListDocuments) -> documents.DocumentList:
        """What is attached to a conversation of the caller."""
        return documents.DocumentList(documents=await self._store.list(call.who, request.conversation_id))


def _prepare(request: documents.KeepDocument) -> tuple[list[Passage], list[Words]]:
    passages = split_document(request.text, request.offset, request.parts)
    return passages, [count_words(f"{one.heading}. {one.text}" if one.heading else one.text) for one in passages]


def _rank_pending(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates while some have no vector yet: those are taken to be as near in meaning as they are in words."""
    scored = [one if one.cosine is not None else replace(one, score=_score_by_words(one.score)) for one in candidates]
    return sorted(scored, key=lambda one: (-one.score, one.id))


def _score_by_words(score: float) -> float:
    share = math.sqrt(score * (1 + TEXT) / TEXT)
    return (share + TEXT * share * share) / (1 + TEXT)


def _passage(found: Candidate, stored: StoredPassage, document: documents.KeptDocument) -> documents.FoundPassage:
    return documents.FoundPassage(
        media_id=document.media_id,
        name=document.name,
        kind=document.kind,
        heading=stored.heading,
        text=stored.text,
        score=round(min(1.0, max(0.0, found.score)), 4),
        vector=None if found.cosine is None else round(found.cosine, 6),
        bm25=None if found.bm25 is None else round(found.bm25, 6),
        coverage=round(found.coverage, 4),
        **stored.place,
    )


class PassageEmbedder:
    """Gives passages their vectors, after they were kept, in whatever process finds them waiting."""

    def __init__(self, store: PostgresDocuments, embedder: Embedder) -> None:
        self._store, self._embedder = store, embedder
        self._last = ""

    async def step(self) -> bool:
        """Embed one batch; whether there was one.

        Raises:
            ServiceError: the model or the store does not answer; the batch comes again after a minute.
        """
        waiting = await self._store.claim(self._last, _BATCH)
        if waiting is None:
            return False
        self._last = waiting.tenant
        vectors = await self._embedder.embed_texts(waiting.texts) if waiting.texts else []
        await self._store.embedded(waiting, vectors)
        return True


def assemble_documents(
    database: Database,
    embedder: Embedder,
    settings: MemorySettings,
    vectors: VectorIndex,
    queries: QueryVectors,
    wake: asyncio.Event,
) -> tuple[DocumentHandlers, PassageEmbedder]:
    """The handlers on their store, and what embeds after them. `wake`: set when passages wait; the rest as in `assemble`."""
    store = PostgresDocuments(database, vectors)
    search = make_search(database, vectors, queries, settings)
    handlers = DocumentHandlers(store, search, embedder, DocumentSettings().passages, wake)
    return handlers, PassageEmbedder(store, embedder)


async def serve_documents(
    bus: Bus, database: Database, embedder: Embedder, settings: MemorySettings, vectors: VectorIndex, queries: QueryVectors
) -> None:
    """Let the service answer for documents. The arguments are those of `assemble`."""
    wake = asyncio.Event()
    handlers, embedding = assemble_documents(database, embedder, settings, vectors, queries, wake)
    span = partial(trace_handler, bus.tracing)
    await serve(bus, documents.KEEP_DOCUMENT, span("upsert_memory", STORE, handlers.keep))
    await serve(bus, documents.SEARCH_DOCUMENTS, span("search_memory", STORE, handlers.search))
    await serve(bus, documents.COMPARE_TEXTS, span("search_memory", STORE, handlers.compare))
    await serve(bus, documents.EMBED_TEXTS, span("search_memory", STORE, handlers.embed))
    await serve(bus, documents.LIST_DOCUMENTS, span("search_memory", STORE, handlers.list))
    work_in_background(bus, "passages", embedding.step, wake)
