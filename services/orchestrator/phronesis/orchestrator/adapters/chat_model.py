"""The reasoner that asks a language model: Groq, or any address that speaks OpenAI's API."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeVar

from phronesis.bus.tracing import Tracing
from phronesis.contracts import ModelUnavailable
from phronesis.contracts.instructions import AgentProfile
from phronesis.contracts.memory import AugmentedMemoryContext

from ..answers import parse_composed, parse_routed, parse_summarised
from ..budget import ANSWER
from ..history import PastTurn, Summary
from ..measures import BREAKER
from ..prompts import ChatMessage, final_messages, router_messages, summarise_messages
from ..reasoner import Answer, CallFailed, Composed, Fault, Routed, Summarised, TurnContext, step
from ..templates import SCHEMAS, BadTemplate
from .breaker import Breaker
from .chat_client import ChatCall, ChatClient, Provider
from .chat_retry import Patience
from .chat_watch import CallWatch

log = logging.getLogger(__name__)

STEP_HEADER = "X-Phronesis-Step"
_STRICT = ("openai/gpt-oss-", "gpt-4o", "gpt-4.1", "gpt-5")
"""Beginnings of the names of models that keep to a JSON Schema while they write; the others are asked for JSON alone."""
_WHY = {
    "tool_calls": " No tool is offered: answer with the JSON object.",
    "length": " The answer was cut at its greatest length: be shorter.",
    "content_filter": " A filter held the answer back.",
}
"""What the end of an answer adds to what is wrong with it, by the provider's name for that end."""
_SUMMARISE = 4.0
"""Seconds for a summary: it runs beside the loop, and the reply waits for it no longer than this."""
Value = TypeVar("Value", Routed, Composed, Summarised)
Purpose = Literal["router", "final", "summarise"]


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
        patience: makes the patience with one model's endpoint, from the model's name; purposes with one model share it.
    """

    def __init__(
        self,
        client: ChatClient,
        tracing: Tracing,
        router: CallLimits,
        final: CallLimits,
        budget: int,
        patience: Callable[[str], Patience],
    ) -> None:
        self.name: str = client.provider
        self._client = client
        self._tracing = tracing
        self._limits: dict[Purpose, CallLimits] = {
            "router": router,
            "final": final,
            "summarise": replace(router, seconds=min(router.seconds, _SUMMARISE)),
        }
        self._budget = budget
        self._patience = {model: patience(model) for model in {router.model, final.model}}
        for name, patient in self._patience.items():
            tracing.metrics.watch(BREAKER, partial(_is_open, patient), name)

    async def close(self) -> None:
        """Close the connections to the provider."""
        await self._client.close()

    async def route(self, turn: TurnContext, fault: Fault | None = None) -> Answer[Routed]:
        """Decide whether memory is needed. Raises `CallFailed`."""
        messages = self._fill(turn, lambda agent: router_messages(agent, turn, fault, self._budget))
        return await self._ask("router", messages, parse_routed)

    async def compose(
        self, turn: TurnContext, draft: str | None, memory: AugmentedMemoryContext | None, fault: Fault | None = None
    ) -> Answer[Composed]:
        """Write the reply and choose the next stance. Raises `CallFailed`."""
        messages = self._fill(turn, lambda agent: final_messages(agent, turn, draft, memory, fault, self._budget))
        return await self._ask("final", messages, parse_composed)

    async def summarise(self, turn: TurnContext, earlier: Summary, dropped: tuple[PastTurn, ...]) -> Answer[Summarised]:
        """Put older turns in short, by the light model. Raises `CallFailed`."""
        messages = self._fill(turn, lambda agent: summarise_messages(agent, turn, earlier, dropped, self._budget))
        return await self._ask("summarise", messages, parse_summarised)

    def _fill(self, turn: TurnContext, make: Callable[[AgentProfile], list[ChatMessage]]) -> list[ChatMessage]:
        if turn.agent is None:
            raise ModelUnavailable("the agent's instructions could not be had, and a language model needs them")
        try:
            return make(turn.agent)
        except BadTemplate as error:
            log.error("a prompt cannot be filled: %s", error)
            raise ModelUnavailable("a prompt of the agent cannot be filled") from error

    async def _ask(self, purpose: Purpose, messages: list[ChatMessage], parse: Callable[[str], Value | Fault]) -> Answer[Value]:
        limits = self._limits[purpose]
        call = ChatCall(limits.model, messages, self._options(purpose, limits), {STEP_HEADER: step.get() or purpose})
        watch = CallWatch(self._tracing, self.name, purpose, limits.max_tokens)
        try:
            tried = await self._patience[limits.model].run(lambda left: watch.send(self._client, call, left), limits.seconds)
        except CallFailed as failed:
            failed.cost_usd = watch.cost(call.model, failed.spent)
            raise
        done = tried.value
        spent = tried.before.plus(done.spent)
        paid = watch.cost(call.model, spent)
        parsed = parse(done.text)
        if isinstance(parsed, Fault):
            log.warning("the model's answer for %s is no good (finish: %s)", purpose, done.finish)
            return Answer(None, Fault(parsed.said, f"{parsed.wrong}{_WHY.get(done.finish or '', '')}"), spent, paid)
        return Answer(parsed, None, spent, paid)

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


def _is_open(patience: Patience) -> float:
    return float(patience.is_open)


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
    final = CallLimits(model, seconds=20.0, max_tokens=ANSWER, effort="medium")
    client = ChatClient(provider, key, url)
    return LanguageModel(client, tracing, router, final, budget, lambda asked: Patience(Breaker(f"the model {asked}"), backoff))
