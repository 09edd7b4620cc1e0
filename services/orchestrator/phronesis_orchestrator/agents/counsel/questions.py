"""The agents without a language model: a few kinds of question, and the node that each is about."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from enum import StrEnum

from phronesis_contracts import NotFound, ServiceError
from phronesis_contracts.constitution import search
from phronesis_contracts.constitution.insight import CONTRADICTIONS_TOOL, RuleHit
from phronesis_contracts.constitution.registry import Layer
from phronesis_contracts.constitution.search import SEMANTIC_SEARCH_TOOL, SemanticSearch
from phronesis_contracts.constitution.session import START_SESSION_TOOL, StartSession
from phronesis_embedding.wordnet import WordNet, load_wordnet

from ...models.reasoner import TurnContext
from ...turns.execution import TurnRun
from ...understanding.language import Sense
from ..text import courtesy, is_content, sentences, stem, words
from .answers import Plans, ask_tool, assess_capacity, contradictions, figure, losses, noun, precedents, purpose, strategies
from .reading import OPEN, Named, Period, Reader, Reading, Record, Span, Thing, number_of, read_record, spaced, vocabulary_of
from .tools import CITED, NotOffered, SeenNode, TurnTools, cite, describe_hits, find_broken_rules, joined, listed, paragraphs


class Kind(StrEnum):
    """A kind of question."""

    CONTRADICTION = "what contradicts what"
    LOSS = "what loses its support"
    PRECEDENT = "which decisions like it paid off"
    STRATEGY = "which strategies a goal has"
    ROOM = "whether there is room for work"
    PURPOSE = "what it serves and why"
    PROPOSAL = "whether to do something"
    SEARCH = "anything else"


@dataclass(frozen=True)
class Question:
    """A message as it is understood."""

    kind: Kind
    text: str
    """All of it."""
    subject: str
    """What it is about, without the words that ask."""


_SAID: dict[Kind, tuple[str, ...]] = {
    Kind.CONTRADICTION: (
        r"contradict\w*",
        r"conflict\w*",
        r"at odds",
        r"incompatib\w*",
        r"clash\w*",
        r"pull(?:s|ing)? apart",
        r"opposite directions?",
        r"against each other",
        r"in tension",
    ),
    Kind.LOSS: (
        r"los(?:e|es|ing)\b.{0,60}\bsupport",
        r"(?:los\w+|falls?|breaks?|happens?|left|stands?)\b.{0,80}\bwithout",
        r"without\b.{1,200}\b(?:los\w+|falls?|breaks?|happens?|left|stands?|support)",
        r"if (?:we|i) (?:drop\w*|remov\w+|g[ai]ve up|los\w+|abandon\w*|delet\w+)",
        r"(?:were|is|was) (?:dropped|removed|gone|abandoned|deleted)",
        r"what (?:depends|rests|stands) on",
    ),
    Kind.PRECEDENT: (
        r"precedents?",
        r"decisions? (?:like|similar to|such as|of this kind)",
        r"(?:similar|past|earlier|previous) decisions?",
        r"decisions?\b.{0,60}\b(?:paid off|pay off|worked out|return|roi)",
        r"(?:decided|paid off|worked out) (?:\w+ ){0,3}before",
    ),
    Kind.STRATEGY: (
        r"(?:which|what|our|the) (?:strategies|initiatives)",
        r"(?:strateg(?:y|ies)|initiatives?) (?:for|towards?|behind|to reach)",
        r"how (?:do|will|can|shall) we (?:reach|achieve|get to)",
    ),
    Kind.ROOM: (
        r"room for",
        r"capacity",
        r"workload",
        r"over-?(?:load|committ)\w*",
        r"too (?:much work|busy)",
        r"how (?:busy|full)",
        r"(?:spare|free) (?:time|hours)",
        r"time for",
        r"fit (?:it |this |that |one )?in",
        r"take (?:it |this |that |more )?on\b.{0,40}\bweek",
    ),
    Kind.PURPOSE: (
        r"what\b.{1,200}\bserves?",
        r"whom? (?:does|do)\b.{1,200}\bserve",
        r"what (?:is|are)\b.{1,200}\bfor",
        r"purpose of",
        r"what for",
        r"what (?:does|do)\b.{1,200}\b(?:rest|depend|build) on",
        r"aligns? with",
        r"ladder",
        r"why",
    ),
    Kind.PROPOSAL: (
        r"(?:should|shall|may|can|could|must) (?:we|i)",
        r"(?:we|i) (?:want|plan|intend) to",
        r"let(?:'|’)s",
        r"decid(?:e|ing) to",
        r"is it (?:allowed|right|ok(?:ay)?)",
        r"(?:record|write down|create|add) (?:a|an|the|this)",
        r"approve",
    ),
}
"""What the kinds are known by; the first kind that fits counts."""
_KINDS = {kind: re.compile(rf"\b(?:{'|'.join(said)})\b", re.I) for kind, said in _SAID.items()}
_QUOTED = re.compile(r"[\"“«]([^\"“”«»\n]{2,300})[\"”»]|(?<!\w)['‘]([^'‘’\n]{2,300})['’](?!\w)")
_LIKE = re.compile(r"\b(?:like|similar to|such as|precedents? (?:for|of))\s+(?P<what>.+?)[\s?.!]*$", re.I)
_THIS = re.compile(r"^(?:this|that|it|these|those)(?: (?:one|decision|kind))?\b(?P<rest>.*)$", re.I | re.S)
_RESULT = re.compile(r"\b(?:that |which |have |has )?(?:paid|pay|pays|worked) (?:off|out)\b.*$", re.I | re.S)
_FRAME = re.compile(
    r"\b(?:what|which|why|whom?|how|does|do|did|is|are|was|were|would|will|we|i|you|our|my|the|a|an|this|that|it|its|goals?"
    r"|principles?|values?|guardrails?|strateg(?:y|ies)|serves?|for|and|have|has|had|if|then|without|loses?|losing|support|their"
    r"|contradicts?|conflicts?|each other|with|please|tell me|of|there|to|about|matters?|importan(?:t|ce)|purpose)\b",
    re.I,
)


def classify_question(turn: TurnContext) -> Question:
    text = " ".join((turn.user_text or turn.final_input).split())
    kind = next((kind for kind, pattern in _KINDS.items() if pattern.search(text)), Kind.SEARCH)
    return Question(kind, text, _precedent(turn, text) if kind is Kind.PRECEDENT else _subject(text))


def _subject(text: str) -> str:
    if quoted := _QUOTED.search(text):
        return quoted[1] or quoted[2]
    left = " ".join(re.sub(r"[?!.,;:]", " ", _FRAME.sub(" ", text)).split())
    return left or text


def _precedent(turn: TurnContext, text: str) -> str:
    if quoted := _QUOTED.search(text):
        return quoted[1] or quoted[2]
    pattern = _KINDS[Kind.PRECEDENT]
    asked = next((one for one in sentences(text) if pattern.search(one)), text)
    beside = " ".join(one for one in sentences(text) if one != asked)
    like = _LIKE.search(asked)
    named = _RESULT.sub("", like["what"]).strip() if like else ""
    this = _THIS.match(named)
    if named and not this:
        return named
    if this and this["rest"].strip(" ,:;-–—"):
        return this["rest"].strip(" ,:;-–—")
    if beside:
        return beside
    if like is None and (left := _subject(_RESULT.sub("", pattern.sub(" ", asked)))) and len(left) > 3 and left != asked:
        return left
    return next((past.text for past in reversed(turn.history) if past.role == "user"), "") if this else ""


_PART = 0.6
"""The share of a title's words that a question must say to mean it, where it says two at least."""
_NEAR = 3
"""Nodes that are named where none was meant clearly."""
_ASIDE = frozenset(
    stem(word) for word in "goal goals value values principle guardrail strategy vision task decision project".split()
)
"""Words that name a type, and so no node by themselves."""


