"""What the clients of a chaos run say: greetings, questions to memory, and questions about what they attach."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from phronesis_contracts.orchestrator import Directive
from tests.support import documents, pictures, speech

OPENINGS = ("plain", "question", "document", "picture", "recording")
_SHARES = (3, 10, 4, 2, 1)
"""Of twenty turns. Pictures and recordings are few: their models take seconds of a processor, and are lost with media."""


@dataclass(frozen=True)
class File:
    """A file to attach: no two of a run have the same content, so that each has to be read."""

    name: str
    type: str
    make: Callable[[], bytes]
    holds: str
    """Words that whoever reads it finds in it."""


@dataclass(frozen=True)
class Wish:
    """One turn to be."""

    kind: str
    text: str
    stance: Directive | None = None
    """What the model will say in; a greeting states none."""
    file: File | None = None
    agent: str = "dialogue"
    """Whom it is said to."""


def wish(kind: str, number: int, dice: random.Random) -> Wish:
    """A turn of a kind, with words that no other turn of the run has."""
    if kind == "plain":
        return Wish(kind, f"Hello number {number}")
    stance = dice.choice(list(Directive))
    made = {"document": _document, "picture": _picture, "recording": _recording}.get(kind)
    asked = f"What is project Chaos{number} for? Tell me in the stance {stance}."
    return Wish(kind, asked, stance, made(number) if made else None)


def any_wish(number: int, dice: random.Random) -> Wish:
    """A turn of a kind that the dice decide."""
    return wish(dice.choices(OPENINGS, _SHARES)[0], number, dice)


def _document(number: int) -> File:
    lines = [f"The programme Chaos{number} drains the lower field.", "Its open day is on Saturday."]
    return File(f"note-{number}.pdf", "application/pdf", partial(documents.pdf, [lines]), "open day")


def _picture(number: int) -> File:
    lines = [f"Programme {number}", "The open day is on Saturday."]
    return File(f"poster-{number}.png", "image/png", lambda: pictures.encoded(pictures.drawn(lines, 600)), "open day")


def _recording(number: int) -> File:
    def make() -> bytes:
        spoken = speech.samples()
        return speech.recorded([*spoken, *speech.silence(0.01 * (number + 1))], "ogg")

    return File(f"memo-{number}.ogg", "audio/ogg", make, "disposal facility")
