"""The port to a model that also decides what a message is, looks ahead, and looks back at what was written."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from pydantic import Field

from phronesis_contracts import Message

from ..inquiry import Draft
from ..reasoner import Answer, TurnContext
from .plan import harmless
from .thought import Tier

ACTIONS = 3
"""Actions that a look ahead proposes at most (V-094)."""
_PART = 500
"""Characters of one part of a look ahead."""


class Decided(Message):
    """What a model takes a message for."""

    tier: Tier
    action: bool
    persona: str | None = None
    topic: bool = False


class LookAhead(Message):
    """What a model thinks before the work begins (V-093); all of it empty where it thought nothing."""

    know: str = ""
    need: str = ""
    approach: tuple[str, ...] = ()
    risk: str = ""

    def text(self) -> str:
        """Its four parts in their order, with at most three actions; empty where there is none (V-101)."""
        known, need, risk = (harmless(part, _PART) for part in (self.know, self.need, self.risk))
        steps = [step for one in self.approach if (step := harmless(one, _PART))][:ACTIONS]
        if not (known or need or risk or steps):
            return ""
        told = " ".join(f"{at}. {step}" for at, step in enumerate(steps, 1))
        return "\n".join(f"{label}: {part or '-'}" for label, part in zip(LABELS, (known, need, told, risk), strict=True))


LABELS = ("KNOW", "NEED", "APPROACH", "RISK")


class Reflected(Message):
    """A text for others, looked at again: how good the draft was, and the better one where there is a better one."""

    score: float | None = Field(default=None, ge=0, le=1)
    """From 0 to 1; `None` where the model gave no such number (V-044)."""
    answer: str = ""
    """Empty where the draft stands."""


@runtime_checkable
class Thinker(Protocol):
    """A reasoner that can do so. Each is asked once and never to repair; one that cannot leaves it to rules, or out."""

    async def decide(self, turn: TurnContext) -> Answer[Decided]:
        """Say what the message is. Raises `CallFailed`."""
        ...

    async def look_ahead(self, turn: TurnContext) -> Answer[LookAhead]:
        """Think ahead, by the light model, in one try (V-092, V-102). Raises `CallFailed`."""
        ...

    async def reflect(self, turn: TurnContext, draft: Draft) -> Answer[Reflected]:
        """Look at a draft again. Raises `CallFailed`."""
        ...
