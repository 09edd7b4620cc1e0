"""The ports to whatever thinks, a language model or rules: one typed method for each purpose."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar, runtime_checkable

from pydantic import Field, field_validator

from phronesis_contracts import Message, ServiceError
from phronesis_contracts.answers import DATA_MODES, Mode
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.memory import AugmentedMemoryContext
from phronesis_contracts.orchestrator import AnswerForm, ClientRequest, Directive

from ..agents.cognition.thought import NO_THOUGHT, Thought, Tier, sanitize_line
from ..conversations.history import NO_SUMMARY, PastMessage, PastTurn, Summary
from ..ledger.usage import AskedModel, CallUsage
from ..understanding.plan import NO_FOCUS, Focus
from .capabilities import CapabilityCache

current_call: ContextVar[str | None] = ContextVar("step", default=None)
"""`<turn>/<step>` of the call at hand; it goes to the provider as a header, so that calls can be told apart there."""


MAX_PHRASES = 8
MAX_PHRASE = 200


class RouteDecision(Message):
    """The router's decision."""

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


class ComposedReply(Message):
    """The final answer: the reply, and the stance for the next turn where the answer named a known one."""

    user_response: str = Field(min_length=1)
    next_agent_directive: Directive | None = None
    directive_reasoning: str = ""


class ModelSummary(Message):
    """What a model made of the older turns of a conversation."""

    summary: str = Field(min_length=1)


Value = TypeVar("Value", bound=Message)


class CallFailed(Exception):
    """A model call that failed for good, with what its tries used; `Steps` counts that and raises the error inside."""

    def __init__(self, error: ServiceError, spent: CallUsage) -> None:
        super().__init__(error.code)
        self.error = error
        self.spent = spent
        self.cost_usd: float | None = None
        """As that of an `Answer`."""
        self.asked: AskedModel | None = None
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
    spent: CallUsage = field(default_factory=CallUsage)
    cost_usd: float | None = None
    """What all its tries cost; `None` where no model was asked, or its price is not known."""
    asked: AskedModel | None = field(default=None, compare=False)
    """Which model was asked; `None` where none was."""


@dataclass(frozen=True)
class TurnContext:
    """The context package of a turn: everything a purpose's prompt is made of, and nothing that does I/O."""

    agent: AgentProfile | None
    """`None` where the instructions could not be had."""
    profile: dict[str, object]
    history: tuple[PastMessage, ...]
    directive: Directive
    final_input: str
    """The user's text with the text of attached media."""
    user_text: str
    media_text: str = ""
    """The part of `final_input` that came from media; untrusted data."""
    summary: Summary = NO_SUMMARY
    """What is left of the turns before the history."""
    thought: Thought = NO_THOUGHT
    """What was thought about the message before the work on it."""
    focus: Focus = NO_FOCUS
    """What the conversation is about, as its last plan left it."""
    client: ClientRequest | None = None
    """What the program that sent the message adds to it; untrusted data."""


class Reasoner(Protocol):
    """What answers a turn: a language model that can do some of what follows, or rules (`RULES`).

    The loops ask it by way of `Steps`. A call that fails for good raises `CallFailed`, or a `ServiceError` of its own.
    """

    name: str
    """Stands in every reply as `reasoner`: `groq`, `openai` or `extractive`."""


class Rules:
    """No language model: turns are answered by the rules of `understanding`, which no loop asks by way of a `Reasoner`."""

    name = "extractive"


RULES = Rules()


@runtime_checkable
class Router(Protocol):
    """A reasoner that makes the two decisions of a turn. One that cannot leaves the turn to rules."""

    name: str

    async def route(self, turn: TurnContext, fault: Fault | None = None) -> Answer[RouteDecision]:
        """Decide whether memory is needed, and for which phrases.

        Args:
            turn: the context package.
            fault: the earlier answer to repair, for the one repair call.
        """

    async def compose(
        self, turn: TurnContext, draft: str | None, memory: AugmentedMemoryContext | None, fault: Fault | None = None
    ) -> Answer[ComposedReply]:
        """Write the reply, and choose the stance for the next turn.

        Args:
            turn: the context package.
            draft: the router's ready reply, where it gave one.
            memory: what retrieval handed back; `None` where none was asked for.
            fault: the earlier answer to repair.
        """


