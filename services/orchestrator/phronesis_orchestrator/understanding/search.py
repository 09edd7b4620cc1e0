"""Passages that answer a question: quoted where they hold what it asks for, and nothing where they do not."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from phronesis_contracts.memory import AugmentedMemoryContext, ContextItem

from ..agents.text import node_year, sentences, shorten
from .language import Language, fold

_SUPPORT = 0.7
"""The share of a question's telling words that a source has to hold, in its title and a few of its sentences together."""
_NAMES = 0.99
"""The same for its names and numbers: a source that lacks one is about something else."""
_QUOTED = 3
"""Sentences that are quoted of the best source."""
_OTHERS = 1
"""Sentences that are quoted of another one."""
_NEAR = 0.85
"""A second source is quoted where it supports the question so well as this share of the best."""
_LONGEST = 420
"""Characters of one quoted sentence."""
_SENTENCE_END = re.compile(r"[.!?]\s+(?=\S)")
_LOOK_AT = 400
"""Sentences of one source that are looked at."""


@dataclass(frozen=True)
class Passage:
    """A text that may hold the answer."""

    id: str
    title: str
    text: str
    kind: str
    score: float = 0.0
    place: str = ""
    """Page, sheet or heading, as a reader knows it."""

    @property
    def label(self) -> str:
        """Where it is from, as it is cited."""
        return f"{self.title}, {self.place}" if self.place else self.title


@dataclass(frozen=True)
class Quote:
    """Sentences of one source that support the question."""

    passage: Passage
    sentences: tuple[str, ...]
    support: float
    """The share of the question's telling words that they and the title hold, 0 to 1."""


@dataclass(frozen=True)
class _Terms:
    weights: dict[str, float]
    names: frozenset[str]


def quote(
    question: str, passages: Sequence[Passage], language: Language, *, given: bool = False, fewest: int = 2
) -> tuple[Quote, ...]:
    """The best sources with their best sentences, at most two; empty where none supports the question.

    Args:
        given: whether the person gave these texts to read: a question without telling words ("what does it say?") is then
            about them, and their first sentences are quoted.
        fewest: telling words that a question needs elsewhere, unless it has a name or a number.
    """
    texts = [_source_stems(passage, language) for passage in passages]
    terms = _terms(question, texts, language)
    if not given and len(terms.weights) < fewest and not terms.names:
        return ()
    found = [one for one in (_best(passage, terms, language) for passage in passages) if one is not None]
    found.sort(key=lambda one: (-round(one.support, 1), -one.passage.score))
    if not found:
        return ()
    best = found[0]
    other = next(
        (one for one in found[1:] if one.support >= _NEAR * best.support and one.passage.label != best.passage.label), None
    )
    if other is None or terms.names:
        return (best,)
    return (best, Quote(other.passage, other.sentences[:_OTHERS], other.support))


def _terms(question: str, texts: Sequence[frozenset[str]], language: Language) -> _Terms:
    """The telling words of a question, weighted by how few of the sources hold them, and its names and numbers.

    Of what is said before the question itself (“I'm afraid of X. What is it?”), only words that a source holds count.
    """
    weights: dict[str, float] = {}
    names: set[str] = set()
    asked = max((match.end() for match in _SENTENCE_END.finditer(question.strip())), default=0)
    for n, token in enumerate(language.tokens(question)):
        if not _tells(token.folded, token.stem, language):
            continue
        held = sum(token.stem in text for text in texts)
        if token.end <= asked and not held:
            continue
        weights[token.stem] = math.log(1 + (len(texts) + 1) / (held + 0.5))
        if token.folded[:1].isdigit() or (n > 0 and token.text[:1].isupper() and language.name != "de"):
            names.add(token.stem)
    return _Terms(weights, frozenset(names))


_SILENT = frozenset(
    """small question_words detail list also follow_up existence pronoun_one pronoun_many concept purpose scope yes_or_no
    group document year_word""".split()
)
"""Kinds of words that carry no subject."""


def _tells(folded: str, stem: str, language: Language) -> bool:
    if not any(c.isalnum() for c in folded) or folded in ("'s", "s"):
        return False
    if folded in language.cues("telling"):
        return True  # a plan passes over it; a text may say it
    senses = language.phrases.get((stem,), ())
    return not senses or not any(sense.kind in _SILENT for sense in senses)


def _source_stems(passage: Passage, language: Language) -> frozenset[str]:
    return frozenset(language.stem(word) for word in _words(f"{passage.title} {passage.text}"))


def _words(text: str) -> list[str]:
    return [word for word in "".join(c if c.isalnum() else " " for c in fold(text)).split() if word]


def _best(passage: Passage, terms: _Terms, language: Language) -> Quote | None:
    listed = sentences(passage.text)[:_LOOK_AT]
    if not listed:
        return None
    if not terms.weights:
        return Quote(passage, tuple(shorten(one, _LONGEST) for one in listed[:_QUOTED]), _SUPPORT)
    title = {language.stem(word) for word in _words(passage.title)}
    held = [{language.stem(word) for word in _words(line)} & terms.weights.keys() for line in listed]
    chosen: list[int] = []
    covered = title & terms.weights.keys()
    while len(chosen) < _QUOTED:
        gains = [
            (sum(terms.weights[t] for t in held[n] - covered), len(held[n]), -n) for n in range(len(listed)) if n not in chosen
        ]
        if not gains:
            break
        gain, size, place = max(gains)
        if (chosen and gain <= 0) or size == 0:
            break
        chosen.append(-place)
        covered = covered | held[-place]
    if not chosen:
        return None
    whole = sum(terms.weights.values())
    support = sum(terms.weights[t] for t in covered) / whole
    named = not terms.names or len(terms.names & covered) >= _NAMES * len(terms.names)
    if support < _SUPPORT or not named:
        return None
    return Quote(passage, tuple(shorten(listed[n], _LONGEST) for n in sorted(chosen)), round(support, 4))


_DOCUMENT = re.compile(r"^\[(document|image|audio): ([^\n]{1,300})\]\n(.*?)(?:^\[end of \1\]$|\Z)", re.M | re.S)


def attached(media_text: str) -> list[Passage]:
    """The texts of the attachments of the message at hand."""
    return [Passage(match[2], match[2], match[3], match[1], 1.0) for match in _DOCUMENT.finditer(media_text)]


def passages_of(memory: AugmentedMemoryContext | None) -> list[Passage]:
    """What retrieval found, as passages: of a thing with a text for each year, the newest first."""
    if memory is None:
        return []
    found = [_passage(item) for item in (*memory.memory_units, *memory.concepts)]
    return sorted(found, key=lambda one: (-one.score, one.id))


def _passage(item: ContextItem) -> Passage:
    _, year = node_year(item)
    return Passage(item.external_id or item.id, item.title, item.text, item.kind, item.score, year)
