"""Planted topics: texts of which some say the same thing in other words, for measuring how well vectors keep them apart."""

from __future__ import annotations

from random import Random

from .themes import patterns, themes
from .wording import Wording

_FAMILIES = 15


def families(seed: int) -> list[list[str]]:
    """Families of texts, each about one thing of a theme of its own; the same seed gives the same texts."""
    random = Random(f"families {seed}")
    chosen = random.sample(themes(), _FAMILIES)
    made = []
    for theme in chosen:
        said = {slot: random.choice(words) for slot, words in theme.words.items()}
        wording = Wording(theme, theme, random)
        made.append([wording.text((frame,), said) for frame in patterns().frames])
    return made
