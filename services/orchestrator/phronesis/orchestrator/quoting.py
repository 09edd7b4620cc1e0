"""Which sentences of the sources answer a question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from phronesis.contracts.memory import AugmentedMemoryContext, ContextItem

from .ranking import node_year, ranked, weigh
from .text import Terms, is_content, sentences, shorten, stem, words

_MEDIA = 200_000
"""Characters of attached text that are looked at."""
_LONGEST = 420
"""Characters of one quoted sentence."""
_ITEMS, _OF_THE_FIRST, _OF_OTHERS = 2, 3, 1
_CLOSE = 0.6
"""A third sentence of a source is quoted where its score is no further than this share below that of the best."""
_NEAR = 0.7
"""An item further than this share below the best one is not quoted beside it."""
_DOCUMENT = re.compile(r"^\[document: ([^\n]{1,300})\]\n(.*?)(?:^\[end of document\]$|\Z)", re.M | re.S)
_ATTACHED = re.compile(
    r"\b(?:attach\w*|document|file|pdf|report|paper|page|upload\w*|summar\w*|this|slides?|spreadsheet)\b", re.I
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


def quotes(question: str, media_text: str, memory: AugmentedMemoryContext | None) -> list[Quote]:
    """Two to four sentences of at most three sources, best source first; empty where nothing fits.

    Args:
        question: what was asked, made whole (`phrases.focus`).
        media_text: text of the attached media, empty where there is none.
        memory: what retrieval handed back.
    """
    asked = Terms.of(question)
    sources = _sources(question, asked, media_text, memory)
    found = [asked.found_in(line) for source in sources for line in source.sentences]
    weights = weigh(asked, found)
    result = []
    for place, source in enumerate(sources):
        best = _best(question, asked, weights, source, _OF_THE_FIRST if place == 0 else _OF_OTHERS)
        if best:
            result.append(Quote(source.title, best))
    return result


def _sources(question: str, asked: Terms, media_text: str, memory: AugmentedMemoryContext | None) -> list[_Source]:
    items = ranked(question, memory)[: 2 * _ITEMS] if memory else []
    result: list[_Source] = []
    for score, item in items:
        if score >= _NEAR * items[0][0] and item.title not in [source.title for source in result]:
            result.append(_Source(item.title, _told(item, memory), score))
    result.extend(_attached(question, asked, media_text))
    return sorted((source for source in result if source.sentences), key=lambda source: -source.score)[:_ITEMS]


def _told(item: ContextItem, memory: AugmentedMemoryContext | None) -> list[str]:
    """The sentences of an item, and of the other items of its node and year: a node may have a text for each property."""
    others = (*memory.concepts, *memory.memory_units) if memory else ()
    same = [other for other in others if node_year(other) == node_year(item) and other.id != item.id]
    return [line for one in (item, *same) for line in sentences(one.text)]


def notes(media_text: str) -> str:
    """What is said of attachments beside their text: that one could not be read."""
    return " ".join(_DOCUMENT.sub("", media_text[:_MEDIA]).split())[:_LONGEST]


def _attached(question: str, asked: Terms, media_text: str) -> Iterator[_Source]:
    """The attached documents that the question is about: it says so, or a sentence of one holds a third of its terms."""
    meant = not asked.stems or _ATTACHED.search(question) is not None
    for match in _DOCUMENT.finditer(media_text[:_MEDIA]):
        lines = sentences(match[2])
        share = max((len(asked.found_in(line)) for line in lines), default=0) / (len(asked.stems) or 1)
        if meant or share > 1 / 3:
            yield _Source(match[1], lines, share + (1.0 if meant else 0.0))


def _best(question: str, asked: Terms, weights: dict[str, float], source: _Source, limit: int) -> tuple[str, ...]:
    named = asked.found_in(source.title)
    answers = [answer for hint, answer in _HINTS if hint.search(question)]
    scores = [_score(line, at, asked, named, weights, answers) for at, line in enumerate(source.sentences)]
    order = sorted(range(len(scores)), key=lambda at: (-scores[at], at))
    kept = [at for place, at in enumerate(order[:limit]) if place < limit - 1 or scores[at] >= _CLOSE * scores[order[0]]]
    return tuple(shorten(source.sentences[at], _LONGEST) for at in sorted(kept))


def _score(
    line: str, at: int, asked: Terms, named: frozenset[str], weights: dict[str, float], answers: Sequence[re.Pattern[str]]
) -> float:
    """How well a sentence answers: the terms that the title leaves open, the form of an answer, and an early place."""
    held = asked.found_in(line)
    open_terms = sum(weights[term] for term in asked.stems - named)
    told = sum(weights[term] for term in held - named) / open_terms if open_terms else 0.0
    score = told + 0.15 * len(held) / (len(asked.stems) or 1)
    score += 0.45 * sum(answer.search(line) is not None for answer in answers) + 0.3 / (1 + at)
    return score * (1.0 if _adds(line, asked) else 0.2)


def _adds(line: str, asked: Terms) -> bool:
    """Whether a sentence says more than the question did."""
    new = {stem(word) for word in words(line[:_LONGEST]) if is_content(word)} - asked.stems
    return len(new) >= 3
