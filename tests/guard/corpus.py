"""The statements that the guard is tried with, read from the files beside this one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from phronesis_graph.twin.ontology_file import load

HERE = Path(__file__).parent
VALUES: dict[str, Any] = {
    "date": "2024-06-30",
    "flag": True,
    "id": "p-1",
    "ids": ["p-1", "p-2", "p-9"],
    "last_seen_id": "",
    "level": "L3",
    "limit": 7,
    "name": "The p-1",
    "names": ["The p-1"],
    "number": 20,
    "rows": [{"id": "p-1", "year": 2022}, {"id": "p-2", "year": 2021}],
    "text": "p",
    "year": 2022,
    "years": [2021, 2022],
}
"""Parameters that every statement of the corpora gets."""

_ONTOLOGY = load()
_LISTS = {"TYPES": tuple(_ONTOLOGY.nodes), "RELATIONS": tuple(_ONTOLOGY.relationships)}
_CHOICE = re.compile("«([^»]*)»")
_SIGN = re.compile("⟦([0-9A-F]+)⟧")


@dataclass(frozen=True)
class Statement:
    """One statement; for a hostile one, the rule that refuses it and the rule set it is tried with."""

    text: str
    rule: str = ""
    rules: str = "reading"


def honest() -> list[Statement]:
    """What analysts may well ask."""
    return [Statement(text) for paragraph in _paragraphs("honest.txt") for text in _expanded(paragraph)]


def hostile() -> list[Statement]:
    """What must not get through: each paragraph begins with the rule that refuses it."""
    return list(_headed("hostile.txt"))


def knowledge() -> list[Statement]:
    """What the curator may do; the rule is `passed`, or `dangerous` where a change wants a second look."""
    return list(_headed("knowledge.txt"))


def _headed(file: str) -> Iterator[Statement]:
    for paragraph in _paragraphs(file):
        head, _, text = paragraph.partition("\n")
        rule, _, rules = head.removeprefix("== ").partition(" ")
        for each in _expanded(text):
            yield Statement(each, rule, rules or "reading")


def _paragraphs(file: str) -> Iterator[str]:
    text = (HERE / file).read_text(encoding="utf-8")
    for paragraph in re.split(r"\n\n+", text.strip("\n")):
        if not paragraph.startswith("# "):
            yield paragraph


def _expanded(text: str) -> Iterator[str]:
    """`«a|b»` is one statement each, `«TYPES»` one for each type, and `⟦200B⟧` is that sign."""
    parts = _CHOICE.split(text)
    choices = [[part] if i % 2 == 0 else _LISTS.get(part, tuple(part.split("¦"))) for i, part in enumerate(parts)]
    for chosen in product(*choices):
        yield _SIGN.sub(lambda found: chr(int(found[1], 16)), "".join(chosen))
