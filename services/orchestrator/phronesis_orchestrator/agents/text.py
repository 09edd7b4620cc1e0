"""Plain English text: words, sentences, names, key phrases, courtesies, and which retrieved items a question is about."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import snowballstemmer

from phronesis_contracts.memory import AugmentedMemoryContext, ContextItem

from ..conversations.history import PastMessage
from ..models.reasoner import MAX_PHRASE, MAX_PHRASES, TurnContext

_STEMMER = snowballstemmer.stemmer("english")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_SENTENCE_END = re.compile(
    r"[.!?。！？;:](?:(?<=[.!?])[\"')\]”’]*\s+(?=[\"'(\[“‘]?[A-Z0-9£$€•*–-])|(?<=[。！？])|(?<=[;:])\s+[-•–]\s+)"
)
"""The sign at the end of a sentence, which belongs to it, with what parts it from the next. All alternatives begin with one
class of characters, which is what a search can skip to."""
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:[A-Z]|e\.g|i\.e|cf|vs|approx|incl|No|Mr|Mrs|Ms|Dr|Prof|St|Ltd|Inc|Co|Fig|c)\.$"
    r"|(?:,\s|(?:^|\s)[^\W\dA-Z]{2,3}\s)(?:[1-9]|[12]\d|3[01])\.$"
)
"""What ends with a full stop and no sentence with it, as the day of “vom 3. August” does."""
_TAIL = 10
"""Characters at the end of a sentence in which an abbreviation is looked for; the longest has seven."""
_WRAPPED = 50
"""Characters from which on a line without an end is taken for one that was broken to fit a page."""
_ENDED = re.compile(r"[.!?:;。！？][\"')\]”’]*\s*$")
_GOES_ON = re.compile(r"\s*[\"'(\[“‘£$€]?\w")
_LOOK_AT = 100_000
"""Characters of a text in which a snippet is looked for."""
_LONGEST = 2_000
"""Characters after which an abbreviation no longer joins what follows."""

STOP_WORDS = frozenset(
    """a about above after again all also am an and another any anything are as at be because been before being below both
    but by can cannot could did do does doing done down each either else ever every few for from further get gets give given
    go goes going got had has have having he hence her here hers him his how i if in into is it its itself just let like
    made make makes many may me might mine more most much must my no nor not now of off on once one only or other our ours
    out over own per please really same shall she should show since so some something such take tell than thank thanks that
    the their theirs them then there these they thing things this those through to told too under until up upon us use very
    was we well were what whatever when where whether which while who whom whose why will with within without would yes yet
    you your yours d ll m re s t ve don doesn didn isn aren wasn weren won wouldn can't i'm i'd i'll i've it's what's who's
    that's there's let's don't doesn't didn't isn't aren't know explain describe say said happen happens want need find
    look see mean means question answer""".split()
)
"""Words that carry no subject: English function words, question words and the verbs of asking."""


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """The stem of one case-folded word (Snowball's English)."""
    return str(_STEMMER.stemWord(word))


def words(text: str) -> list[str]:
    """The words of a text, case-folded."""
    return _WORD.findall(text.casefold().replace("’", "'"))


def is_content(word: str) -> bool:
    """Whether a case-folded word names something."""
    return word not in STOP_WORDS and (len(word) > 1 or word.isdigit() or not word.isascii())


@dataclass(frozen=True)
class Terms:
    """The stems of a question's content words, ready to be looked for in many texts."""

    stems: frozenset[str]
    heads: frozenset[str]
    """First two letters of each stem: only words that begin so are stemmed, which is what keeps a search cheap."""

    @staticmethod
    def of(text: str) -> Terms:
        stems = frozenset(stem(word) for word in words(text) if is_content(word))
        return Terms(stems, frozenset(one[:2] for one in stems))

    def found_in(self, text: str) -> frozenset[str]:
        """Which of the terms `text` holds."""
        return frozenset(stem(word) for word in words(text) if word[:2] in self.heads) & self.stems


def sentences(text: str) -> list[str]:
    """The sentences of a text, in order. Line ends and list marks end a sentence, abbreviations and wrapped lines do not."""
    result: list[str] = []
    for line in _unwrapped(text.splitlines()):
        going_on = False
        for piece in _pieces(line):
            short = " ".join(piece.split()).lstrip("-•– ")
            if going_on and short and len(result[-1]) < _LONGEST:
                result[-1] = f"{result[-1]} {short}"
            elif short:
                result.append(short)
            going_on = bool(result) and _ABBREVIATION.search(result[-1][-_TAIL:]) is not None
    return result


def _pieces(line: str) -> Iterator[str]:
    begin = 0
    for end in _SENTENCE_END.finditer(line):
        yield line[begin : end.start() + 1]
        begin = end.end()
    yield line[begin:]


def _unwrapped(lines: list[str]) -> list[str]:
    """Lines that were broken to fit a page, put together: a long one without an end goes on in the next that begins a word."""
    joined: list[str] = []
    wrapped = False
    for line in lines:
        if wrapped and _GOES_ON.match(line):
            joined[-1] = f"{joined[-1].rstrip()} {line.lstrip()}"
        else:
            joined.append(line)
        wrapped = len(line.strip()) >= _WRAPPED and _ENDED.search(line) is None
    return joined


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters of a text, cut between words, with `…` where it was cut."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    head, space, _ = cut.rpartition(" ")
    return (head if space and len(head) > limit // 2 else cut).rstrip(" ,;:") + "…"


def snippet(question: str, text: str, limit: int = 240) -> str:
    """The part of `text` that fits `question` best: its best sentence, and what follows it while there is room.

    Args:
        limit: greatest length, in characters.
    """
    found = sentences(text[:_LOOK_AT])
    if not found:
        return ""
    terms = Terms.of(question)
    best = max(range(len(found)), key=lambda at: (len(terms.found_in(found[at])), -at))
    window = found[best]
    for following in found[best + 1 :]:
        if len(window) + 1 + len(following) > limit:
            break
        window = f"{window} {following}"
    return shorten(window, limit)


_NODE = re.compile(r"^(?P<node>\w+/.+)/(?P<year>\d{4})(?:[/#:].*)?$")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_TEXT, _TITLE, _SCORE, _HOP = 0.4, 0.35, 0.25, 0.03
_NEWEST = 0.15
"""By how much an older year of a node must fit better than the newest."""


def rank_items(question: str, memory: AugmentedMemoryContext) -> list[tuple[float, ContextItem]]:
    """The items of `memory` with their rank from 0 to about 1, best first, one for each thing.

    Of a node with a text for each year, it is the year that fits.

    Args:
        question: what was asked, with the topic of the conversation where it depends on it (`focus`).
    """
    items = (*memory.concepts, *memory.memory_units)
    terms = Terms.of(question)
    titles = [terms.found_in(item.title) for item in items]
    found = [title | terms.found_in(item.text) for title, item in zip(titles, items, strict=True)]
    weights = weigh(terms, found)
    top = max((item.score for item in items), default=0.0) or 1.0
    scored = [
        (
            _TEXT * _share(weights, held)
            + _TITLE * _naming_share(weights, title, item)
            + _SCORE * item.score / top
            - _HOP * item.hop,
            item,
        )
        for item, title, held in zip(items, titles, found, strict=True)
    ]
    return _one_each(scored, set(_YEAR.findall(question)))


def weigh(terms: Terms, found: list[frozenset[str]]) -> dict[str, float]:
    """A weight for each term: the fewer of the texts hold it, the more it says."""
    counts = {term: sum(term in held for held in found) for term in terms.stems}
    return {term: math.log(1 + (len(found) + 1) / (count + 1)) for term, count in counts.items()}


def _share(weights: dict[str, float], held: frozenset[str]) -> float:
    return sum(weights[term] for term in held) / (sum(weights.values()) or 1.0)


def _naming_share(weights: dict[str, float], held: frozenset[str], item: ContextItem) -> float:
    """How far the question names the item: the share of its terms in the title, and of the title's terms in it."""
    own = Terms.of(item.title).stems
    return 0.5 * _share(weights, held) + 0.5 * len(held) / len(own) if own else 0.0


def _one_each(scored: list[tuple[float, ContextItem]], years: set[str]) -> list[tuple[float, ContextItem]]:
    """For each node the year that was asked for, else the newest, else one that fits clearly better than the newest."""
    newest: dict[str, str] = {}
    for _, item in scored:
        node, year = node_year(item)
        newest[node] = max(newest.get(node, ""), year)
    best: dict[str, tuple[tuple[bool, float], float, ContextItem]] = {}
    for score, item in scored:
        node, year = node_year(item)
        rank = (year in years, score + (_NEWEST if year == newest[node] else 0.0))
        if node not in best or rank > best[node][0]:
            best[node] = (rank, score, item)
    return sorted(((score, item) for _, score, item in best.values()), key=lambda pair: (-pair[0], pair[1].id))


def node_year(item: ContextItem) -> tuple[str, str]:
    """The thing that an item tells of, and the year that it tells of; no year where it is no node of the twin."""
    name = item.external_id or item.id
    match = _NODE.match(name)
    return (match["node"], match["year"]) if match else (name, "")


_LONGEST_MESSAGE = 2_000
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
        history: earlier messages, oldest first, where a follow-up finds its topic.
    """
    text = message[:_LONGEST_MESSAGE]
    whole = " ".join(text.split())
    about = topic(text, history)
    if about:
        return _tidy((about, f"{about}: {whole}", whole))
    found = names(text)
    telling = [run for run in runs(text) if " " in run or not found]
    return _tidy((*found[: MAX_PHRASES - 3], whole, *telling))


def focus(turn: TurnContext) -> str:
    """What the turn asks, made whole: a follow-up comes with the topic of the conversation before it."""
    question = " ".join((turn.user_text or turn.final_input)[:_LONGEST_MESSAGE].split())
    about = None if turn.media_text else topic(question, turn.history)
    return f"{about}: {question}" if about else question


def topic(message: str, history: tuple[PastMessage, ...]) -> str | None:
    """What a message is about that does not name its subject: what was named last; `None` where it names its own."""
    if not history or not _leans_on_history(message):
        return None
    recent = [(past.role == "user", past.text[:_LONGEST_MESSAGE]) for past in reversed(history[-6:])]
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
