"""The port to whatever thinks: one typed method for each purpose. Behind it stand a language model, or rules."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Generic, Literal, Protocol, TypeVar, runtime_checkable

from pydantic import Field, field_validator

from phronesis_contracts import Message, ServiceError
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.memory import AugmentedMemoryContext
from phronesis_contracts.orchestrator import Directive

from .cognition.thought import NO_THOUGHT, Thought, Tier
from .history import NO_SUMMARY, PastMessage, PastTurn, Summary
from .ledger.spent import Asked, Spent

__all__ = [
    "MAX_PHRASE",
    "MAX_PHRASES",
    "Answer",
    "Asked",
    "CallFailed",
    "Composed",
    "Fault",
    "PastMessage",
    "Reasoner",
    "Routed",
    "Spent",
    "Summarised",
    "Summariser",
    "TurnContext",
    "Value",
    "step",
]

step: ContextVar[str | None] = ContextVar("step", default=None)
"""`<turn>/<step>` of the call at hand; it goes to the provider as a header, so that calls can be told apart there."""


MAX_PHRASES = 8
MAX_PHRASE = 200


class Routed(Message):
    """The router's decision (D-049 to D-056)."""

    decision: Literal["respond_directly", "query_memory"]
    key_phrases: tuple[str, ...] = ()
    direct_response: str | None = None
    tier: Tier | None = None

    @field_validator("key_phrases")
    @classmethod
    def _tidy(cls, phrases: tuple[str, ...]) -> tuple[str, ...]:
        """Trim, drop blanks and repeats (case aside), keep 8 of at most 200 characters."""
        tidy: dict[str, str] = {}
        for phrase in phrases:
            short = " ".join(phrase.split())[:MAX_PHRASE]
            if short:
                tidy.setdefault(short.casefold(), short)
        return tuple(tidy.values())[:MAX_PHRASES]


class Composed(Message):
    """The final answer (D-109): the reply, and the stance for the next turn where the answer named a known one."""

    user_response: str = Field(min_length=1)
    next_agent_directive: Directive | None = None
    directive_reasoning: str = ""


class Summarised(Message):
    """What a model made of the older turns of a conversation."""

    summary: str = Field(min_length=1)


Value = TypeVar("Value", bound=Message)


class CallFailed(Exception):
    """A model call that failed for good, with what its tries used; `Steps` counts that and raises the error inside.

    Args:
        error: what the turn is told.
        spent: what the tries used, as far as the provider said.
    """

    def __init__(self, error: ServiceError, spent: Spent) -> None:
        super().__init__(error.code)
        self.error = error
        self.spent = spent
        self.cost_usd: float | None = None
        """As that of an `Answer`."""
        self.asked: Asked | None = None
        """As that of an `Answer`."""


@dataclass(frozen=True)
class Fault:
    """An answer that broke its schema: what was said, and what is wrong with it. It is shown to the model once, for repair."""

    said: str
    wrong: str


@dataclass(frozen=True)
class Answer(Generic[Value]):
    """One call's outcome: a value, or a fault."""

    value: Value | None
    fault: Fault | None = None
    spent: Spent = field(default_factory=Spent)
    cost_usd: float | None = None
    """What all its tries cost; `None` where no model was asked, or its price is not known."""
    asked: Asked | None = field(default=None, compare=False)
    """Which model was asked; `None` where none was."""


@dataclass(frozen=True)
class TurnContext:
    """The context package of a turn (D-037): everything a purpose's prompt is made of, and nothing that does I/O."""

    agent: AgentProfile | None
    """`None` where the instructions could not be had."""
    profile: dict[str, object]
    history: tuple[PastMessage, ...]
    directive: Directive
    final_input: str
    """The user's text with the text of attached media (D-026)."""
    user_text: str
    media_text: str = ""
    """The part of `final_input` that came from media; untrusted data."""
    summary: Summary = NO_SUMMARY
    """What is left of the turns before the history."""
    thought: Thought = NO_THOUGHT
    """What was thought about the message before the work on it."""


class Reasoner(Protocol):
    """What the loops ask by way of `Steps`. A call that fails for good raises `CallFailed`, or a `ServiceError` of its own."""

    name: str
    """Stands in every reply as `reasoner`: `groq`, `openai` or `extractive`."""

    async def route(self, turn: TurnContext, fault: Fault | None = None) -> Answer[Routed]:
        """Decide whether memory is needed, and for which phrases.

        Args:
            turn: the context package.
            fault: the earlier answer to repair, for the one repair call.
        """
        ...

    async def compose(
        self, turn: TurnContext, draft: str | None, memory: AugmentedMemoryContext | None, fault: Fault | None = None
    ) -> Answer[Composed]:
        """Write the reply, and choose the stance for the next turn.

        Args:
            turn: the context package.
            draft: the router's ready reply, where it gave one.
            memory: what retrieval handed back; `None` where none was asked for.
            fault: the earlier answer to repair.
        """
        ...


@runtime_checkable
class Summariser(Protocol):
    """A reasoner that can also put older turns in short. One that cannot leaves it to rules."""

    async def summarise(self, turn: TurnContext, earlier: Summary, dropped: tuple[PastTurn, ...]) -> Answer[Summarised]:
        """Carry the summary of a conversation on. It is asked once, and never to repair.

        Args:
            turn: the context package of the turn at hand, for its agent.
            earlier: the summary so far.
            dropped: the turns to take into it, oldest first.
        """
        ...
