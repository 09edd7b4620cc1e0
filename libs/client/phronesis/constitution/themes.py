"""What made-up constitutions speak of, and how: the themes and patterns of the sample files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml


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
def themes() -> tuple[Theme, ...]:
    """All themes; those of one topic do not stand together, so that the first few of them are of several topics."""
    read = [_theme(row) for row in _file("themes.yaml")]
    within: dict[str, int] = {}
    turn = {}
    for one in read:
        turn[one.key] = within[one.topic] = within.get(one.topic, 0) + 1
    return tuple(sorted(read, key=lambda one: turn[one.key]))


@cache
def patterns() -> Patterns:
    """The sentences."""
    return Patterns(**_file("sentences.yaml"))


def _theme(row: dict[str, Any]) -> Theme:
    words = {slot: tuple(part.strip() for part in row[name].split(";")) for slot, name in _LISTS.items()}
    words |= {"about": (row["about"],), "unit": (row["unit"],)}
    return Theme(row["key"], row["topic"], row["unit"], words, (row["asked"][0], row["asked"][1]))


def _file(name: str) -> Any:
    return yaml.safe_load(files("phronesis").joinpath("samples", "constitution", name).read_text("utf-8"))
