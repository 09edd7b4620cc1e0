"""Chains of reasons as sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence

from phronesis_contracts.constitution.paths import Step

_SAID = {
    ("SERVES", "out"): "serves",
    ("ALIGNS_WITH", "out"): "aligns with",
    ("SUPPORTED_BY", "out"): "rests on",
    ("SUPPORTED_BY", "in"): "carries out",
    ("ENFORCED_BY", "in"): "enforces",
}
"""What a step upwards says, by relationship and direction."""


def sentence(steps: Sequence[Step]) -> str:
    """A chain as one sentence: `The task "A" serves the goal "B", which rests on the value "C".`"""
    text = f"The {_named(steps[0])}"
    for place, step in enumerate(steps[1:]):
        said = _SAID[step.relationship or "", step.direction or ""]
        text += f"{', which' if place else ''} {said} the {_named(step)}"
    return f"{text}."


def _named(step: Step) -> str:
    return f'{_words(step.type)} "{step.title}"'


def _words(type: str) -> str:
    """A type in words: `key result`."""
    return "AI" if type == "ai" else re.sub(r"([A-Z])", r" \1", type).lower()
