"""Documents of a conversation: kept when they are attached, and searched in every later turn."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from phronesis_contracts import ServiceError
from phronesis_contracts.documents import (
    COMPARE_TEXTS,
    KEEP_DOCUMENT,
    LIST_DOCUMENTS,
    MAX_COMPARED,
    SEARCH_DOCUMENTS,
    CompareTexts,
    DocumentList,
    FoundPassage,
    FoundPassages,
    KeepDocument,
    KeptDocument,
    ListDocuments,
    SearchDocuments,
)
from phronesis_contracts.media import ExtractedText, TextRef

from ..turns.execution import TEXT_OF, TurnRun

log = logging.getLogger(__name__)

_SLICES = 60
"""Slices of one text that are kept in one turn at most."""


async def keep_documents(running: TurnRun, documents: Sequence[ExtractedText]) -> None:
    """Keep the whole texts of a turn's attachments in its conversation.

    The reply is marked where one could not be kept (`documents`), or is not all there: `attachments_cut`.
    """
    for document in documents:
        try:
            kept = await _keep(running, document)
        except ServiceError as error:
            log.warning("an attachment is not kept in its conversation: %s", error.code)
            running.degrade("documents")
            continue
        if not kept.complete:
            running.degrade("attachments_cut")


async def _keep(running: TurnRun, document: ExtractedText) -> KeptDocument:
    """Keep one text, slice after slice. Raises `ServiceError`: memory or media does not answer."""
    claim, piece = running.claim, document
    for _ in range(_SLICES):
        request = KeepDocument(
            conversation_id=claim.conversation_id,
            media_id=piece.media_id,
            name=piece.name,
            kind=piece.kind,
            text=piece.text,
            offset=piece.offset,
            length=len(piece.text) if piece.length is None else piece.length,
            parts=piece.parts,
            pages=piece.pages,
            limits=piece.limits,
        )
        key = f"{claim.turn_id}/document/{piece.media_id}/{piece.offset}"
        kept = await running.neighbours.ask(claim.who, KEEP_DOCUMENT, request, key=key)
        following = piece.offset + len(piece.text)
        if not piece.truncated or not piece.text or kept.characters < following:
            break
        # What an earlier turn has kept is passed over.
        wanted = TextRef(media_id=piece.media_id, offset=max(following, kept.characters))
        piece = await running.neighbours.ask(claim.who, TEXT_OF[piece.kind], wanted)
    return kept


async def find_passages(running: TurnRun, query: str, limit: int = 8, media_id: str | None = None) -> FoundPassages:
    """Passages of the documents of this conversation that bear on a question, best first.

    Args:
        query: the question, or what of it is to be looked for.
        limit: passages at most, up to 20.
        media_id: the one document to look in.

    Raises:
        ServiceError: memory does not answer.
    """
    claim = running.claim
    request = SearchDocuments(conversation_id=claim.conversation_id, query=query[:4_000], media_id=media_id, limit=limit)
    return await running.neighbours.ask(claim.who, SEARCH_DOCUMENTS, request)


async def compare_texts(running: TurnRun, query: str, texts: Sequence[str]) -> tuple[float, ...]:
    """How near texts, the first 64, are to a question in meaning, -1 to 1. Raises `ServiceError`: memory does not answer."""
    request = CompareTexts(query=query[:1_000], texts=tuple(text[:1_000] for text in texts[:MAX_COMPARED]))
    return (await running.neighbours.ask(running.claim.who, COMPARE_TEXTS, request)).cosines


async def list_documents(running: TurnRun) -> DocumentList:
    """What was attached to this conversation, in this turn and before. Raises `ServiceError`: memory does not answer."""
    claim = running.claim
    return await running.neighbours.ask(claim.who, LIST_DOCUMENTS, ListDocuments(conversation_id=claim.conversation_id))


def cite(passage: FoundPassage) -> str:
    """The file of a passage, with the page, sheet or section that it is on: `report.pdf, page 3`."""
    if passage.page is not None:
        return f"{passage.name}, page {passage.page}"
    place = passage.sheet or passage.heading
    return f"{passage.name}, {place}" if place else passage.name
