"""What rules in words read: texts made plain, split into clauses, and held against WordNet and a list of cues."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from itertools import product
from typing import Any

import yaml

from phronesis_embedding.wordnet import WordNet

CONTENT = files("phronesis_graph") / "content"
_ENDINGS = ("ations", "ation", "ings", "ing", "ies", "ied", "ed", "es", "s", "ly", "y", "e")
_STEM = 3
"""Letters that a word keeps, whatever its ending."""
_FORMS = (
    *(
        ("ies", "y"),
        ("ves", "f"),
        ("ves", "fe"),
        ("es", ""),
        ("s", ""),
        ("ied", "y"),
        ("ing", ""),
        ("ing", "e"),
        ("ed", ""),
        ("ed", "e"),
    ),
    ("d", ""),
)


def plain_forms(word: str) -> Iterator[str]:
    """A word, and what it may be a form of, as rules and writes are read."""
    yield word
    if (regular := load_cues().given["irregular"].get(word)) is not None:
        yield regular
    for ending, plain in _FORMS:
        if word.endswith(ending) and len(word) - len(ending) >= 2:
            yield word[: -len(ending)] + plain
    for ending in ("ing", "ed"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 3 and stem[-1] == stem[-2]:
            yield stem[:-1]


@lru_cache(maxsize=20_000)
def cut_ending(word: str) -> str:
    """A word without its ending, so that its forms meet; whether that is a word of the language does not matter."""
    word = load_cues().given["irregular"].get(word, word)
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _STEM:
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > _STEM and word[-1] == word[-2] else word


Phrase = tuple[str, ...]


@dataclass(frozen=True)
class Cues:
    """The words of `guardrails.yaml`: sets of words, and phrases in which `*` stands for some words."""

    given: Mapping[str, Any] = field(repr=False)

    def words(self, name: str) -> frozenset[str]:
        return _words_of(self, name)

    def phrases(self, name: str) -> tuple[Phrase, ...]:
        """The longest first."""
        return _phrases_of(self, name)

    @cached_property
    def every(self) -> frozenset[str]:
        """All words of the lists."""
        lists = " ".join(value for value in self.given.values() if isinstance(value, str))
        return frozenset(fold(lists).replace("|", " ").split())

    @cached_property
    def stems(self) -> frozenset[str]:
        """All words of the lists without their endings."""
        return frozenset(map(cut_ending, self.every))

    def __hash__(self) -> int:
        return id(self.given)


@lru_cache(maxsize=256)
def _words_of(cues: Cues, name: str) -> frozenset[str]:
    return frozenset(fold(str(cues.given[name])).split())


@lru_cache(maxsize=256)
def _phrases_of(cues: Cues, name: str) -> tuple[Phrase, ...]:
    found = [tuple(fold(part).split()) for part in str(cues.given[name]).split("|")]
    return tuple(sorted((one for one in found if one), key=len, reverse=True))


@cache
def load_cues() -> Cues:
    """The cues as they are packaged."""
    return Cues(yaml.safe_load((CONTENT / "guardrails.yaml").read_text("utf-8")))


def fold(text: str) -> str:
    """Lower case without accents, so that a word meets its other spellings."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(sign for sign in decomposed if not unicodedata.combining(sign))


