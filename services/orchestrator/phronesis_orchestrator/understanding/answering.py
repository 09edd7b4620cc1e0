"""A message answered by rules: understood, looked up in the twin, the person's facts, the documents or memory, and said."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from phronesis_contracts import BadRequest, ServiceError
from phronesis_contracts.agents import AnswerSource
from phronesis_contracts.answers import Analysis, AnswerData, MemoryProcess, Mode
from phronesis_contracts.documents import MAX_COMPARED, FoundPassage
from phronesis_contracts.memory import AugmentedMemoryContext, ItemKind
from phronesis_contracts.orchestrator import Directive, Source

from ..agents.context import cite, compare_texts, find_passages
from ..agents.presentation import sanitize_answer, sanitize_text
from ..agents.text import sentences
from ..agents.tools import RECORDS, may_read
from ..models.reasoner import MAX_PHRASE, Interpreter, TurnContext
from ..turns.execution import TurnRun
from .asking_model import ask_model
from .executor import execute
from .finding import Finding, confidence
from .language import Language, detect, fold, languages
from .lexicon import Lexicon
from .personal import PersonalAnswer, answer_about_user, forget_confirmed, forget_source_confirmed, learn_turn, recall
from .plan import (
    DATA_PLANS,
    MAX_ENTITIES,
    AboutUser,
    Aggregate,
    Change,
    Clarification,
    Compare,
    Compose,
    Coverage,
    Describe,
    EntityRef,
    Filter,
    Focus,
    Gaps,
    Plan,
    QuotedSource,
    Rank,
    Relate,
    Schema,
    Search,
    Select,
    Selection,
    Talk,
    Understood,
    Unknown,
)
from .planner import asks, is_about_user, is_own, last_clause, parts_of, to_forget, understand
from .reader import TwinReader
from .reading import parse_number
from .search import (
    ATTACHED,
    SURE,
    Passage,
    Quote,
    attached,
    columns_to_measure,
    lines_of,
    meant,
    nearest,
    passages_of,
    quote,
    rows_of,
    table_of,
    telling,
    things_about,
    weigh,
    without,
)
from .tables import Computed, asks_measure, columns_of, is_row, says_measure
from .wording import Wording, Written
from .writer import Taken, say_taken, write

log = logging.getLogger(__name__)

_FEW = 3
"""Words of a question that says too little by itself."""
_SHORT = 8
"""Words of a message that may have its subject in the message before."""
_PASSAGES = 12
"""Passages of the conversation's documents that are looked at for one question."""
_QUOTED_SURE = 0.75
"""What a quoted answer is worth, times how much of the question it supports: the words fit, the sense may not."""
_ROWS, _MOST_ROWS = 5, 30
"""Rows of a table that are shown of what was computed, and where the rows are what is asked for."""
_NEAR_SURE = 0.4
"""What it is worth if a sentence only comes nearest."""
_FEWEST = 2
"""Telling words of a question that is looked for without the one before it."""
_NEAR, _FAIR, _SURE = 0.3, 0.45, 0.5
"""How sure it has to be that something the person said answers: what goes on from it, what nothing else answers, and any
other question."""
_OF_TWIN = ("ambiguous", "property", "years", "relationship", "unsupported")
"""Why a message is not understood that only the twin's own words and values tell."""
_PERSONAL = frozenset(kind.value for kind in (ItemKind.NOTE, ItemKind.EPISODE))
"""What a question about the speaker may be answered from."""
_FIGURES = frozenset({"count", "sum", "mean", "median", "share", "ratio", "difference", "max", "min"})
"""Kinds of words that ask for a figure."""
_COMPUTED = frozenset(
    """sum mean median difference ratio share most least table_most table_least compare_greater compare_less
    more less""".split()
)
"""Those, extremes and comparisons, that a text seldom states: who quotes it has not worked it out."""
_MEANT = 0.35
"""The least cosine of a question and of what is quoted of the twin."""
_NO_ANSWER = 0.0
_SAID = 1.0


@dataclass(frozen=True)
class RuleAnswer:
    """An answer by rules, in the parts that the agents' loops hand on."""

    understood: Understood
    written: Written
    sure: float
    mode: Mode
    finding: Finding | None = None
    memory: AugmentedMemoryContext | None = None
    """What retrieval gave, where it was asked."""
    sources: tuple[Source, ...] = ()
    """What supports the answer, and nothing else."""
    focus: Focus | None = None
    taken: Taken | None = None
    """How the message was understood, where a model made the plan; it stands in the text, too."""
    stands: bool = False
    """Whether it is told as it is, and no model puts it in other words: what is, or would be, forgotten for good."""


async def answer_by_rules(
    running: TurnRun, turn: TurnContext, *, quotes: bool = True, model: Interpreter | None = None
) -> RuleAnswer:
    """Answer the turn's message. A part that is away is left out, and marks the reply.

    Args:
        quotes: whether what no plan answers is looked for in documents and memory, and quoted; a model reads those itself.
        model: who is asked for a plan where the rules have none.

    Raises:
        ServiceError: the twin is asked about, and cannot be read.
    """
    return await _Answering(running, turn, quotes, model).answer()


