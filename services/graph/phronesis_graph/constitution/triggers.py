"""What a rule watches for: plain words, or comparisons of fields. A small parser, and nothing of it is ever run as code."""

from __future__ import annotations

import operator
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol

from phronesis_contracts.constitution.kinds import Kind
from phronesis_contracts.constitution.registry import TYPES

_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
}
_COMPARISON = re.compile(
    r"""\s*(?P<path>[A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*)\s*(?P<sign><=|>=|==|!=|<|>|=)\s*"""
    r"""(?:(?P<number>-?\d+(?:\.\d+)?)(?![\w.-])|"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<word>[\w.:+-]+))\s*"""
)
_JOINT = re.compile(r"(and|&&)(?=\s)", re.IGNORECASE)
_MOST = 10
_LONGEST = 1_000
_WORD = re.compile(r"\w+")
_ENDINGS = ("ations", "ation", "ings", "ing", "ies", "ied", "ed", "es", "s", "ly", "y", "e")
_STEM = 3
"""Letters that a word keeps, whatever its ending."""
SPOKEN = frozenset({"title", "summary", "description", "properties"}) | {
    one.name for kind in TYPES.values() for one in kind.properties if one.kind in (Kind.TEXT, Kind.TEXTS)
}
"""Fields whose words count."""
_STOP = frozenset(
    "a an and any are as at be been before but by can do does done for from had has have if in into is it its may more must no"
    " nor not of off on or our out over shall should so such than that the their them then there these they this those to too"
    " under until up was we were when where which while who will with without would you your any all someone something".split()
)


@dataclass(frozen=True)
class Subject:
    """What is held against the rules."""

    fields: Mapping[str, Any]
    """As messages have them; `roi.total` is found inside `roi`, and what the type does not declare inside `properties`."""
    texts: tuple[str, ...]

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of all its words."""
        return stems("\n".join(self.texts))


class Trigger(Protocol):
    """What a rule watches for."""

    def because(self, subject: Subject) -> str | None:
        """Why it goes off, or `None` where it does not."""

    def reads(self, changed: frozenset[str]) -> bool:
        """Whether a change of these fields could set it off."""


@dataclass(frozen=True)
class Words:
    """All of these words stand in the texts, in whatever form and order."""

    words: tuple[str, ...]

    def because(self, subject: Subject) -> str | None:
        """See the protocol."""
        there = subject.stems
        return f"it speaks of {', '.join(self.words)}" if all(_stem(word) in there for word in self.words) else None

    def reads(self, changed: frozenset[str]) -> bool:
        """Any text may hold a word."""
        return bool(changed & SPOKEN)


@dataclass(frozen=True)
class Comparison:
    """A field compared with a value."""

    path: str
    sign: str
    value: float | str

    def because(self, subject: Subject) -> str | None:
        """See the protocol; a field that is not there, or is of another kind than the value, sets nothing off."""
        found = _at(subject.fields, self.path)
        if isinstance(self.value, float):
            comparable = isinstance(found, int | float) and not isinstance(found, bool)
            hit = comparable and _SIGNS[self.sign](found, self.value)
        else:
            hit = isinstance(found, str) and _SIGNS[self.sign](found.casefold(), self.value.casefold())
        return f"{self.path} is {_shown(found)} ({self.path} {self.sign} {_shown(self.value)})" if hit else None

    def reads(self, changed: frozenset[str]) -> bool:
        """Its own field alone sets it off, or the bag that holds it."""
        return bool(changed & {self.path.split(".")[0], "properties"})


@dataclass(frozen=True)
class Comparisons:
    """All of these comparisons hold."""

    parts: tuple[Comparison, ...]

    def because(self, subject: Subject) -> str | None:
        """See the protocol."""
        found = [part.because(subject) for part in self.parts]
        return " and ".join(one for one in found if one) if all(found) else None

    def reads(self, changed: frozenset[str]) -> bool:
        """Any of them may have been the last to hold."""
        return any(part.reads(changed) for part in self.parts)


def trigger(text: str) -> Trigger | None:
    """What a trigger says: `effortHours > 40 and type = task`, or else plain words; `None` where it says nothing."""
    text = text.strip()[:_LONGEST]
    if (parts := _comparisons(text)) is not None:
        return Comparisons(parts)
    words = tuple(dict.fromkeys(word for word in _WORD.findall(_folded(text)) if word not in _STOP))
    return Words(words) if words else None


def stems(text: str) -> frozenset[str]:
    """The stems of the words of a text."""
    return frozenset(_stem(word) for word in _WORD.findall(_folded(text)))


def _comparisons(text: str) -> tuple[Comparison, ...] | None:
    parts: list[Comparison] = []
    at = 0
    while len(parts) < _MOST and (found := _COMPARISON.match(text, at)):
        parts.append(_comparison(found))
        at = found.end()
        if at == len(text):
            return tuple(parts)
        joint = _JOINT.match(text, at)
        if joint is None:
            return None
        at = joint.end()
    return None


def _comparison(found: re.Match[str]) -> Comparison:
    if found["number"] is not None:
        return Comparison(found["path"], found["sign"], float(found["number"]))
    value = next(found[name] for name in ("double", "single", "word") if found[name] is not None)
    return Comparison(found["path"], found["sign"], value)


def _at(fields: Mapping[str, Any], path: str) -> Any:
    for root in (fields, fields.get("properties")):
        found: Any = root
        if isinstance(root, Mapping) and path in root:
            return root[path]
        for name in path.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None
        if found is not None:
            return found
    return None


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)[:60]


def _folded(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(sign for sign in decomposed if not unicodedata.combining(sign))


@lru_cache(maxsize=10_000)
def _stem(word: str) -> str:
    """A word without its ending, so that its forms meet; whether that is a word of the language does not matter."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _STEM:
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > _STEM and word[-1] == word[-2] else word