@runtime_checkable
class Summariser(Protocol):
    """A reasoner that can also put older turns in short. One that cannot leaves it to rules."""

    async def summarise(self, turn: TurnContext, earlier: Summary, dropped: tuple[PastTurn, ...]) -> Answer[ModelSummary]:
        """Carry the summary of a conversation on. It is asked once, and never to repair.

        Args:
            turn: the context package of the turn at hand, for its agent.
            earlier: the summary so far.
            dropped: the turns to take into it, oldest first.
        """


@runtime_checkable
class Probed(Protocol):
    """A reasoner behind an endpoint of which it is found out what it can do."""

    capabilities: CapabilityCache

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models that are asked."""

    @property
    def url(self) -> str:
        """The address of the endpoint, without secrets."""


MAX_CALLS = 16
"""Tool calls of one round that are looked at; what a model asks for beyond them is dropped."""


class Classification(Message):
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
        """Whether the mode reads data."""
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
class CallResult:
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
    rounds: list[tuple[Move, tuple[CallResult, ...]]] = field(default_factory=list)
    closing: bool = False
    """Whether the model must answer now and may call nothing more."""
    proposal: str = ""
    """What the rules found for the message on record, where they found something to be sure of."""


@runtime_checkable
class Inquirer(Protocol):
    """A reasoner that can work with tools. One that cannot leaves the question to rules."""

    async def classify(self, turn: TurnContext, fault: Fault | None = None) -> Answer[Classification]:
        """Choose the mode; answer at once where it reads no data. Raises `CallFailed`.

        Args:
            turn: the context package.
            fault: the earlier answer to repair, for the one repair call.
        """

    async def proceed(self, turn: TurnContext, inquiry: Inquiry) -> Answer[Move]:
        """Make the next move: call tools, or give the final answer as text. Raises `CallFailed`."""

    async def rewrite(self, turn: TurnContext, inquiry: Inquiry, fault: Fault) -> Answer[Draft]:
        """Write the final answer again, with what is wrong with the last one. It is offered no tool. Raises `CallFailed`."""


class FormedAnswer(Message):
    """An answer in the form that a client asks for."""

    text: str = Field(min_length=1)
    """One JSON object."""


ParseSaid = Callable[[str, tuple[ToolCall, ...]], Value | Fault]
"""Makes a value of what a model said and of the calls that it asks for."""


@runtime_checkable
class ClientServer(Protocol):
    """A reasoner that can work for a client program: with the client's tools, and in the client's form."""

    name: str

    def refuses_tools(self, agent: AgentProfile) -> bool:
        """Whether it is known that the model which answers for an agent takes no tools."""

    async def serve_client(
        self,
        turn: TurnContext,
        client: ClientRequest,
        memory: AugmentedMemoryContext | None,
        parse: ParseSaid[Move],
        fault: Fault | None = None,
    ) -> Answer[Move]:
        """Call tools of the client, or answer from what they gave. Raises `CallFailed`.

        Args:
            memory: what retrieval handed back.
            fault: the earlier answer to repair.
        """

    async def form(
        self, turn: TurnContext, form: AnswerForm, draft: str, parse: ParseSaid[FormedAnswer], fault: Fault | None = None
    ) -> Answer[FormedAnswer]:
        """Put an answer into a form. Raises `CallFailed`."""


ACTIONS = 3
"""Actions that a look ahead proposes at most."""
_PART = 500
"""Characters of one part of a look ahead."""


class IntentDecision(Message):
    """What a model takes a message for."""

    tier: Tier
    action: bool
    persona: str | None = None
    topic: bool = False


class LookAhead(Message):
    """What a model thinks before the work begins; all of it empty where it thought nothing."""

    know: str = ""
    need: str = ""
    approach: tuple[str, ...] = ()
    risk: str = ""

    def text(self) -> str:
        known, need, risk = (sanitize_line(part, _PART) for part in (self.know, self.need, self.risk))
        steps = [step for one in self.approach if (step := sanitize_line(one, _PART))][:ACTIONS]
        if not (known or need or risk or steps):
            return ""
        told = " ".join(f"{at}. {step}" for at, step in enumerate(steps, 1))
        return "\n".join(f"{label}: {part or '-'}" for label, part in zip(LABELS, (known, need, told, risk), strict=True))


LABELS = ("KNOW", "NEED", "APPROACH", "RISK")


class Reflection(Message):
    """A text for others, looked at again: how good the draft was, and the better one where there is a better one."""

    score: float | None = Field(default=None, ge=0, le=1)
    """From 0 to 1; `None` where the model gave no such number."""
    answer: str = ""
    """Empty where the draft stands."""


class WordMeaning(Message):
    """What words of a message stand for."""

    said: str = Field(max_length=200)
    means: str = Field(max_length=200)


class ChosenPlan(Message):
    """The kind of plan that a message becomes, what it is about, and what the words mean that rules do not know."""

    kind: str
    """`none` where no plan says it."""
    about: tuple[str, ...] = Field(default=(), max_length=40)
    words: tuple[WordMeaning, ...] = Field(default=(), max_length=20)


class FormulatedPlan(Message):
    """A plan as a model wrote it: names in place of things, and nothing checked yet."""

    plan: dict[str, Any]


@dataclass(frozen=True)
class PlanQuestion:
    """What a model is asked on the way to a plan."""

    known: tuple[str, ...]
    """Lines of what it may choose from, the most telling first."""
    schema: dict[str, Any]
    """The form of its answer."""


@runtime_checkable
class Interpreter(Protocol):
    """A reasoner that can make a plan of a message that rules do not understand, in two short steps."""

    async def understand(self, turn: TurnContext, asked: PlanQuestion, fault: Fault | None = None) -> Answer[ChosenPlan]:
        """Choose the kind of plan. Raises `CallFailed`.

        Args:
            turn: the context package.
            asked: the kinds and names to choose from.
            fault: the earlier answer to repair.
        """

    async def formulate(self, turn: TurnContext, asked: PlanQuestion, fault: Fault | None = None) -> Answer[FormulatedPlan]:
        """Write the plan in the form of its kind. Raises `CallFailed`."""


class Wish(Message):
    """A call that a message asks for."""

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    """With the user's name for a thing where its id is not known."""


class Wishes(Message):
    """The calls that a message asks for; none of most messages."""

    calls: tuple[Wish, ...] = Field(default=(), max_length=50)


@runtime_checkable
class Wisher(Protocol):
    """A reasoner that can say which calls a message asks for, from the user's words alone."""

    async def wish(self, turn: TurnContext, tools: tuple[str, ...]) -> Answer[Wishes]:
        """Say which of the tools the user wants called. It is asked once, and never to repair. Raises `CallFailed`.

        Args:
            turn: a turn without anything that the user did not say.
            tools: a line for each tool that it is about.
        """


@runtime_checkable
class Thinker(Protocol):
    """A reasoner that can do so. Each is asked once and never to repair; one that cannot leaves it to rules, or out."""

    async def decide(self, turn: TurnContext) -> Answer[IntentDecision]:
        """Say what the message is. Raises `CallFailed`."""

    async def look_ahead(self, turn: TurnContext) -> Answer[LookAhead]:
        """Think ahead, by the light model, in one try. Raises `CallFailed`."""

    async def reflect(self, turn: TurnContext, draft: Draft) -> Answer[Reflection]:
        """Look at a draft again. Raises `CallFailed`."""