class _Answering:
    def __init__(self, running: TurnRun, turn: TurnContext, quotes: bool, model: Interpreter | None) -> None:
        self._running, self._turn, self._quotes, self._model = running, turn, quotes, model
        self._text = " ".join((turn.user_text or "").split())
        self._language = detect(self._text, turn.focus.language)
        self._analyst = turn.agent is not None and RECORDS in turn.agent.stages
        self._recalled: dict[str, PersonalAnswer | None] = {}
        self._vague = False
        """Whether the plan would take everything that the twin holds, and the message does not say so."""

    async def answer(self) -> RuleAnswer:
        with self._phase("II route"):
            lexicon = await self._lexicon(self._language)
            understood = await self._understand(lexicon, self._language)
            if lexicon is not None and isinstance(understood.plan, Unknown) and understood.plan.reason == "words":
                understood, lexicon = await self._in_another_language(understood, lexicon)
            if lexicon is not None and self._model is not None and self._may_read(AnswerSource.TWIN):
                understood = await ask_model(self._running, self._model, self._turn, understood, lexicon) or understood
            if self._quotes:
                decision = "respond_directly" if isinstance(understood.plan, Talk | Compose) else "query_memory"
                log.info("the router decided: %s", decision)
                await self._running.show("routed", decision=decision, plan=(understood.plan.kind, *understood.notes))
        reads_twin = lexicon is not None and self._may_read(AnswerSource.TWIN)
        schema = Schema(lexicon.view.ontology) if lexicon is not None and reads_twin else EMPTY_SCHEMA
        words = Wording(schema, self._language.name)
        answer = await self._on_forgetting(understood, words)
        if answer is None and lexicon is not None and reads_twin:
            answer = await self._in_parts(understood, lexicon, schema)
        if answer is None:
            answer = self._keeping_silent(await self._by_kind(understood, lexicon, schema, words))
        with self._phase("IV answer"):
            return self._complete(answer, understood, words)

    async def _on_forgetting(self, understood: Understood, words: Wording) -> RuleAnswer | None:
        """What the person says to what would be forgotten: yes, or no; `None` where they speak of something else.

        A yes alone counts right after it was shown; later on it has to say what is to be done.
        """
        ids, source, language = self._turn.focus.to_forget, self._turn.focus.source_to_forget, self._language
        if not (ids or source) or not (said := [token.folded for token in language.tokens(self._text)]):
            return None
        answers = [language.cues(name) for name in ("yes", "no", "confirms", "refuses", "please")]
        if not set(said) <= {word for phrases in answers for phrase in phrases for word in phrase.split()}:
            return None  # yes, and which of the projects are red?
        before = next((past.text for past in reversed(self._turn.history) if past.role == "user"), "")
        shown = to_forget(before, language) != ""
        refused = language.holds(self._text, language.cues("refuses")) or (shown and said[0] in language.cues("no"))
        confirmed = language.holds(self._text, language.cues("confirms"))
        confirmed = confirmed or (shown and language.holds(self._text, language.cues("yes")))
        if not refused and not confirmed:
            return None
        focus = self._turn.focus.model_copy(update={"to_forget": (), "source_to_forget": None})
        told, sure = words.sentence("personal/not_forgotten"), _SAID
        if not refused:
            try:
                if source is not None:
                    # What the conversation was about may be what goes.
                    told, focus = await forget_source_confirmed(self._running, source, words), Focus(language=words.language)
                else:
                    told = await forget_confirmed(self._running, ids, words)
            except ServiceError as error:
                log.warning("what was confirmed cannot be forgotten now: %s", error.code)
                self._running.degrade("memory")
                told, sure, focus = words.sentence("personal/not_forgotten_now"), _NO_ANSWER, self._turn.focus
        return self._said(understood, Written(told), "A", sure, focus=focus, stands=True)

    def _keeping_silent(self, answer: RuleAnswer) -> RuleAnswer:
        """An answer after which the facts that the person asked to forget are left out as before."""
        waiting, source = self._turn.focus.to_forget, self._turn.focus.source_to_forget
        plan = answer.understood.plan
        if not (waiting or source) or (isinstance(plan, AboutUser) and plan.action == "forget"):
            return answer
        left = {"to_forget": waiting, "source_to_forget": source}
        kept = (answer.focus or self._turn.focus).model_copy(update=left)
        return replace(answer, focus=kept)

    def _phase(self, name: str) -> AbstractContextManager[object]:
        """A phase of the turn; beside a model, its phases are the ones that count."""
        return self._running.phase(name) if self._quotes else nullcontext()

    def _on_document(self) -> bool:
        """Whether a document came with the message, or was what the answer before was quoted from."""
        quoted = self._turn.focus.quoted
        return bool(self._turn.media_text) or (quoted is not None and quoted.kind in ATTACHED)

    def _may_read(self, source: AnswerSource) -> bool:
        return may_read(self._turn.agent, source)

    async def _not_a_source(self, understood: Understood, words: Wording, wanted: AnswerSource) -> RuleAnswer:
        """Quoted from the sources that the agent has, or said to be a matter of one that it has not."""
        found = await self._searched(understood, words)
        if found is not None:
            return found
        said = words.sentence("not_a_source", wanted=words.phrase(f"sources/{wanted}"))
        return self._said(understood, Written(f"{said} {self._from_sources(words)}"), "E", _NO_ANSWER)

    def _from_sources(self, words: Wording) -> str:
        """What an agent answers from, where it is one that states it."""
        sources = (self._turn.agent.sources if self._turn.agent else None) or ()
        named = words.listed(words.phrase(f"sources/{source}") for source in sources)
        return words.sentence("from_sources", sources=named) if named else ""

    def _complete(self, answer: RuleAnswer, understood: Understood, words: Wording) -> RuleAnswer:
        """The answer with what its reader has to know of it, and with what the conversation is about from now on."""
        if understood.notes and isinstance(understood.plan, DATA_PLANS) and self._may_read(AnswerSource.TWIN):
            said = words.sentence("mended", mended=", ".join(understood.notes))
            answer = replace(answer, written=replace(answer.written, text=f"{answer.written.text}\n\n{said}"))
        if understood.passed and answer.finding is not None:
            said = words.sentence("passed", words=words.listed(f"“{word}”" for word in understood.passed))
            answer = replace(answer, written=replace(answer.written, text=f"{answer.written.text}\n\n{said}"))
        if understood.by == "model" and answer.finding is not None:
            taken = say_taken(understood, words)
            answer = replace(answer, written=replace(answer.written, text=taken.around(answer.written.text)), taken=taken)
        if "media" in self._running.degraded:
            answer = replace(
                answer, written=replace(answer.written, text=f"{answer.written.text}\n\n{words.sentence('unread')}")
            )
        return answer

    async def _in_another_language(self, understood: Understood, lexicon: Lexicon) -> tuple[Understood, Lexicon]:
        """The message in a language in which all of its words are known; as it was where there is none.

        A language that knows fewer of the words than the message's own is not tried: every other word would be looked up as a
        misspelling, and in a dictionary that may take 0.1 GB.
        """
        known = await asyncio.to_thread(lexicon.known, self._text)
        for language in languages().values():
            if language.name == self._language.name or (other := await self._lexicon(language)) is None:
                continue
            if await asyncio.to_thread(other.known, self._text) < known:
                continue
            again = await self._understand(other, language)
            if isinstance(again.plan, DATA_PLANS) and not again.passed:
                self._language = language
                return again, other
        return understood, lexicon

    async def _understand(self, lexicon: Lexicon | None, language: Language, *, personal: bool = True) -> Understood:
        """In a thread: a message of the greatest length takes some 35 ms."""
        spoken, focus = bool(self._turn.history), self._turn.focus
        return await asyncio.to_thread(understand, self._text, lexicon, focus, language, personal=personal, spoken=spoken)

    async def _lexicon(self, language: Language) -> Lexicon | None:
        vocabularies = self._running.vocabularies
        if vocabularies is None:
            return None
        try:
            return await vocabularies.lexicon(self._running.claim.who, language)
        except ServiceError as error:
            log.warning("the words of the twin cannot be read: %s", error.code)
            if self._analyst:
                raise
            self._running.degrade("graph")
            return None

    async def _by_kind(self, understood: Understood, lexicon: Lexicon | None, schema: Schema, words: Wording) -> RuleAnswer:
        plan = understood.plan
        if self._turn.focus.personal and self._goes_on(understood):
            told = await self._from_memory(understood, words, self._text, _SURE)
            if told is None:
                asked = self._with_question_before() if self._says_little() else self._text
                least = _FAIR if isinstance(plan, DATA_PLANS) else _NEAR
                told = await self._from_memory(understood, words, asked, least, only_near=True)
            if told is not None:
                return told
        self._vague = lexicon is not None and self._is_vague(plan, lexicon)
        mended = bool(understood.notes) and len(self._text.split()) <= _FEW + 1
        if self._turn.focus.personal and isinstance(plan, DATA_PLANS) and (self._vague or mended):
            return self._said(understood, Written(words.sentence("personal/never_told")), "A", _NO_ANSWER)
        quoted = self._turn.focus.quoted
        if quoted is not None and quoted.kind in ATTACHED and self._asks_place():
            return self._said(understood, Written(words.sentence("quoted_place", title=quoted.label)), "A", _QUOTED_SURE)
        supposed = isinstance(plan, Compose) and plan.task in ("suppose", "explain", "summarise")
        if quoted is not None and (supposed or not isinstance(plan, Talk | AboutUser | Compose)):
            found = await self._in_source(understood, words, quoted)
            if found is not None:
                return found
            points = isinstance(plan, Unknown) and (plan.reason == "reference" or self._says_it())
            in_text = quoted.kind in ATTACHED and isinstance(plan, DATA_PLANS) and not understood.leans
            points = points or (in_text and self._says_it())  # what does it say on pensions
            if points or (self._vague and quoted.kind in ATTACHED):
                if quoted.kind in ATTACHED:
                    passages = await self._document_passages(self._with_question_before(), quoted.id)
                    if (near := await self._nearest(understood, words, passages)) is not None:
                        return near
                said = words.sentence("not_in_source", title=quoted.title)
                return self._said(understood, Written(said), "A", _NO_ANSWER)
        if self._only_hands_over(plan):
            names = words.listed(dict.fromkeys(f"“{one.title}”" for one in attached(self._turn.media_text)))
            return self._said(understood, Written(words.sentence("attached", names=names)), "I", _SAID)
        if self._names_document():
            found = await self._from_documents(understood, words)
        elif self._turn.media_text and isinstance(plan, DATA_PLANS) and not self._vague:
            quotes = await self._quote(self._text, await self._document_passages(self._text))
            found = self._quoted(understood, quotes, words) if quotes else None
        elif self._turn.media_text and not isinstance(plan, AboutUser):
            found = await self._searched(understood, words)
        else:
            found = None
        if found is not None:
            return found
        of_twin = isinstance(plan, DATA_PLANS) or (isinstance(plan, Unknown) and (plan.reason in _OF_TWIN or plan.choices))
        if of_twin and not self._may_read(AnswerSource.TWIN):
            return await self._not_a_source(understood, words, AnswerSource.TWIN)
        match plan:
            case Talk():
                return self._talk(understood, plan, words)
            case AboutUser():
                of_document = quoted is not None and quoted.kind in ATTACHED
                if of_document and plan.action == "remember" and not plan.explicit:
                    found = await self._from_passages(understood, words, self._text)  # whom do I write to about the glasses
                    spoken = {token.folded for token in self._language.tokens(self._text)}
                    tells = self._language.holds(self._text.split()[0], self._language.words.get("user.statement", ()))
                    asks = not tells or bool(spoken & (self._language.cues("who") | self._language.cues("sort")))
                    if found is None and asks:
                        found = await self._unknown(understood, Unknown(reason="empty", words=self._text[:200]), schema, words)
                    if found is not None:
                        return found
                return await self._about_user(understood, plan, lexicon, schema, words)
            case Compose() if self._from_memory_first(plan):
                found = await self._searched(understood, words)
                return found or self._said(understood, self._not_composed(plan, schema, words), "F", _NO_ANSWER)
            case Compose():
                mode: Mode = "D" if plan.task == "suppose" else "F"
                return self._said(understood, self._not_composed(plan, schema, words), mode, _NO_ANSWER)
            case Search():
                found = await self._searched(understood, words, plan.text)
                if found is not None:
                    return found
                nothing = await self._unknown(understood, Unknown(reason="empty", words=self._text[:200]), schema, words)
                return replace(nothing, focus=nothing.focus or _focus_on(understood, self._turn.focus))
            case Unknown():
                kept = await self._kept(understood, words)
                missed = kept or await self._unknown(understood, plan, schema, words)
                return replace(
                    missed, focus=missed.focus or _focus_after_miss(self._turn.focus, understood, self._text[:MAX_PHRASE])
                )
        return await self._of_twin(understood, lexicon, schema)

    def _is_vague(self, plan: Plan, lexicon: Lexicon) -> bool:
        """Whether a plan takes all things of a type that the message does not name: add up all the budgets; who is new?"""
        of_set = isinstance(plan, Select | Aggregate | Rank | Change) and not plan.of.filters and not plan.of.among
        if not of_set and not (isinstance(plan, Coverage) and plan.about == "years" and plan.type is None):
            return False
        tokens, plural = self._language.tokens(self._text), self._language.words.get("plural_endings", ())
        nouns = [n for n, one in enumerate(tokens) if any(s.kind == "type" for s in lexicon.look_up((one.stem,)))]
        the_one = self._language.cues("the_one")
        return all(n and tokens[n - 1].folded in the_one and not tokens[n].folded.endswith(plural) for n in nouns)

    def _only_hands_over(self, plan: Plan) -> bool:
        """Whether a message with a document asks nothing of it yet: minutes attached, can you look through this contract?"""
        if not self._turn.media_text or not self._text or not isinstance(plan, Unknown | AboutUser):
            return False
        told = telling(self._language.tokens(self._text), self._language)
        documents = self._language.cues("handed") | set(self._language.words.get("document", ()))
        words = {token.folded for token in self._language.tokens(self._text)}
        question = words & {word for name in ("sort", "opens", "who") for word in self._language.cues(name)}
        if question and not told:
            return False  # days off per year, what do I get
        asks = self._asks() or bool(question) or self._asks_figure()
        asks = asks or bool(words & (self._language.cues("wants") | self._language.cues("please")))
        return not asks or all(token.folded in documents for token in told)

    def _from_memory_first(self, plan: Compose) -> bool:
        """Whether an order to explain or sum up may be answered by quoting what is stored."""
        return plan.task in ("explain", "summarise") and not self._analyst

    def _not_composed(self, plan: Compose, schema: Schema, words: Wording) -> Written:
        if "model" in self._running.degraded:  # there is one, and it failed
            return Written(words.sentence("compose_away", task=words.raw("tasks")[plan.task]))
        return write(None, plan, schema, words.language)

    def _said(self, understood: Understood, written: Written, mode: Mode, sure: float, **more: object) -> RuleAnswer:
        return RuleAnswer(understood, written, sure, mode, **more)  # type: ignore[arg-type]

    # -- talk and the person ----------------------------------------------------------------------------------

    def _talk(self, understood: Understood, plan: Talk, words: Wording) -> RuleAnswer:
        mode: Mode = "G" if plan.about in ("self", "help", "override") else "I"
        own = self._own_phrase(plan.about) or (self._from_sources(words) if plan.about in ("self", "help") else "")
        if own:
            return self._said(understood, Written(own), mode, _SAID)
        told = ""
        if plan.about == "time":
            told = f"{datetime.now(UTC):%A, %Y-%m-%d, %H:%M} UTC"
        elif plan.about == "earlier":
            before = [past.text for past in self._turn.history if past.role == "user"]
            told = " / ".join(" ".join(text.split())[:200] for text in before[-3:])
        return self._said(understood, write(None, plan, words.schema, words.language, told), mode, _SAID)

    def _own_phrase(self, about: str) -> str:
        """The agent's own sentence for a courtesy, in the language that its texts are written in."""
        if self._turn.agent is None or self._language.name != "en":
            return ""
        name = "about" if about in ("self", "help") else about
        return self._turn.agent.phrases.get(name, "").strip() if name in ("greeting", "thanks", "farewell", "about") else ""

    async def _about_user(
        self, understood: Understood, plan: AboutUser, lexicon: Lexicon | None, schema: Schema, words: Wording
    ) -> RuleAnswer:
        if not self._may_read(AnswerSource.MEMORY):
            return await self._not_a_source(understood, words, AnswerSource.MEMORY)
        if plan.action == "recall" and self._tells_first():
            await self._learn()
        found = await answer_about_user(self._running, plan, self._language, words, self._turn.focus.to_forget)
        if (found is None or not found.facts or found.near) and plan.action == "recall":
            if (told := await self._from_passages(understood, words, self._text)) is not None:
                return told
        if found is not None and not found.facts and plan.action == "recall":
            found = await self._again(words) or found
        if found is not None:
            return self._personal(understood, found, words)
        if lexicon is not None and not is_own(self._text, self._language):
            of_data = await self._understand(lexicon, self._language, personal=False)
            if isinstance(of_data.plan, DATA_PLANS):
                if not self._may_read(AnswerSource.TWIN):
                    return await self._not_a_source(of_data, words, AnswerSource.TWIN)
                return await self._of_twin(of_data, lexicon, schema)
        return self._said(understood, Written(words.sentence("personal/unknown")), "A", _NO_ANSWER)

    def _tells_first(self) -> bool:
        """Whether a message tells something of the person before it asks: I'm 29 and drive a tram. So what do I do?"""
        first, *rest = sentences(self._text) or [""]
        return bool(rest) and not asks(first, self._language) and is_about_user(first, self._language)

    async def _learn(self) -> None:
        try:
            await learn_turn(self._running, self._language.name)
        except ServiceError as error:
            log.warning("what the message tells cannot be learnt now: %s", error.code)
            self._running.degrade("memory")

    async def _again(self, words: Wording) -> PersonalAnswer | None:
        """What answers a short follow-up together with the question before it, told as no more than near; `None` without."""
        bare = not telling(self._language.tokens(self._text), self._language)
        leans = bare or self._follows() or self._says_it()
        may = self._turn.focus.personal and self._may_read(AnswerSource.MEMORY)
        if not may or not leans or len(self._text.split()) > _SHORT:
            return None
        found = await self._recall(self._with_question_before(), words)
        if found is None or not found.facts or found.near:
            return found if found is not None and found.near else None
        said = words.sentence("personal/near", said=found.text)
        return replace(found, text=said, sure=_NEAR_SURE, near=True)

    async def _kept(self, understood: Understood, words: Wording) -> RuleAnswer | None:
        """What the person told, kept; `None` where the message asks for something, or tells nothing to keep."""
        if self._wants_data(understood.plan) or self._asks() or not self._quotes or not self._may_read(AnswerSource.MEMORY):
            return None
        if self._on_document() and not is_own(self._text, self._language):
            return None  # last day to tell them: it is asked of the document that is spoken of
        if self._turn.focus.plan is not None and len(self._text.split()) <= _FEW + 1 and not is_own(self._text, self._language):
            return None  # only the largest three: a follow-up that was not understood
        asked = self._language.cues("please") & {token.folded for token in self._language.tokens(self._text)}
        if asked or self._language.recognise(self._text, "order") is not None:
            return None  # hobbies of mine, please; call me a taxi
        told = AboutUser(action="remember", text=self._text[:4_000])
        found = await answer_about_user(self._running, told, self._language, words)
        return self._personal(understood, found, words) if found is not None else None

    def _wants_data(self, plan: Plan) -> bool:
        """Whether a message is a request for data that was not understood, and no fact: I am after the schemes of 2021."""
        begins = any(f" {phrase} " in f" {fold(self._text)} " for phrase in self._language.words.get("polite", ()))
        own = self._language.holds(self._text, self._language.words.get("user.question", ()))
        if not isinstance(plan, Unknown) or plan.detail.get("about") != "data":
            return False
        return begins or (not own and "unexplained" not in plan.detail)

    # -- the twin ---------------------------------------------------------------------------------------------

    async def _in_parts(self, understood: Understood, lexicon: Lexicon, schema: Schema) -> RuleAnswer | None:
        """Who runs it, and what does it cost? Two questions in one message, the second with what the first is about."""
        parts = parts_of(self._text, self._language) if not self._on_document() else []
        if not isinstance(understood.plan, Unknown | Describe | Relate) and not self._asks_of_them(parts[1:]):
            return None
        focus, said = self._turn.focus, list[RuleAnswer]()
        for part in parts:
            spoken = bool(self._turn.history or said)
            asked = await asyncio.to_thread(understand, part, lexicon, focus, self._language, personal=False, spoken=spoken)
            if not isinstance(asked.plan, DATA_PLANS) or asked.passed:
                return None
            answer = await self._of_twin(asked, lexicon, schema, focus)
            if answer.focus is None:
                return None
            focus = answer.focus
            said.append(answer)
        return _joined(said) if len(said) > 1 else None

    def _asks_of_them(self, parts: Sequence[str]) -> bool:
        """Whether a part of a message counts some of what the part before it is about: … and how many of them were red?"""
        tokens = [self._language.tokens(part) for part in parts]
        return any(
            sense.kind == "count" and {one.folded for one in part[end : end + 2]} & self._language.cues("of_them")
            for part in tokens
            for _, end, sense in self._language.senses_in(part)
        )

    async def _of_twin(
        self, understood: Understood, lexicon: Lexicon | None, schema: Schema, focus: Focus | None = None
    ) -> RuleAnswer:
        assert lexicon is not None, "only a lexicon makes a plan of the twin"
        plan, running, focus = understood.plan, self._running, focus or self._turn.focus
        if isinstance(plan, Compare) and plan.how == "share" and len(plan.sides[0].of.years) > 1:
            return _joined([await self._of_twin(one, lexicon, schema, focus) for one in _year_by_year(understood, plan)])
        with self._phase("3 recall"):
            try:
                twin = TwinReader(running.neighbours, running.claim.who, schema)
                plan, finding = await _with_text(plan, await execute(plan, twin), twin, lexicon)
            except BadRequest as refused:
                log.warning("a plan was refused by the graph: %s", refused.code)
                plan = Unknown(reason="unsupported", words=self._text[:200])
                return self._said(understood, write(None, plan, schema, self._language.name), "E", _NO_ANSWER)
        written = write(finding, plan, schema, self._language.name)
        answered = finding.outcome == "found" or finding.outcome == "empty"
        return RuleAnswer(
            understood,
            written,
            confidence(finding, understood, len(running.degraded)),
            _mode_of(plan, understood.leans),
            finding,
            sources=_node_sources(finding),
            focus=focus_after(focus, plan, finding, self._language.name) if answered else None,
        )

    # -- passages ---------------------------------------------------------------------------------------------

    async def _from_documents(self, understood: Understood, words: Wording) -> RuleAnswer | None:
        """Quoted from the documents that a message speaks of, attached now or before; `None` where nothing supports it."""
        if not self._quotes:
            return None
        quotes = await self._quote(self._text, await self._document_passages(self._text), given=True)
        return self._quoted(understood, quotes, words) if quotes else None

    async def _document_passages(self, text: str, media_id: str | None = None) -> list[Passage]:
        """Passages of the conversation's documents, or of one of them; of a new one the text at hand, until it is kept."""
        if not self._may_read(AnswerSource.DOCUMENTS):
            return []
        try:
            found = await find_passages(self._running, text or " ", _PASSAGES, media_id)
        except ServiceError as error:
            log.warning("the documents of the conversation cannot be searched: %s", error.code)
            self._running.degrade("documents")
            return attached(self._turn.media_text)
        passages = [_of_document(one) for one in found.passages] or attached(self._turn.media_text)
        handed = {one.title for one in attached(self._turn.media_text)}
        # What comes with a message is what it speaks of, before what came earlier.
        named = {one.title for one in meant(self._text, passages, self._language)}
        here = [one for one in passages if one.title in handed] or passages
        return [replace(one, score=one.score + (one.title in named)) for one in here]

    async def _in_source(self, understood: Understood, words: Wording, source: QuotedSource) -> RuleAnswer | None:
        """Quoted from where the answer before was quoted; `None` where it does not say more.

        A question that the twin answers, too, is one about a document of this conversation if that holds all that it says.
        """
        data = isinstance(understood.plan, DATA_PLANS) and not understood.leans and not understood.notes and not self._vague
        if not self._quotes or (data and (source.kind not in ATTACHED or self._asks_figure())):
            return None
        memory = None
        if source.kind in ATTACHED:
            found_passages = await self._document_passages(f"{self._text} {source.asked}")
            passages = [replace(one, score=one.score + (one.id == source.id)) for one in found_passages]
            again = self._from_row(understood, words, source)
            if again is not None and again.sure > _NEAR_SURE:
                return again
            if (computed := await self._from_table(understood, words, passages, self._text, source.computed)) is not None:
                return computed
            if again is not None:
                return again
        else:
            memory = await self._retrieve(self._text, source.asked)
            passages = [one for one in passages_of(memory) if one.id == source.id or one.title == source.title]
        found = await self._quote(self._text, passages, fewest=1)
        enough = 1.0 if data else SURE if source.kind in ATTACHED else 0.0
        if not found or found[0].support < enough:
            return None
        if source.kind in ATTACHED:
            return await self._weighed(understood, found[:1], passages, words)
        return self._quoted(understood, found[:1], words, memory)

    def _asks_place(self) -> bool:
        """Whether a message asks for nothing but where the answer before stands."""
        tokens = self._language.tokens(self._text)
        places, said = self._language.cues("place"), {one.folded for one in tokens}
        opens = self._language.cues("opens")
        other = (opens | self._language.cues("who") | self._language.cues("when")) - places
        named = bool(said & (places - opens)) or bool(said & places and said & self._language.cues("stated"))
        return named and not said & other and not telling(tokens, self._language) and not self._asks_figure()

    def _goes_on(self, understood: Understood) -> bool:
        """Whether a message is short, and begins as a follow-up does or is a question that says too little by itself."""
        plan, tokens = understood.plan, self._language.tokens(self._text)
        follows, asks = self._follows(), self._asks()
        if isinstance(plan, Unknown) and asks and plan.reason == "reference":
            return True  # what it points to was said by the person
        own = self._language.holds(self._text, self._language.words.get("user.statement", ()))
        return len(tokens) <= _SHORT and (
            (isinstance(plan, Unknown) and (follows or asks))
            or (isinstance(plan, DATA_PLANS) and (follows or own or understood.certainty < 1.0))
        )

    def _follows(self) -> bool:
        tokens = self._language.tokens(self._text)
        first = self._language.phrases.get((tokens[0].stem,), ()) if tokens else ()
        return any(sense.kind == "follow_up" for sense in first)

    def _says_little(self) -> bool:
        """Whether a question is not whole without the one before it."""
        return self._follows() or self._says_it() or len(self._text.split()) <= _FEW

    def _asks(self) -> bool:
        return asks(self._text, self._language)

    def _question(self) -> str:
        """Here is the budget. What was spent in total? Without what only hands a document over."""
        clause = last_clause(self._text)
        put = asks(clause, self._language) or clause.endswith("?")
        alone = put and telling(self._language.tokens(clause), self._language)
        return clause if self._turn.media_text and alone else self._text

    def _with_question_before(self) -> str:
        before = [past.text for past in self._turn.history if past.role == "user"][-1:]
        return " ".join((*before, self._text))

    def _says_it(self) -> bool:
        """Whether a short message has a pronoun for what was spoken of."""
        said = [token.folded for token in self._language.tokens(self._text)]
        return len(said) <= _SHORT and bool(self._language.cues("pronoun") & set(said))

    def _names_document(self) -> bool:
        said = {token.folded for token in self._language.tokens(self._text)}
        return bool(said & set(self._language.words.get("document", ())))

    async def _searched(self, understood: Understood, words: Wording, text: str | None = None) -> RuleAnswer | None:
        """Quoted from what the person said, the conversation's documents, or what memory holds; `None` without support."""
        if (
            not self._analyst
            and not self._turn.media_text
            and (told := await self._from_memory(understood, words, self._text, _SURE)) is not None
        ):
            return told
        return await self._from_passages(understood, words, text or self._text)

    async def _from_passages(
        self, understood: Understood, words: Wording, asked: str, documents: list[Passage] | None = None
    ) -> RuleAnswer | None:
        """Quoted from the conversation's documents, or what memory holds; `None` where nothing supports it.

        Args:
            documents: passages of the documents, where they were looked for already.
        """
        if not self._quotes:
            return None
        asked = self._question() if asked == self._text else asked
        if documents is None:
            documents = await self._document_passages(asked)
        if not asked.strip():  # a document alone asks for nothing but what it is
            given = await self._quote(asked, documents, given=True)
            return self._quoted(understood, given, words) if given else None
        if (computed := await self._from_table(understood, words, documents, asked)) is not None:
            return computed
        found = await self._quote(asked, documents)
        if found and found[0].support >= SURE:
            return await self._weighed(understood, found, documents, words)
        quoted = self._turn.focus.quoted
        on_document = (self._turn.media_text and self._asks()) or (quoted is not None and quoted.kind in ATTACHED)
        memory = None
        if not self._asks_figure():  # a sentence that shares its words is no figure
            memory = await self._retrieve(asked)
        others = passages_of(memory)
        short = self._says_it() or len(self._text.split()) <= _FEW
        if short and len(spoken := self._turn.focus.entities) == 1:  # what another thing's text says is not of it
            key = f"{spoken[0].type}/{spoken[0].id}/"
            others = [one for one in others if one.kind != ItemKind.NODE.value or one.id.startswith(key)]
        if is_own(asked, self._language):
            others = [one for one in others if one.kind in _PERSONAL]
        elif on_document:  # a text of the twin that shares its words is not what is spoken of
            others = [one for one in others if one.kind != ItemKind.NODE.value]
        better = await self._near_enough(asked, await self._quote(asked, others))
        if better:
            return self._quoted(understood, better, words, memory)
        if found:
            return self._quoted(understood, found, words, near=True)
        if (near := await self._nearest(understood, words, documents)) is not None:
            return near
        given = await self._quote(asked, documents, given=True) if self._turn.media_text else ()
        return self._quoted(understood, given, words) if given else None

    async def _near_enough(self, asked: str, found: tuple[Quote, ...]) -> tuple[Quote, ...]:
        """Quotes without those of the twin that share the words of a question, and mean something else."""
        nodes = [one for one in found if one.passage.kind == ItemKind.NODE.value]
        cosines = await self._compared(asked, [" ".join(one.sentences) for one in nodes]) if nodes else ()
        far = {id(one) for one, cosine in zip(nodes, cosines, strict=False) if cosine < _MEANT}
        return tuple(one for one in found if id(one) not in far)

    def _from_row(self, understood: Understood, words: Wording, source: QuotedSource) -> RuleAnswer | None:
        """The row of a table that was told, again, for a short question about it: when is that? And where?"""
        told = telling(self._language.tokens(self._text), self._language)
        measure = asks_measure(self._text, told, self._language)
        if not source.row or len(self._text.split()) > _SHORT or measure not in ("", "count"):  # that's how many kilos?
            return None
        said = {token.folded for token in self._language.tokens(self._text)}
        points = self._says_it() or bool(said & self._language.cues("points_at"))
        columns = {token.stem for token in self._language.tokens(" ".join(columns_of(source.row)))}
        own = [token for token in told if token.stem not in columns]
        if (own and not points) or not (points or self._follows()):
            return None
        place = source.label.removeprefix(source.title).removeprefix(", ")
        row = Quote(Passage(source.id, source.title, source.row, source.kind, 1.0, place), (source.row,), 1.0)
        return self._quoted(understood, (row,), words, near=bool(own))

    async def _from_table(
        self, understood: Understood, words: Wording, passages: Sequence[Passage], asked: str, before: str = ""
    ) -> RuleAnswer | None:
        """What a table among the documents gives for a question that asks for more than one of its rows.

        Args:
            before: the question before, for which it was computed on; a follow-up may have but another value.
        """
        if len(passages) >= _PASSAGES:  # a table of which a part may be missing adds up to nothing
            return None
        tries = [(asked, 0)]
        if before and self._goes_on_computing(asked):
            bare = all(says_measure(token, self._language) for token in telling(self._language.tokens(asked), self._language))
            tries.insert(0 if bare else 1, (f"{before} {asked}", len(before) + 1))  # and the cheapest?
        found = None
        for asked, fresh in tries:  # the question that was computed is kept
            if (found := await self._table_of(asked, passages, fresh)) is not None:
                break
        if found is None:
            return None
        passage, computed = found
        value = computed.shown or words.number(computed.value)
        told = {"column": computed.column, "value": value, "group": computed.group}
        said = words.sentence(f"table/{computed.measure}", len(computed.rows), **told)
        alone = computed.measure == "rows" and len(computed.rows) == 1
        rows = computed.rows[: _MOST_ROWS if computed.measure == "rows" else _ROWS]
        quote = Quote(passage, rows if alone else (said, *rows), 1.0)
        return self._quoted(understood, (quote,), words, computed=asked[-MAX_PHRASE:])

    def _goes_on_computing(self, asked: str) -> bool:
        """Whether a message changes what was computed on: another value of it, or another measure and nothing else."""
        tokens = self._language.tokens(asked)
        told, said = telling(tokens, self._language), {token.folded for token in tokens}
        if asks_measure(asked, told, self._language) and not all(says_measure(one, self._language) for one in told):
            return False
        asking = {word for cue in ("sort", "opens", "who") for word in self._language.cues(cue)}
        of_them = bool(said & self._language.cues("of_them"))  # what do they add up to?
        return self._follows() or of_them or (self._says_little() and not (told and said & asking))

    async def _table_of(self, asked: str, passages: Sequence[Passage], fresh: int = 0) -> tuple[Passage, Computed] | None:
        """What the one table that a question fits gives for it, by the columns that it names or that are near to it."""
        found = await asyncio.to_thread(table_of, asked, passages, self._language, None, fresh)
        if found is not None and not found[1].unexplained:
            return found
        if columns := await asyncio.to_thread(columns_to_measure, asked, passages, self._language):
            cosines = await self._compared(asked, columns)
            likely = dict(zip(columns, cosines, strict=True)) if cosines else {}
            found = await asyncio.to_thread(table_of, asked, passages, self._language, likely, fresh) or found
        return found

    async def _weighed(
        self, understood: Understood, found: Sequence[Quote], passages: Sequence[Passage], words: Wording
    ) -> RuleAnswer:
        """Quotes of documents that share the words of a question; as no more than near where others mean more of it."""
        lines, cosines = await self._lines_compared(passages)
        if not cosines:
            return self._quoted(understood, found, words, near=self._has_to_compute(found))
        quote, meant = weigh(found[0], lines, cosines)
        if meant:
            return self._quoted(understood, (quote, *found[1:]), words, near=self._has_to_compute(found))
        near = await self._near_quotes(lines, cosines)
        return self._quoted(understood, (quote, *without(near, quote)), words, near=True)

    async def _nearest(self, understood: Understood, words: Wording, passages: Sequence[Passage]) -> RuleAnswer | None:
        """What comes nearest in the conversation's documents, told as no more than that."""
        passages = meant(self._text, passages, self._language) or passages
        lines, cosines = await self._lines_compared(passages)
        found = await self._near_quotes(lines, cosines) if cosines else ()
        chosen = await asyncio.to_thread(rows_of, self._question(), passages, self._language)
        if chosen is not None and (not found or found[0].passage.title == chosen[0].title):
            rows = Quote(chosen[0], chosen[1].rows, 1.0)
            sure = not chosen[1].unexplained and self._asks() and not self._has_to_compute((rows,))
            return self._quoted(understood, (rows,), words, near=not sure)
        return self._quoted(understood, found, words, near=True) if found else None

    async def _near_quotes(self, lines: Sequence[tuple[Passage, str]], cosines: Sequence[float]) -> tuple[Quote, ...]:
        return await asyncio.to_thread(nearest, self._question(), lines, cosines, self._language, asks=self._asks())

    async def _lines_compared(self, passages: Sequence[Passage]) -> tuple[list[tuple[Passage, str]], tuple[float, ...]]:
        """The first sentences and rows of passages, and how near each is to the question; nothing where that cannot be told."""
        lines = (await asyncio.to_thread(lines_of, passages))[:MAX_COMPARED]
        says_little = len(telling(self._language.tokens(self._text), self._language)) < _FEWEST
        asked = self._with_question_before() if says_little else self._question()
        return lines, await self._compared(asked, [line for _, line in lines]) if lines else ()

    async def _compared(self, asked: str, texts: Sequence[str]) -> tuple[float, ...]:
        """How near each text is to a question in meaning, as cosines; empty where that cannot be told."""
        try:
            return await compare_texts(self._running, asked, texts)
        except ServiceError as error:
            log.warning("sentences cannot be compared: %s", error.code)
            self._running.degrade("documents")
            return ()

    def _has_to_compute(self, found: Sequence[Quote]) -> bool:
        """Whether a total, a difference or an extreme is asked for of which the sentences found say nothing themselves."""
        said = {token.stem for one in found for line in one.sentences for token in self._language.tokens(line)}
        tokens = self._language.tokens(self._text)
        if any(token.folded.isdigit() and token.stem not in said for token in tokens):
            return True  # what four of them cost
        held_together = self._language.cues("outdoes") | self._language.cues("both_of")
        if any(token.folded in held_together and token.stem not in said for token in tokens):
            return True  # which is cheaper? Do both want a deposit?
        measures = [tokens[at:end] for at, end, one in self._language.senses_in(tokens) if one.kind in _COMPUTED]
        return any(all(token.stem not in said for token in run) for run in measures)

    def _asks_figure(self) -> bool:
        senses = self._language.senses_in(self._language.tokens(self._text))
        return any(one.kind in _FIGURES or one.value == "how_much" for _, _, one in senses)

    async def _from_memory(
        self, understood: Understood, words: Wording, asked: str, least: float, *, only_near: bool = False
    ) -> RuleAnswer | None:
        """What the person said themselves, in this conversation or before, where it is that sure that it answers."""
        if not self._quotes or not self._may_read(AnswerSource.MEMORY):
            return None
        found = await self._recall(asked, words)
        fits = found is not None and found.sure >= least and (found.near or not only_near)
        return self._personal(understood, found, words) if found is not None and fits else None

    async def _recall(self, asked: str, words: Wording) -> PersonalAnswer | None:
        """What the person said that answers a question, asked once for a message, which may come back to it less strictly."""
        try:
            if asked not in self._recalled:
                waiting = self._turn.focus.to_forget
                self._recalled[asked] = await recall(self._running, asked, self._language, words, waiting)
        except ServiceError as error:
            log.warning("the facts of the user cannot be asked: %s", error.code)
            self._running.degrade("memory")
            return None
        return self._recalled[asked]

    def _personal(self, understood: Understood, found: PersonalAnswer, words: Wording) -> RuleAnswer:
        sources = tuple(
            Source(id=one.id, type="fact", title=one.title, score=1.0, snippet=one.text[:240]) for one in found.facts
        )
        plan = understood.plan
        going = isinstance(plan, AboutUser) and plan.action == "forget"
        waiting: dict[str, object] = {}
        if going:
            ids = () if found.source is not None else tuple(one.id for one in found.facts)
            waiting = {"to_forget": ids, "source_to_forget": found.source}
        focus = self._turn.focus.model_copy(
            update={"personal": True, "quoted": None, "clarification": None, "language": words.language, **waiting}
        )
        return self._said(understood, Written(found.text), "A", found.sure, sources=sources, focus=focus, stands=going)

    async def _quote(self, asked: str, passages: Sequence[Passage], **more: Any) -> tuple[Quote, ...]:
        """In a thread: the passages of one question take some 30 ms, a long attachment more."""
        return await asyncio.to_thread(quote, asked, passages, self._language, **more)

    async def _retrieve(self, *phrases: str) -> AugmentedMemoryContext | None:
        running = self._running
        with running.phase("III retrieve"):
            try:
                memory = await running.retrieve(tuple(text[:MAX_PHRASE] for text in phrases), self._turn.focus.to_forget)
            except ServiceError as error:
                log.warning("retrieval failed: %s", error.code)
                running.degrade("memory")
                return None
        for part in memory.degraded:
            running.degrade(part)
        await running.show("retrieved", found=len(memory.memory_units) + len(memory.concepts))
        return memory

    def _quoted(
        self,
        understood: Understood,
        found: Sequence[Quote],
        words: Wording,
        memory: AugmentedMemoryContext | None = None,
        *,
        near: bool = False,
        computed: str = "",
    ) -> RuleAnswer:
        paragraphs = [f"**{one.passage.label}**: {' '.join(one.sentences)}" for one in found]
        head = [words.sentence("nearest", title=found[0].passage.title)] if near else []
        text = "\n\n".join((*head, *paragraphs, words.sentence("quoted")))
        sources = tuple(
            Source(
                id=one.passage.id,
                type=one.passage.kind,
                title=one.passage.label,
                score=round(one.support, 4),
                snippet=" ".join(one.sentences)[:240],
            )
            for one in found
        )
        sure = round((_NEAR_SURE if near else _QUOTED_SURE * found[0].support) * understood.certainty, 3)
        best, before = found[0].passage, _focus_on(understood, self._turn.focus)
        asked = before.quoted.asked if before.quoted is not None and before.quoted.id == best.id else self._text
        rows = [line for line in found[0].sentences if is_row(line)] if best.kind in ATTACHED else []
        row = rows[0] if len(rows) == 1 else ""
        source = QuotedSource(
            id=best.id,
            title=best.title,
            kind=best.kind,
            label=best.label,
            asked=asked[:MAX_PHRASE],
            computed=computed,
            row=row,
        )
        focus = before.model_copy(
            update={"quoted": source, "personal": False, "clarification": None, "language": words.language}
        )
        return self._said(understood, Written(text), "A", sure, memory=memory, sources=sources, focus=focus)

    async def _about_topic(self, understood: Understood, plan: Unknown, schema: Schema, words: Wording) -> RuleAnswer | None:
        """The things of a type whose texts speak of what nothing else explains; `None` where there are none."""
        asked = self._language.holds(self._text, self._language.cues("topic"))
        if not self._quotes or not asked or plan.reason != "words" or self._asks_figure():
            return None
        memory, type = await self._retrieve(plan.words, self._text), plan.detail["topic"]
        texts = [one for one in passages_of(memory) if one.kind == ItemKind.NODE.value and one.id.startswith(f"{type}/")]
        found = await asyncio.to_thread(things_about, plan.words, texts, self._language)
        if not found:
            return None
        head = words.sentence("topic", len(found), type=words.type(type, n=len(found)), topic=plan.words)
        answer = self._quoted(understood, found, words, memory)
        return replace(answer, written=replace(answer.written, text=f"{head}\n\n{answer.written.text}"))

    async def _unknown(self, understood: Understood, plan: Unknown, schema: Schema, words: Wording) -> RuleAnswer:
        mode: Mode = "J" if plan.reason in ("reference", "words", "scope") else "A" if plan.reason == "empty" else "E"
        if "topic" in plan.detail and (found := await self._about_topic(understood, plan, schema, words)) is not None:
            return found
        if plan.reason in ("words", "scope", "empty", "property") and self._text:
            searched = await self._searched(understood, words)
            if searched is not None:
                return searched
        if plan.reason == "reference" and not self._analyst and self._text:
            pointed = await self._pointed(understood, words)
            if pointed is not None:
                return pointed
        if plan.reason in ("words", "scope", "reference") and not self._analyst and not plan.choices and self._asks():
            least = _NEAR if self._turn.focus.personal else _FAIR
            if (told := await self._from_memory(understood, words, self._text, least, only_near=True)) is not None:
                return told
        if self._turn.focus.personal and not plan.choices and (again := await self._again(words)) is not None:
            return self._personal(understood, again, words)
        if plan.reason == "reference" and self._turn.focus.personal and self._asks() and not plan.choices:
            return self._said(understood, Written(words.sentence("personal/never_told")), mode, _NO_ANSWER)
        if plan.reason in ("words", "scope") and not self._analyst:
            text = self._turn.agent.phrases.get("nothing_found", "") if self._turn.agent and words.language == "en" else ""
            said = text or f"{words.sentence('nothing_found')} {self._from_sources(words)}".rstrip()
            return self._said(understood, Written(said), mode, _NO_ANSWER)
        return self._said(understood, write(None, plan, schema, self._language.name), mode, _NO_ANSWER)

    async def _pointed(self, understood: Understood, words: Wording) -> RuleAnswer | None:
        """What a message that points to something unsaid may mean: what the person said, or the conversation's documents."""
        if not self._turn.media_text and (told := await self._from_memory(understood, words, self._text, _SURE)) is not None:
            return told
        documents = await self._document_passages(self._text) if self._quotes else []
        return await self._from_passages(understood, words, self._text, documents) if documents else None


