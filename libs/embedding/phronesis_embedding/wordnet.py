"""WordNet: which words are kinds of which, which are opposites, and which are made of one another. English alone."""

from __future__ import annotations

import importlib.resources
import io
import json
from collections.abc import Callable, Iterator
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt

_MODELS = importlib.resources.files("phronesis_embedding") / "models"
_FORMS = (
    *(("ies", "y"), ("ves", "f"), ("ves", "fe"), ("es", ""), ("s", ""), ("ied", "y")),
    *(("ing", ""), ("ing", "e"), ("ed", ""), ("ed", "e"), ("d", ""), ("ier", "y"), ("iest", "y"), ("er", ""), ("er", "e")),
)
_GENERIC = 1_500
"""Synsets below one beyond which "is a kind of" says little; what a thing of everyday speech has below it is far less."""

_NARROW = 60
"""Synsets below one whose kinds exclude each other."""

Rows = npt.NDArray[np.uint32]


class WordNet:
    """Reads words' relations. Safe for several threads: it only reads.

    Args:
        data: the file's content; the packaged one by default.
        forms: a word, and the plain forms that it may stand for, the likeliest first.

    Raises `OSError`, `ValueError`, `KeyError`: the data is not there, or is no such data.
    """

    def __init__(self, data: bytes | None = None, forms: Callable[[str], Iterator[str]] | None = None) -> None:
        self._plain_forms = forms or _plain_forms
        raw = (_MODELS / "wordnet.npz").read_bytes() if data is None else data
        with np.load(io.BytesIO(raw), allow_pickle=False) as read:
            self._words: bytes = read["words"].tobytes()
            self._starts: Rows = read["word_starts"]
            self._verbs = read["verbs"]
            self._sense_starts: Rows = read["sense_starts"]
            self._senses: Rows = read["senses"]
            self._above_starts: Rows = read["above_starts"]
            self._above: Rows = read["above"]
            self._below = read["below"]
            self._links: dict[str, tuple[Rows, Rows]] = {name: (read[starts], read[name]) for name, starts in _LINKS.items()}
        self._find = lru_cache(20_000)(self._search)
        self._ancestors = lru_cache(20_000)(self._climb)
        self.is_a = lru_cache(50_000)(self._is_a)

    def _search(self, word: str) -> int:
        wanted, low, high = word.encode(), 0, len(self._verbs)
        while low < high:
            middle = (low + high) // 2
            found = self._word(middle)
            if found == wanted:
                return middle
            low, high = (middle + 1, high) if found < wanted else (low, middle)
        return -1

    def _word(self, row: int) -> bytes:
        return self._words[int(self._starts[row]) : int(self._starts[row + 1])]

    def lemma(self, word: str) -> int:
        """The row of a word, or of the plain form of what it is a form of; -1 where there is none."""
        return next((row for form in self._plain_forms(word) if (row := self._find(form)) >= 0), -1)

    def plain(self, word: str) -> str:
        """The plain form of a word; the word itself where it is not known."""
        row = self.lemma(word)
        return word if row < 0 else self._word(row).decode()

    def knows(self, word: str) -> bool:
        """Whether it is a word."""
        return self.lemma(word) >= 0

    def is_verb(self, word: str) -> bool:
        """Whether a word is a verb more often than anything else."""
        row = self.lemma(word)
        return row >= 0 and bool(self._verbs[row])

    def antonyms(self, word: str) -> frozenset[str]:
        """The opposites of a word, as plain forms."""
        return self._linked("antonyms", word)

    def derived(self, word: str) -> frozenset[str]:
        """What is made of a word, or it of them: `sale` for `sell`."""
        return self._linked("derived", word)

    def _linked(self, name: str, word: str) -> frozenset[str]:
        # A comparative is a word of its own at times: `harder` has the opposites of `hard`.
        starts, rows = self._links[name]
        known = {row for form in self._plain_forms(word) if (row := self._find(form)) >= 0}
        return frozenset(
            self._word(int(one)).decode() for row in known for one in rows[int(starts[row]) : int(starts[row + 1])]
        )

    def forms(self, word: str) -> frozenset[str]:
        """A word and all that it may be a form of."""
        return frozenset(form for form in self._plain_forms(word) if self._find(form) >= 0) | {word}

    def are_synonyms(self, one: str, other: str, most: int = 6) -> bool:
        """Whether two words share one of their commonest senses, of which there are as many as `most`."""
        x, y = self.lemma(one), self.lemma(other)
        return x >= 0 and y >= 0 and bool(set(self._senses_of(x, most)) & set(self._senses_of(y, most)))

    def are_siblings(self, one: str, other: str) -> bool:
        """Whether two words are different kinds of one narrow thing, as English and German are of languages."""
        x, y = self.lemma(one), self.lemma(other)
        if x < 0 or y < 0 or x == y:
            return False
        above = [self._narrow(self._senses_of(row, 2)) for row in (x, y)]
        return bool(above[0] & above[1]) and not self.are_synonyms(one, other)

    def _narrow(self, senses: list[int]) -> set[int]:
        first = {
            int(up)
            for sense in senses
            for up in self._above[int(self._above_starts[sense]) : int(self._above_starts[sense + 1])]
        }
        return {sense for sense in first if self._below[sense] <= _NARROW}

    def _senses_of(self, row: int, most: int) -> list[int]:
        # Nouns come first, at most three, and then verbs; the first senses are the commonest.
        return [int(one) for one in self._senses[int(self._sense_starts[row]) : int(self._sense_starts[row + 1])]][:most]

    def _climb(self, synset: int) -> frozenset[int]:
        seen, edge = {synset}, [synset]
        while edge:
            one = edge.pop()
            for up in self._above[int(self._above_starts[one]) : int(self._above_starts[one + 1])]:
                if int(up) not in seen:
                    seen.add(int(up))
                    edge.append(int(up))
        return frozenset(seen)

    def _is_a(self, word: str, kind: str) -> float:
        """How surely a word is a kind of another, from 0 to 1: less where the kind is as wide as `event`."""
        one, other = self.lemma(word), self.lemma(kind)
        if one < 0 or other < 0:
            return 0.0
        wanted = set(self._senses_of(other, 2))
        met = [sense for own in self._senses_of(one, 3) for sense in wanted & self._ancestors(own)]
        return max((0.95 if self._below[sense] <= _GENERIC else 0.6 for sense in met), default=0.0)


_LINKS = {"antonyms": "antonym_starts", "derived": "derived_starts"}


@cache
def load_wordnet() -> WordNet:
    """WordNet as it is packaged, read once."""
    return WordNet()


@cache
def _irregular() -> dict[str, str]:
    found: dict[str, str] = json.loads((_MODELS / "irregular.json").read_text("utf-8"))
    return found


def _plain_forms(word: str) -> Iterator[str]:
    if (regular := _irregular().get(word)) is not None:
        yield regular
    yield word
    for ending, plain in _FORMS:
        if word.endswith(ending) and len(word) - len(ending) >= 2:
            yield word[: -len(ending)] + plain
    for ending in ("ing", "ed", "er"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 3 and stem[-1] == stem[-2]:
            yield stem[:-1]
