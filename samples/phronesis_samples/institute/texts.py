"""What made-up nodes say: themes, sentences with slots, the same in other words, and what nodes carry beside their texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from importlib.resources import files
from random import Random
from typing import Any

import yaml

from phronesis_contracts.constitution.registry import Layer


@dataclass(frozen=True)
class Theme:
    """One subject, with words for it."""

    key: str
    topic: str
    unit: str
    words: Mapping[str, tuple[str, ...]]
    """By slot: about, verb, thing, trouble, gain, place, unit."""
    asked: tuple[str, str]
    """Two questions about it, in other words."""


@dataclass(frozen=True)
class Patterns:
    """Sentences with slots."""

    slots: Mapping[str, Sequence[str]]
    types: Mapping[str, Mapping[str, Sequence[str]]]
    oblique: Mapping[str, Sequence[str]]
    """For what belongs to a theme and does not name it."""
    closing: Sequence[str]
    review: Sequence[str]
    frames: Sequence[str]
    """Ways to say one and the same thing."""


_LISTS = {"verb": "verbs", "thing": "things", "trouble": "troubles", "gain": "gains", "place": "places"}


@cache
def read_themes() -> tuple[Theme, ...]:
    """All themes; those of one topic do not stand together, so that the first few of them are of several topics."""
    read = [_theme(row) for row in _file("themes.yaml")]
    within: dict[str, int] = {}
    turn = {}
    for one in read:
        turn[one.key] = within[one.topic] = within.get(one.topic, 0) + 1
    return tuple(sorted(read, key=lambda one: turn[one.key]))


@cache
def read_patterns() -> Patterns:
    """The sentences."""
    return Patterns(**_file("sentences.yaml"))


def _theme(row: dict[str, Any]) -> Theme:
    words = {slot: tuple(part.strip() for part in row[name].split(";")) for slot, name in _LISTS.items()}
    words |= {"about": (row["about"],), "unit": (row["unit"],)}
    return Theme(row["key"], row["topic"], row["unit"], words, (row["asked"][0], row["asked"][1]))


def _file(name: str) -> Any:
    return yaml.safe_load(files(__package__).joinpath(name).read_text("utf-8"))


class Wording:
    """Writes about one theme.

    Args:
        theme: what is written about.
        other: a theme that is mentioned in passing.
        random: what chooses.
    """

    def __init__(self, theme: Theme, other: Theme, random: Random) -> None:
        self._theme, self._other, self._random = theme, other, random

    def fields(self, type: str) -> dict[str, str]:
        """Title, summary and the other texts of a node of a type; a text may be left out."""
        made = {name: self.text(of) for name, of in read_patterns().types[type].items()}
        return {name: text for name, text in made.items() if text}

    def oblique(self) -> dict[str, str]:
        """Title and summary that never name the theme."""
        return {name: self.text(of) for name, of in read_patterns().oblique.items()}

    def closing(self) -> str:
        """A sentence more."""
        return self.text(read_patterns().closing)

    def review(self) -> str:
        """What was said when a node was looked at again."""
        return self.text(read_patterns().review)

    def text(self, of: Sequence[str], said: Mapping[str, str] | None = None) -> str:
        """One of some patterns, filled, with capitals where sentences begin. A pattern without slots is a word of a list.

        Args:
            of: the patterns.
            said: what stands in some of the slots.
        """
        pattern = self._random.choice(of)
        slots = _Slots(self._theme, self._other, self._random)
        slots.update(said or {})
        filled = pattern.format_map(slots)
        return _capitals(filled) if filled != pattern else filled


class _Slots(dict[str, str]):
    """Fills each slot when it is first asked for, so that a slot that stands twice says the same twice."""

    def __init__(self, theme: Theme, other: Theme, random: Random) -> None:
        super().__init__()
        self._theme, self._other, self._random = theme, other, random

    def __missing__(self, slot: str) -> str:
        name = slot.removesuffix("2")
        self[slot] = found = self._drawn(name, avoiding=self.get(name))
        return found

    def _drawn(self, name: str, avoiding: str | None) -> str:
        if name in ("n", "m"):
            return str(self._number(name))
        if name == "elsewhere":
            return self._random.choice(self._other.words["thing"])
        choices = self._theme.words.get(name) or read_patterns().slots[name]
        found = self._random.choice(choices)
        while found == avoiding:
            found = self._random.choice(choices)
        return found

    def _number(self, name: str) -> int:
        """`m` is the more of the two."""
        return self._random.randint(3, 47) if name == "n" else int(self.get("n", "10")) + self._random.randint(2, 52)


def _capitals(text: str) -> str:
    parts = text.split(". ")
    return ". ".join(part[:1].upper() + part[1:] for part in parts)


_WORDS = {
    " the ": " our ",
    " and ": " as well as ",
    " they ": " these people ",
    " it ": " this ",
    " with ": " together with ",
    " to ": " so as to ",
    " for ": " in favour of ",
    " is ": " stays ",
    " who ": " that ",
    " of ": " out of ",
}
_BEFORE = ("Once more: ", "Again: ", "As said: ", "To repeat: ", "Still: ")


def restate(fields: dict[str, Any], random: Random) -> dict[str, Any]:
    """Texts with a word or two changed in each."""
    made = {name: _swap_words(text, random) if isinstance(text, str) else text for name, text in fields.items()}
    title = str(made["title"])
    return made | {"title": random.choice(_BEFORE) + title[:1].lower() + title[1:]}


def _swap_words(text: str, random: Random) -> str:
    there = [word for word in _WORDS if word in text]
    if not there:
        return text
    word = random.choice(there)
    return text.replace(word, _WORDS[word], 1)


_REVIEWS = 11
"""Of each node of the foundation, in each of two bags."""
_PERSON = {"hours": "36 a week", "answers": "short first, then the evidence", "language": "plain"}


def make_bags(type: str, layer: Layer, theme: Theme, wording: Wording, random: Random, as_of: date) -> dict[str, Any]:
    """`metadata` and `provenance` of a node, and for some types `properties`."""
    tags = [theme.topic, random.choice(theme.words["thing"])]
    origin = random.choice(("workshop", "minutes", "field book", "mail", "interview", "import"))
    made: dict[str, Any] = {"metadata": {"tags": tags}, "provenance": {"origin": origin}}
    if type in ("human", "ai"):
        made["properties"] = dict(_PERSON)
    if layer is Layer.FOUNDATION:
        made["properties"] = made.get("properties", {}) | {"reviews": _reviews(wording, random, as_of)}
        made["metadata"]["discussions"] = _reviews(wording, random, as_of)
    return made


def _reviews(wording: Wording, random: Random, as_of: date) -> list[dict[str, str]]:
    days = sorted(random.sample(range(30, 2_000), _REVIEWS), reverse=True)
    return [{"on": (as_of - timedelta(days=day)).isoformat(), "said": wording.review()} for day in days]


_FAMILIES = 15


def make_families(seed: int) -> list[list[str]]:
    """Families of texts, each about one thing of a theme of its own; the same seed gives the same texts."""
    random = Random(f"families {seed}")
    chosen = random.sample(read_themes(), _FAMILIES)
    made = []
    for theme in chosen:
        said = {slot: random.choice(words) for slot, words in theme.words.items()}
        wording = Wording(theme, theme, random)
        made.append([wording.text((frame,), said) for frame in read_patterns().frames])
    return made