EMPTY_SCHEMA = Schema.empty()


async def _with_text(plan: Plan, finding: Finding, twin: TwinReader, lexicon: Lexicon) -> tuple[Plan, Finding]:
    """A text that is not published in the newest year, from the newest year that has it."""
    if not isinstance(plan, Describe) or len(plan.properties) != 1 or len(plan.years) != 1 or plan.expect is not None:
        return plan, finding
    type, name = plan.entities[0].type, plan.properties[0]
    declared = lexicon.view.property(type, name)
    if declared is None or declared.kind != "text" or any(row.get(name) for row in finding.rows):
        return plan, finding
    for year in sorted({year for one in plan.entities for year in one.years if year < plan.years[0]}, reverse=True):
        earlier = plan.model_copy(update={"years": (year,)})
        found = await execute(earlier, twin)
        if any(row.get(name) for row in found.rows):
            return earlier, found
    return plan, finding


def _of_document(one: FoundPassage) -> Passage:
    place = cite(one).removeprefix(one.name).removeprefix(", ")
    return Passage(one.media_id, one.name, one.text, one.kind.value, 1 + one.score, place, first=one.position == 0)


def _node_sources(finding: Finding) -> tuple[Source, ...]:
    """The nodes that an answer rests on, with the names that it has for them."""
    names = {(one.type, one.id): one.name for one in finding.entities}
    found = []
    for key in finding.sources[:10]:
        type, _, rest = key.partition("/")
        id, _, year = rest.rpartition("/")
        found.append(Source(id=key, type="node", title=names.get((type, id), id), score=1.0, snippet=year))
    return tuple(found)


