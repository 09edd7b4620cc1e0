"""The reasoner without a language model: it routes by rules, and answers with sentences of its sources, saying so."""

from __future__ import annotations

import re

from phronesis_contracts.memory import AugmentedMemoryContext
from phronesis_contracts.orchestrator import Directive

from .phrases import focus, key_phrases
from .quoting import Quote, notes, quotes
from .reasoner import Answer, Composed, Fault, Routed, TurnContext
from .summary import stated
from .text import is_content, words

_GREETING = re.compile(r"^\W*(?:hi|hello|hey|hiya|good (?:morning|afternoon|evening|day)|greetings|howdy|salut|hola)\b", re.I)
_THANKS = re.compile(r"\b(?:thanks|thank you|thankyou|thx|cheers|much appreciated|many thanks)\b", re.I)
_FAREWELL = re.compile(r"^\W*(?:bye|goodbye|good night|see you|farewell|that'?s all|that is all)\b", re.I)
_ABOUT = re.compile(
    r"\b(?:who|what) are you\b|\bwhat (?:can|do) you do\b|\bhow (?:do you work|can you help|are you)\b"
    r"|\bare you (?:a|an) \w+\b|\byour name\b|\byourself\b|\bcan you help me\W*$",
    re.I,
)
_COURTESY = frozenset(
    """hi hello hey hiya good morning afternoon evening day night greetings howdy salut hola thanks thank thankyou thx cheers
    appreciated helpful great nice perfect bye goodbye farewell later today help ok okay lovely brilliant wonderful lot again
    everyone team friend""".split()
)
_IDEAS = re.compile(
    r"\b(?:ideas?|brainstorm\w*|imagine|invent|suggest\w*|creative\w*|draft|design a|write a|come up with)\b", re.I
)
_DATA = re.compile(
    r"\b(?:how (?:much|many|long|confident)|costs?|budget|ratings?|rated|when|dates?|deadline|compare|number|percent|risks?)\b"
    r"|\b(?:status|delay(?:s|ed)?|confidence|forecast|baseline|schedule|department|which|data|figures?|trend)\b|[£$€%]|\d",
    re.I,
)
_FEELING = re.compile(
    r"\b(?:feel|feeling|worried|anxious|sad|stressed|overwhelmed|tired|afraid|upset|lonely|frustrated)\b", re.I
)

_SENTENCES = {
    "greeting": "Hello. Ask me about anything your memory, your portfolio or an attached document may hold.",
    "thanks": "You are welcome.",
    "farewell": "Goodbye.",
    "about": "I answer from your memory, graph and documents. No language model is set up here, so I quote what I find.",
    "nothing_found": "I found nothing about this in your memory or your documents.",
    "quoted": "Quoted from the sources; no language model was used.",
}
"""Said where the agent's profile has no phrase of that name."""


class Extractive:
    """A `Reasoner` of rules and retrieval. The same turn always gets the same answer."""

    name = "extractive"

    async def route(self, turn: TurnContext, fault: Fault | None = None) -> Answer[Routed]:
        """Answer courtesies and questions about itself at once; search memory for everything else (D-049)."""
        text = turn.user_text or turn.final_input
        if not turn.media_text and (kind := courtesy(text)):
            return Answer(Routed(decision="respond_directly", direct_response=say(turn, kind)))
        history = () if turn.media_text else turn.history
        return Answer(Routed(decision="query_memory", key_phrases=key_phrases(text, history)))

    async def compose(
        self, turn: TurnContext, draft: str | None, memory: AugmentedMemoryContext | None, fault: Fault | None = None
    ) -> Answer[Composed]:
        """Reply with the draft, with quotations, or with the plain statement that nothing was found (D-107)."""
        stance, reason = _stance(turn.user_text, draft)
        reply = draft or self._quoted(turn, memory)
        return Answer(Composed(user_response=reply, next_agent_directive=stance, directive_reasoning=reason))

    def _quoted(self, turn: TurnContext, memory: AugmentedMemoryContext | None) -> str:
        found = [_paragraph(quote) for quote in quotes(focus(turn), turn.media_text, memory, stated(turn))]
        closing = say(turn, "quoted" if found else "nothing_found")
        return "\n\n".join(part for part in (*found, notes(turn.media_text), closing) if part)


def _paragraph(quote: Quote) -> str:
    return f"**{quote.title}**: {' '.join(quote.sentences)}"


def say(turn: TurnContext, phrase: str) -> str:
    """A fixed sentence of the agent, or one of these rules' own."""
    own = turn.agent.phrases.get(phrase, "").strip() if turn.agent else ""
    return own or _SENTENCES[phrase]


def courtesy(text: str) -> str | None:
    """Which fixed phrase answers a message that asks for nothing; `None` where it asks for something."""
    if len(text) > 200:
        return None
    rest = _ABOUT.sub("", text)
    if any(is_content(word) and word not in _COURTESY for word in words(rest)):
        return None
    if rest != text:
        return "about"
    for kind, pattern in (("thanks", _THANKS), ("greeting", _GREETING), ("farewell", _FAREWELL)):
        if pattern.search(text):
            return kind
    return None


def _stance(text: str, draft: str | None) -> tuple[Directive, str]:
    if _FEELING.search(text):
        return Directive.SUPPORTIVE_COMPANION, "The message speaks of a feeling."
    if _IDEAS.search(text):
        return Directive.CREATIVE_COLLABORATOR, "The message asks for ideas."
    if draft is not None:
        return Directive.SUPPORTIVE_COMPANION, "The message was a courtesy."
    if _DATA.search(text):
        return Directive.FOCUSED_ANALYST, "The message asks for facts and figures."
    return Directive.CURIOUS_EXPLORER, "The message opens a subject."
