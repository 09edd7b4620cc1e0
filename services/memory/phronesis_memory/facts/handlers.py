"""The handlers of facts, of imports and of forgetting for good, how found facts are ranked, and their wiring."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal, TypeVar

from pydantic import AwareDatetime, ConfigDict, Field, ValidationError

from phronesis_bus import Bus, Call, News, follow, serve
from phronesis_contracts import UNKNOWN, BadRequest, Message, Principal, ServiceError, Unavailable, facts, formed
from phronesis_contracts.deletions import ERASE_DERIVED, FIND_DERIVED, ConversationDeleted, Purged
from phronesis_contracts.facts import MAX_IMPORT_LINES, FactKind, Origin, Statement
from phronesis_contracts.twin import GRAPH_PURGED
from phronesis_postgres import Database

from ..embedding.queries import QueryVectors
from ..indexes import make_queries, make_search
from ..items.drafts import Drafter
from ..items.search import Candidate, HybridSearch
from ..ports import Embedder, VectorIndex
from ..settings import MemorySettings
from ..tracing import trace_handler
from ..values import MEMORY_KIND, OWN, Audience, Draft, is_storable, labels_of_call, owner_of_facts
from ..words.analysis import stems
from .corrections import find_correction, resolve
from .decision import PREFERENCE_ORIGINS, Assertion, DraftsByText, Evidence, StoredFact, TextMissing, has_secret
from .derived import DerivedHandlers
from .extraction import extract_statements, note_the_rest
from .forgetting import PostgresForgettings
from .language import Language, language_of, prepare
from .predicates import NOTED, normalize, predicate_of
from .questions import (
    ABOUT,
    EVERYTHING,
    Wanted,
    answers_yes,
    choose,
    names_of,
    nearest,
    read_question,
    tells_change,
    without_past,
)
from .store import PostgresFacts
from .wording import USER, words_to_user

HALF_LIFE = 90.0
"""Days after which a fact that was not said again counts half as recent."""
_RELEVANCE, _TRUST, _CONFIDENCE, _RECENCY = 0.7, 0.15, 0.1, 0.05


def explain_score(query: str, candidate: Candidate, fact: StoredFact, now: datetime) -> facts.Why:
    """What gives a fact its score."""
    said = max(one.said_at for one in fact.evidence)
    age = max(0.0, (now - said).total_seconds() / 86_400)
    own = set(stems(fact.text))
    return facts.Why(
        vector=candidate.cosine,
        text=candidate.bm25,
        words=tuple(word for word in dict.fromkeys(stems(query)) if word in own),
        relevance=round(min(1.0, max(0.0, candidate.score)), 4),
        recency=round(0.5 ** (age / HALF_LIFE), 4),
        trust=fact.trust,
        confidence=fact.confidence,
    )


def score_of(reason: facts.Why) -> float:
    """0 to 1: the one figure that facts are ordered by."""
    parts = (_RELEVANCE * reason.relevance, _TRUST * reason.trust, _CONFIDENCE * reason.confidence, _RECENCY * reason.recency)
    return round(sum(parts), 4)


def _found_by_question(fact: StoredFact, sure: float) -> Candidate:
    return Candidate(fact.id, MEMORY_KIND, "", sure, cosine=None, bm25=None, coverage=0.0)


T = TypeVar("T")
_WIDER = 3
"""Facts that are searched for each that is asked for: trust and age order them anew."""
_TRIES = 3
_NEAREST = 24
"""Facts among which the nearest is chosen."""
_MEANT = 0.28
"""The least cosine of a question and a sentence that tells what became of the answer; measured on 22 pairs."""
_ASKED = 400
"""Characters of a question by which it is looked for."""
_LOOKED_UP = 200
"""Facts among which an answer is chosen: the newest that a question may mean."""


class FactHandlers:
    """The handlers of facts and of forgetting."""

    def __init__(
        self,
        facts: PostgresFacts,
        forgettings: PostgresForgettings,
        search: HybridSearch,
        drafting: Drafter,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._facts, self._forgettings, self._search = facts, forgettings, search
        self._drafting, self._now = drafting, now

    async def learn(self, call: Call, request: facts.Learn) -> facts.Learnt:
        """Take in what a turn taught: what a model drew from it, or, without one, what rules draw from the user's words."""
        if not is_storable(request.model_dump(mode="json")):
            raise BadRequest("no NUL characters and no infinite numbers")
        spoken = language_of(request.said, request.language)
        said, correction = await self._stated(call, request, spoken)
        fit = [one for one in said if _is_storable_statement(one)]
        sayings = [_assertion_of_turn(request, number, one) for number, one in enumerate(fit)]
        refused = len(said) - len(fit)

        async def write(drafts: DraftsByText) -> facts.Learnt:
            def words(fact: StoredFact) -> str:
                return words_to_user(fact, spoken, fact.labels)

            return await self._facts.learn(call, request, sayings, drafts, refused, words)

        learnt = await self._written([one.text for one in fit], write)
        return learnt.model_copy(update={"correction": correction}) if correction else learnt

    async def _stated(
        self, call: Call, request: facts.Learn, language: Language
    ) -> tuple[Sequence[facts.Statement], Literal["made", "unclear"] | None]:
        """What a turn states, and whether it corrects what was said before in its conversation."""
        if request.statements is not None:
            return request.statements, None
        amends = find_correction(request.said, request.language)
        if amends is not None:
            recent = await self._facts.said_in(call.who, request.conversation_id, request.said_at)
            if right := resolve(amends, recent, request.conversation_id, language):
                return right, "made"
        # Many patterns over a long message take their time: the loop goes on meanwhile.
        said = await asyncio.to_thread(_said_of, request.said, request.language)
        return said, "unclear" if amends is not None and not said and amends.certain else None

    async def ask_facts(self, call: Call, request: facts.AskFacts) -> facts.AnsweredFacts:
        """The facts that answer a question directly; none where it was never told, or where it asks for something else."""
        spoken = language_of(request.question, request.language)
        wanted, before = read_question(request.question, request.language), False
        if request.as_of is None and (now := without_past(request.question, spoken)) is not None:
            of_now = read_question(now, request.language)
            if of_now is not None and not of_now.by_words and predicate_of(of_now.predicates[0]).values == "one":
                wanted, before = of_now, True
        if wanted is None:
            near = await self._nearest(call.who, request, spoken)
            return facts.AnsweredFacts(known=False, understood=False, near=near)
        found = await self._looked_up(call.who, wanted, request.as_of)
        chosen = choose(wanted, [fact for fact, _ in found])[: request.limit]
        if before and chosen:
            found = await self._looked_up(call.who, wanted, chosen[0][0].valid_from - timedelta(microseconds=1))
            chosen = choose(wanted, [fact for fact, _ in found])[: request.limit]
        if chosen and not before and (since := await self._changed_since(call.who, request, chosen, spoken)) is not None:
            found, chosen = [*found, since], [(since[0], chosen[0][1]), *(one for one in chosen if one[0].id != since[0].id)]
        owned = {fact.id: shown for fact, shown in found}
        answers = tuple(
            facts.AnsweringFact(
                fact=owned[fact.id],
                words=_with_yes(
                    _words_in_order(fact, chosen[0][0], spoken, past=before),
                    answers_yes(request.question, wanted, fact, spoken) if fact is chosen[0][0] else None,
                    spoken,
                ),
                confidence=sure,
            )
            for fact, sure in chosen
        )
        return facts.AnsweredFacts(
            facts=answers,
            known=bool(answers),
            understood=bool(answers) or not wanted.soft,
            subject=wanted.subject,
            near=() if answers else await self._nearest(call.who, request, spoken),
            predicates=wanted.predicates,
        )

    async def _nearest(self, who: Principal, request: facts.AskFacts, language: Language) -> tuple[facts.AnsweringFact, ...]:
        """What was said that comes nearest to a question, by its meaning and its words."""
        near, shown = await self._searched(who, request)
        told = nearest(request.question, near, language)
        changed = bool(told) and tells_change(told[0][0], language)
        return tuple(
            facts.AnsweringFact(
                fact=shown[fact.id],
                words=_words_in_order(fact, told[0][0] if changed else fact, language, past=False),
                confidence=sure,
            )
            for fact, sure in told
        )

    async def _changed_since(
        self, who: Principal, request: facts.AskFacts, chosen: Sequence[tuple[StoredFact, float]], language: Language
    ) -> tuple[StoredFact, facts.Fact] | None:
        """The newest sentence that tells a change, was said after what answers a question, and means what is asked."""
        near, shown = await self._searched(who, request)
        last = max(fact.valid_from for fact, _ in chosen)
        since = [one for one, cosine in near if one.valid_from > last and cosine >= _MEANT and tells_change(one, language)]
        newest = max(since, key=lambda one: one.valid_from, default=None)
        return (newest, shown[newest.id]) if newest is not None else None

    async def _searched(
        self, who: Principal, request: facts.AskFacts
    ) -> tuple[list[tuple[StoredFact, float]], dict[str, facts.Fact]]:
        """The held facts that a search finds, each with how near it is to the question, and as they are shown.

        Nothing where the past is asked about, or the search does not answer.
        """
        if request.as_of is not None:
            return [], {}
        audience = Audience(who.tenant, (owner_of_facts(who.user),), (MEMORY_KIND,))
        try:
            [found] = await self._search.find(audience, [request.question[:_ASKED]], _NEAREST)
        except Unavailable as error:
            log.warning("what lies near a question cannot be searched: %s", error.code)
            return [], {}
        cosines = {one.id: one.cosine for one in found.candidates[:_NEAREST] if one.cosine is not None}
        behind = await self._facts.by_items(who, list(cosines)) if cosines else {}
        near = [
            (fact, cosines[id] or 0.0)
            for id, (fact, _) in behind.items()
            if fact.held and (fact.predicate != NOTED or not fact.negated)
        ]
        return near, {fact.id: one for fact, one in behind.values()}

    async def _looked_up(self, who: Principal, wanted: Wanted, at: datetime | None) -> list[tuple[StoredFact, facts.Fact]]:
        if wanted.by_words:
            return await self._facts.find_words(who, wanted.words, at, _LOOKED_UP)
        subjects: tuple[str, ...] = (wanted.subject,)
        related: list[tuple[StoredFact, facts.Fact]] = []
        if wanted.subject != USER:
            related = await self._facts.find(who, (USER,), (), at, _LOOKED_UP)
            subjects = names_of(wanted.subject, [fact for fact, _ in related])
        names = tuple(normalize(one) for one in subjects)
        if wanted.predicates[0] == EVERYTHING:
            return await self._facts.find(who, () if wanted.subject == USER else names, (), at, _LOOKED_UP)
        if wanted.predicates[0] == ABOUT:
            own = [(fact, shown) for fact, shown in related if normalize(fact.object) in names and not fact.negated]
            noted = await self._facts.find_words(who, stems(wanted.subject), at, _LOOKED_UP)
            of_them = await self._facts.find(who, names, (), at, _LOOKED_UP)
            return list({fact.id: (fact, shown) for fact, shown in (*own, *of_them, *noted)}.values())
        asked = tuple(
            dict.fromkeys(name for one in (*wanted.predicates, NOTED) for name in (normalize(one), predicate_of(one).name))
        )
        return await self._facts.find(who, names, asked, at, _LOOKED_UP, wanted.endings)

    async def import_memory(self, call: Call, request: facts.ImportMemory) -> facts.ImportedMemory:
        """Take facts in from JSON Lines, all lines or none, once for the call's key."""
        lines, now = read_import(request.lines), self._now()
        digest = hashlib.sha256(request.lines.encode()).hexdigest()[:32]
        said = [(line, number, one) for line in lines for number, one in enumerate(line.statements)]
        whose = labels_of_call(call, request.labels)
        sayings = [
            Assertion(
                one,
                Evidence(
                    f"import:{digest}/{line.number}/{number}",
                    (line.at or now) + timedelta(microseconds=line.number),
                    one.origin,
                    one.confidence,
                    labels=whose,
                ),
            )
            for line, number, one in said
        ]
        skipped = tuple(line.number for line in lines if not line.statements)
        result = facts.ImportedMemory(
            lines=len(lines), added=0, confirmed=0, superseded=0, skipped=len(skipped), skipped_lines=skipped
        )
        return await self._written(
            [one.text for _, _, one in said], lambda drafts: self._facts.take_in(call, request, sayings, drafts, result)
        )

    async def _written(self, texts: Sequence[str], write: Callable[[DraftsByText], Awaitable[T]]) -> T:
        """Write with the vectors of these texts, made before the transaction, and of those that turn out to lack one."""
        wanted = list(dict.fromkeys(texts))
        for _ in range(_TRIES):
            drafts = await self._drafting.complete([_draft_of_text(text) for text in wanted], {})
            try:
                return await write({draft.text: draft for draft in drafts})
            except TextMissing as missing:
                wanted.append(missing.text)
        raise Unavailable("the facts change too fast", retry_after=1)

    async def list_facts(self, call: Call, request: facts.ListFacts) -> facts.FactList:
        return await self._facts.list(call.who, request)

    async def recall_facts(self, call: Call, request: facts.RecallFacts) -> facts.RecalledFacts:
        """Held facts of the caller that bear on a question, each with what gave it its score."""
        audience = Audience(call.who.tenant, (owner_of_facts(call.who.user),), (MEMORY_KIND,))
        [found] = await self._search.find(audience, [request.query], _WIDER * request.limit)
        candidates = found.candidates[: _WIDER * request.limit]
        behind = await self._facts.by_items(call.who, [one.id for one in candidates]) if candidates else {}
        reasons = [
            (behind[one.id][1], explain_score(request.query, one, behind[one.id][0], self._now()))
            for one in candidates
            if one.id in behind
        ]
        asked = await self._answering(call.who, request.query)
        reasons = [*asked, *(pair for pair in reasons if pair[0].id not in {fact.id for fact, _ in asked})]
        ranked = sorted(
            (facts.RecalledFact(fact=fact, score=score_of(reason), why=reason) for fact, reason in reasons),
            key=lambda one: (-one.score, one.fact.id),
        )
        return facts.RecalledFacts(facts=tuple(ranked[: request.limit]), degraded=tuple(sorted(found.degraded)))

    async def _answering(self, who: Principal, query: str) -> list[tuple[facts.Fact, facts.Why]]:
        """Facts that a query asks for in so many words, whatever words they were said in."""
        wanted = read_question(query)
        if wanted is None or wanted.by_words or wanted.predicates[0] in (EVERYTHING, ABOUT):
            return []
        found = await self._looked_up(who, wanted, None)
        shown, now = {fact.id: one for fact, one in found}, self._now()
        answers = choose(wanted, [fact for fact, _ in found])
        reasons = [explain_score(query, _found_by_question(fact, sure), fact, now) for fact, sure in answers]
        return [
            (shown[fact.id], reason.model_copy(update={"asked": True}))
            for (fact, _), reason in zip(answers, reasons, strict=True)
        ]

    async def preview_forgetting(self, call: Call, request: facts.ForgetFor) -> facts.ForgettingPreview:
        _check_target(request)
        return await self._forgettings.preview(call.who, request)

    async def forget_for_good(self, call: Call, request: facts.ForgetFor) -> facts.Forgetting:
        """Forget, here at once, and wherever a copy is soon after."""
        _check_target(request)
        return await self._forgettings.begin(call, request)

    async def get_forgetting(self, call: Call, request: facts.ForgettingRef) -> facts.Forgetting:
        return await self._forgettings.get(call.who, request.forgetting_id)

    async def on_conversation_deleted(self, news: News, event: ConversationDeleted) -> None:
        """Remove the facts that were learnt from a deleted conversation alone."""
        if event.part == 1:
            await self._forgettings.forget_conversation(news.tenant, event)

    async def on_purged(self, news: News, event: Purged) -> None:
        """The graph has removed its part of what was forgotten."""
        await self._forgettings.purged(news.tenant, "graph", event)

    async def on_copies_purged(self, news: News, event: facts.CopiesPurged) -> None:
        """The orchestrator has removed its copies of what was forgotten."""
        await self._forgettings.copies_purged(news.tenant, event)