@dataclass(frozen=True)
class NamedNode:
    """The node that is meant; where none is clear, those that are near."""

    node: SeenNode | None
    near: tuple[SeenNode, ...] = ()


async def find_named_node(desk: TurnTools, question: Question) -> NamedNode:
    """The node that a question names; of equals one of a type that the question speaks of.

    Raises:
        NotOffered: a search is needed, and is not at hand.
        ServiceError: the search failed.
    """
    await _known(desk)
    said = {stem(word) for word in words(question.text)}
    if found := _by_title(said, desk.record):
        return NamedNode(found)
    asked = SemanticSearch(query=question.subject, top_k=5, min_similarity=0.0)
    answer = await desk.ask(SEMANTIC_SEARCH_TOOL, asked)
    hits = [(one, hit.score) for hit in answer.results if (one := desk.record.get(hit.node.id)) is not None]
    if found := _by_title(said, (one for one, _ in hits)):
        return NamedNode(found)
    if hits and hits[0][1] >= search.GOAL_FLOOR:
        return NamedNode(hits[0][0])
    return NamedNode(None, tuple(one for one, score in hits if score >= search.HYBRID_FLOOR)[:_NEAR])


async def _known(desk: TurnTools) -> None:
    if not desk.has(START_SESSION_TOOL):
        return
    try:
        await desk.ask(START_SESSION_TOOL, StartSession())
    except ServiceError:
        return


def _by_title(said: set[str], nodes: Iterable[SeenNode]) -> SeenNode | None:
    rated = []
    for one in nodes:
        title = {stem(word) for word in words(one.title) if is_content(word)} - _ASIDE
        both = len(title & said)
        whole = both == len(title)
        if title and (whole or (both >= 2 and both / len(title) >= _PART)):
            rated.append(((whole, both, both / len(title), stem(one.type.casefold()) in said), one))
    return max(rated, key=lambda rating: rating[0])[1] if rated else None


_SENTENCES = {
    "greeting": "Hello. Ask me about anything that the graph may hold.",
    "thanks": "You are welcome.",
    "farewell": "Goodbye.",
    "about": "I answer from the graph. No language model is set up here, so I look things up by rules.",
    "by_rules": "This was looked up in the graph by rules; no language model was used.",
    "cannot": "Without a language model I can only look things up.",
}
"""Said where the agent's profile has no phrase of that name."""
_FOUND = 5
"""Nodes that a search tells."""
_SUMMARY = 160
"""Characters of what a found node says."""


@dataclass(frozen=True)
class CounselAnswer:
    """An answer by rules, with what is known of how far it answers."""

    text: str
    answers: bool = False
    """Whether every word of the message was explained, and all that it asks was read."""
    unexplained: tuple[str, ...] = ()
    """Words that nothing explains, or that the answer leaves out."""
    unknown: tuple[str, ...] = ()
    """Words that name nothing here, whether the answer has to do with them or not."""
    found: tuple[Thing, ...] | None = None
    """The set that was asked for, whole; `None` where the answer is no set."""
    partial: bool = False
    """Whether the graph is larger than what was read of it."""
    by_name: tuple[str, ...] = ()
    """Words that ask for something by themselves, and were read as what something on record is called."""
    plans: Plans | None = None
    """What was told of that set, and what was asked of it; absent where the answer is a refusal."""


async def answer_by_rules(running: TurnRun, turn: TurnContext, desk: TurnTools) -> str:
    """The answer to a turn. Raises `ServiceError`: the owner of a tool that the answer cannot do without failed."""
    text = (turn.user_text or turn.final_input).strip()
    if kind := courtesy(text):
        return _phrase(turn, kind)
    try:
        answer = await answer_in_full(running, turn, desk)
    except NotOffered as lacking:
        return f"I cannot answer that here: it needs the tool {lacking.tool}, which this agent does not have for you."
    except NotFound:
        return "A node that this is about is not there any more."
    return paragraphs(answer.text, _phrase(turn, "by_rules"))


async def answer_in_full(running: TurnRun, turn: TurnContext, desk: TurnTools) -> CounselAnswer:
    """The answer to a question, with what is known of it.

    Raises:
        NotOffered: a tool is needed that is not at hand.
        NotFound: what it is about is gone.
        ServiceError: the owner of a tool that the answer cannot do without failed.
    """
    question = classify_question(turn)
    if question.kind is Kind.CONTRADICTION and not desk.has(CONTRADICTIONS_TOOL):
        raise NotOffered(CONTRADICTIONS_TOOL.name)
    record = await read_record(desk, vocabulary_of((turn.user_text or turn.final_input).strip()))
    asked = Asked(running, turn, desk, record, question)
    text = await asked.answer()
    answers = bool(text) and not asked.declined and not asked.unexplained
    return CounselAnswer(
        text, answers, asked.unexplained, asked.unknown, asked.found, record.partial, asked.by_name, asked.plans
    )


_COMPARED = ("owner", "due", "budget", "effort", "spent", "priority", "roi", "confidence", "likelihood", "decided", "observed")
"""What nodes are compared by."""
_MEANT = 0.5
"""The share of a title's weight that a message must have for an answer about that node to be of use in part."""
_PUZZLING = 2
"""Words that nothing explains, beyond which a part of an answer is no help."""
_RULES = frozenset({"guardrail", "principle", "policy"})
_OWN = frozenset({"type", "ask", "property", "point", "more", "verbs_of_being", "proposal", "allowed", "person"})
"""Kinds of senses that say what is asked, and describe nothing."""
_SPOKEN = 1.0
"""How much of a description a rule has to speak of."""
_CLOSE = 0.75
"""The share of the best rating that others must stay below for one rule to be meant."""
_LIKE_RATE = 0.6
_SURE = 0.9
_PRECISE = 2
"""Words of a name beyond which it is that of no other node."""
_ORDER = 3
"""Words of the shortest message that orders something by a verb alone."""
_FOLLOWED = 3
"""Earlier messages whose meaning a follow-up may rest on."""
_ROW = re.compile(r"^- .*?\[([A-Za-z0-9][A-Za-z0-9_.:-]*)\]", re.M)


