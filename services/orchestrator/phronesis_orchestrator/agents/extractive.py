"""The reasoner without a language model: it routes by rules, and answers with sentences of its sources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from phronesis_contracts.memory import AugmentedMemoryContext, ContextItem
from phronesis_contracts.orchestrator import Directive

from ..conversations.history import PastMessage
from ..conversations.summary import list_statements
from ..models.reasoner import MAX_PHRASE, MAX_PHRASES, Answer, ComposedReply, Fault, RouteDecision, TurnContext
from .text import STOP_WORDS, Terms, is_content, node_year, rank_items, sentences, shorten, stem, weigh, words

_LOOK_AT = 2_000
_TOKEN = re.compile(r"[^\W_](?:[\w&/.-]*\w)?|['’]s\b|&|[^\s\w]")
_QUOTED = re.compile(r"[\"“«]([^\"“”«»\n]{2,120})[\"”»]|(?<!\w)['‘]([^'‘’\n]{2,120})['’](?!\w)")
_ACRONYM = re.compile(r"\(([A-Z][A-Za-z0-9&-]{1,11})\)")
_BOLD = re.compile(r"\*\*([^*\n]{3,160})\*\*")
_POINTER = re.compile(
    r"\b(?:it|its|itself|they|them|their|theirs|this|these|those|him|his|she|her|hers|he|that (?:one|project|programme))\b",
    re.I,
)
_OPENING = re.compile(r"^\W*(?:and|but|so|then|also|what about|how about|or)\b", re.I)
_INSIDE_A_NAME = {"of", "and", "the", "for", "in", "on", "to", "&"}
_KINDS = {"programme", "program", "project", "scheme", "fund", "service", "system", "portfolio", "initiative", "strategy"}


def key_phrases(message: str, history: tuple[PastMessage, ...] = ()) -> tuple[str, ...]:
    """At most 8 phrases to search memory for, the most telling first; the whole message is one of them.

    Args:
        message: the user's message.
        history: earlier messages, oldest first, where a follow-up finds its topic.
    """
    text = message[:_LOOK_AT]
    whole = " ".join(text.split())
    about = topic(text, history)
    if about:
        return _tidy((about, f"{about}: {whole}", whole))
    found = names(text)
    telling = [run for run in runs(text) if " " in run or not found]
    return _tidy((*found[: MAX_PHRASES - 3], whole, *telling))


def focus(turn: TurnContext) -> str:
    """What the turn asks, made whole: a follow-up comes with the topic of the conversation before it."""
    question = " ".join((turn.user_text or turn.final_input)[:_LOOK_AT].split())
    about = None if turn.media_text else topic(question, turn.history)
    return f"{about}: {question}" if about else question


def topic(message: str, history: tuple[PastMessage, ...]) -> str | None:
    """What a message is about that does not name its subject: what was named last; `None` where it names its own."""
    if not history or not _leans_on_history(message):
        return None
    recent = [(past.role == "user", past.text[:_LOOK_AT]) for past in reversed(history[-6:])]
    for by_user, text in recent:
        found = (names(text) or runs(text)) if by_user and not _leans_on_history(text) else _BOLD.findall(text)
        if found:
            return shorten(found[0], MAX_PHRASE // 2)
    said = next((names(text) for by_user, text in recent if not by_user), [])
    return shorten(said[0], MAX_PHRASE // 2) if said else None


def names(text: str) -> list[str]:
    """Quotations, runs of capitalised words and acronyms in brackets, longest first."""
    quoted = [one or two for one, two in _QUOTED.findall(text)]
    found = [*quoted, *sorted(_capitalised(text), key=lambda name: -len(name)), *_ACRONYM.findall(text)]
    return list(dict.fromkeys(" ".join(name.split()) for name in found))


def runs(text: str) -> list[str]:
    """Runs of neighbouring content words, of two or more words before single ones."""
    found: list[list[str]] = [[]]
    for token in _TOKEN.findall(text):
        if is_content(token.casefold()) and token[0].isalnum():
            found[-1].append(token)
        elif found[-1]:
            found.append([])
    phrases = [" ".join(run) for run in found if run]
    return sorted(dict.fromkeys(phrases), key=lambda phrase: " " not in phrase)


def _leans_on_history(message: str) -> bool:
    named = names(message)
    if any(" " in name for name in named):
        return False
    if _POINTER.search(message):
        return True
    subject = [word for word in words(message) if is_content(word)]
    return not named and (len(subject) < 2 or _OPENING.match(message) is not None)


def _capitalised(text: str) -> list[str]:
    """Names as they are written: capitals with small words between them, and a kind (`programme`) after them."""
    found: list[str] = []
    run: list[str] = []
    starts = True
    for token in [*_TOKEN.findall(text), "."]:
        folded = token.casefold()
        capital = token[0].isupper() and not (starts and folded in STOP_WORDS)
        if capital or (run and (folded in _INSIDE_A_NAME or token[0].isdigit())):
            run.append(token)
        elif run:
            found.extend(_closed(run, folded if folded in _KINDS else None, token))
            run = []
        starts = token in ".!?\n"
    return found


def _closed(run: list[str], kind: str | None, token: str) -> Iterable[str]:
    while run and run[-1].casefold() in _INSIDE_A_NAME:
        run.pop()
    if run and run[0].casefold() in STOP_WORDS and len(run) > 1:
        run = run[1:]
    if kind and run:
        run = [*run, token]
    name = " ".join(run)
    if len(run) > 1 or (name.isupper() and 2 <= len(name) <= 12) or (len(name) > 3 and name.casefold() not in STOP_WORDS):
        yield name


def _tidy(phrases: Iterable[str]) -> tuple[str, ...]:
    kept = dict.fromkeys(shorten(" ".join(phrase.split()), MAX_PHRASE) for phrase in phrases)
    return tuple(phrase for phrase in kept if phrase)[:MAX_PHRASES]


_MEDIA = 100_000
"""Characters of attached text that are looked at."""
_LONGEST = 420
"""Characters of one quoted sentence."""
_ITEMS, _OF_THE_FIRST, _OF_OTHERS = 2, 3, 1
_FIRST_CHOICE = 1.2
"""By how much another year's best sentence must score higher to be taken instead."""
_CLOSE = 0.6
"""A third sentence of a source is quoted where its score is no further than this share below that of the best."""
_NEAR = 0.7
"""An item further than this share below the best one is not quoted beside it."""
_EARLIER = "Earlier in this conversation"
_DOCUMENT = re.compile(r"^\[(document|image|audio): ([^\n]{1,300})\]\n(.*?)(?:^\[end of \1\]$|\Z)", re.M | re.S)
_ATTACHED = re.compile(
    r"\b(?:attach\w*|document|file|pdf|report|paper|page|upload\w*|summar\w*|this|slides?|spreadsheet"
    r"|image|picture|photo\w*|scan\w*|screenshot|audio|recording|voice|transcript|(?:is|was) said)\b",
    re.I,
)


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{'|'.join(patterns)})", re.I)