_PAIR = re.compile(r"(?<![\w.])([^\W\d_])[ .\-_·*/+~,|]([^\W\d_])(?![\w.])")
_SPACED = re.compile(r"(?<![^\W_])[^\W_]([ .\-_·*/+~,|])[^\W_](?:\1[^\W_])+(?![\w@$!])")
_NUMBER_LIKE = re.compile(r"\d[\doil]*(?:[.:,]\d[\doil]*|[.:,][oil\d]{2})*(?![^\W\d_])")
_KEPT = re.compile(r"\d+(?:[a-z°]{1,2}|min|mins|hrs?|pct|kwh)|[a-z]{1,3}\d+|\d+(?:st|nd|rd|th)|v\d+")
_MIXED = re.compile(r"[^\W_]*[\w@$!|€]*[^\W_]")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def plain(text: str, knows: WordNet | None = None) -> str:
    """A text as it reads to a person: without hidden signs, look-alikes of letters, digits for letters or letters spelt apart.

    Args:
        text: any text.
        knows: tells words from what is none, so that `r3al` is read as `real` and `b2b` left alone.
    """
    text = unicodedata.normalize("NFKC", text)
    text = "".join(sign for sign in text if unicodedata.category(sign) not in ("Cf", "Mn", "Me", "Co", "Cs", "Cn"))
    text = fold(text).translate(_look_alikes())
    text = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").replace("`", "'")
    text = re.sub(r"[\N{HYPHEN}-\N{HORIZONTAL BAR}\N{MINUS SIGN}]", "-", text)
    text = _NUMBER_LIKE.sub(_read_number, text)
    text, spelt = _SPACED.subn(lambda found: _join(found[0], found[1], knows), text)
    if spelt:
        text = _PAIR.sub(lambda found: found[1] + found[2] if _is_known(found[1] + found[2], knows) else found[0], text)
    return _MIXED.sub(lambda found: _read_stand_ins(found[0], knows), text)


@cache
def _look_alikes() -> dict[int, str]:
    return {ord(sign): str(letter) for sign, letter in load_cues().given["confusables"].items() if len(sign) == 1}


def _read_number(found: re.Match[str]) -> str:
    before = found.string[found.start() - 1 : found.start()]
    if before.isalpha() or before in ("-", "_", "@"):
        return found[0]
    return found[0].translate(str.maketrans("oil", "011"))


def _join(text: str, separator: str, knows: WordNet | None) -> str:
    letters = [one for one in text.split(separator) if one]
    if sum(one.isalpha() for one in letters) * 2 <= len(letters) or any(len(one) > 1 for one in letters):
        return text
    joined = "".join(letters)
    if separator == "." and len(joined) <= 3 and not _is_known(joined, knows):
        return text  # `e.g.`, `a.m.`
    if knows is None or separator != " " or knows.knows(joined):
        return joined
    return " ".join(_cut_words(joined, knows))


def _cut_words(letters: str, knows: WordNet) -> list[str]:
    """The fewest words that a row of letters is made of; the row itself where it is made of none."""
    letters = letters[:120]
    best: list[list[str] | None] = [[], *([None] * len(letters))]
    for end in range(1, len(letters) + 1):
        for start in range(max(0, end - 20), end):
            part, before = letters[start:end], best[start]
            if before is None or not (is_word(part, knows) if len(part) > 1 else part in "ai"):
                continue
            if best[end] is None or len(before) + 1 < len(best[end] or ()):
                best[end] = [*before, part]
    return best[-1] or [letters]


def _is_known(text: str, knows: WordNet | None) -> bool:
    return text in load_cues().every or (knows is not None and knows.knows(text))


def is_word(text: str, knows: WordNet) -> bool:
    """Whether something is a word, those that stand between others included."""
    return _is_known(text, knows)


def _read_stand_ins(word: str, knows: WordNet | None) -> str:
    signs = {str(sign): str(letters) for sign, letters in load_cues().given["stand_ins"].items()}
    there = [sign for sign in word if sign in signs]
    if not there or len(there) > 6 or sum(sign.isalpha() for sign in word) < 1 or _KEPT.fullmatch(word):
        return word
    read = ["".join(one) for one in product(*(signs.get(sign, sign) for sign in word))]
    if knows is not None and (known := next((one for one in read if is_word(one, knows)), None)):
        return known
    inside = any(sign in signs for sign in word[1:-1])
    return (
        read[0] if (inside or len(word) > 5) and len(word) > 3 and sum(sign.isalpha() for sign in word) > len(there) else word
    )


@dataclass(frozen=True)
class Segment:
    """A sentence, or a field with what it holds.

    Attributes:
        words: in order, punctuation among them.
        key: the words of the field's name, which stand first among `words`; 0 where its name says nothing.
        empty: the field says that there is none of what its name means.
    """

    words: tuple[str, ...]
    key: int = 0
    empty: bool = False


_TOKEN = re.compile(r"\d{4}-\d\d-\d\d|\d+(?:[.:,]\d+)*|n't\b|[^\W\d_]+(?:'(?!s\b)[^\W\d_]+)?|[%€$£°]|[.,;:!?()]")
_AGES = re.compile(r"\b(?:(under|over|u)-?(\d{1,2})s?|(under|over) (\d{1,2})s|(aged) (\d{1,2}))\b")
_CONTRACTED = re.compile(r"\b([a-z]+?)n'?t\b")
_CONTRACTABLE = frozenset("do does did is are was were has have had wo wi ca could should would must need".split())
_NO_NAME = frozenset(
    ("title", "summary", "description", "narrative", "statement", "notes", "note", "text", "comment", "properties")
)


def _read_age(found: re.Match[str]) -> str:
    how, years = next((found[n], int(found[n + 1])) for n in (1, 3, 5) if found[n])
    ages = load_cues().given["ages"]
    young = years <= ages["limit"] if how != "over" else years < ages["limit"]
    return f"{found[0]} {ages['below'] if young else ages['above']}"


def split_words(text: str) -> list[str]:
    """The words of a plain text; `won't` is `wo n't`."""
    text = _AGES.sub(_read_age, re.sub(r"\s-+\s", " , ", text))
    text = re.sub(r"\ba\.\s?m\b\.?", "am", re.sub(r"\bp\.\s?m\b\.?", "pm", text))
    text = _CONTRACTED.sub(lambda found: f"{found[1]} n't" if found[1] in _CONTRACTABLE else found[0], text)
    return [word for word in _TOKEN.findall(re.sub(r"'s\b|(?<=s)'(?=\W|$)", "", text))]


def split_sentences(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Words by sentence, each with the sign that ends it."""
    begun = 0
    for at, word in enumerate(words):
        if word in ".;:!?" and at + 1 > begun:
            yield tuple(words[begun : at + 1])
            begun = at + 1
    if begun < len(words):
        yield tuple(words[begun:])


def read_segments(fields: Mapping[str, Any], knows: WordNet) -> tuple[Segment, ...]:
    """What a node says, field by field; the names of fields count as words."""
    empty = {fold(one.strip()) for one in str(load_cues().given["empty"]).split("|")}
    found: list[Segment] = []
    for name, value in _walk(fields):
        said = value if isinstance(value, str) else str(value).casefold() if isinstance(value, bool) else f"{value:g}"
        text = plain(said, knows)
        key = () if name.casefold() in _NO_NAME else tuple(split_words(plain(_CAMEL.sub(" ", name).replace("_", " "), knows)))
        words = split_words(text)
        denied = bool(key) and (text.strip() in empty or any(text.startswith(f"{one},") for one in empty))
        for number, sentence in enumerate(split_sentences(words) if words else [()]):
            if number == 0 and key:
                found.append(Segment((*key, ":", *sentence), len(key), denied))
            elif sentence:
                found.append(Segment(sentence))
    return tuple(found)


def _walk(value: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _walk(one, str(key), depth + 1)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _walk(one, name, depth + 1)
    elif isinstance(value, str | bool | int | float):
        yield name, value


def match_phrase(words: Sequence[str], at: int, phrase: Phrase, *, forms: bool = False) -> int:
    """How many words from `at` on a phrase takes up; 0 where it is not there. `forms`: its first word may be inflected."""
    place = at
    for number, part in enumerate(phrase):
        if part == "*":
            following = phrase[number + 1]
            for later in range(place + 1, min(place + 7, len(words))):
                if words[later] in ".;:!?":
                    return 0
                if words[later] == following:
                    place = later
                    break
            else:
                return 0
        elif place < len(words) and (words[place] == part or (forms and number == 0 and part in _forms_of(words[place]))):
            place += 1
        else:
            return 0
    return place - at


@lru_cache(maxsize=20_000)
def _forms_of(word: str) -> frozenset[str]:
    return frozenset(plain_forms(word))


def find_phrase(words: Sequence[str], at: int, phrases: Iterable[Phrase], *, forms: bool = False) -> int:
    """The length of the longest of some phrases at a place; 0 where none stands there."""
    return next((taken for one in phrases if (taken := match_phrase(words, at, one, forms=forms))), 0)


def find_cue(words: Sequence[str], at: int, name: str, *, forms: bool = False) -> int:
    """The length of the longest phrase of a list of cues at a place; 0 where none stands there."""
    if at >= len(words):
        return 0
    by = _by_first_word(load_cues(), name)
    firsts = {words[at], *(_forms_of(words[at]) if forms else ())}
    return max((match_phrase(words, at, one, forms=forms) for first in firsts for one in by.get(first, ())), default=0)


@lru_cache(maxsize=256)
def _by_first_word(cues: Cues, name: str) -> dict[str, list[Phrase]]:
    found: dict[str, list[Phrase]] = {}
    for one in cues.phrases(name):
        found.setdefault(one[0], []).append(one)
    return found
