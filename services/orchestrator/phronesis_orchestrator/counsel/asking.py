"""What a message asks, by rules: one of a few kinds of question, and the words that say what it is about."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from ..reasoner import TurnContext
from ..text import sentences


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


def understood(turn: TurnContext) -> Question:
    """The question of a turn."""
    text = " ".join((turn.user_text or turn.final_input).split())
    kind = next((kind for kind, pattern in _KINDS.items() if pattern.search(text)), Kind.SEARCH)
    return Question(kind, text, _precedent(turn, text) if kind is Kind.PRECEDENT else _subject(text))


def _subject(text: str) -> str:
    """What is quoted, or what is left without the words that ask."""
    if quoted := _QUOTED.search(text):
        return quoted[1] or quoted[2]
    left = " ".join(re.sub(r"[?!.,;:]", " ", _FRAME.sub(" ", text)).split())
    return left or text


def _precedent(turn: TurnContext, text: str) -> str:
    """The decision to compare with: what is named after `like`, or what is said beside the question; empty for neither."""
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
