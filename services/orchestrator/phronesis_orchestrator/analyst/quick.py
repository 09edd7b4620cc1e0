"""Messages that are answered at once, without a look at the data: modes E to J, and what-ifs, which need a model (N-026)."""

from __future__ import annotations

import re

from phronesis_contracts.analysis import Analysis, MemoryProcess, Mode

from ..extractive import courtesy, say
from ..markup import shown
from ..reasoner import TurnContext
from .concepts import explained
from .problems import HINT
from .tokens import folded

_FRUSTRATION = re.compile(
    r"\b(?:useless|annoying|frustrat\w*|this is (?:bad|terrible|awful)|not helpful|unhelpful|stupid|ridiculous|fed up)\b", re.I
)
_ABOUT = re.compile(
    r"\b(?:who|what) are you\b|\bwhat (?:can|do) you do\b|\bhow (?:do you work|can you help)\b|\bare you (?:a|an) \w+\b"
    r"|\byour (?:name|role|job|functions?|purpose|abilities|capabilities)\b|\byourself\b|\bcan you help me\W*$"
    r"|\bwhat (?:kind of )?questions can (?:i|you)\b|\bwhat can i ask\b",
    re.I,
)
_IDEAS = re.compile(
    r"\b(?:ideas?|brainstorm\w*|imagine a|invent|suggest\w*|creative\w*|draft|write (?:a|me|us)|come up with|recommend\w*"
    r"|advise|advice|how (?:should|could|might) (?:we|i)|what should (?:we|i)|best practices?|opinion|what do you think)\b",
    re.I,
)
_WHAT_IF = re.compile(
    r"\b(?:what if|suppose|supposing|hypothetical\w*|assum(?:e|ing)|what would (?:happen|be)|if we|if it were|simulate|were to"
    r"|scenario|would .* if)\b",
    re.I,
)
_CONCEPT = re.compile(
    r"^\W*(?:(?:please |can you |could you )*(?:explain|define|clarify)(?: (?:to me|me))?(?: what)?(?: is| are)?"
    r"|what (?:does|do|is meant by|is the meaning of|is the definition of)|what(?: is|'s|’s| are)"
    r"|meaning of|definition of|tell me what)\s+(?P<what>.+?)(?P<means>\s+(?:means?|is|are|stands? for))?\W*$",
    re.I,
)
_ARTICLES = frozenset(folded("a an the concept of term notion idea in this twin"))
_AT_ONCE = "Answered at once; no data was read."
_SENTENCES = {
    "sorry": "I am sorry that this was no help. Tell me what you are looking for, in other words, and I will try again.",
    "about": f"I answer questions about the transformation from its data, by rules and without a language model. {HINT}",
    "ideas": "For new ideas a language model is needed, and none is set up here. I answer from data. " + HINT,
    "what_if": "I cannot work out what would happen: without a language model I only report what is on record. " + HINT,
}
"""Said where the agent's profile has no phrase of that name."""


def at_once(turn: TurnContext, text: str) -> Analysis | None:
    """The answer to a message that asks for no data; `None` where it may."""
    kind = courtesy(text)
    if kind is not None:
        return answered("G" if kind == "about" else "I", kind, say(turn, kind), _AT_ONCE, 1.0)
    if _FRUSTRATION.search(text):
        return _said(turn, "I", "sorry", "frustration")
    if _ABOUT.search(text) and len(text) < 200:
        return _said(turn, "G", "about", "the agent itself")
    if _WHAT_IF.search(text):
        return _said(turn, "D", "what_if", "a what-if", sure=0.0)
    if _IDEAS.search(text):
        return _said(turn, "F", "ideas", "ideas", sure=0.0)
    return _concept(turn, text)


def _concept(turn: TurnContext, text: str) -> Analysis | None:
    match = _CONCEPT.match(text)
    if match is None:
        return None
    name = tuple(word for word in folded(match["what"]) if word not in _ARTICLES)
    own = turn.agent.phrases.get(f"concept_{'_'.join(name)}", "") if turn.agent else ""
    meaning = own or explained(name)
    if meaning is None:
        return None
    return answered("H", "an explanation", meaning, "The concept was named; its meaning is the ontology's.", 1.0)


def _said(turn: TurnContext, mode: Mode, phrase: str, intent: str, sure: float = 1.0) -> Analysis:
    own = turn.agent.phrases.get(phrase, "").strip() if turn.agent else ""
    return answered(mode, intent, own or _SENTENCES[phrase], _AT_ONCE, sure)


def answered(mode: Mode, intent: str, answer: str, trace: str, sure: float) -> Analysis:
    """An answer without data."""
    return Analysis(
        mode=mode, memory_process=MemoryProcess(intent=intent, thought_trace=trace), answer=shown(answer), confidence=sure
    )
