"""Single questions about a generated twin: `phrases.yaml` has the sentences of each kind, and these modules their truths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from . import figures, gaps, lists
from .scene import Scene, tidy

PHRASES = yaml.safe_load((Path(__file__).parent / "phrases.yaml").read_text("utf-8"))
_TRIES = 40
KINDS = figures.KINDS | lists.KINDS | gaps.KINDS
"""What makes the questions of a kind."""


def ask(scene: Scene, kind: str, pattern: str, language: str = "en") -> tuple[str, dict[str, Any]] | None:
    """A question of a kind in the words of a pattern, and what is expected; none where the twin has nothing for it."""
    for _ in range(_TRIES):
        scene.turn()
        made = KINDS[kind](scene)
        if not made:
            continue
        slots, expect = made
        if language == "de":
            slots["y"] = f" {scene.year}" if slots["y"] else ""
        if (
            "{y}" not in pattern
            and "{y2}" not in pattern
            and not {"{a}", "{b}"} & set(_fields(pattern))
            and kind not in _YEARLESS
        ):
            if scene.world.years and scene.year != scene.world.years[-1]:
                continue
        return tidy(pattern.format_map(slots)), _choose(expect, pattern)
    return None


_YEARLESS = ("per_year", "unknown_property", "unknown_year")


def _fields(pattern: str) -> list[str]:
    return [f"{{{part.split('}')[0]}}}" for part in pattern.split("{")[1:]]


def _choose(expect: dict[str, Any], pattern: str) -> dict[str, Any]:
    """What a sentence decides: before or after, a count or a list."""
    if "after" in expect:
        return dict(expect["before" if "before" in pattern or "prior" in pattern else "after"])
    if "count" in expect:
        return dict(expect["count" if "how many" in pattern.lower() else "list"])
    return expect
