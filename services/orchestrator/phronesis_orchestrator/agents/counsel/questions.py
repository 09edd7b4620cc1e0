"""The agents without a language model: a few kinds of question, and the node that each is about."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from phronesis_contracts import NotFound, ServiceError
from phronesis_contracts.constitution import search
from phronesis_contracts.constitution.search import SEMANTIC_SEARCH_TOOL, SemanticSearch
from phronesis_contracts.constitution.session import START_SESSION_TOOL, StartSession

from ...models.reasoner import TurnContext
from ...turns.execution import TurnRun
from ..text import courtesy, is_content, sentences, stem, words
from .answers import assess_capacity, contradictions, losses, precedents, purpose, strategies
from .tools import NotOffered, SeenNode, TurnTools, cite, describe_hits, find_broken_rules, joined, listed, paragraphs


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


async def answer_by_rules(running: TurnRun, turn: TurnContext, desk: TurnTools) -> str:
    """The answer to a turn. Raises `ServiceError`: the owner of a tool that the answer cannot do without failed."""
    text = (turn.user_text or turn.final_input).strip()
    if kind := courtesy(text):
        return _phrase(turn, kind)
    question = classify_question(turn)
    try:
        answer = await _answered(running, desk, question)
    except NotOffered as lacking:
        return f"I cannot answer that here: it needs the tool {lacking.tool}, which this agent does not have for you."
    except NotFound:
        return "A node that this is about is not there any more."
    limits = _phrase(turn, "cannot") if question.kind in (Kind.SEARCH, Kind.PROPOSAL) else ""
    return paragraphs(answer, limits, _phrase(turn, "by_rules"))


async def _answered(running: TurnRun, desk: TurnTools, question: Question) -> str:
    match question.kind:
        case Kind.CONTRADICTION:
            return await contradictions(desk, question.text)
        case Kind.ROOM:
            return await assess_capacity(desk, question.text, datetime.now(UTC).date())
        case Kind.STRATEGY:
            return await strategies(desk, question.subject)
        case Kind.PRECEDENT:
            return await _precedents(running, desk, question.subject)
        case Kind.PROPOSAL:
            return await _precedents(running, desk, question.text)
        case Kind.LOSS:
            found = await find_named_node(desk, question)
            return await losses(desk, found.node) if found.node else _unnamed(found)
        case Kind.PURPOSE:
            found = await find_named_node(desk, question)
            return await purpose(desk, found.node) if found.node else _unnamed(found)
        case Kind.SEARCH:
            return await _searched(desk, question)


async def _precedents(running: TurnRun, desk: TurnTools, described: str) -> str:
    if not described:
        return "Which decision do you mean? Describe it in a sentence, and I look for those that are like it."
    hits = await find_broken_rules(running, desk, described)
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
    return f"I found no node that your question names.{near}"


def _phrase(turn: TurnContext, name: str) -> str:
    own = turn.agent.phrases.get(name, "").strip() if turn.agent else ""
    return own or _SENTENCES[name]
