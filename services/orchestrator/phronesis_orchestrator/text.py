"""Plain English text: words, stems, sentences, and the sentences that fit a question."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import snowballstemmer

_STEMMER = snowballstemmer.stemmer("english")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_SENTENCE_END = re.compile(
    r"[.!?。！？;:](?:(?<=[.!?])[\"')\]”’]*\s+(?=[\"'(\[“‘]?[A-Z0-9£$€•*–-])|(?<=[。！？])|(?<=[;:])\s+[-•–]\s+)"
)
"""The sign at the end of a sentence, which belongs to it, with what parts it from the next. All alternatives begin with one
class of characters, which is what a search can skip to."""
_ABBREVIATION = re.compile(r"(?:^|[\s(])(?:[A-Z]|e\.g|i\.e|cf|vs|approx|incl|No|Mr|Mrs|Ms|Dr|Prof|St|Ltd|Inc|Co|Fig|c)\.$")
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
        """The terms of `text`."""
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
    """The parts of a line between the ends of sentences."""
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
        question: what was asked.
        text: the source's text.
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