def _with_yes(words: str, so: bool | None, language: Language) -> str:
    """A fact in words, after a yes or a no where it says one."""
    return words if so is None else str(language.raw["words"]["yes" if so else "no"]).replace("{what}", words)


def _words_in_order(fact: StoredFact, first: StoredFact, language: Language, *, past: bool) -> str:
    """A fact in words, marked as an earlier one where it is, or where a sentence that was said since comes before it."""
    words = words_to_user(fact, language, fact.labels)
    apart = first.evidence[-1].turn_id != fact.evidence[-1].turn_id
    since = past or (first.predicate == NOTED and apart and first.valid_from > fact.valid_from)
    return str(language.raw["words"]["earlier"]).replace("{what}", words) if since else words


def _said_of(text: str, language: str | None) -> tuple[facts.Statement, ...]:
    stated = extract_statements(text, language)
    return (*stated, *note_the_rest(text, stated, language))


def _check_target(request: facts.ForgetFor) -> None:
    if (bool(request.ids) + (request.subject is not None) + (request.conversation_id is not None)) != 1:
        raise BadRequest("state either ids, a subject or a conversation_id", field="ids")
    if not is_storable(request.model_dump(mode="json")):
        raise BadRequest("no NUL characters", field="ids")


def _is_storable_statement(statement: facts.Statement) -> bool:
    if has_secret(f"{statement.text}\n{statement.predicate} {statement.object}"):
        return False
    return statement.kind is not facts.FactKind.PREFERENCE or statement.origin in PREFERENCE_ORIGINS


