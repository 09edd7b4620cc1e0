"""What is expected of messages that no data answers."""

from __future__ import annotations

from typing import Any

from . import Expect, either, yes


def no(*answers: str) -> Expect:
    """It says that it does not know; a model may know it and has to give one of the answers."""
    return {"declined": True, "not": list(answers), "general": bool(answers)}


def no_or_ask() -> Expect:
    """It says that it does not understand, or asks what is meant."""
    return {"declined": True, "or_ask": True}


def model(*answers: str) -> Expect:
    """It says that this needs a language model, or a model does it."""
    return {"declined": True, "model": True, "not": list(answers), "general": True}


def talk(*phrases: str) -> Expect:
    """A short reply, with one of the phrases where there are some."""
    return {"talk": list(phrases) or True}


def clock() -> Expect:
    """A time or a date."""
    return {"matches": r"\b\d{1,2}:\d\d\b|\b20\d\d\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\buhr\b"}


def nothing_before() -> Expect:
    """There is nothing before, and it says so."""
    return {
        "any": [
            {"declined": True},
            {"text": [["first", "nothing", "not asked", "no earlier", "no previous", "erste", "nichts"]]},
        ]
    }


def vocabulary() -> dict[str, Any]:
    """What an expression may use."""
    return {
        "no": no,
        "no_or_ask": no_or_ask,
        "model": model,
        "talk": talk,
        "clock": clock,
        "nothing_before": nothing_before,
        "yes": yes,
        "either": either,
    }
