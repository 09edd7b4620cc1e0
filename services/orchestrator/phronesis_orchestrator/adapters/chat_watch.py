"""What a model call leaves behind: a span by the GenAI conventions, its time, its tokens and its cost."""

from __future__ import annotations

import json
import time

from opentelemetry.trace import Span, SpanKind

from phronesis_bus import Tracing
from phronesis_bus.metrics import MODEL_SECONDS, MODEL_TOKENS
from phronesis_bus.tracing import conversation

from ..measures import COST
from ..prices import cost
from ..reasoner import Spent
from .chat_bodies import Completion
from .chat_client import ChatCall, ChatClient
from .chat_errors import TryFailed

_CHAT = "chat"


class CallWatch:
    """Watches the tries of one call.

    Args:
        tracing: where spans and figures go.
        provider: `groq` or `openai`.
        purpose: what the call is for, as the metrics name it.
        max_tokens: tokens that the model may write.
    """

    def __init__(self, tracing: Tracing, provider: str, purpose: str, max_tokens: int) -> None:
        self._tracing = tracing
        self._provider = provider
        self._purpose = purpose
        self._max_tokens = max_tokens

    async def send(self, client: ChatClient, call: ChatCall, seconds: float) -> Completion:
        """Try once. Raises `TryFailed`."""
        began, failure = time.perf_counter(), "failed"
        with self._tracing.span(
            f"{_CHAT} {call.model}",
            kind=SpanKind.CLIENT,
            gen_ai__operation__name=_CHAT,
            gen_ai__provider__name=self._provider,
            gen_ai__request__model=call.model,
            gen_ai__request__max_tokens=self._max_tokens,
            gen_ai__output__type="json",
            gen_ai__conversation__id=conversation.get(),
            gen_ai__prompt__name=self._purpose,
        ) as span:
            if self._tracing.captures:
                self._tracing.note(span, "gen_ai.input.messages", json.dumps(call.messages))
            try:
                done = await client.send(call, seconds)
                failure = ""
            except TryFailed as failed:
                failure = _type(failed)
                span.set_attribute("error.type", failure)
                self._used(call.model, failed.spent)
                raise
            finally:
                labels = (_CHAT, self._provider, call.model, self._purpose, failure)
                self._tracing.metrics.observe(MODEL_SECONDS, time.perf_counter() - began, *labels)
            _answered(span, call, done)
            self._tracing.note(span, "gen_ai.output.messages", done.text)
            self._used(call.model, done.spent)
            return done

    def cost(self, model: str, spent: Spent) -> float | None:
        """What all tries cost, in US dollars, counted here; `None` where the model's price is not known."""
        paid = cost(self._provider, model, spent)
        if paid:
            self._tracing.metrics.count(COST, model, self._purpose, by=paid)
        return paid

    def _used(self, model: str, spent: Spent) -> None:
        for kind, tokens in (("input", spent.input_tokens), ("output", spent.output_tokens)):
            if tokens:
                self._tracing.metrics.observe(MODEL_TOKENS, tokens, _CHAT, self._provider, model, self._purpose, kind)


def _answered(span: Span, call: ChatCall, done: Completion) -> None:
    spent = done.spent
    span.set_attribute("gen_ai.response.model", done.model or call.model)
    span.set_attribute("gen_ai.response.finish_reasons", [done.finish or "unknown"])
    span.set_attribute("gen_ai.usage.input_tokens", spent.input_tokens)
    span.set_attribute("gen_ai.usage.output_tokens", spent.output_tokens)
    if spent.cached_tokens:
        span.set_attribute("gen_ai.usage.cache_read.input_tokens", spent.cached_tokens)
    if spent.reasoning_tokens:
        span.set_attribute("gen_ai.usage.reasoning.output_tokens", spent.reasoning_tokens)


def _type(failed: TryFailed) -> str:
    """The status that the provider answered with, or what broke."""
    cause = failed.__cause__
    status = getattr(cause, "status_code", None)
    return str(status) if status else type(cause).__name__ if cause is not None else "unusable"