def _assertion_of_turn(request: facts.Learn, number: int, statement: facts.Statement) -> Assertion:
    return Assertion(
        statement,
        Evidence(
            f"turn:{request.turn_id}/{number}",
            request.said_at + timedelta(microseconds=number),
            statement.origin,
            statement.confidence,
            request.turn_id,
            request.conversation_id,
            formed(statement.labels) if statement.labels else OWN if statement.origin is facts.Origin.USER else UNKNOWN,
        ),
    )


def _draft_of_text(text: str) -> Draft:
    return Draft(MEMORY_KIND, text, hashlib.sha256(text.encode()).digest())


log = logging.getLogger(__name__)


class _LineContent(Message):
    model_config = ConfigDict(extra="forbid")

    text: str = Field(min_length=1, max_length=2_000)
    kind: FactKind = FactKind.FACT
    subject: str = Field(default="user", min_length=1, max_length=200)
    predicate: str | None = Field(default=None, min_length=1, max_length=100)
    object: str | None = Field(default=None, min_length=1, max_length=1_000)
    negated: bool = False
    confidence: float = Field(default=0.8, ge=0.0, le=1.0)
    at: AwareDatetime | None = None


@dataclass(frozen=True)
class ImportLine:
    """One line: its number from 1, what it states, and since when; nothing where it is skipped."""

    number: int
    statements: tuple[Statement, ...]
    at: datetime | None