def _mode_of(plan: Plan, leans: bool) -> Mode:
    if leans:
        return "C"
    match plan:
        case Gaps() | Relate(hops=2 | 3 | 4) | Change():
            return "B"
        case Relate(relationship=None, to=None):
            return "B"  # all that hangs on a thing
        case Coverage(about="concept"):
            return "H"
    return "A"


def focus_after(before: Focus, plan: Plan, finding: Finding, language: str) -> Focus:
    """What a conversation is about once a plan was answered: its things, its set, its properties and its years."""
    entities: tuple[EntityRef, ...] = finding.entities[:MAX_ENTITIES]
    selection: Selection | None = None
    properties: tuple[str, ...] = ()
    years: tuple[int, ...] = ()
    match plan:
        case Select():
            selection, properties, years = plan.of, plan.show, plan.of.years
        case Aggregate():
            selection, years = _top_group(plan, finding), plan.of.years
            same = before.selection is not None and plan.of == before.selection
            properties = (plan.property,) if plan.property else before.properties if same else ()
        case Rank():
            selection, years = plan.of, plan.of.years
            if len(plan.of.among) == 2 and plan.expect is None:
                entities = entities[:1]  # which of the two is dearer: that one is spoken of
            properties = (plan.by,) if plan.by else ()
        case Compare():
            selection, years = plan.sides[0].of, plan.sides[0].of.years
            if all(side.of.among == selection.among for side in plan.sides):
                entities = selection.among
            properties = (plan.sides[0].property,) if plan.sides[0].property else ()
        case Change():
            years = (plan.since,) if plan.what == "left" else (plan.until,)
            entities = () if len(finding.entities) > MAX_ENTITIES else entities  # more than “those” could stand for
        case Describe():
            properties, years = plan.properties, plan.years
            entities = entities or plan.entities
        case Gaps():
            selection, years = plan.of, plan.years
            entities = entities or plan.entities
        case Relate():
            years = (plan.year,)
            entities = entities if plan.to or len(entities) > 1 else (plan.source,)
        case Coverage():
            return before.model_copy(update={"plan": plan, "clarification": None, "language": language})
    if isinstance(plan, Select) and len(entities) == 1:
        selection = plan.of
    told = plan.entities if isinstance(plan, Describe) else (plan.source,) if isinstance(plan, Relate) else ()
    if isinstance(plan, Select) and len(before.entities) == 1:  # which hall is it staged in: “it” is still spoken of
        held = {one.value for one in plan.of.filters if one.property == "id"}
        told = before.entities if before.entities[0].id in held else told
    of_one = len(told) == 1 and (not isinstance(plan, Select) or len(entities) == 1)
    if of_one and before.selection is not None and told[0].id in {one.id for one in (*before.entities, *before.listed)}:
        selection = before.selection  # one of that set is spoken of, and the others may be next
        if isinstance(before.plan, Rank) and 1 < len(before.listed) == before.plan.limit:
            selection = Selection(type=before.plan.of.type, years=before.plan.of.years, among=before.listed)
    same = [one.id for one in before.entities] == [one.id for one in entities]
    linked = finding.entities[:MAX_ENTITIES] if isinstance(plan, Relate) else before.linked if same else ()
    return Focus(
        plan=plan,
        selection=selection,
        entities=entities,
        linked=linked,
        listed=_listed(before, told or (plan.of.among if isinstance(plan, Rank) and len(plan.of.among) == 2 else entities)),
        properties=properties,
        years=years,
        earlier=before.years[-1:] if _same_but_years(before.plan, plan) else (),
        figure=_figure_before(before.plan, plan),
        language=language,
    )


