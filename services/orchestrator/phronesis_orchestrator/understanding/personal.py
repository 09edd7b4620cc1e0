"""Questions and orders about what is known of the person, and what a turn teaches: answered from their facts alone."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime

from phronesis_contracts import ServiceError
from phronesis_contracts.deletions import (
    FIND_DERIVED,
    FORGET_SOURCE,
    PREVIEW_SOURCE,
    FindDerived,
    ForgetSource,
    PreviewSource,
)
from phronesis_contracts.documents import LIST_DOCUMENTS, ListDocuments
from phronesis_contracts.facts import (
    ASK_FACTS,
    FORGET_FOR_GOOD,
    LEARN,
    LIST_FACTS,
    PREVIEW_FORGETTING,
    AnsweredFacts,
    AskFacts,
    Fact,
    FactKind,
    ForgetFor,
    Learn,
    Learnt,
    ListFacts,
)

from ..turns.execution import TurnRun
from .language import Language
from .plan import MAX_TO_FORGET, AboutUser
from .planner import file_names
from .wording import Wording


async def learn_turn(running: TurnRun, language: str | None = None) -> Learnt:
    """Learn what the message of this turn states, so that the turn itself knows it. Learnt again after the turn, it stays once.

    Args:
        language: code of the message's language, where it is known.

    Returns:
        The facts as sentences to the user, each with what it replaced. A replayed turn has their ids alone.

    Raises:
        ServiceError: memory does not answer; the turn may go on without, and is learnt from when it has ended.
    """
    claim = running.claim
    request = Learn(
        turn_id=claim.turn_id,
        conversation_id=claim.conversation_id,
        said=claim.request.text,
        said_at=claim.created_at,
        language=language,
    )
    return await running.neighbours.ask(claim.who, LEARN, request, key=f"{claim.turn_id}/learn")


async def ask_facts(
    running: TurnRun, question: str, language: str | None = None, *, as_of: datetime | None = None
) -> AnsweredFacts:
    """The facts that answer a question about the user; none where it was never told. Raises `ServiceError`."""
    request = AskFacts(question=question[:4_000], language=language, as_of=as_of)
    return await running.neighbours.ask(running.claim.who, ASK_FACTS, request)


log = logging.getLogger(__name__)

_LISTED = 30
"""Facts that a list shows at most."""
_TOLD = frozenset({"media", "fact", "note", "memory", "strategy"})
"""What is shown of what came of a source; the others are counted."""
_SURE = 0.9
_ACTS = frozenset({"remember", "correct", "forget"})
_DONE = 1.0


@dataclass(frozen=True)
class CitedFact:
    """A fact that an answer rests on."""

    id: str
    title: str
    text: str


@dataclass(frozen=True)
class PersonalAnswer:
    """An answer about the person."""

    text: str
    sure: float
    facts: tuple[CitedFact, ...] = ()
    near: bool = False
    """Whether it is only what comes nearest to the question."""
    source: ForgetSource | None = None
    """The source that would be forgotten, with all that came of it."""


async def answer_about_user(
    running: TurnRun, plan: AboutUser, language: Language, words: Wording, waiting: tuple[str, ...] = ()
) -> PersonalAnswer | None:
    """Recall, list, learn, correct, or name what would be forgotten; `None` where the message is about something else.

    Args:
        waiting: ids of facts that the person asked to forget; they are left out.
    """
    if plan.action in _ACTS and not running.claim.request.text.strip():
        return None  # the words are those of an attachment, which may ask for nothing
    try:
        match plan.action:
            case "recall":
                return await recall(running, plan.text, language, words, waiting)
            case "list":
                return await _listed(running, words, waiting)
            case "remember" | "correct":
                return await _learnt(running, plan, language, words)
            case "forget":
                return await _to_forget(running, plan, language, words)
    except ServiceError as error:
        log.warning("the facts of the user cannot be asked: %s", error.code)
        running.degrade("memory")
        return None


async def recall(
    running: TurnRun, question: str, language: Language, words: Wording, waiting: tuple[str, ...] = ()
) -> PersonalAnswer | None:
    """What the person said that answers a question, or comes near to it; `None` where it asks for nothing of theirs.

    Args:
        waiting: ids of facts that the person asked to forget; they are left out.

    Raises:
        ServiceError: memory does not answer.
    """
    found = await ask_facts(running, question, language.name)
    facts, near = ([one for one in some if one.fact.id not in waiting] for some in (found.facts, found.near))
    if found.known and found.facts and not facts:
        return PersonalAnswer(words.sentence("personal/waits"), 0.0)
    if found.known:
        text = " ".join(one.words for one in facts)
        sure = round(min((one.confidence for one in facts), default=_SURE), 3)
        return PersonalAnswer(text, sure, _cited(one.fact for one in facts))
    if near:
        said = words.sentence("personal/near", said=" ".join(one.words for one in near))
        sure = min(one.confidence for one in near)
        return PersonalAnswer(said, sure, _cited(one.fact for one in near), near=True)
    if found.near:
        return PersonalAnswer(words.sentence("personal/waits"), 0.0)
    if found.understood:
        return PersonalAnswer(words.sentence("personal/never_told"), 0.0)
    return None


async def _listed(running: TurnRun, words: Wording, waiting: tuple[str, ...]) -> PersonalAnswer:
    told, shown = [], []
    for kind, heading in ((None, "list"), (FactKind.NOTE, "notes")):
        found = await running.neighbours.ask(running.claim.who, LIST_FACTS, ListFacts(kind=kind, limit=_LISTED))
        facts = [one for one in found.facts if one.id not in waiting]
        if not facts:
            continue
        shown += facts
        told += [words.sentence(f"personal/{heading}"), words.lines(one.text for one in facts)]
        if (more := found.total - len(found.facts)) > 0:
            told.append(words.sentence("personal/more", more))
    if not shown:
        return PersonalAnswer(words.sentence("personal/nothing"), _DONE)
    return PersonalAnswer("\n\n".join(told), _DONE, _cited(shown))


async def _learnt(running: TurnRun, plan: AboutUser, language: Language, words: Wording) -> PersonalAnswer | None:
    learnt = await learn_turn(running, language.name)
    said = [one.words or one.text or "" for one in learnt.facts]
    replaced = [old.words for one in learnt.facts for old in one.replaced]
    if said:
        text = words.sentence("personal/kept", facts=" ".join(part for part in said if part))
        if replaced:
            text += " " + words.sentence("personal/replaced", facts=" ".join(replaced))
        return PersonalAnswer(text, _DONE, tuple(CitedFact(one.id, one.text or "", one.text or "") for one in learnt.facts))
    if learnt.correction == "unclear":
        return PersonalAnswer(words.sentence("personal/unclear"), 0.0)
    if learnt.refused:
        return PersonalAnswer(words.sentence("personal/refused"), _DONE)
    return PersonalAnswer(words.sentence("personal/not_kept"), 0.0) if plan.action == "remember" and plan.explicit else None


async def _to_forget(running: TurnRun, plan: AboutUser, language: Language, words: Wording) -> PersonalAnswer | None:
    """What would go. Forgetting for good is the person's own call: they are shown it, and confirm."""
    if (source := await _named_source(running, plan.text, language)) is not None:
        return await _source_to_forget(running, source, words)
    found = await ask_facts(running, plan.text, language.name)
    ids = tuple(one.fact.id for one in found.facts or found.near[:1])[:MAX_TO_FORGET]
    if not ids:
        return PersonalAnswer(words.sentence("personal/nothing_to_forget"), _DONE)
    preview = await running.neighbours.ask(running.claim.who, PREVIEW_FORGETTING, ForgetFor(ids=ids))
    lines = words.lines(one.text for one in preview.facts)
    how = words.sentence("personal/forget")
    return PersonalAnswer(f"{words.sentence('personal/would_go')}\n\n{lines}\n\n{how}", _DONE, _cited(preview.facts))


