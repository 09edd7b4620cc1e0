"""What can be known of somebody: the predicates of `content/predicates.yaml`, and the slot that a statement fills."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from phronesis_contracts.facts import FactKind, Statement

NEGATION = "not:"
"""What the value of a negated statement begins with."""
NOTED = "noted"
"""What a sentence is kept under that no other predicate says."""
IS = " is"
"""What an open predicate with one object ends in, such as `shoe size is`."""
CONTENT = files(__package__ or __name__) / "content"
_AROUND = re.compile(r"\s(?=(?:at|for|in|on|over|than|to|when|with|during|after|before)\s)")


@dataclass(frozen=True)
class Predicate:
    """What is known of one predicate."""

    name: str
    values: str
    """`one`, `many`, `topic` or `counted`."""
    list: bool = False
    """Whether several objects may be named at once."""
    kind: FactKind = FactKind.FACT
    thing: bool = False
    """Whether its object is a person, a thing or a place, and never a clause."""
    denials: bool = False
    """Whether that something is not so answers the question for what is: `I do not eat meat`."""


@cache
def read_content() -> dict[str, dict[str, Any]]:
    """Every content file by its name without the ending. All values are texts: `no` is a word of a language."""
    found = (file for file in CONTENT.iterdir() if file.name.endswith(".yaml"))
    return {
        file.name.removesuffix(".yaml"): yaml.load(file.read_text("utf-8"), Loader=yaml.BaseLoader)
        for file in sorted(found, key=lambda one: one.name)
    }


def language_files() -> list[dict[str, Any]]:
    """The content of each language."""
    return [raw for name, raw in read_content().items() if name != "predicates"]


@cache
def _known() -> tuple[dict[str, Predicate], dict[str, str]]:
    raw = read_content()["predicates"]["predicates"]
    found = {
        name: Predicate(
            name, told["values"], "list" in told, FactKind(told.get("kind", FactKind.FACT)), "thing" in told, "denials" in told
        )
        for name, told in raw.items()
    }
    return found, {other: name for name, told in raw.items() for other in told.get("same", ())}


@cache
def _relations() -> dict[str, bool]:
    """Each relation that any language names, with whether a person may have several of them."""
    found: dict[str, bool] = {}
    for told in language_files():
        for name, one in told["relations"].items():
            found[name] = found.get(name, False) or "many" in one
    return found


def beside(predicate: str) -> tuple[str, ...]:
    """Predicates that answer for one that is not known itself."""
    return tuple(read_content()["predicates"]["beside"].get(predicate, ()))


def related(relation: str) -> tuple[str, ...]:
    """A relation, and those that it stands for: children are sons and daughters too."""
    return (relation, *read_content()["predicates"]["groups"].get(relation, ()))


def is_relation(noun: str) -> bool:
    """Whether a noun is one for a person or an animal that somebody has."""
    return noun in _relations()


def predicate_of(name: str) -> Predicate:
    """The predicate of that name, or of one that stands for the same. An open one has one object where it ends in ` is`."""
    known, same = _known()
    plain = normalize(name)
    plain = same.get(plain, plain)
    if found := known.get(plain):
        return found
    if plain.endswith(IS):
        noun = plain.removesuffix(IS)
        relations = _relations()
        several = relations.get(noun, False)
        return Predicate(
            plain, "many" if several else "one", several, FactKind.RELATION if noun in relations else FactKind.FACT
        )
    return Predicate(plain, "many")


def known_name(name: str) -> str:
    """The name of a predicate as facts keep it: that of the content file for a listed one, else as it was said."""
    found = predicate_of(name).name
    return found if found in _known()[0] else name


def normalize(text: str) -> str:
    """`text` as it is compared: without capitals, full stops at its end, and doubled spaces."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split()).strip(" .,;:!\"'“”‘’")


def slot_of(statement: Statement) -> tuple[str, str]:
    """The slot of a statement, and its value there."""
    predicate, thing = predicate_of(statement.predicate), normalize(statement.object)
    told = NEGATION if statement.negated else ""
    place = f"{normalize(statement.subject)}|{predicate.name}"
    if predicate.values == "one":
        return place, told + thing
    if predicate.values == "topic":
        return f"{place}|{_topic_of(thing)}", told + thing
    if predicate.values == "counted" and _is_counted(thing):
        return f"{place}|{thing.split()[-1]}", told + thing
    return f"{place}|{thing}", told


def _topic_of(thing: str) -> str:
    parts = _AROUND.split(thing, maxsplit=1)
    words = parts[0].split()
    return " ".join([words[-1] if words else "", *parts[1:]])


@cache
def _numbers() -> frozenset[str]:
    return frozenset(normalize(one) for told in language_files() for one in told["numbers"])


def _is_counted(thing: str) -> bool:
    first = thing.split()[0] if thing.split() else ""
    return len(thing.split()) > 1 and (first.isdigit() or any(thing.startswith(f"{one} ") for one in _numbers()))
