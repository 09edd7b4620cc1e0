"""The port to whatever thinks: one typed method for each purpose. Behind it stand a language model, or rules."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Generic, Literal, Protocol, TypeVar

from pydantic import Field, field_validator

from phronesis.contracts import Message
from phronesis.contracts.instructions import AgentProfile
from phronesis.contracts.memory import AugmentedMemoryContext
from phronesis.contracts.orchestrator import Directive

step: ContextVar[str | None] = ContextVar("step", default=None)
"""`<turn>/<step>` of the call at hand; it goes to the provider as a header, so that calls can be told apart there."""

MAX_PHRASES = 8
MAX_PHRASE = 200


class Routed(Message):
    """The router's decision (D-049 to D-056)."""

    decision: Literal["respond_directly", "query_memory"]
    key_phrases: tuple[str, ...] = ()
    direct_response: str | None = None

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


Value = TypeVar("Value", Routed, Composed)


class Spent(Message):
    """What one call used."""

    input_tokens: int = 0
    output_tokens: int = 0
    model_calls: int = 0


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


@dataclass(frozen=True)
class PastMessage:
    """One message of the history."""

    role: str
    text: str


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


class Reasoner(Protocol):
    """What the loops ask. A call that fails for good raises `Unavailable` or `TimedOut`."""

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