_HINTS = (
    (
        _any(
            r"\bfor\W*$",
            r"\bpurpose",
            r"\baims?\b",
            r"\bgoals?\b",
            r"\bobjectives?\b",
            r"\bwhat (?:is|are|does|do|was)\b",
            r"\babout\b",
        ),
        _any(
            *(r"\baims?\b", r"\bobjectives?\b", r"\bpurpose", r"\bgoals?\b", r"\bseeks? to\b", r"^to \w+", r"\bintended to\b"),
            *(r"\bwill (?:deliver|provide|enable|replace|create|build)", r"\bin order to\b", r"\bso that\b"),
            r"\b(?:delivers?|provides?|enables?|replaces?|supports?)\b",
        ),
    ),
    (
        _any(r"\bconfiden", r"\brat(?:ed|ings?)\b", r"\bstatus\b", r"\bon track\b"),
        _any(r"\bconfidence\b", r"\brat(?:ed|ings?)\b", r"\b(?:amber|green|red)\b"),
    ),
    (
        _any(r"\bdepartments?\b", r"\bwho (?:runs|owns|leads|delivers)\b", r"\brun by\b", r"\bresponsible\b", r"\bministry\b"),
        _any(r"\bdepartments?\b", r"\b(?:run|led|owned|delivered|sponsored) by\b", r"\bresponsible\b", r"\bministry\b"),
    ),
    (
        _any(r"\bcosts?\b", r"\bbudget", r"\bhow (?:much|expensive)\b", r"\bmoney\b", r"\bspend"),
        _any(r"[£$€]\s?\d", r"\bcosts?\b", r"\bbudget", r"\bgbp\b", r"\b\d[\d.,]*\s?(?:m|bn|million|billion)\b"),
    ),
    (
        _any(r"\bwhen\b", r"\bdates?\b", r"\bdeadline", r"\bhow long\b", r"\bfinish", r"\bschedule", r"\bdelay"),
        _any(r"\b(?:19|20)\d\d\b", r"\bend[- ]date", r"\bschedule", r"\bdelay", r"\bmilestone"),
    ),
    (
        _any(r"\brisks?\b", r"\bproblems?\b", r"\bchallenges?\b", r"\bissues?\b", r"\bwhy\b"),
        _any(r"\brisks?\b", r"\buncertain", r"\bchallenge", r"\bconstraint", r"\bissues?\b", r"\bdue to\b"),
    ),
)
"""What a question asks for, and the form that an answer to it has."""