async def _named_source(running: TurnRun, text: str, language: Language) -> ForgetSource | None:
    """The document or the conversation that a message orders to forget, if it does. Raises `ServiceError`."""
    who, conversation = running.claim.who, running.claim.conversation_id
    if language.holds(text, language.cues("this_conversation")):
        return ForgetSource(conversation_id=conversation)
    names = file_names(text)
    for name in names:
        if (await running.neighbours.ask(who, FIND_DERIVED, FindDerived(name=name[:255]))).media:
            return ForgetSource(document=name[:255])
    if names:
        return ForgetSource(document=names[-1][:255])
    if not language.holds(text, language.cues("the_document")):
        return None
    listed = await running.neighbours.ask(who, LIST_DOCUMENTS, ListDocuments(conversation_id=conversation))
    return ForgetSource(document=listed.documents[-1].media_id) if listed.documents else None


async def _source_to_forget(running: TurnRun, source: ForgetSource, words: Wording) -> PersonalAnswer:
    """What came of a source, as far as it is shown, and how to go on."""
    request = PreviewSource(**source.model_dump(), limit=_LISTED)
    found = await running.neighbours.ask(running.claim.who, PREVIEW_SOURCE, request)
    if not found.total:
        return PersonalAnswer(words.sentence("personal/nothing_to_forget"), _DONE)
    shown = [one for one in found.things if one.kind in _TOLD]
    told = [words.sentence("personal/source_would_go"), words.lines(one.text for one in shown)] if shown else []
    turns = found.held.get("orchestrator", {}).get("turns", 0)
    told += [words.sentence("personal/source_turns", turns)] if turns else []
    told += [words.sentence("personal/source_stays", found.detached)] if found.detached else []
    told.append(words.sentence("personal/forget_source"))
    facts = tuple(CitedFact(one.id, one.text, one.text) for one in shown if one.kind != "media")
    return PersonalAnswer("\n\n".join(told), _DONE, facts, source=source)


async def forget_source_confirmed(running: TurnRun, source: ForgetSource, words: Wording) -> str:
    """Forget for good the source that the person was shown and has confirmed, and say so.

    Raises:
        ServiceError: a store does not answer; nothing is removed then.
    """
    claim = running.claim
    await running.neighbours.ask(claim.who, FORGET_SOURCE, source, key=f"{claim.turn_id}/forget")
    return words.sentence("personal/source_forgotten")


async def forget_confirmed(running: TurnRun, ids: tuple[str, ...], words: Wording) -> str:
    """Remove for good what the person was shown and has confirmed, and say so.

    Raises:
        ServiceError: memory does not answer; nothing is removed then.
    """
    claim = running.claim
    await running.neighbours.ask(claim.who, FORGET_FOR_GOOD, ForgetFor(ids=ids), key=f"{claim.turn_id}/forget")
    return words.sentence("personal/forgotten", len(ids))


def _cited(facts: object) -> tuple[CitedFact, ...]:
    return tuple(CitedFact(one.id, one.text, one.text) for one in facts if isinstance(one, Fact))  # type: ignore[attr-defined]