class Asked:
    """One message, understood with those before it."""

    def __init__(self, running: TurnRun, turn: TurnContext, desk: TurnTools, record: Record, question: Question) -> None:
        self._running, self._turn, self._desk, self._record = running, turn, desk, record
        self._question = question
        self._reader = Reader(record)
        self._plans = Plans(record)
        self._scope: list[Thing] | None = None
        self._words: WordNet | None = None
        self.declined = False
        """Whether what was said is no answer, or rests on a guess."""
        self.unexplained: tuple[str, ...] = ()
        self.unknown: tuple[str, ...] = ()
        self.by_name: tuple[str, ...] = ()

    @property
    def plans(self) -> Plans:
        """What answers from the record, with what it told."""
        return self._plans

    @property
    def found(self) -> tuple[Thing, ...] | None:
        """The set that was told, whole."""
        return self._plans.told_set

    async def answer(self) -> str:
        """What is said. Raises `NotOffered`, `NotFound` or another `ServiceError` of the tools."""
        r = self._followed()
        if r.unknown and self._record.words.language.name == "en":
            self._words = await asyncio.to_thread(load_wordnet)
            r = self._followed()
        self.by_name = r.taken_for_names()
        pattern = _KINDS.get(self._question.kind)
        self.unknown = tuple(word for word in r.unknown if pattern is None or not pattern.search(word))
        said = await self._answered(r)
        left = [] if r.closed else r.left()
        self.unexplained = tuple(dict.fromkeys([*left, *(r.unknown if self.declined else ())]))
        if said and left:
            return self._in_part(r, left, said)
        if said and not r.closed and r.is_yes_or_no and not _SETTLED.match(said):
            return paragraphs("I cannot say yes or no to that. This is what is on record:", said)
        return said

    def _in_part(self, r: Reading, left: Sequence[str], said: str) -> str:
        """An answer that leaves words of the question out: refused, with what can be told instead."""
        words = joined([f"“{word}”" for word in left])
        clear = r.named and (r.named[0].typed or r.named[0].share >= _MEANT)
        if r.unknown and not (clear and len(r.unknown) <= _PUZZLING):
            return self._lacking(r, None)
        return paragraphs(f"I cannot take {words} into account here. I can tell you this, which leaves it out:", said)

    async def _answered(self, r: Reading) -> str:
        if r.has("meta") and not r.named and not r.types:
            r.closed = self.declined = True
            return f"{_phrase(self._turn, 'cannot')}{self._near(r)}"
        for step in (self._unable, self._compared, self._by_tools, self._rules, self._by_text):
            if said := await step(r):
                return said
        if r.people and not (r.types or r.named or r.has("property") or r.periods or r.has("status") or r.unknown):
            if r.has("ask", "who", "describe") and not r.has("ask", "overdue", "count"):
                told = [one for one in self._record if one.title in r.people and one.type in ("human", "ai")]
                if told:
                    r.cover_all("person")
                    r.cover("ask", "who")
                    return "\n\n".join(self._person(one) for one in told)
        if r.has("by_layer"):
            r.cover_all("by_layer")
            r.cover("ask", "group", "count")
            counts = {layer.value: sum(1 for one in self._record if one.layer == layer) for layer in Layer}
            return paragraphs("Nodes by layer:", self._plans.listed(f"{name}: {n}" for name, n in counts.items()))
        self._name_by_unit(r)
        if r.named and (said := await self._of_node(r)):
            return said
        if not r.named and r.unknown and self._question.kind in (Kind.PURPOSE, Kind.STRATEGY) and not r.has("property"):
            return await self._else(r)
        if said := self._of_set(r):
            return said
        if r.named and (not r.unknown or r.named[0].whole):
            return self._described(r)
        return await self._else(r)

    def _name_by_unit(self, r: Reading) -> None:
        """What is counted names its metric, where no other is counted in the same: how many complaints."""
        units = {(span.start, span.end, value) for span in r.spans for name, value in span.pairs if name == "unit"}
        if r.named or r.types or len(units) != 1 or not r.has("ask", "count", "sum"):
            return
        start, end, unit = next(iter(units))
        metrics = [one for one in self._record if one.type == "metric" and one.fields.get("unit") == unit]
        if len(metrics) == 1:
            r.named.append(Named(metrics[0], start, end, True))

    # Follow-ups

    def _followed(self) -> Reading:
        past = [one for one in self._turn.history if one.text]
        users = [at for at, one in enumerate(past) if one.role == "user"][-_FOLLOWED:]
        before: Reading | None = None
        for at in users:
            reply = past[at + 1].text if at + 1 < len(past) and past[at + 1].role != "user" else ""
            said = self._reader.read(past[at].text, self._words)
            before = self._resolved(said, before, self._reply) if before else said
            self._reply, self._scope = reply, None
        r = self._reader.read(self._question.text, self._words)
        return self._resolved(r, before, self._reply) if before is not None else r

    _reply = ""

    def _resolved(self, r: Reading, before: Reading, reply: str) -> Reading:
        rows = [one for id in dict.fromkeys(_ROW.findall(reply)) if (one := self._record.get(id))]
        cited = [one for id in dict.fromkeys(CITED.findall(reply)) if (one := self._record.get(id))]
        each = r.has("ask", "group") and not (r.types or r.named or r.people or r.has("layer"))
        if (r.has("point", "many") or each) and rows and not r.named:
            self._scope = rows
            return r
        own = {token.folded for token in r.tokens} & set(self._record.words.language.words.get("his", ()))
        whose = before.people or [one.title for one in before.things if one.type in ("human", "ai")][:1]
        if own and whose and not (r.people or r.named):
            r.people = list(whose)
            r.spans = [span for span in r.spans if not span.of("point")]
            return r
        carries = r.has("property") or r.has("ask") or r.has("relation") or r.has("status") or r.has("link")
        pointed = r.has("point", "one") and not r.named
        several = len(rows) > 1 and not (before.named and not before.types)
        if several and not r.named and not r.types and r.has("ask", "sum", "mean", "count", "max", "min"):
            self._scope = rows
            return r
        if pointed or (
            not r.named
            and not r.types
            and not r.people
            and not r.unknown
            and carries
            and len(r.tokens) <= 8
            and not r.has("layer")
        ):
            one = rows[0] if len(rows) == 1 else before.named[0].thing if before.named else cited[0] if cited else None
            if (
                not pointed
                and len(rows) > 1
                and not before.named
                and (r.has("ask", "overdue") or r.has("status") or r.has("property"))
            ):
                self._scope = rows
                return r
            if one is not None:
                place = max(0, r.at("point", "one"))
                r.named.append(Named(one, place, place + 1, True))
            return r
        if r.has("more") and r.tokens and r.at("more") == 0 and (r.named or r.people or r.periods or r.types):
            return self._in_place(r, before)
        return r

    def _in_place(self, r: Reading, before: Reading) -> Reading:
        """What was asked before, with what is new in its place."""
        if r.has("property") or (r.has("relation") and any(one != "part" for one in r.of("relation"))):
            return r
        kinds = {kind for span in r.spans for kind in (sense.kind for sense in span.senses)}
        kept = [
            span for span in before.spans if not any(span.of(kind) for kind in kinds & {"type", "status", "period", "layer"})
        ]
        r.spans = [*kept, *(span for span in r.spans if not span.of("more"))]
        r.named = r.named or ([] if r.people or r.types else before.named)
        if r.named and before.named and r.named is not before.named:
            r.named = [Named(r.named[0].thing, before.named[0].start, before.named[0].end, True)]
            r.absorbed = before.absorbed
        r.people = r.people or ([] if r.named and not before.people else before.people)
        r.periods = r.periods or before.periods
        r.bounds, r.figures = r.bounds or before.bounds, r.figures or before.figures
        r.tokens = before.tokens
        return r

    # Kinds of question

    async def _unable(self, r: Reading) -> str:
        if r.has("allowed") or {"guardrail", "principle", "policy"} & set(r.types) or not self._is_order(r):
            return ""
        r.closed = self.declined = True
        return f"I cannot do that: without a language model I only read the graph.{self._near(r)}"

    def _is_order(self, r: Reading) -> bool:
        """Whether a message asks for a deed: it begins with a verb that no question begins with."""
        words, stop = self._record.words.language.words, self._record.words.stop
        at = next((at for at, token in enumerate(r.tokens) if token.stem not in stop and token.folded not in stop), -1)
        opened = words.get("proposal", ())
        asked = "?" in r.text and (r.opening in opened or r.opening in words.get("ability", ())) and not self._addresses(r)
        if at < 0 or asked or r.opening in ("who", "when", "why", "did", "what", "which"):
            return False
        if r.at("unable") == at:
            return True
        first = r.tokens[at]
        spanned = any(span.start <= at < span.end and span.senses for span in r.spans)
        asking = {*words.get("asking", ()), *words.get("verbs_of_being", ())}
        if at or spanned or first.folded in asking or "?" in r.text.split(r.tokens[-1].text)[0] or len(r.tokens) < _ORDER:
            return False
        return self._words is not None and self._words.is_verb(first.folded) and first.folded == self._words.plain(first.folded)

    @property
    def _opened(self) -> set[str]:
        """Words that open a question for leave or advice."""
        words = self._record.words.language.words
        return {*words.get("proposal", ()), *words.get("ability", ()), *words.get("verbs_of_being", ())}

    def _addresses(self, r: Reading) -> bool:
        """Whether a message begins by asking the one who answers: can you, would you."""
        return any(token.folded in self._record.words.language.words.get("you", ()) for token in r.tokens[1:2])

    async def _by_tools(self, r: Reading) -> str:
        desk, kind = self._desk, self._question.kind
        if kind is Kind.ROOM and not (r.has("ask", "sum") and r.types == ("project",)):
            for name in ("period", "weekday", "month", "edge", "figure", "unit", "than", "type", "property", "ask", "status"):
                r.cover_all(name)
            r.cover("relation", "part", "lead")
            r.cover_words("more", "another", "next", "other", "much", "first", "most")
            r.unknown = []
            return await assess_capacity(desk, self._question.text, self._record.today, _window(r, self._record.today), r.hours)
        if kind is Kind.CONTRADICTION and (r.named or not r.unknown):
            r.cover("relation", "contradict")
            r.cover_all("type")
            r.cover_all("talk_of_tools")
            r.cover("ask", "linked", "lack", "compare")
            r.cover_words("each", "other", "another", "one")
            r.cover_named(*r.things[:1])
            return await contradictions(desk, self._question.text, r.things[0] if r.named else None, r.types)
        if kind is Kind.LOSS:
            found = r.things[0] if r.named else None
            node = desk.record.get(found.id) if found else None
            r.closed = True
            if node is None:
                named = await find_named_node(desk, self._question)
                self.declined = named.node is None
                return await losses(desk, named.node) if named.node else _unnamed(named)
            return await losses(desk, node)
        if kind is Kind.PRECEDENT and not (
            r.has("ask", "max", "min", "count", "mean", "sum", "group", "rank", "lack")
            or r.has("loss")
            or (r.has("gain") and not r.unknown and not _LIKE.search(self._question.text))
            or self._plans.lists(r)
        ):
            self._cover_precedent(r)
            return await _precedents(self._running, desk, self._question.subject)
        if r.has("precedent") and not r.types and not r.has("property"):
            self._cover_precedent(r)
            return await _precedents(self._running, desk, self._question.text)
        for topic in r.of("talk_of_tools"):
            if topic in ("evolution", "drift", "progress") and r.named and r.things[0].type in ("metric", "observation"):
                continue
            if topic == "inventory" and (r.types or r.has("layer")):
                continue
            thing = r.things[0] if r.named else None
            if said := await ask_tool(
                desk,
                topic,
                thing.id if thing else None,
                thing.type if thing else "",
                [one.id for one in r.things],
                self._record,
                r.types,
            ):
                if topic == "drift":
                    r.cover_all("type")
                r.cover("talk_of_tools", topic)
                r.cover("period", "lately")
                r.cover_named()
                r.cover("ask", "linked", "count", "group", "lack", "max", "describe", "why")
                r.cover("relation", "part", "rest")
                r.cover("type", "pattern", "area", "event")
                return said
        return ""

    def _cover_precedent(self, r: Reading) -> None:
        """What the search for precedents takes from a message: all but whose they are, when, and how many."""
        for kind in ("precedent", "loss", "gain", "relation", "link", "property", "talk_of_tools", "superlative"):
            r.cover_all(kind)
        r.cover_all("type")
        r.cover("ask", "why", "full")
        r.cover_named()
        r.unknown = []

    async def _rules(self, r: Reading) -> str:
        if r.named and r.things[0].type in _RULES and r.has("allowed"):
            r.closed = True
            return "\n\n".join(self._plans.in_full(one) for one in r.things if one.type in _RULES)
        if r.named and r.things[0].type in _RULES and not r.unknown:
            return ""
        if r.opening in self._record.words.language.words.get("proposal", ()) and self._question.kind is Kind.PROPOSAL:
            r.closed = True
            return await _precedents(self._running, self._desk, self._question.text)
        if not r.has("allowed") and not (
            self._question.kind is Kind.PROPOSAL
            and not r.types
            and not r.has("property")
            and (r.opening in self._opened or "?" not in r.text)
            and not r.has("ask", "when", "why", "who", "count", "sum")
        ):
            return ""
        r.closed = True
        if not r.has("allowed"):
            return await _precedents(self._running, self._desk, self._question.text)
        hits = await _broken(self._running, self._desk, self._question.text)
        near = self._touching(r)
        said = describe_hits(hits)
        more = [one for one in near if one.id not in {hit.rule.id for hit in hits}]
        if not said and not more:
            return "No guardrail or principle on record speaks of that."
        return paragraphs(said, *(self._plans.in_full(one) for one in more))

    async def _by_text(self, r: Reading) -> str:
        """Rules that speak of what a message describes, where it names none of them by its title."""
        if not set(r.types) & _RULES or not r.unknown or any(one.thing.type in _RULES for one in r.named):
            return ""
        if r.people or r.has("ask", "count", "lack") or r.has("relation", "enforce"):
            return ""
        rated = self._rated([one for one in self._record if one.type in r.types and one.type in _RULES], r)
        best = max((rate for rate, _ in rated), default=0.0)
        found = [one for rate, one in rated if rate >= _CLOSE * best][:3]
        if best < _SPOKEN or (len(found) > 1 and not self._many(r)):
            return ""
        r.closed = True
        return paragraphs("What comes nearest to that:", *(self._plans.in_full(one) for one in found))

    def _many(self, r: Reading) -> bool:
        """Whether a message asks for several of a type."""
        plural = tuple(self._record.words.language.words.get("plural", ())) or ("\0",)
        return any(r.tokens[span.end - 1].folded.endswith(plural) for span in r.spans if span.of("type"))

    def _rated(self, things: Sequence[Thing], r: Reading) -> list[tuple[float, Thing]]:
        """Nodes with how much of what a message describes stands in their texts, the most first."""
        own = {at for span in r.spans if set(map(_kind, span.senses)) & _OWN for at in range(span.start, span.end)}
        said = {t.stem: t.folded for at, t in enumerate(r.tokens) if at not in own and t.stem not in self._record.words.stop}
        language = self._record.words.language
        texts = {one.id: {t.stem: t.folded for t in language.tokens(one.text[:1_000])} for one in things}
        rated = []
        for one in things:
            rate = 0.0
            for key, word in said.items():
                holding = sum(1 for text in texts.values() if key in text)
                if key in texts[one.id]:
                    rate += 1.0 if holding == 1 else 1.0 / holding
                elif holding == 0 and any(self._is_like(word, other) for other in texts[one.id].values()):
                    rate += _LIKE_RATE
            if rate:
                rated.append((rate, one))
        return sorted(rated, key=lambda row: -row[0])

    def _is_like(self, word: str, other: str) -> bool:
        words = self._words
        if words is None or len(word) < 3 or len(other) < 3:
            return False
        if words.is_a(word, other) > _SURE or words.are_synonyms(word, other, 2):
            return True
        return bool((words.derived(word) | {words.plain(word)}) & (words.derived(other) | {words.plain(other)}))

    def _touching(self, r: Reading) -> list[Thing]:
        words = {token.stem for token in r.tokens} - self._record.words.stop
        rated = []
        for one in self._record:
            if one.type in ("guardrail", "principle", "policy") and (both := len(words & self._stems_of(one))):
                rated.append((both, one))
        most = max((both for both, _ in rated), default=0)
        return [one for both, one in rated if both == most][:3]

    def _stems_of(self, one: Thing) -> set[str]:
        return set(self._record.words.language.key(f"{one.text[:1_000]} {one.id}"))

    async def _compared(self, r: Reading) -> str:
        if r.has("ask", "compare") and not r.unknown and (said := self._plans.compare_sets(r)):
            return said
        if len(r.things) >= 2 and r.has("ask", "compare"):
            told = list(dict.fromkeys(r.things))[:4]
            r.cover_named(*told)
            r.cover("type", "human")
            r.cover_all("figure")
            r.cover("ask", "compare", "who", "when", "group", "max", "min")
            r.cover("property", *_COMPARED)
            r.cover_all("superlative")
            r.cover("relation", "up", "lead", "part")
            r.cover("type", *(one.type for one in told))
            r.cover_words("both", "next", "each")
            return self._plans.compare(told)
        return ""

    async def _of_node(self, r: Reading) -> str:
        named, plans = r.named[0], self._plans
        one = named.thing
        if one.type in ("human", "ai") and (r.types or r.has("ask", "overdue") or r.has("property") or r.periods):
            r.people = list(dict.fromkeys([*r.people, *(thing.title for thing in r.things if thing.type in ("human", "ai"))]))
            r.named = [each for each in r.named if each.thing.type not in ("human", "ai")]
            return "" if not r.named else await self._of_node(r)
        if named.others and not named.whole and (one.type not in r.types):
            same = [one, *named.others]
            wanted = [*r.of("property"), *(["owner"] if r.has("ask", "who") else [])]
            having = [each for each in same if wanted and self._record.value(each, wanted[0]) is not None]
            if len(having) == 1:
                named = r.named[0] = replace(named, thing=having[0], others=())
                one, same = having[0], having
            if len(same) > 1 and (len({each.type for each in same}) > 1 or not r.types):
                asked = joined([cite(each) for each in same[:4]])
                r.closed = True
                return f"Which one do you mean: {asked}?" if r.has("property") or r.has("ask", "who", "when", "why") else ""
        one = self._having(r, one)
        named = r.named[0]
        strong = [sense for sense in r.of("relation") if sense != "part"]
        if r.types == (one.type,) and not strong and not r.has("link") and self._is_itself(r, named):
            r.absorbed |= {at for span in r.spans if span.of("type") for at in range(span.start, span.end)}
            if not (r.has("property") or r.has("ask", "who", "when", "why")):
                return self._described(r)
        asks = [sense for sense in r.of("property") if not (sense == "reasoning" and r.has("ask", "why"))]
        if r.opening in plans.being and r.has("relation") and strong and len(r.things) == 1 and not r.types:
            pairs, _ = plans.related(r, one, (named.start, named.end))
            r.cover("ask", "lack")
            return f"{'Yes' if pairs else 'No'}. {plans.say_related(r, named)}"
        if r.opening in plans.being and (said := self._yes_or_no(r, one)):
            return said
        if len(r.things) >= 2 and (r.has("ask", "linked") or r.has("talk_of_tools", "path")) and not r.types:
            return await self._joined(r)
        if (
            one.type in ("metric", "observation")
            and (
                r.has("talk_of_tools", "progress", "evolution", "drift")
                or r.has("property", "value", "observed", "current")
                or bool(r.periods)
                or r.has("ask", "max", "min", "mean", "count", "list")
            )
            and set(r.types) <= {"metric", "observation"}
            and "measure" not in strong
        ):
            return self._measured(one, r)
        if r.has("ask", "why", "indirect") and not r.types and not asks:
            return await self._why(r, one)
        if r.types and not (asks and set(r.types) <= {"human", "evidence"} and not strong):
            if r.types == ("human",) and not strong:
                return self._told(r, one, ["owner"])
            filtered = self._with_text(r)
            if (
                filtered is None
                and self._question.kind is Kind.STRATEGY
                and not plans.related(r, one, (named.start, named.end))[0]
            ):
                self._cover_strategies(r)
                return await strategies(self._desk, self._question.subject)
            return plans.say_related(r, named) if filtered is None else filtered
        words = self._record.words.language.words
        if r.tokens[-1].folded in words.get("purpose_end", ()) and not strong and not asks:
            return await self._why(r, one)
        aimed = one.type == "keyResult"
        if r.has("remainder") and ({"budget", "spent"} & set(asks) or aimed) and (left := self._left(one)):
            r.cover_all("remainder")
            r.cover("ask", "count", "sum", "lack")
            r.cover("type", "goal", "keyResult")
            r.cover("property", "target", "current")
            r.cover("status", "open")
            r.cover("ask", "sum")
            r.cover("relation", "part")
            r.cover("property", "budget", "spent")
            r.cover_named(one)
            return left
        if (
            self._question.kind is Kind.PURPOSE
            and strong
            and strong[0] in ("up", "align")
            and named.start < r.at("relation", strong[0])
        ):
            return await self._why(r, one)
        if r.has("link") or (strong and not (r.has("ask", "who") and "owner" in asks)):
            if not (
                asks and not r.has("link") and r.at("property", *asks) == r.at("relation", *strong) and r.has("ask", "when")
            ):
                return plans.say_related(r, named)
        senses = list(asks)
        if (
            r.has("status", *OPEN, "open", "done")
            and r.has("relation", "part")
            and one.type != "task"
            and not (r.types or asks)
        ):
            tasks = (Sense("type", "task"),)
            r.spans.append(Span(len(r.tokens), len(r.tokens), tasks))
            return plans.say_related(r, named)
        if one.type in ("human", "ai") and not senses:
            return "" if r.unknown else self._person(one)
        if r.has("ask", "who") or r.has("person"):
            senses = ["owner", *(sense for sense in senses if sense != "owner")]
        if r.has("ask", "when") and not any(sense in senses for sense in ("due", "decided", "observed")):
            senses += [
                next((sense for sense in ("due", "decided", "observed") if self._record.value(one, sense) is not None), "due")
            ]
        if r.has("status") and not senses:
            senses = ["status"]
        if r.has("ask", "overdue") and not senses:
            senses = ["due"]
        if r.has("ask", "full") or (senses and set(senses) <= {"trigger", "response", "statement"}):
            r.cover("ask", "full", "when")
            r.cover("property", "trigger", "response", "statement", "reasoning", "due")
            r.cover("type", *(each.type for each in r.things))
            r.cover("relation", "part")
            r.cover_named()
            return "\n\n".join(plans.in_full(each) for each in r.things)
        if senses:
            if r.unknown and not self._lenient(r):
                return self._lacking(r, one)
            return "\n".join(self._told(r, each, senses) for each in self._sure(r))
        return ""

    def _told(self, r: Reading, one: Thing, senses: list[str]) -> str:
        """What a node says of some senses, and that the words for them are accounted for."""
        r.cover_named(one)
        r.cover("property", *senses)
        r.cover("relation", "part", *(["lead"] if "owner" in senses else []))
        r.cover("type", one.type, *(["human", "task"] if "owner" in senses else []))
        if "owner" in senses:
            r.cover("ask", "who")
            r.cover_all("person")
        if set(senses) & {"due", "decided", "observed"}:
            r.cover("ask", "when", "count")
            for kind in ("unit", "count_up", "edge"):
                r.cover_all(kind)
        if "reasoning" in senses:
            r.cover("ask", "why")
        r.cover("status", *(["todo", "in_progress", "done", "open"] if set(senses) & {"status", "due"} else []))
        r.cover("ask", *(["overdue"] if "due" in senses else []))
        r.cover("superlative", *senses)
        if set(senses) & {"effort", "budget", "spent", "value", "priority", "roi", "confidence", "likelihood"}:
            r.cover("ask", "count", "sum")
            r.cover_all("unit")
            r.cover_all("earn")
        return self._owned(one, senses)

    def _cover_strategies(self, r: Reading) -> None:
        r.cover("type", "strategy", "initiative", "goal")
        r.cover("relation", "up", "support", "part", "lead")
        r.cover_named()

    def _having(self, r: Reading, one: Thing) -> Thing:
        """The node that is meant: of those whose titles have the words as well, the only one that has what is asked."""
        named = r.named[0]
        wanted = list(r.of("property")) or (["reasoning"] if r.has("ask", "why") else [])
        if (
            named.end - named.start > _PRECISE
            or not wanted
            or any(self._record.value(one, sense) is not None for sense in wanted)
        ):
            return one
        stems = {token.stem for token in r.tokens[named.start : named.end]} - self._record.words.stop
        key = self._record.words.language.key
        others = [
            each
            for each in self._record
            if each is not one and stems <= set(key(each.title)) and self._record.value(each, wanted[0]) is not None
        ]
        if len(others) != 1 or not stems:
            return one
        r.named[0] = replace(named, thing=others[0], others=())
        return others[0]

    def _person(self, one: Thing) -> str:
        owned = [each for each in self._record if one.title in self._record.owners(each)]
        rows = self._plans.listed(self._plans.row(each) for each in owned)
        return paragraphs(self._plans.describe(one), f"Owner of:\n{rows}" if rows else "")

    def _left(self, one: Thing) -> str:
        """What is left of a budget."""
        target, current = (number_of(self._record.value(one, sense)) for sense in ("target", "current"))
        if target is not None and current is not None:
            far = f"the target is {figure(target)}, and {figure(current)} is reached"
            return f"{figure(target - current)} to go for {cite(one)}: {far}."
        budget, spent = (number_of(self._record.value(one, sense)) for sense in ("budget", "spent"))
        if budget is None or spent is None:
            return ""
        return f"{figure(budget - spent)} is left for {cite(one)}: a budget of {figure(budget)} less {figure(spent)} spent."

    def _is_itself(self, r: Reading, named: Named) -> bool:
        """Whether a type says what the named node is, and not what is sought beside it."""
        if r.has("property") or r.has("ask", "when", "why"):
            return True
        return not any(link for link, other in self._record.neighbours(named.thing.id) if other.type == named.thing.type)

    def _sure(self, r: Reading) -> list[Thing]:
        """The node that is named first, and others that are named as clearly."""
        others = [each for each in r.named[1:] if each.whole or each.typed or each.share >= _PART]
        return [each.thing for each in (r.named[0], *others) if each is r.named[0] or each.thing.type not in ("human", "ai")]

    def _lenient(self, r: Reading) -> bool:
        return (len(r.unknown) <= 1 and r.named[0].whole) or (r.has("ask", "who", "when") and len(r.unknown) <= 1)

    def _owned(self, one: Thing, senses: list[str]) -> str:
        said = self._plans.properties(one, senses)
        if "owner" in senses and not self._record.owners(one):
            for link, other in self._record.neighbours(one.id):
                if link.type == "PART_OF" and link.start == one.id and (owners := self._record.owners(other)):
                    return f"{said} It is part of {cite(other)}, whose owner is {joined(owners)}."
        return said

    def _yes_or_no(self, r: Reading, one: Thing) -> str:
        plans, record = self._plans, self._record
        if r.types and not r.absorbed:
            return ""
        r.cover_named(one)
        if r.has("ask", "overdue"):
            r.cover("ask", "overdue")
            due = record.due(one)
            when = f"it was due {due}" if record.is_overdue(one) else f"it is due {due}" if due else "it has no due date"
            state = f", and its status is {spaced(one.status)}" if one.type == "task" else ""
            return f"{'Yes' if record.is_overdue(one) else 'No'}, {cite(one)}: {when}{state}."
        if one.type == "task" and not r.has("status") and self._is_perfect(r, one):
            return f"{'Yes' if one.status == 'done' else 'No'}: the status of {cite(one)} is {spaced(one.status)}."
        if r.has("status") and one.type == "task":
            r.cover_all("status")
            wanted = set(r.of("status"))
            yes = one.status in wanted or ("open" in wanted and one.status in OPEN)
            return f"{'Yes' if yes else 'No'}: the status of {cite(one)} is {spaced(one.status)}."
        if r.has("status"):
            r.cover_all("status")
            state = spaced(str(record.value(one, "status")))
            return f"{'Yes' if one.status in r.of('status') else 'No'}: the status of {cite(one)} is {state}."
        value = number_of(record.value(one, "roi"))
        if (r.has("gain") or r.has("loss")) and value is not None:
            yes = value < 0 if r.has("loss") else value > 0
            for kind in ("loss", "gain"):
                r.cover_all(kind)
            r.cover("property", "roi", "budget")
            return f"{'Yes' if yes else 'No'}: the return of {cite(one)} is {figure(value)}."
        if r.people:
            owners = record.owners(one)
            yes = bool(set(r.people) & set(owners))
            r.cover_all("person")
            r.cover("property", "owner")
            r.cover("relation", "lead")
            return f"{'Yes' if yes else 'No'}: the owner of {cite(one)} is {joined(owners) or 'not on record'}."
        if len(r.things) >= 2:
            r.cover_named(*r.things[:2])
            r.cover_all("relation")
            r.cover_all("link")
            r.cover_all("type")
            r.cover("ask", "linked", "indirect")
            return self._joins(r, r.things[0], r.things[1])
        if r.bounds and (sense := plans._measured(r)):
            q = plans.query(r)
            yes = all(holds(one) for words, holds in q.conditions)
            return f"{'Yes' if yes else 'No'}. {plans.properties(one, [sense])}"
        if r.has("ask", "lack") or r.has("ask", "exists"):
            senses = [sense for sense in r.of("property")]
            if senses:
                there = all(record.value(one, sense) is not None for sense in senses)
                r.cover_all("property")
                r.cover("ask", "lack")
                return f"{'Yes' if there else 'No'}. {plans.properties(one, senses)}"
        return ""

    def _is_perfect(self, r: Reading, one: Thing) -> bool:
        """Whether what a task is to do is asked about as done: have the panels been ordered?"""
        verb = self._record.words.language.tokens(one.title)[:1]
        said = [token.folded for token in r.tokens]
        if not verb:
            return False
        done = {
            word for token, word in zip(r.tokens, said, strict=True) if token.stem == verb[0].stem and word != verb[0].folded
        }
        r.cover_words(*done)
        return any(word.endswith(("ed", "en", "t", "n", "d")) for word in done)

    def _joins(self, r: Reading, one: Thing, other: Thing) -> str:
        plans, record = self._plans, self._record
        direct = [link for link, end in record.neighbours(one.id) if end.id == other.id]
        strong = [sense for sense in r.of("relation") if sense != "part"] or list(r.of("relation"))
        names = {name for sense in strong for name in record.words.relations.get(sense, ())} | set(r.of("link"))
        fitting = [link for link in direct if link.type in names]
        if fitting:
            verb = r.at("relation", *strong) if strong else r.at("link")
            at = (r.named[0].start, r.named[0].end)
            right = [link for link in fitting if plans._fits(r, names, link, one, at, verb, strong[0] if strong else "link")]
            link = (right or fitting)[0]
            said = f"{cite(record.things[link.start])} {spaced(link.type)} {cite(record.things[link.end])}"
            return f"{'Yes' if right else 'No, the other way round'}: {said}."
        if strong and strong[0] in ("up", "support", "part", "align", "rest", "lead"):
            path = plans.path_up(one, other)
            if path:
                return f"Yes, step by step: {plans._chained(one, path)}"
        there = [f"{cite(record.things[link.start])} {spaced(link.type)} {cite(record.things[link.end])}" for link in direct]
        return (
            f"No: no such relationship leads from {cite(one)} to {cite(other)}.{' But ' + joined(there) + '.' if there else ''}"
        )

    async def _joined(self, r: Reading) -> str:
        one, other = r.things[:2]
        r.cover_named(one, other)
        r.cover("ask", "linked")
        r.cover("talk_of_tools", "path")
        r.cover_all("relation")
        for first, second in ((one, other), (other, one)):
            if path := self._plans.path_up(first, second):
                return f"{cite(one)} and {cite(other)} are joined: {self._plans._chained(first, path)}"
        return await ask_tool(self._desk, "path", one.id, one.type, [one.id, other.id], self._record)

    async def _why(self, r: Reading, one: Thing) -> str:
        r.cover_named(one)
        r.cover("ask", "why", "indirect", "describe", "linked")
        r.cover("relation", "up", "support", "align", "part", "rest", "lead")
        r.cover("property", "reasoning")
        r.cover("type", one.type)
        r.cover_words("first")
        reasons = [
            f"{spaced(name).capitalize()}: {one.fields[name]}" for name in ("reasoning", "rationale") if name in one.fields
        ]
        led = [
            f"{cite(other)} led to it"
            for link, other in self._record.neighbours(one.id)
            if link.type == "LEADS_TO" and link.end == one.id
        ]
        node = self._desk.record.get(one.id)
        chains = self._plans.ladders(one)
        try:
            said = await purpose(self._desk, node) if node else ""
        except (NotOffered, ServiceError):
            said = ""  # the record has the chains as well
        extra = [chain for chain in chains if chain not in said and len(said.split("Why, step by step")) < 2]
        if reasons or led:
            said = "" if said.startswith("The graph holds no reason") else said
        return paragraphs(
            "\n".join([*(f"{cite(one)}. {reason}" for reason in reasons), *led]),
            said,
            self._plans.listed(extra) if extra else "",
        )

    def _measured(self, one: Thing, r: Reading) -> str:
        record = self._record
        r.cover_named(one)
        r.cover("talk_of_tools", "progress", "evolution", "drift")
        r.cover("property", "value", "observed", "current", "unit")
        r.cover("type", "metric", "observation")
        r.cover("superlative", "date")
        r.cover("ask", "max", "min")
        r.cover_words("last", "first", "next")
        r.cover("ask", "count", "list", "when", "mean" if r.has("ask", "mean") else "count")
        r.cover("relation", "measure", "part")
        for kind in ("period", "month", "edge"):
            r.cover_all(kind) if r.periods else None
        metric = one
        if one.type == "observation":
            metric = next((other for link, other in record.neighbours(one.id) if other.type == "metric"), one)
            said = self._plans.properties(one, ["value", "observed"])
            return f"{said} It is an observation of {cite(metric)}."
        seen = [other for link, other in record.neighbours(one.id) if other.type == "observation"]
        points = (
            sorted(
                (str(record.value(each, "observed") or ""), each)
                for each in seen
                if number_of(record.value(each, "value")) is not None
            )
            if seen
            else []
        )
        if not points:
            return f"No observation of {cite(one)} is on record."
        unit = str(record.value(one, "unit") or "")
        rows = [
            f"{cite(each)}: {figure(number_of(record.value(each, 'value')) or 0)} {unit} ({day[:10]})" for day, each in points
        ]
        first, last = (number_of(record.value(points[at][1], "value")) or 0 for at in (0, -1))
        if r.periods:
            months = {r.tokens[span.start].stem for span in r.spans if span.of("month")}
            inside = [
                (day, each)
                for day, each in points
                if any(_within(record.day(day), period) for period in r.periods) or months & self._stems_of(each)
            ]
            if not inside:
                return f"No observation of {cite(one)} from that time is on record. The latest:\n{rows[-1]}"
            rows = [row for row, point in zip(rows, points, strict=True) if point in inside]
            points = inside
            first, last = (number_of(record.value(points[at][1], "value")) or 0 for at in (0, -1))
        if r.has("talk_of_tools", "progress", "evolution", "drift"):
            way = "rose" if last > first else "fell" if last < first else "stayed the same"
            return paragraphs(
                f"{metric.title} {way} from {figure(first)} to {figure(last)} {unit} [{metric.id}]:", self._plans.listed(rows)
            )
        if r.has("ask", "mean"):
            numbers = [number_of(record.value(each, "value")) or 0 for _, each in points]
            return f"{figure(sum(numbers) / len(numbers))} {unit} on average over {len(numbers)} observations of {cite(one)}."
        return paragraphs(
            f"{figure(last)} {unit}: the {'value then' if r.periods else 'latest value'} of {cite(one)}.",
            self._plans.listed(rows),
        )

    # Sets

    def _of_set(self, r: Reading) -> str:
        about = r.types or r.of("layer") or self._scope is not None
        conditions = (
            r.people
            or r.has("ask", "overdue")
            or r.periods
            or r.bounds
            or r.has("status")
            or r.values
            or r.has("property")
            or r.has("loss")
            or r.has("superlative")
        )
        if not about and not conditions:
            return ""
        if r.named and not r.types:
            return ""
        if not about:
            self._default_types(r)
        if not r.types and not r.of("layer") and self._scope is None:
            return ""
        if r.unknown and (said := self._with_text(r)) is not None:
            return said
        q = self._plans.query(r, self._scope)
        if r.named and (said := self._plans.say_related(r, r.named[0])):
            return said
        return self._plans.say_set(q, r)

    def _default_types(self, r: Reading) -> None:
        """Types where none is said: those that have what is asked, tasks first."""
        record = self._record
        if r.faint and r.has("superlative"):
            return
        wanted = [sense for sense in r.of("property") if sense != "status"]
        if r.has("loss") or r.has("gain") or "roi" in wanted or "decided" in wanted:
            types = ["decision"]
        elif r.values and not r.people:
            types = sorted({one.type for one in record if any(one.fields.get(name) == value for name, value in r.values)})
        elif wanted and wanted[0] in ("likelihood", "confidence", "budget", "spent", "trigger", "response", "severity"):
            types = sorted({one.type for one in record if record.value(one, wanted[0]) is not None})
        elif r.people and not (r.periods or r.has("ask", "overdue") or r.has("status")):
            types = sorted({one.type for one in record if set(r.people) & set(record.owners(one))})
        elif r.unknown and not (r.has("ask", "overdue") or r.people):
            return
        else:
            types = ["task"]
        if types:
            r.spans.append(Span(len(r.tokens), len(r.tokens), tuple(Sense("type", type) for type in types)))

    def _with_text(self, r: Reading) -> str | None:
        """The answer where words have no sense of their own: nodes that have the words; `None` where every word has one."""
        if not r.unknown:
            return None
        stems = {token.stem for token in r.tokens if token.text in r.unknown}
        q = self._plans.query(r, self._scope)
        q.conditions = [row for row in q.conditions if not row[0].startswith("without") or r.has("property")]
        found = [one for one in q.run(self._record) if stems <= self._stems_of(one)]
        if r.named:
            r.closed = r.closed or len(r.unknown) > 1
            self.declined = self.declined or len(r.unknown) > 1
            return (
                None
                if len(r.unknown) <= 1
                else f"I cannot tell what {joined([f'“{word}”' for word in r.unknown])} means here.{self._near(r)}"
            )
        if not found:
            return self._lacking(r, None) if stems else None
        q.scope = tuple(found)
        r.unknown = []
        r.covered |= {at for at, token in enumerate(r.tokens) if token.stem in stems}
        return self._plans.say_set(q, r)

    def _near(self, r: Reading) -> str:
        things = r.things[:2]
        if things:
            named = joined([cite(one) for one in things])
            return f" I can tell what is on record of {named}: its owner, days, figures, and what it serves or rests on."
        if r.types:
            nouns = joined([noun(type) for type in r.types[:2]])
            return f" I can list, count and filter the {nouns} by owner, day, status and figures."
        return " I can list and count nodes by type, owner, day and status, follow what serves what, and find precedents."

    def _lacking(self, r: Reading, one: Thing | None) -> str:
        r.closed = self.declined = True
        said = joined([f"“{word}”" for word in r.unknown])
        return f"I cannot find anything on record about {said}{f' for {cite(one)}' if one else ''}.{self._near(r)}"

    def _described(self, r: Reading) -> str:
        if r.unknown and not r.named[0].whole:
            return self._lacking(r, r.things[0])
        if r.unknown:
            r.closed = self.declined = True
            said = joined([f"“{word}”" for word in r.unknown])
            return f"I cannot tell {said} from the record; this is what it holds.\n\n{self._plans.describe(r.things[0])}"
        told = list(dict.fromkeys(r.things))[:3]
        r.cover_named(*told)
        r.cover("type", *(one.type for one in told))
        r.cover("relation", "part")
        r.cover("ask", "full")
        metrics = {one.id: f"{self._measured(one, r)}\n\n" for one in told if one.type == "metric"}
        return "\n\n".join(f"{metrics.get(one.id, '')}{self._plans.describe(one)}" for one in told)

    async def _else(self, r: Reading) -> str:
        r.closed = True
        if self._question.kind is Kind.STRATEGY and not r.has("ask", "lack"):
            return await strategies(self._desk, self._question.subject)
        if self._question.kind is Kind.PURPOSE:
            found = await find_named_node(self._desk, self._question)
            self.declined = found.node is None
            return await purpose(self._desk, found.node) if found.node else _unnamed(found)
        if said := self._with_words(r):
            return said
        self.declined = True
        if said := self._faintly(r):
            return said
        asks = "?" in self._question.text or r.opening in self._plans.being or bool({*r.of("ask")} - {"list", "describe"})
        lead = f"I cannot answer that from the record.{self._near(r)}" if asks else ""
        return paragraphs(lead, await _searched(self._desk, self._question), _phrase(self._turn, "cannot"))

    @staticmethod
    def _cover_words(r: Reading, stems: set[str], found: Sequence[Thing]) -> None:
        """Account for words that stand in the texts of nodes, and leave it open whether the rest is met."""
        if not found:
            return
        r.unknown, r.closed = [], False
        r.covered |= {at for at, token in enumerate(r.tokens) if token.stem in stems}
        r.cover_named()
        r.cover("type", *(one.type for one in found))

    def _faintly(self, r: Reading) -> str:
        """What is asked of a node that one word may mean, where it alone has that word and what is asked."""
        senses = [
            *r.of("property"),
            *(["reasoning"] if r.has("ask", "why") else []),
            *(["owner"] if r.has("ask", "who") else []),
        ]
        having = [one.thing for one in r.faint if senses and self._record.value(one.thing, senses[0]) is not None]
        if len(having) != 1 or r.faint[0].others:
            return ""
        words = joined([f"“{word}”" for word in r.unknown])
        return f"I cannot tell for sure what {words} means. If it is this: {self._owned(having[0], senses)}"

    def _with_words(self, r: Reading) -> str:
        """Nodes whose texts have every word that carries sense; people first where a question asks who."""
        stems = {token.stem for token in r.tokens if token.text in r.unknown}
        stems |= {token.stem for one in r.named for token in r.tokens[one.start : one.end]} - self._record.words.stop
        if not stems or not self._desk:
            return ""
        found = [one for one in self._record if stems <= self._stems_of(one)]
        senses = [sense for sense in r.of("property") if found and self._record.value(found[0], sense) is not None]
        if len(found) == 1 and senses:
            self._cover_words(r, stems, found)
            return self._told(r, found[0], senses)
        people = [one for one in found if one.type in ("human", "ai")]
        if r.has("ask", "who"):
            self._cover_words(r, stems, people)
            r.cover("ask", "who")
            return "\n\n".join(self._person(one) for one in people[:3])
        if not found or r.periods or not (r.has("ask", "describe", "list") or r.opening in self._plans.being):
            return ""
        self._cover_words(r, stems, found)
        return paragraphs(
            f"{len(found)} on record:",
            self._plans.listed(f"{cite(one)} ({noun(one.type, 1)}){self._plans._gist(one)}" for one in found),
        )