def _spoken_of(refs: tuple[EntityRef, ...], language: str) -> Focus:
    """A conversation about things of which nothing was told yet."""
    years = refs[0].years[-1:] or (2000,)
    plan = Describe(entities=refs, years=years)
    return Focus(plan=plan, entities=refs, listed=refs, years=years, language=language)


def _focus_on(understood: Understood, before: Focus) -> Focus:
    """What a conversation is about after a text was quoted: the thing that was asked about, or what it was about before."""
    plan = understood.plan
    if not isinstance(plan, Search) or len(plan.entities) != 1:
        return before
    return _spoken_of(plan.entities, understood.language)


def _focus_after_miss(before: Focus, understood: Understood, asked: str) -> Focus | None:
    """What a conversation is about after a question that was not understood: the thing it named, or nothing that is certain."""
    plan = understood.plan
    if isinstance(plan, Unknown) and plan.reason == "ambiguous" and plan.words in asked:
        waits = Clarification(question=asked, name=plan.words, options=plan.choices)
        asked_back = {"clarification": waits, "listed": plan.choices, "quoted": None, "personal": False}
        return before.model_copy(update=asked_back)
    if understood.named:
        return _spoken_of(understood.named, understood.language)
    if understood.strays and before.selection is not None:
        return before.model_copy(update={"plan": None, "selection": None})
    return None


