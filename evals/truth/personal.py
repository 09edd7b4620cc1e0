"""What is expected of a user's own memory: what was said, with what was corrected left out."""

from __future__ import annotations

from typing import Any

from . import Expect, either, yes

A: Expect = {"ack": True}
D: Expect = {"declined": True}


def said(*groups: list[str]) -> Expect:
    """Of each group one phrase."""
    return {"text": [list(group) for group in groups]}


def only(now: str, before: str) -> Expect:
    """The newer word, and not the one that it took the place of, unless the reply says that this was before."""
    return {"text": [[now]], "unlike": [before]}


def number(value: float) -> Expect:
    """A figure."""
    return {"number": value}


def day(value: str) -> Expect:
    """A date."""
    return {"date": value}


def vocabulary() -> dict[str, Any]:
    """What an expression may use."""
    return {"A": A, "D": D, "said": said, "only": only, "number": number, "day": day, "yes": yes, "either": either}