_SETTLED = re.compile(r"(?:Yes|No|There|I cannot|I found|It|Of|[\d,]+ )\b|\d")
"""How answers to a question for yes or no begin."""


def _kind(sense: Sense) -> str:
    return sense.kind


def _within(day: date | None, period: Period) -> bool:
    return day is not None and (period.first is None or day >= period.first) and (period.last is None or day <= period.last)


def _window(r: Reading, today: date) -> tuple[date, date] | None:
    """The days of a question about room; the end is outside."""
    if not r.periods:
        return None
    period = r.periods[0]
    first = max(period.first or today, today) if period.last is None or period.last >= today else period.first or today
    last = period.last or first + timedelta(days=6)
    before = r.has("edge", "before") and period.first is None and "before" in r.text.casefold()
    return first, last if before and last > first else last + timedelta(days=1)


async def _broken(running: TurnRun, desk: TurnTools, text: str) -> tuple[RuleHit, ...]:
    """Rules that a message goes against; a question is held against them by what it asks leave for."""
    if not text.rstrip().endswith("?"):
        return await find_broken_rules(running, desk, text)
    words = vocabulary_of(text)
    asking = words.stop | set(words.language.words.get("verbs_of_being", ())) | set(words.language.words.get("proposal", ()))
    tokens = words.language.tokens(text)
    first = next((token for token in tokens if token.folded not in asking and token.stem not in asking), None)
    return await find_broken_rules(running, desk, text[first.start if first else 0 :].rstrip(" ?"))


