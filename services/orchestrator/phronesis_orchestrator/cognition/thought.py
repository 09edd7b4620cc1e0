"""What was thought about a message before the work on it begins; values alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Tier(StrEnum):
    """How hard a message is thought about (V-012). No tier follows from a model's name (V-C03)."""

    FLASH = "flash"
    HAIKU = "haiku"
    SONNET = "sonnet"
    QUALITY = "quality"


def named_tier(value: object) -> Tier | None:
    """A tier as a model named it; `None` where that is none."""
    return Tier(value) if isinstance(value, str) and value in frozenset(Tier) else None


LIGHT = frozenset({Tier.FLASH, Tier.HAIKU})
"""Tiers that the light model answers, and that nothing is thought through for."""
DEEP = frozenset({Tier.SONNET, Tier.QUALITY})
"""Tiers that the large model answers, after a look ahead (V-014)."""
CONTENT_WRITER = "content_writer"
"""The persona for texts that others will read: it is shown how the person writes, and looks back at its draft (V-016)."""


class ToneLabel(StrEnum):
    """How a message sounds (V-C11)."""

    URGENT = "urgent"
    FRUSTRATED = "frustrated"
    POSITIVE = "positive"
    NEGATIVE = "negative"
    NEUTRAL = "neutral"


@dataclass(frozen=True)
class Tone:
    """The tone of a message."""

    label: ToneLabel = ToneLabel.NEUTRAL
    urgency: float = 0.0
    """From 0.0 to 1.0, in tenths (V-077)."""

    def __str__(self) -> str:
        return f"{self.label.value} (urgency={self.urgency:.1f})"  # V-079


@dataclass(frozen=True)
class Intent:
    """What a message is."""

    tier: Tier
    action: bool = True
    """Whether it needs tools or data; else it is conversation (V-015, V-C04)."""
    persona: str | None = None
    """`content_writer`, or none."""
    topic: bool = False
    """Whether a text on a topic is wanted, so that facts have to be looked up first (V-108)."""


@dataclass(frozen=True)
class Thought:
    """All of it, as a turn carries it."""

    tone: Tone | None = None
    intent: Intent | None = None
    plan: str = ""
    """The plan block of the prompts; empty where nothing is to be said."""


NO_THOUGHT = Thought()
