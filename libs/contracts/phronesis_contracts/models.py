"""Contracts about the language model: which one answers, and what its endpoint was found to be able to do."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from .messages import Message, Rpc
from .principal import Agent
from .tools import Tool


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
