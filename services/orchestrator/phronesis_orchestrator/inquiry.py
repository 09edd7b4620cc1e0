"""The port to a model that works on a question with tools: what it classifies, calls and drafts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from pydantic import Field

from phronesis_contracts import Message
from phronesis_contracts.analysis import DATA_MODES, Mode

from .cognition.thought import Tier
from .reasoner import Answer, Fault, TurnContext

MAX_CALLS = 16
"""Tool calls of one round that are looked at; what a model asks for beyond them is dropped."""


class Classified(Message):
    """Which mode a message has, and for the modes that need no data the whole answer."""

    mode: Mode
    intent: str = Field(min_length=1)
    thought_trace: str = ""
    answer: str = ""
    """Empty for the modes that read data."""
    analysis: tuple[str, ...] = ()
    confidence: float | None = None
    """As the model sees it; `None` where it gave no number from 0 to 1."""
    tier: Tier | None = None
    """How hard to think about it; `None` where the model did not say."""

    @property
    def reads(self) -> bool:
        """Whether the mode reads data (N-025)."""
        return self.mode in DATA_MODES


class ToolCall(Message):
    """One call that a model asks for, as it wrote it."""

    name: str
    arguments: str
    """JSON, or what the model took for it."""


class Move(Message):
    """What a model did in one round: called tools, or said something."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()


class Draft(Message):
    """The final answer as a model wrote it, before code checked it against what was read."""

    answer: str = Field(min_length=1)
    intent: str = ""
    thought_trace: str = ""
    analysis: tuple[str, ...] = ()
    visualizations: tuple[dict[str, Any], ...] = ()
    confidence: float | None = None


@dataclass(frozen=True)
class Result:
    """What the model is told of one call, or where there is no call, of its answer."""

    call: ToolCall | None
    text: str
    kind: str
    """`instructions`, `rows`, `memories` or `note`; says how much room it gets, and what gives way first."""


@dataclass
class Inquiry:
    """A question being worked on: its mode, the tools offered, and the rounds so far."""

    mode: str
    intent: str
    tools: tuple[dict[str, Any], ...]
    """As the chat API takes them."""
    mark: str
    """Boundary of the blocks of this turn; no text that is shown holds it."""
    rounds: list[tuple[Move, tuple[Result, ...]]] = field(default_factory=list)
    closing: bool = False
    """Whether the model must answer now and may call nothing more."""


@runtime_checkable
class Inquirer(Protocol):
    """A reasoner that can work with tools. One that cannot leaves the question to rules (`analyst`)."""

    async def classify(self, turn: TurnContext, fault: Fault | None = None) -> Answer[Classified]:
        """Choose the mode; answer at once where it reads no data. Raises `CallFailed`.

        Args:
            turn: the context package.
            fault: the earlier answer to repair, for the one repair call.
        """
        ...

    async def proceed(self, turn: TurnContext, inquiry: Inquiry) -> Answer[Move]:
        """Make the next move: call tools, or give the final answer as text. Raises `CallFailed`."""
        ...

    async def rewrite(self, turn: TurnContext, inquiry: Inquiry, fault: Fault) -> Answer[Draft]:
        """Write the final answer again, with what is wrong with the last one. It is offered no tool. Raises `CallFailed`."""
        ...
