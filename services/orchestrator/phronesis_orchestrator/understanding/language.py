"""A language as data: how its questions are put, from `content/<language>/questions.yaml`, and the pieces of a text."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from typing import Any

import simplemma
import snowballstemmer
import yaml
from rapidfuzz.distance import OSA

MAX_CHARS = 1_000
"""Characters of a message that rules read; a longer one is no question that they could answer."""
_TOKEN = re.compile(
    r"[^\W\d_]+n['’]t\b"  # isn't
    r"|['’]s\b|['’](?:re|ve|ll|d|m)\b"
    r"|\d{1,3}(?:[,.]\d{3})+(?![\d])(?:[.,]\d+)?|\d+[.,]\d+|\d+(?:st|nd|rd|th)\b"
    r"|\d+(?=[^\W\d_])|[^\W_]+"
    r"|<=|>=|[£$€%&<>=#]|(?<=\d)\s?[-–—/]\s?(?=\d{2,4}\b)"
)
_LATIN = {"ß": "ss", "æ": "ae", "ø": "o", "œ": "oe", "ł": "l", "đ": "d"}


@dataclass(frozen=True)
class Token:
    """One piece of a message."""

    text: str
    folded: str
    """In small letters and without accents."""
    stem: str
    start: int
    end: int


def fold(text: str) -> str:
    """A text in small letters without accents, its typographic quotes made plain."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    return "".join(_LATIN.get(c, c) for c in plain).replace("’", "'").replace("‘", "'")


_stemmers = threading.local()


@lru_cache(maxsize=100_000)
def _stem(stemmer: str, word: str) -> str:
    # A stemmer is not safe to share between threads.
    own = getattr(_stemmers, stemmer, None)
    if own is None:
        own = snowballstemmer.stemmer(stemmer)
        setattr(_stemmers, stemmer, own)
    return str(own.stemWord(word)) or word


@lru_cache(maxsize=20_000)
def _is_word(language: str, word: str) -> bool:
    try:
        return any(simplemma.is_known(form, lang=language) for form in dict.fromkeys((word, word.lower(), word.capitalize())))
    except ValueError:
        return False  # no dictionary of this language


@dataclass(frozen=True)
class Sense:
    """One meaning of a phrase: its kind, and the value of that kind."""

    kind: str
    value: Any = None


@dataclass(frozen=True)
class Language:
    """One language: its phrases by their stems, and its patterns of whole messages."""

    name: str
    stemmer: str
    phrases: Mapping[tuple[str, ...], tuple[Sense, ...]]
    patterns: tuple[tuple[str, str, re.Pattern[str]], ...]
    """Kind, value and pattern of messages that are recognised whole: `talk`, `compose` and `user`."""
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Phrases by kind, folded, where a rule needs them as words."""

    def stem(self, word: str) -> str:
        """The stem of a folded word; what holds a digit, is a sign or has three letters at most stays as it is."""
        return _stem(self.stemmer, word) if word.isalpha() and len(word) > 3 else word

    def tokens(self, text: str) -> tuple[Token, ...]:
        """The pieces of a text in order."""
        found = []
        for match in _TOKEN.finditer(text[:MAX_CHARS]):
            folded = fold(match.group()).strip()
            folded = {"&": "and", "–": "-", "—": "-"}.get(folded, folded)
            found.append(Token(match.group(), folded, self.stem(folded), match.start(), match.end()))
        return tuple(found)

    def is_word(self, word: str) -> bool:
        """Whether a dictionary has a word as it is written; `False` in a language without one.

        The first word of a language reads its dictionary: English 0.2 s and 30 MB, German 1.2 s and 110 MB.
        """
        return _is_word(self.name, word)

    def cues(self, name: str) -> frozenset[str]:
        """Folded words that a rule looks for as they stand; none where the language does not need the rule."""
        return self._cues.get(name, frozenset())

    @cached_property
    def _cues(self) -> Mapping[str, frozenset[str]]:
        return {name.removeprefix("cue."): frozenset(words) for name, words in self.words.items() if name.startswith("cue.")}

    def holds(self, text: str, phrases: Iterable[str]) -> bool:
        """Whether one of some folded phrases stands in a text, word for word."""
        said = f" {' '.join(token.folded for token in self.tokens(text))} "
        return any(f" {phrase} " in said for phrase in phrases)

    def senses_in(self, tokens: Sequence[Token]) -> Iterator[tuple[int, int, Sense]]:
        """The senses of every run of up to six words, with where the run begins and ends."""
        stems = tuple(token.stem for token in tokens)
        for at in range(len(stems)):
            for end in range(at + 1, min(at + _LONGEST_RUN, len(stems)) + 1):
                for sense in self.phrases.get(stems[at:end], ()):
                    yield at, end, sense

    def nearly(self, cue: str, word: str) -> bool:
        """Whether a word is one letter, or two swapped letters, off from a word of a cue; words of four letters or more."""
        return len(word) >= 4 and any(OSA.distance(word, one, score_cutoff=1) <= 1 for one in self.cues(cue) if len(one) >= 4)

    def key(self, phrase: str) -> tuple[str, ...]:
        """A phrase as it is looked up: its stems."""
        return tuple(token.stem for token in self.tokens(phrase))

    def recognise(self, text: str, kind: str) -> str | None:
        """The value of the first pattern of a kind that a whole message has; `None` where there is none."""
        plain = " ".join(re.sub(r"[^\w\s'%+*/=.-]", " ", fold(text)).split()).strip(" .-")
        found = next((value for of, value, pattern in self.patterns if of == kind and pattern.match(plain)), None)
        return found if found is not None or kind != "talk" else self._several(fold(text))

    def _several(self, text: str) -> str | None:
        """The last of several courtesies: great, thank you; ok, that's it, bye."""
        parts = [self._without_filler(part.strip()) for part in re.split(r"[,.;!?]+", text) if part.strip()]
        kinds = [next((value for of, value, one in self.patterns if of == "talk" and one.match(part)), None) for part in parts]
        said = [kind for kind, part in zip(kinds, parts, strict=True) if kind is not None or part not in self._fillers]
        return said[-1] if said and all(said) else None

    def _without_filler(self, part: str) -> str:
        first, _, rest = part.partition(" ")
        return rest if rest and first in self._fillers else part

    @property
    def _fillers(self) -> tuple[str, ...]:
        return self.words.get("filler", ())


