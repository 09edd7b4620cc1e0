"""What a message is, by rules (V-013): its tier, whether it asks for work, the persona, and whether a topic is written on.

Without a model the rules are all there is. With one they decide the lightest tier alone, at once and for nothing (V-009).
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files

from ..extractive import courtesy
from .thought import CONTENT_WRITER, Intent, Tier

_LOOK_AT = 4_000
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


def intent(text: str, attached: bool = False) -> Intent:
    """What a message is.

    Args:
        text: the person's own words.
        attached: whether something was attached, which then has to be worked on.
    """
    said = " ".join(text[:_LOOK_AT].replace("\u2019", "'").split())
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