def read_import(lines: str) -> list[ImportLine]:
    """The lines of an import, without empty ones. Raises `BadRequest`: one does not parse (`field` names it), or too many."""
    found = [(number, line) for number, line in enumerate(lines.splitlines(), 1) if line.strip()]
    if len(found) > MAX_IMPORT_LINES:
        raise BadRequest(f"at most {MAX_IMPORT_LINES} lines at once, not {len(found)}", field="lines")
    if not found:
        raise BadRequest("there is no line", field="lines")
    return [_read_line(number, line) for number, line in found]


def _read_line(number: int, text: str) -> ImportLine:
    try:
        value: Any = json.loads(text)
        if not is_storable(value):
            raise BadRequest(f"line {number}: no NUL characters and no infinite numbers", field=f"lines.{number}")
        line = _LineContent.model_validate(value)
    except (json.JSONDecodeError, RecursionError) as error:
        raise BadRequest(f"line {number} is not JSON", field=f"lines.{number}") from error
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        wrong = f"{where}: {first['msg']}" if where else first["msg"]
        raise BadRequest(f"line {number}: {wrong}"[:300], field=f"lines.{number}") from error
    if (line.predicate is None) != (line.object is None):
        raise BadRequest(f"line {number}: predicate and object come together", field=f"lines.{number}")
    return ImportLine(number, () if has_secret(text) else _statements_of_line(line), line.at)


