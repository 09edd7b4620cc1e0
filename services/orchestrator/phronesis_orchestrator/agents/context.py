"""The context of a turn: profiles, history, attachments, the documents of its conversation, sources, and the stored summary."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from opentelemetry.trace import Span

from phronesis_contracts import UNKNOWN, Label, Principal, ServiceError, TimedOut, UnsupportedMedia, merge_labels
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
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.media import ExtractedText, MediaKind, TextRef, label_medium
from phronesis_contracts.memory import AugmentedMemoryContext, ContextItem, Profile
from phronesis_contracts.orchestrator import Source
from phronesis_tokens import clean, cut

from ..conversations.history import STEP, Past, PastMessage, Summary
from ..conversations.summary import partition, select_history
from ..models.reasoner import ModelSummary, Reasoner, Summariser, TurnContext
from ..turns.execution import TEXT_OF, TurnRun
from ..turns.ports import Conversations, Neighbours
from ..turns.turn import may_pass
from .text import rank_items, snippet

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TurnBackground:
    """What is known before the message is looked at."""

    agent: AgentProfile | None
    profile: dict[str, object]
    past: Past
    summary: Summary
    history: tuple[PastMessage, ...]
    labels: tuple[Label, ...]
    """Where the profile, the summary and the history come from."""
    degraded: tuple[str, ...]


async def load_background(
    neighbours: Neighbours,
    read_past: Callable[[str, str], Awaitable[Past]],
    who: Principal,
    agent: str,
    conversation_id: str,
    weighed: Callable[[Past], tuple[Summary, tuple[PastMessage, ...]]] = select_history,
) -> TurnBackground:
    """Read the agent's profile, the user's profile and the history, side by side. A part that fails is marked."""
    found = await asyncio.gather(
        neighbours.agent(who, agent), neighbours.profile(who), read_past(who.tenant, conversation_id), return_exceptions=True
    )
    degraded = []
    for name, part in zip(("instructions", "profile", "history"), found, strict=True):
        if isinstance(part, ServiceError):
            log.warning("the turn goes on without %s: %s", name, part.code)
            degraded.append(name)
        elif isinstance(part, BaseException):
            raise part
    profile, known, read = found
    stored = known if isinstance(known, Profile) else Profile()
    past = read if isinstance(read, Past) else Past()
    if past.stale:
        degraded.append("history")
    summary, history = weighed(past)
    return TurnBackground(
        agent=profile if isinstance(profile, AgentProfile) else None,
        profile=stored.profile,
        labels=merge_labels(past.labels, (stored.labels or UNKNOWN) if stored.profile else ()),
        past=past,
        summary=summary,
        history=history,
        degraded=tuple(degraded),
    )


def tag_agent(span: Span, agent: AgentProfile) -> None:
    """Which instructions a turn ran with: version, release, and the arms of experiments that its user is in."""
    span.set_attribute("gen_ai.agent.version", agent.version)
    if agent.release:
        span.set_attribute("phronesis.instructions.release", agent.release)
    if agent.arms:
        span.set_attribute("phronesis.instructions.arms", [f"{name}={arm}" for name, arm in sorted(agent.arms.items())])


MAX_CHARS = 24_000
"""Characters of one attachment that reach a prompt; the whole text stays with media."""
_LABEL = re.compile(r"^\[((?:end of )?(?:document|image|audio)\b[^\]\n]*)\]", re.M)
_UNREADABLE = "(The attachment {name} could not be read: {reason}.)"


@dataclass(frozen=True)
class MediaText:
    """What the attachments gave."""

    text: str
    """One labelled part for each attachment, in order."""
    documents: tuple[ExtractedText, ...]
    unreadable: int
    """How many could not be read."""
    names: tuple[str, ...] = ()
    """Names of all of them, in order."""
    labels: tuple[Label, ...] = ()
    """Where their texts and their names come from."""
    away: ServiceError | None = None
    """Why one could not be read that may be read in a moment."""


@dataclass(frozen=True)
class _UnreadableMedia:
    """An attachment that could not be read."""

    media_id: str
    name: str
    why: ServiceError

    @property
    def label(self) -> Label:
        """Where its name comes from."""
        return label_medium(MediaKind.DOCUMENT, self.media_id, self.name)


async def read_media(
    neighbours: Neighbours, who: Principal, media: tuple[str, ...], agent: AgentProfile | None, limit: float
) -> MediaText:
    """Read the attachments, each by the tool of its kind. One that cannot be read leaves a note in its place.

    Args:
        limit: seconds that one attachment may take.
    """
    if not media:
        return MediaText("", (), 0)
    read = await asyncio.gather(*(_read(neighbours, who, id, limit) for id in media))
    note = (agent.phrases if agent else {}).get("unreadable_attachment", _UNREADABLE)
    documents = tuple(found for found in read if isinstance(found, ExtractedText))
    parts = (_part(found) if isinstance(found, ExtractedText) else _note(note, found) for found in read)
    names = tuple(_name(found.name or found.media_id) for found in read)
    labels = merge_labels(found.label for found in read)
    away = next((one.why for one in read if isinstance(one, _UnreadableMedia) and may_pass(one.why)), None)
    return MediaText("\n\n".join(parts), documents, len(read) - len(documents), names, labels, away)


async def _read(neighbours: Neighbours, who: Principal, media_id: str, limit: float) -> ExtractedText | _UnreadableMedia:
    name = media_id
    try:
        async with asyncio.timeout(limit):
            medium = await neighbours.media(who, media_id)
            name = medium.name or media_id
            found = await neighbours.medium_text(who, medium, limit)
        if found.text.strip():
            return found
        error: ServiceError = UnsupportedMedia("no text was found in it")
    except ServiceError as failed:
        error = failed
    except TimeoutError:
        error = TimedOut("reading it took too long")
    log.warning("an attachment could not be read: %s", error.code)
    return _UnreadableMedia(media_id, name, error)


def _note(phrase: str, unread: _UnreadableMedia) -> str:
    return phrase.replace("{reason}", unread.why.detail.rstrip(".")).replace("{name}", _name(unread.name))


def _part(found: ExtractedText) -> str:
    kind = found.kind.value
    text = _LABEL.sub(r"(\1)", found.text[:MAX_CHARS])  # none ends itself, nor passes its words off as another's
    cut = f"\n[cut here; the rest of the {kind} is stored]" if found.truncated or len(found.text) > MAX_CHARS else ""
    return f"[{kind}: {_name(found.name or found.media_id)}]\n{text}{cut}\n[end of {kind}]"


def _name(name: str) -> str:
    """A file's name on one line and without the signs of a label."""
    return " ".join(name.replace("[", "(").replace("]", ")").split())


