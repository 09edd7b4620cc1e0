"""Saying the same again, in nearly the same words."""

from __future__ import annotations

from random import Random
from typing import Any

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


def restated(fields: dict[str, Any], random: Random) -> dict[str, Any]:
    """Texts with a word or two changed in each."""
    made = {name: _swapped(text, random) if isinstance(text, str) else text for name, text in fields.items()}
    title = str(made["title"])
    return made | {"title": random.choice(_BEFORE) + title[:1].lower() + title[1:]}


def _swapped(text: str, random: Random) -> str:
    there = [word for word in _WORDS if word in text]
    if not there:
        return text
    word = random.choice(there)
    return text.replace(word, _WORDS[word], 1)