def _listed(before: Focus, told: tuple[EntityRef, ...]) -> tuple[EntityRef, ...]:
    """What may be chosen from after an answer: its list; the list before it, of which it told one; the last two things."""
    if len(told) != 1:
        return told
    if told[0].id in {one.id for one in before.listed}:
        return before.listed
    last = before.listed[-1:]
    return (*last, *told) if last and last[0].type == told[0].type else told


def _figure_before(before: Plan | None, plan: Plan) -> Aggregate | None:
    """The figure that the new one may be held against."""
    if not isinstance(before, Aggregate) or not isinstance(plan, Aggregate) or before == plan:
        return None
    alike = (before.measure, before.property, before.of.type) == (plan.measure, plan.property, plan.of.type)
    return before if alike and not before.group_by and not plan.group_by else None


def _same_but_years(before: Plan | None, plan: Plan) -> bool:
    if isinstance(plan, Describe) and isinstance(before, Describe):
        return before.years != plan.years and before.model_copy(update={"years": plan.years}) == plan
    if isinstance(plan, Aggregate) and isinstance(before, Aggregate):
        of = before.of.model_copy(update={"years": plan.of.years})
        return before.of.years != plan.of.years and before.model_copy(update={"of": of}) == plan
    return False


def _top_group(plan: Aggregate, finding: Finding) -> Selection:
    """The set of a figure; where the top group alone was asked for, the members of that group."""
    by = plan.group_by[0] if len(plan.group_by) == 1 and plan.limit == 1 and len(finding.rows) == 1 else None
    group = finding.rows[0].get("group") if by is not None else None
    if by is None or not isinstance(group, str) or by.property == "year":
        return plan.of
    top = Filter(property=by.property, value=group, via=by.via, to=by.to, words=group)
    return plan.of.model_copy(update={"filters": (*plan.of.filters, top)[:8]})


