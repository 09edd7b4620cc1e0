"""Contracts of language models: which one answers, what its calls cost, and the limits that stop the next one."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from .messages import WRITTEN_AS_NUMBER, Message, Rpc
from .principal import ADMINISTRATORS_ALONE, Agent
from .tools import Effect, Risk, Tool

MAX_ROWS = 2_000
"""Sums that one answer holds."""
Window = Literal["day", "month"]
"""A calendar day or month, in UTC."""
Part = Literal["agent", "user", "model", "day", "purpose"]


class GetUsage(Message):
    """Which sums are wanted."""

    model_config = ConfigDict(extra="forbid")

    since: date | None = None
    """The first day, in UTC; the first of this month where it is left out."""
    until: date | None = None
    """The last day; today where it is left out."""
    by: tuple[Part, ...] = Field(default=("agent", "model"), max_length=5)
    """What the sums are apart by; one sum where it is empty."""
    agent: str | None = Field(default=None, max_length=64)
    user: str | None = Field(default=None, max_length=64)
    """Only this user's; who is no admin sees the own alone."""
    turn_id: UUID | None = None
    """Only this turn's."""


class UsageSum(Message):
    """What some model calls used together."""

    agent: str | None = None
    """The agent whose calls these are; absent where the sums are not apart by agent."""
    user: str | None = None
    """The user whose calls these are; absent where the sums are not apart by user."""
    model: str | None = None
    """The model that was called; absent where the sums are not apart by model."""
    day: date | None = None
    """The day of the calls, in UTC; absent where the sums are not apart by day."""
    purpose: str | None = None
    """What the calls were for; absent where the sums are not apart by purpose."""
    calls: int
    """Calls of models."""
    input_tokens: int
    """Tokens that the models read, cached ones included."""
    output_tokens: int
    """Tokens that the models wrote, reasoning included."""
    cached_tokens: int
    """Tokens of the input that came from a provider's cache."""
    reasoning_tokens: int
    """Tokens of the output that were reasoning."""
    cost_usd: float
    """What the calls cost in US dollars, by the installation's list of prices."""
    unpriced: int
    """Calls whose price is not known, which `cost_usd` does not hold."""


class UsageSums(Message):
    """The sums, the dearest first."""

    since: date
    """The first day that is counted, in UTC."""
    until: date
    """The last day that is counted, in UTC."""
    sums: tuple[UsageSum, ...]
    """A sum for each combination of what was asked apart by, the dearest first."""
    cut: bool = False
    """Whether there are more than one answer holds."""


class Limit(Message):
    """What may be used in a window, by the tenant or a part of it."""

    model_config = ConfigDict(extra="forbid")

    window: Window
    """How long it counts before it starts anew: a day or a calendar month, in UTC."""
    agent: str | None = Field(default=None, min_length=1, max_length=64)
    """Only this agent's calls; all agents' where it is left out."""
    user: str | None = Field(default=None, min_length=1, max_length=64)
    """Only this user's calls; all users' together where it is left out."""
    tokens: Annotated[int, Field(ge=0, le=10**15), WRITTEN_AS_NUMBER] | None = None
    """Tokens, read and written together."""
    usd: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False), WRITTEN_AS_NUMBER] | None = None
    """US dollars; calls without a known price do not count."""


class SetLimit(Limit, defer_build=False):  # a body of a route: FastAPI wants it complete
    """A limit to set in the place of the one for the same window, agent and user; without tokens and usd there is none."""


class LimitState(Limit):
    """A limit, and what is used of it."""

    used_tokens: int
    """Tokens used in the window so far, read and written together."""
    used_usd: float
    """US dollars used in the window so far."""


class ListLimits(Message):
    """The limits that bear on the caller; all of the tenant's for an admin."""

    model_config = ConfigDict(extra="forbid")


class Limits(Message):
    """Limits by window, agent and user."""

    limits: tuple[LimitState, ...]
    """The limits, by window, agent and user."""


USAGE_GET = Rpc("orchestrator.v1.usage.get", GetUsage, UsageSums, timeout=10.0)
LIMITS_GET = Rpc("orchestrator.v1.limits.get", ListLimits, Limits, timeout=10.0)
LIMITS_SET = Rpc("orchestrator.v1.limits.set", SetLimit, Limits, timeout=10.0)
USAGE_GET_TOOL = Tool(
    "usage.get",
    "What model calls used, in tokens and US dollars, by agent, user, model, purpose or day: the caller's own, and for an"
    " admin the tenant's.",
    USAGE_GET,
)
LIMITS_GET_TOOL = Tool("limits.get", "The limits of tokens and money that bear on the caller, and what is used.", LIMITS_GET)
LIMITS_SET_TOOL = Tool(
    "limits.set",
    "Set or remove a limit of tokens or money for the tenant, an agent or a user, in a day or a month. Reaching it stops the"
    " next model call.",
    LIMITS_SET,
    risk=Risk.MEDIUM,
    kind=Effect.SPEND,
    agents=ADMINISTRATORS_ALONE,
)


class GetModels(Message):
    """The models that turns are answered with."""

    model_config = ConfigDict(extra="forbid")


class ModelAbilities(Message):
    """What an endpoint was found to be able to do with one model."""

    name: str
    reached: bool
    """Whether the endpoint answered; nothing else is known where it did not."""
    structured: str | None = None
    """How structured output is asked for: `json_schema`, `json_object_with_schema`, `guided_json`, `json_object`, `text`."""
    tools: bool = False
    streaming: bool = False
    context_tokens: int | None = None
    """What the model holds, where the endpoint says it."""
    problem: str = ""
    """Why it was not reached."""


class ModelsFound(Message):
    """What answers: a model behind an endpoint, or rules alone."""

    reasoner: str
    """`groq`, `openai`, or `extractive` for rules alone."""
    profile: str = ""
    """`hosted` or `local`."""
    endpoint: str = ""
    """The address, without secrets."""
    context_tokens: int | None = None
    """Tokens that a prompt and its answer may have together, by the settings."""
    models: tuple[ModelAbilities, ...] = Field(default=())


MODELS_GET = Rpc("orchestrator.v1.models.get", GetModels, ModelsFound, timeout=30.0)
MODELS_GET_TOOL = Tool(
    "models.get",
    "Which language model answers, and what its endpoint can do: structured output, tools, streaming, context.",
    MODELS_GET,
    agents=frozenset({Agent.MAESTRO}),
)