@dataclass(frozen=True)
class Quote:
    """Sentences of one source."""

    title: str
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class _Source:
    title: str
    sentences: list[str]
    score: float


@dataclass(frozen=True)
class _Question:
    text: str
    terms: Terms
    answers: tuple[re.Pattern[str], ...]

    @staticmethod
    def of(text: str) -> _Question:
        return _Question(text, Terms.of(text), tuple(answer for hint, answer in _HINTS if hint.search(text)))


def quotes(question: str, media_text: str, memory: AugmentedMemoryContext | None, said: Sequence[str] = ()) -> list[Quote]:
    """Two to four sentences of at most two sources, best source first; empty where nothing fits.

    Args:
        question: what was asked, made whole (`phrases.focus`).
        media_text: text of the attached media, empty where there is none.
        memory: what retrieval handed back.
        said: what the user stated earlier in the conversation.
    """
    asked = _Question.of(question)
    found = [*_retrieved(asked, memory), *_attached(asked, media_text)] if memory else [*_attached(asked, media_text)]
    found += _stated(asked, said, found)
    sources = sorted((source for source in found if source.sentences), key=lambda source: -source.score)[:_ITEMS]
    weights = weigh(asked.terms, [asked.terms.found_in(line) for source in sources for line in source.sentences])
    limits = (_OF_THE_FIRST, *[_OF_OTHERS] * _ITEMS)
    return [Quote(source.title, _best(asked, weights, source, limit)) for source, limit in zip(sources, limits, strict=False)]


def _retrieved(asked: _Question, memory: AugmentedMemoryContext) -> Iterator[_Source]:
    """The best items that are near the best one, each title once."""
    items = rank_items(asked.text, memory)[: 2 * _ITEMS]
    titles: set[str] = set()
    for score, item in items:
        if score >= _NEAR * items[0][0] and item.title not in titles:
            titles.add(item.title)
            yield _Source(item.title, _told(asked, item, memory), score)


def _told(asked: _Question, item: ContextItem, memory: AugmentedMemoryContext) -> list[str]:
    """The sentences of an item and of what else was retrieved of its node: of the year that the item was chosen for, or
    of another year that answers clearly better. Years are not mixed, since they contradict each other."""
    node, chosen = node_year(item)
    years: dict[str, list[str]] = {chosen: sentences(item.text)}
    for other in (*memory.concepts, *memory.memory_units):
        same, year = node_year(other)
        if same == node and other.id != item.id:
            years.setdefault(year, []).extend(sentences(other.text))
    if chosen in asked.text:
        return years[chosen]
    even = dict.fromkeys(asked.terms.stems, 1.0)
    peaks = {year: max(_scores(asked, even, _Source(item.title, lines, 0.0)), default=0.0) for year, lines in years.items()}
    return years[max(peaks, key=lambda year: (peaks[year] * (_FIRST_CHOICE if year == chosen else 1.0), year))]