def _year_by_year(understood: Understood, plan: Compare) -> list[Understood]:
    """The same share of each of its years; one over several years together is asked by nobody."""
    found = []
    for year in plan.sides[0].of.years:
        sides = tuple(side.model_copy(update={"of": side.of.model_copy(update={"years": (year,)})}) for side in plan.sides)
        found.append(understood.model_copy(update={"plan": plan.model_copy(update={"sides": sides})}))
    return found


def _joined(answers: Sequence[RuleAnswer]) -> RuleAnswer:
    """The answers to the parts of a message as one; what follows goes on from the last."""
    last, texts = answers[-1], [one.written for one in answers]
    statements = tuple(each for one in answers if one.finding is not None for each in one.finding.statements)
    return replace(
        last,
        written=Written(
            "\n\n".join(one.text for one in texts),
            tuple(each for one in texts for each in one.insights),
            tuple(each for one in texts for each in one.rows),
            {name: value for one in reversed(texts) for name, value in one.stats.items()},
            tuple(each for one in texts for each in one.charts),
        ),
        sure=min(one.sure for one in answers),
        mode=answers[0].mode,
        finding=replace(last.finding, statements=statements) if last.finding is not None else None,
        sources=tuple(dict.fromkeys(each for one in answers for each in one.sources)),
    )