_LONGEST_RUN = 6
"""Words of the longest phrase that a text is looked through for."""
_NESTED = ("question_words", "relative_years", "ordinals", "numbers", "multipliers", "months", "coverage")
_PATTERNS = ("talk", "compose", "order", "user")


def _listed(phrases: object) -> Iterator[str]:
    """The phrases of a list. Raises `ValueError`: one is empty, so that a bar is too many, or missing where a line goes on."""
    for one in str(phrases).split("|"):
        phrase = one.strip()
        if len(phrase) > 2 and phrase[0] == phrase[-1] == "'":
            phrase = phrase[1:-1]
        if not phrase:
            raise ValueError(f"an empty phrase in “{str(phrases)[:80]}”")
        yield phrase


def _pattern(phrase: str, *, whole: bool) -> str:
    parts = [re.escape(part.strip()) for part in phrase.split("...")]
    joined = r"\b.*\b".join(part for part in parts if part) if len([p for p in parts if p]) > 1 else "".join(parts)
    opened = phrase.startswith("...")
    closed = phrase.endswith("...") or not whole
    return (r".*\b" if opened else "") + joined + (r"\b.*" if closed else r"$")


def parse(data: Mapping[str, Any]) -> Language:
    """A language from its content file. Raises `ValueError`: a section is missing."""
    name, stemmer = str(data["language"]), str(data["stemmer"])
    bare = Language(name, stemmer, {}, ())
    phrases: dict[tuple[str, ...], tuple[Sense, ...]] = {}

    def add(phrase: str, sense: Sense) -> None:
        key = bare.key(phrase)
        if key and sense not in phrases.get(key, ()):
            phrases[key] = (*phrases.get(key, ()), sense)

    words: dict[str, tuple[str, ...]] = {}
    patterns: list[tuple[str, str, re.Pattern[str]]] = []
    for kind, body in data.items():
        if kind in ("language", "stemmer"):
            continue
        if kind in _PATTERNS:
            for value, listed in body.items():
                texts = [fold(one) for one in _listed(listed)]
                whole = kind == "talk" or value == "list"
                if kind == "user" and value in ("question", "statement"):
                    words[f"user.{value}"] = tuple(texts)
                    continue
                joined = "|".join(_pattern(text, whole=whole) for text in sorted(texts, key=len, reverse=True))
                patterns.append((kind, str(value), re.compile(f"(?:{joined})")))
        elif kind == "cues":
            words |= {f"cue.{value}": tuple(fold(one) for one in _listed(listed)) for value, listed in body.items()}
        elif kind in _NESTED or isinstance(body, Mapping):
            for value, listed in body.items():
                words[f"{kind}.{value}"] = tuple(fold(one) for one in _listed(listed))
                for phrase in _listed(listed):
                    add(phrase, Sense(kind, value))
        else:
            listed = tuple(_listed(body))
            words[kind] = tuple(fold(one) for one in listed)
            for phrase in listed:
                add(phrase, Sense(kind))
    return Language(name, stemmer, phrases, tuple(patterns), words)


@cache
def languages() -> Mapping[str, Language]:
    """Every language that has a content file, by its code."""
    folder = files("phronesis_orchestrator.understanding").joinpath("content")
    found = {}
    for one in sorted(folder.iterdir(), key=lambda each: each.name):
        file = one.joinpath("questions.yaml")
        if file.is_file():
            found[one.name] = parse(yaml.safe_load(file.read_text(encoding="utf-8")))
    return found


def detect(text: str, default: str = "en") -> Language:
    """The language of a message: the one that knows most of its words; `default` where none knows more."""
    known = languages()
    fallback = known.get(default) or next(iter(known.values()))
    scores = {code: _known_share(text, language) for code, language in known.items()}
    best = max(scores, key=lambda code: (scores[code], code == fallback.name))
    return known[best] if scores[best] > scores[fallback.name] else fallback


def _known_share(text: str, language: Language) -> float:
    tokens = [token for token in language.tokens(text) if token.folded.isalpha()]
    return sum(1 for token in tokens if token.folded in _own_words(language.name)) / (len(tokens) or 1)


@cache
def _own_words(code: str) -> frozenset[str]:
    """The words of a language's phrases, as they are written."""
    language = languages()[code]
    listed = (token.folded for phrases in language.words.values() for phrase in phrases for token in language.tokens(phrase))
    return frozenset(listed)