def join_input(text: str, media_text: str) -> str:
    """The one input of the later phases: the user's text, then the text of media."""
    return "\n\n".join(part for part in (text.strip(), media_text) if part)


MAX_SOURCES = 5
_RELEVANT = 0.5
"""Share of the best item's rank that an item needs to be named as a source."""


def list_sources(
    question: str, documents: tuple[ExtractedText, ...], memory: AugmentedMemoryContext | None
) -> tuple[Source, ...]:
    """The attached documents first, since the user put them there, then what retrieval found, best first."""
    attached = [
        Source(id=d.media_id, type=d.kind.value, title=d.name or d.media_id, score=1.0, snippet=snippet(question, d.text))
        for d in documents
    ]
    found = [
        Source(
            id=item.external_id or item.id,
            type=item.kind,
            title=item.title,
            score=round(min(1.0, max(0.0, item.score)), 4),
            snippet=snippet(question, item.text),
        )
        for item in (_relevant(question, memory) if memory else [])
    ]
    return tuple((attached + found)[:MAX_SOURCES])


def recalled_ids(memory: AugmentedMemoryContext | None) -> tuple[str, ...]:
    """Ids of all that memory put before a turn, named in the answer or not: what is forgotten is looked for by them."""
    return tuple(item.external_id or item.id for item in (*memory.memory_units, *memory.concepts)) if memory else ()


def _relevant(question: str, memory: AugmentedMemoryContext) -> list[ContextItem]:
    found = rank_items(question, memory)
    return [item for rank, item in found if rank >= _RELEVANT * found[0][0]]


MOST = 600
"""Tokens of a summary by a model that are kept."""
PURPOSE = "summarise"


async def carry_on_summary(
    running: TurnRun, reasoner: Reasoner, conversations: Conversations, turn: TurnContext, past: Past
) -> None:
    """Store a summary that reaches up to the window, once so many turns have left it.

    The rule's summary, which the turn at hand shows anyway, is what is stored where there is no model; with one, what the
    model made of the same turns, in one call. Where that fails the rule's stands, and the reply is marked.
    """
    if len(past.aged) < STEP:
        return
    summary = turn.summary
    if isinstance(reasoner, Summariser) and turn.agent and PURPOSE in turn.agent.prompts:
        summary = await _by_model(running, reasoner, turn, past)
    try:
        await conversations.keep_summary(running.claim.who.tenant, running.claim.conversation_id, summary)
    except ServiceError as error:
        log.warning("the summary could not be stored, the next turn makes it again: %s", error.code)


async def _by_model(running: TurnRun, reasoner: Summariser, turn: TurnContext, past: Past) -> Summary:
    _, dropped = partition(past.kept, past.aged)
    try:
        answer = await running.steps.made(PURPOSE, ModelSummary, lambda: reasoner.summarise(turn, past.summary, tuple(dropped)))
    except ServiceError as error:
        log.warning("the model made no summary: %s", error.code)
        answer = None
    if answer is None or answer.value is None:
        running.degrade("summary")
        return turn.summary
    text = cut(clean(answer.value.summary), MOST)
    return turn.summary.model_copy(update={"text": text, "text_through": turn.summary.through, "notes": ()})


@asynccontextmanager
async def run_beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Do `work` while the block runs: both have ended when it is left, and a block that fails stops the work."""
    task = asyncio.create_task(work)
    try:
        yield
        await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


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