def to_analysis(answer: RuleAnswer) -> Analysis:
    """The whole answer of an analyst."""
    finding, written = answer.finding, answer.written
    kind = answer.understood.plan.kind
    reads = len(finding.statements) if finding is not None else 0
    trace = f"Understood as: {kind}, certainty {answer.understood.certainty:g}. Reads of the records: {reads}."
    if answer.understood.notes:
        trace += f" Spelling: {', '.join(answer.understood.notes)}."
    return Analysis(
        mode=answer.mode,
        memory_process=MemoryProcess(intent=_INTENTS[kind], thought_trace=trace),
        answer=sanitize_answer(written.text),
        analysis=tuple(sanitize_text(text) for text in written.insights),
        data=AnswerData(query_results=written.rows, summary_stats=dict(written.stats)),
        visualizations=written.charts,
        cypher_executed="; ".join(finding.statements) if finding is not None and finding.statements else None,
        confidence=answer.sure,
    )


_INTENTS = {
    "select": "a list",
    "aggregate": "a figure over a set",
    "rank": "a ranking",
    "compare": "a comparison",
    "change": "a change over time",
    "relate": "what something is linked to",
    "gaps": "what is missing",
    "describe": "what is on record of something",
    "coverage": "what the data covers",
    "search": "a passage",
    "user": "something about the person",
    "compose": "a text to be written",
    "talk": "conversation",
    "unknown": "not understood completely",
}


_BOLD = re.compile(r"\*\*([^*]+)\*\*")
_MOST_FACTS = 4
"""Emphasised values of an answer that another wording has to keep: lists are not repeated as a whole."""
_GROUNDED = 0.5
_NUMBER = re.compile(r"\d(?:[\d.,\u00a0]*\d)?")


def is_grounded(answer: RuleAnswer) -> bool:
    """Whether an answer states what is on record, surely enough for a model to write about it."""
    kind = isinstance(answer.understood.plan, DATA_PLANS) or bool(answer.sources)
    guessed = answer.understood.certainty if answer.understood.by == "model" else 1.0  # which is said beside it
    return kind and answer.sure >= _GROUNDED * guessed


def keeps_facts(text: str, facts: str, also: Callable[[float], bool] = lambda figure: False) -> bool:
    """Whether a text states what was found and no figure beside it.

    Args:
        text: what a model wrote.
        facts: the answer that it was to be written from, whose values stand in bold.
        also: whether a figure may stand beside them, since it was read elsewhere.
    """
    said, known = _plain(text), _plain(facts)
    values = [_plain(one) for one in _BOLD.findall(facts)[:_MOST_FACTS]]
    return all(value in said for value in values) and all(
        number in known or ((figure := parse_number(number)) is not None and also(figure)) for number in _NUMBER.findall(said)
    )


def _plain(text: str) -> str:
    return " ".join(text.replace("*", "").casefold().split())


def directive_after(answer: RuleAnswer) -> tuple[Directive, str]:
    """The stance for the next turn, with its reason."""
    match answer.understood.plan:
        case Talk(about="feeling" | "frustration"):
            return Directive.SUPPORTIVE_COMPANION, "The message speaks of a feeling."
        case Talk() | AboutUser():
            return Directive.SUPPORTIVE_COMPANION, "The message was a courtesy, or about the person."
        case Compose():
            return Directive.CREATIVE_COLLABORATOR, "The message asks for ideas or a text."
        case Search() | Unknown():
            return Directive.CURIOUS_EXPLORER, "The message opens a subject."
    return Directive.FOCUSED_ANALYST, "The message asks for facts and figures."