def _statements_of_line(line: _LineContent) -> tuple[Statement, ...]:
    if line.predicate is not None and line.object is not None:
        fields = line.model_dump(exclude={"at"})
        return (Statement(**fields, origin=Origin.IMPORT),)
    drawn = extract_statements(line.text)
    if drawn:
        return tuple(one.model_copy(update={"origin": Origin.IMPORT, "confidence": line.confidence}) for one in drawn)
    note = {"kind": line.kind, "subject": line.subject, "predicate": NOTED, "object": line.text[:1_000]}
    return (Statement.model_validate({**note, "text": line.text, "confidence": line.confidence, "origin": Origin.IMPORT}),)


STORE = "facts"
"""The store, as spans name it."""
_AGAIN = 5.0
"""Seconds until a store that was away is tried once more."""


def assemble_facts(
    database: Database,
    embedder: Embedder,
    settings: MemorySettings,
    wake: Callable[[], None],
    vectors: VectorIndex,
    queries: QueryVectors | None = None,
) -> tuple[FactHandlers, PostgresForgettings]:
    """The handlers on their stores. The arguments are those of `assemble`."""
    search = make_search(database, vectors, queries or make_queries(embedder, settings), settings)
    forgettings = PostgresForgettings(database, vectors, wake)
    return FactHandlers(PostgresFacts(database, vectors, wake), forgettings, search, Drafter(embedder)), forgettings