def notes(media_text: str) -> str:
    """What is said of attachments beside their text: that one could not be read."""
    return " ".join(_DOCUMENT.sub("", media_text[:_MEDIA]).split())[:_LONGEST]


def _attached(asked: _Question, media_text: str) -> Iterator[_Source]:
    """The attached documents that the question is about: it says so, or a sentence of one holds a third of its terms."""
    meant = not asked.terms.stems or _ATTACHED.search(asked.text) is not None
    for match in _DOCUMENT.finditer(media_text[:_MEDIA]):
        lines = sentences(match[3])
        share = max((len(asked.terms.found_in(line)) for line in lines), default=0) / (len(asked.terms.stems) or 1)
        if meant or share > 1 / 3:
            yield _Source(match[2], lines, share + (1.0 if meant else 0.0))


def _stated(asked: _Question, said: Sequence[str], found: Sequence[_Source]) -> list[_Source]:
    """What the user stated earlier, where one sentence of it holds most of the question, and more than any other source."""
    held = {line: len(asked.terms.found_in(line)) for line in said}
    elsewhere = max((len(asked.terms.found_in(line)) for source in found for line in source.sentences), default=0)
    most = max(held.values(), default=0)
    if most <= elsewhere or 2 * most <= len(asked.terms.stems):
        return []
    return [_Source(_EARLIER, [line for line in held if held[line] == most][-1:], 1.0)]


def _best(asked: _Question, weights: dict[str, float], source: _Source, limit: int) -> tuple[str, ...]:
    scores = _scores(asked, weights, source)
    order = sorted(range(len(scores)), key=lambda at: (-scores[at], at))
    kept = [at for place, at in enumerate(order[:limit]) if place < limit - 1 or scores[at] >= _CLOSE * scores[order[0]]]
    return tuple(shorten(source.sentences[at], _LONGEST) for at in sorted(kept))


def _scores(asked: _Question, weights: dict[str, float], source: _Source) -> list[float]:
    """How well each sentence answers: the terms that the title leaves open, the form of an answer, an early place."""
    stems = asked.terms.stems
    named = asked.terms.found_in(source.title)
    left_open = sum(weights[term] for term in stems - named)
    scores = []
    for at, line in enumerate(source.sentences):
        held = asked.terms.found_in(line)
        score = sum(weights[term] for term in held - named) / left_open if left_open else 0.0
        score += 0.15 * len(held) / (len(stems) or 1) + 0.3 / (1 + at)
        score += 0.45 * sum(answer.search(line) is not None for answer in asked.answers)
        scores.append(score if _adds(line, asked.terms) else 0.2 * score)
    return scores


def _adds(line: str, asked: Terms) -> bool:
    """Whether a sentence says more than the question did."""
    new = {stem(word) for word in words(line[:_LONGEST]) if is_content(word)} - asked.stems
    return len(new) >= 3


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

    async def route(self, turn: TurnContext, fault: Fault | None = None) -> Answer[RouteDecision]:
        """Answer courtesies and questions about itself at once; search memory for everything else (D-049)."""
        text = turn.user_text or turn.final_input
        if not turn.media_text and (kind := courtesy(text)):
            return Answer(RouteDecision(decision="respond_directly", direct_response=say(turn, kind)))
        history = () if turn.media_text else turn.history
        return Answer(RouteDecision(decision="query_memory", key_phrases=key_phrases(text, history)))

    async def compose(
        self, turn: TurnContext, draft: str | None, memory: AugmentedMemoryContext | None, fault: Fault | None = None
    ) -> Answer[ComposedReply]:
        """Reply with the draft, with quotations, or with the plain statement that nothing was found (D-107)."""
        stance, reason = _stance(turn.user_text, draft)
        reply = draft or self._quoted(turn, memory)
        return Answer(ComposedReply(user_response=reply, next_agent_directive=stance, directive_reasoning=reason))

    def _quoted(self, turn: TurnContext, memory: AugmentedMemoryContext | None) -> str:
        found = [_paragraph(quote) for quote in quotes(focus(turn), turn.media_text, memory, list_statements(turn))]
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
