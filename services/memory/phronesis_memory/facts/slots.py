"""Slots: what there can be one value of at a time. Two values of one slot contradict each other."""

from __future__ import annotations

import re
import unicodedata

from phronesis_contracts.facts import FactKind, Statement

NOT = "not:"
"""What the value of a negated statement begins with."""
ONE = frozenset({"called", "works at", "works in", "works as", "works for", "lives in", "is from", "reports to"})
"""Verbs that have one object at a time; so has every noun that ends in `is`, but for those of `MANY`."""
MANY = frozenset(
    "aunt brother cat child colleague cousin daughter dog friend hobby neighbour neighbor pet sister skill son uncle".split()
)
_IS = " is"
_AROUND = re.compile(r"\s(?=(?:at|for|in|on|over|than|to|when|with|during|after|before)\s)")


def plain(text: str) -> str:
    """`text` as it is compared: without capitals, full stops at its end, and doubled spaces."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split()).strip(" .,;:!\"'“”‘’")


def slot_of(statement: Statement) -> tuple[str, str]:
    """The slot of a statement, and its value there."""
    predicate, thing = plain(statement.predicate), plain(statement.object)
    told = NOT if statement.negated else ""
    place = f"{plain(statement.subject)}|{predicate}"
    if statement.kind is FactKind.PREFERENCE and predicate == "prefers":
        return f"{place}|{_topic(thing)}", told + thing
    if predicate in ONE or (predicate.endswith(_IS) and predicate.removesuffix(_IS) not in MANY):
        return place, told + thing
    return f"{place}|{thing}", told


def _topic(thing: str) -> str:
    """What a preference is about: `answers`, of `short answers`; what stands around it narrows it (`in reports`)."""
    parts = _AROUND.split(thing, maxsplit=1)
    words = parts[0].split()
    return " ".join([words[-1] if words else "", *parts[1:]])