async def _precedents(running: TurnRun, desk: TurnTools, described: str) -> str:
    if not described:
        return "Which decision do you mean? Describe it in a sentence, and I look for those that are like it."
    hits = await _broken(running, desk, described)
    return paragraphs(describe_hits(hits), await precedents(desk, described))


async def _searched(desk: TurnTools, question: Question) -> str:
    found = await desk.ask(SEMANTIC_SEARCH_TOOL, SemanticSearch(query=question.text, top_k=_FOUND))
    if not found.results:
        return "I found nothing in the graph that is near to this."
    rows = []
    for hit in found.results:
        seen = desk.record.get(hit.node.id)
        said = f": {seen.text[:_SUMMARY]}" if seen and seen.text else ""
        rows.append(f"{cite(hit.node)} ({hit.node.type}, {hit.node.layer}){said}")
    return paragraphs("These are nearest to it in meaning:", listed(rows))


def _unnamed(found: NamedNode) -> str:
    near = f" Near to it are {joined([cite(one) for one in found.near])}; ask with one of their titles." if found.near else ""
    return f"I cannot tell which node your question names.{near}"


def _phrase(turn: TurnContext, name: str) -> str:
    own = turn.agent.phrases.get(name, "").strip() if turn.agent else ""
    return own or _SENTENCES[name]
