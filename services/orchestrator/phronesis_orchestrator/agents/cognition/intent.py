"""The tone of a message (V-074) and what it is (V-013), by the rules of `tone.json` and `intent.json`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

from ..extractive import courtesy
from .thought import CONTENT_WRITER, Intent, Tier, Tone, ToneLabel

_LOOK_AT = 1_500
"""Characters of a message that are looked at."""
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_SHOUTED = re.compile(r"\b[A-Z]{4,}\b")
_SHOUTS = 2
"""Words in capitals from which on a message shouts; one may be an abbreviation."""


@cache
def _rules() -> dict[str, Any]:
    rules: dict[str, Any] = json.loads((files(__package__) / "tone.json").read_text("utf-8"))
    weights = [(float(weight), phrases) for weight, phrases in rules["urgency"].items()]
    rules["urgency"] = sorted(((weight, f" {phrase} ") for weight, phrases in weights for phrase in phrases), reverse=True)
    for kind in ("calm", "frustrated"):
        rules[kind] = [f" {phrase} " for phrase in rules[kind]]
    return rules


def detect_tone(text: str) -> Tone:
    """The tone of what a person wrote; neutral where nothing tells of another (V-077).

    Args:
        text: the person's own words, without the text of attachments.
    """
    looked_at = text[:_LOOK_AT].replace("\u2019", "'")
    words = _WORD.findall(looked_at.casefold())
    if not words:
        return Tone()
    said, rules = f" {' '.join(words)} ", _rules()
    urgency = _urgency(said, looked_at, rules)
    return Tone(_label(said, urgency, rules), urgency)


def _urgency(said: str, text: str, rules: dict[str, Any]) -> float:
    if any(phrase in said for phrase in rules["calm"]):
        return 0.0
    weight = next((weight for weight, phrase in rules["urgency"] if phrase in said), 0.0)
    if weight:
        weight += rules["exclamation"] * min(rules["exclamations"], text.count("!"))
        weight += rules["shouting"] if len(_SHOUTED.findall(text)) >= _SHOUTS else 0.0
    return round(min(1.0, max(0.0, weight)), 1)


def _label(said: str, urgency: float, rules: dict[str, Any]) -> ToneLabel:
    if urgency >= rules["urgent_from"]:
        return ToneLabel.URGENT
    if any(phrase in said for phrase in rules["frustrated"]):
        return ToneLabel.FRUSTRATED
    good, denied_good = _count_phrases(said, rules["positive"], rules["negations"])
    bad, denied_bad = _count_phrases(said, rules["negative"], rules["negations"])
    balance = good - bad + denied_bad - denied_good
    return ToneLabel.POSITIVE if balance > 0 else ToneLabel.NEGATIVE if balance < 0 else ToneLabel.NEUTRAL


def _count_phrases(said: str, phrases: Iterable[str], negations: list[str]) -> tuple[int, int]:
    """How many of the phrases stand there, and how many of them a word before denies."""
    plain = denied = 0
    for phrase in phrases:
        before, found, _ = said.partition(f" {phrase} ")
        if found and before.rpartition(" ")[2] in negations:
            denied += 1
        elif found:
            plain += 1
    return plain, denied


_LOOK_AT_FOR_INTENT = 4_000
"""Characters of a message that are looked at."""


@cache
def _limits() -> dict[str, int]:
    return {name: value for name, value in _read().items() if isinstance(value, int)}


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    return {name: re.compile(value, re.I) for name, value in _read().items() if isinstance(value, str)}


def _read() -> dict[str, str | int]:
    found: dict[str, str | int] = json.loads((files(__package__) / "intent.json").read_text("utf-8"))
    return found


def classify_intent(text: str, attached: bool = False) -> Intent:
    """What a message is.

    Args:
        text: the person's own words.
        attached: whether something was attached, which then has to be worked on.
    """
    said = " ".join(text[:_LOOK_AT_FOR_INTENT].replace("\u2019", "'").split())
    if not attached and courtesy(said):
        return Intent(Tier.FLASH, action=False)
    if not attached and len(said) <= _limits()["longest_simple"] and (_is("reminder", said) or _is("clock", said)):
        return Intent(Tier.FLASH)
    if not attached and _is("conversation", said):
        return Intent(Tier.HAIKU, action=False)
    persona = CONTENT_WRITER if _is("content_writer", said) else None
    return Intent(_tier(said, len(text), attached), persona=persona, topic=_is("topic", said))


def _tier(said: str, length: int, attached: bool) -> Tier:
    if _is("quality", said) or length >= _limits()["long"]:
        return Tier.QUALITY
    short = len(said.split()) <= _limits()["longest_lookup_words"] and not attached
    return Tier.HAIKU if short and _is("lookup", said) and not _is("thinking", said) else Tier.SONNET


def _is(name: str, said: str) -> bool:
    return _patterns()[name].search(said) is not None