async def serve_facts(
    bus: Bus,
    database: Database,
    embedder: Embedder,
    settings: MemorySettings,
    vectors: VectorIndex,
    wake: Callable[[], None],
    queries: QueryVectors,
) -> Callable[[News, ConversationDeleted], Awaitable[None]]:
    """Let the service answer for facts. The arguments are those of `assemble`.

    Returns:
        What is to be done with the facts of a deleted conversation, before the service reports on it.
    """
    handlers, forgettings = assemble_facts(database, embedder, settings, wake, vectors, queries)
    span = partial(trace_handler, bus.tracing)
    await asyncio.to_thread(prepare)
    await serve(bus, facts.ASK_FACTS, span("search_memory", STORE, handlers.ask_facts))
    await serve(bus, facts.LEARN, span("upsert_memory", STORE, handlers.learn))
    await serve(bus, facts.LIST_FACTS_TOOL, span("search_memory", STORE, handlers.list_facts))
    await serve(bus, facts.RECALL_FACTS_TOOL, span("search_memory", STORE, handlers.recall_facts))
    await serve(bus, facts.IMPORT_MEMORY_TOOL, span("upsert_memory", STORE, handlers.import_memory))
    await serve(bus, facts.PREVIEW_FORGETTING_TOOL, span("search_memory", STORE, handlers.preview_forgetting))
    await serve(bus, facts.FORGET_FOR_GOOD_TOOL, span("delete_memory", STORE, handlers.forget_for_good))
    await serve(bus, facts.GET_FORGETTING_TOOL, span("search_memory", STORE, handlers.get_forgetting))
    derived = DerivedHandlers(database, vectors, wake)
    await serve(bus, FIND_DERIVED, span("search_memory", STORE, derived.find))
    await serve(bus, ERASE_DERIVED, span("delete_memory", STORE, derived.erase))
    await follow(bus, GRAPH_PURGED, handlers.on_purged, workers=1)
    await follow(bus, facts.COPIES_PURGED, handlers.on_copies_purged, workers=1)
    repeating = asyncio.create_task(_repeat_forgettings(forgettings), name="memory-forget-again")
    bus.on_stop(lambda: _cancel(repeating))
    return handlers.on_conversation_deleted


async def _repeat_forgettings(forgettings: PostgresForgettings) -> None:
    while True:
        try:
            if count := await forgettings.repeat():
                log.info("%d forgettings were made again", count)
            return
        except ServiceError as error:
            log.warning("what was forgotten cannot be forgotten again yet: %s", error.code)
            await asyncio.sleep(_AGAIN)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
