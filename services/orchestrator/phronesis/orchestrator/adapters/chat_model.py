"""The reasoner that asks a language model: Groq, or any address that speaks OpenAI's API."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from opentelemetry.trace import SpanKind

from phronesis.bus.tracing import Tracing
from phronesis.contracts import Unavailable
from phronesis.contracts.instructions import AgentProfile
from phronesis.contracts.memory import AugmentedMemoryContext

from ..answers import parse_composed, parse_routed
from ..prompts import SCHEMAS, BadTemplate, ChatMessage, final_messages, router_messages
from ..reasoner import Answer, Composed, Fault, Routed, Spent, TurnContext, step
from .chat_client import ChatCall, ChatClient, Completion, Provider
from .chat_retry import Breaker, Patience

log = logging.getLogger(__name__)

STEP_HEADER = "X-Phronesis-Step"
_STRICT = ("openai/gpt-oss-", "gpt-4o", "gpt-4.1", "gpt-5")
"""Beginnings of the names of models that keep to a JSON Schema while they write; the others are asked for JSON alone."""
Value = TypeVar("Value", Routed, Composed)
Purpose = Literal["router", "final"]


@dataclass(frozen=True)
class CallLimits:
    """How the calls of one purpose are made."""

    model: str
    seconds: float
    """For all tries together (D-147)."""
    max_tokens: int
    """Tokens that the model may write, its reasoning counted in."""
    effort: str
    """How hard a reasoning model thinks; sent to models that take it."""


class LanguageModel:
    """A `Reasoner` with a language model behind it.

    Args:
        client: the provider.
        tracing: where the spans go.
        router: limits of the router call.
        final: limits of the final call.
        budget: tokens of a prompt.
        patience: tries and breaker.
    """

    def __init__(
        self, client: ChatClient, tracing: Tracing, router: CallLimits, final: CallLimits, budget: int, patience: Patience
    ) -> None:
        self.name: str = client.provider
        self._client = client
        self._tracing = tracing
        self._limits: dict[Purpose, CallLimits] = {"router": router, "final": final}
        self._budget = budget
        self._patience = patience

    async def close(self) -> None:
        """Close the connections to the provider."""
        await self._client.close()

    async def route(self, turn: TurnContext, fault: Fault | None = None) -> Answer[Routed]:
        """Decide whether memory is needed. Raises `Unavailable`, `TimedOut`."""
        messages = self._fill(turn, lambda agent: router_messages(agent, turn, fault, self._budget))
        return await self._ask("router", messages, parse_routed)

    async def compose(
        self, turn: TurnContext, draft: str | None, memory: AugmentedMemoryContext | None, fault: Fault | None = None
    ) -> Answer[Composed]:
        """Write the reply and choose the next stance. Raises `Unavailable`, `TimedOut`."""
        messages = self._fill(turn, lambda agent: final_messages(agent, turn, draft, memory, fault, self._budget))
        return await self._ask("final", messages, parse_composed)

    def _fill(self, turn: TurnContext, make: Callable[[AgentProfile], list[ChatMessage]]) -> list[ChatMessage]:
        if turn.agent is None:
            raise Unavailable("the agent's instructions could not be had, and a language model needs them")
        try:
            return make(turn.agent)
        except BadTemplate as error:
            log.error("a prompt cannot be filled: %s", error)
            raise Unavailable("a prompt of the agent cannot be filled") from error

    async def _ask(self, purpose: Purpose, messages: list[ChatMessage], parse: Callable[[str], Value | Fault]) -> Answer[Value]:
        limits = self._limits[purpose]
        call = ChatCall(limits.model, messages, self._options(purpose, limits), {STEP_HEADER: step.get() or purpose})
        tried = await self._patience.run(lambda left: self._send(call, limits, left), limits.seconds)
        done = tried.value
        spent = Spent(input_tokens=done.input_tokens, output_tokens=done.output_tokens, model_calls=tried.calls)
        parsed = parse(done.text)
        if isinstance(parsed, Fault):
            log.warning("the model's answer for %s is no good (finish: %s)", purpose, done.finish)
            return Answer(None, parsed, spent)
        return Answer(parsed, None, spent)

    async def _send(self, call: ChatCall, limits: CallLimits, left: float) -> Completion:
        attributes: dict[str, Any] = {
            "gen_ai__operation__name": "chat",
            "gen_ai__provider__name": self.name,
            "gen_ai__request__model": call.model,
            "gen_ai__request__max_tokens": limits.max_tokens,
            "gen_ai__output__type": "json",
        }
        with self._tracing.span(f"chat {call.model}", kind=SpanKind.CLIENT, **attributes) as span:
            done = await self._client.send(call, left)
            span.set_attribute("gen_ai.usage.input_tokens", done.input_tokens)
            span.set_attribute("gen_ai.usage.output_tokens", done.output_tokens)
            span.set_attribute("gen_ai.response.model", done.model or call.model)
            span.set_attribute("gen_ai.response.finish_reasons", [done.finish or "unknown"])
            return done

    def _options(self, purpose: Purpose, limits: CallLimits) -> dict[str, Any]:
        schema = {"name": purpose, "strict": True, "schema": SCHEMAS[purpose]}
        strict = limits.model.startswith(_STRICT)
        options: dict[str, Any] = {
            "max_completion_tokens": limits.max_tokens,
            "response_format": {"type": "json_schema", "json_schema": schema} if strict else {"type": "json_object"},
        }
        if self.name == "groq" and limits.model.startswith("openai/gpt-oss-"):
            options |= {"reasoning_effort": limits.effort, "include_reasoning": False}
        return options


def language_model(
    provider: Provider,
    key: str,
    tracing: Tracing,
    *,
    url: str | None = None,
    model: str = "openai/gpt-oss-120b",
    light_model: str = "openai/gpt-oss-20b",
    budget: int = 12_000,
    backoff: float = 0.5,
) -> LanguageModel:
    """A reasoner on one provider, with the limits of D-147: 8 s for the router, 20 s for the final call.

    Args:
        provider: `groq`, or `openai` for any address that speaks OpenAI's API.
        key: the provider's key.
        tracing: where the spans go.
        url: address instead of the provider's own; for `groq` without, for `openai` with the `/v1`.
        model: model of the final call.
        light_model: model of the router call.
        budget: tokens of a prompt.
        backoff: seconds that the first wait between tries may take.
    """
    router = CallLimits(light_model, seconds=8.0, max_tokens=2_000, effort="low")
    final = CallLimits(model, seconds=20.0, max_tokens=4_000, effort="medium")
    client = ChatClient(provider, key, url)
    return LanguageModel(client, tracing, router, final, budget, Patience(Breaker(), backoff))
