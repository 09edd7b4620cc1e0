"""One try of a chat call, through the provider's own SDK: its answer, its failures, its span and its cost."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import math
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from opentelemetry.trace import Span, SpanKind
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from phronesis_bus import Tracing
from phronesis_bus.metrics import MODEL_SECONDS, MODEL_TOKENS
from phronesis_bus.tracing import conversation

from ..ledger.books import price_call
from ..ledger.usage import CallUsage
from ..metrics import COST
from .parsing import make_storable
from .reasoner import MAX_CALLS, ToolCall

_MISCONFIGURED = {
    400: "the language model refused the request",
    401: "the language model refused the key",
    402: "the language model's account has no credit",
    403: "the language model refused the key's permissions",
    404: "the language model's provider does not know the model or the address",
    413: "the request is too large for the language model",
    422: "the language model refused the request",
}
_BUSY = frozenset({429, 498})
_TOO_LONG = ("context_length_exceeded", "request_too_large")
_ONE_CALL = CallUsage(model_calls=1)


class TryFailed(Exception):
    """One try gave no usable answer.

    Args:
        detail: one sentence for people; nothing of the provider's text.
        again: whether another try may succeed.
        after: seconds that the provider asked to wait.
        busy: whether the provider is merely asked too often.
        misconfigured: whether only an operator can mend it.
        spent: what the try used: no call where the provider never saw it, and the tokens that the provider told.
    """

    def __init__(
        self,
        detail: str,
        *,
        again: bool,
        after: float | None = None,
        busy: bool = False,
        misconfigured: bool = False,
        spent: CallUsage = _ONE_CALL,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.again = again
        self.after = after
        self.busy = busy
        self.misconfigured = misconfigured
        self.spent = spent


def failure_from_status(status: int, headers: Mapping[str, str], code: str | None, spent: CallUsage = _ONE_CALL) -> TryFailed:
    """The failure that an HTTP status states.

    Args:
        status: the status.
        headers: the answer's headers.
        code: the provider's own code for the error.
        spent: what the try used.
    """
    if status in _BUSY:
        again = code != "insufficient_quota"
        return TryFailed("the language model is over its rate", again=again, after=retry_after(headers), busy=True, spent=spent)
    if code in _TOO_LONG:
        return TryFailed("the prompt is too long for the language model", again=False, spent=spent)
    if detail := _MISCONFIGURED.get(status):
        return TryFailed(detail, again=False, misconfigured=True, spent=spent)
    again = status >= 500 or status in (408, 409, 425)
    after = retry_after(headers)
    return TryFailed(f"the language model answered with status {status}", again=again, after=after, spent=spent)


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds that a `Retry-After` asks for, given as a number or as a date; `None` without one that can be read."""
    value = headers.get("retry-after", "").strip()
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - (now or datetime.now(UTC))).total_seconds()
        except (ValueError, TypeError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


_MOST_TOKENS = 100_000_000
"""More than any call uses: a greater figure is not believed."""
_LONGEST_NAME = 64
"""Characters of a tool's name."""
_LONGEST_ARGUMENTS = 50_000
"""Characters of a call's arguments; longer ones are cut, and so are no JSON any more."""


@dataclass(frozen=True)
class Completion:
    """What was answered."""

    text: str
    spent: CallUsage
    model: str | None = None
    finish: str | None = None
    calls: tuple[ToolCall, ...] = ()
    """The first tool calls that it asks for."""


class _Function(BaseModel):
    name: str = ""
    arguments: str | dict[str, Any] | None = None


class _Call(BaseModel):
    function: _Function = _Function()


class _Message(BaseModel):
    content: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(BaseModel):
    message: _Message = _Message()
    finish_reason: str | None = None


class _Body(BaseModel):
    choices: list[_Choice]
    model: str | None = None


def parse_completion(body: bytes) -> Completion:
    """A completion from the body that carries it. Raises `TryFailed` where it is none."""
    spent = read_usage(body)
    try:
        read = _Body.model_validate_json(body)
    except ValidationError as error:
        raise TryFailed("the language model's answer is no completion", again=True, spent=spent) from error
    choice = read.choices[0] if read.choices else _Choice()
    calls = tuple(_call(call.function) for call in (choice.message.tool_calls or [])[:MAX_CALLS])
    return Completion(choice.message.content or "", spent, read.model, choice.finish_reason, calls)


def read_usage(body: bytes) -> CallUsage:
    """One call, and the tokens that an answer of whatever kind says it used."""
    try:
        found = from_json(body)
    except ValueError:
        found = None
    usage = found.get("usage") if isinstance(found, dict) else None
    told = usage if isinstance(usage, dict) else {}
    read, written = (told.get(f"{part}_tokens_details") for part in ("prompt", "completion"))
    return CallUsage(
        model_calls=1,
        input_tokens=_count(told.get("prompt_tokens")),
        output_tokens=_count(told.get("completion_tokens")),
        cached_tokens=_count(read.get("cached_tokens") if isinstance(read, dict) else None),
        reasoning_tokens=_count(written.get("reasoning_tokens") if isinstance(written, dict) else None),
    )


def _count(told: object) -> int:
    return told if isinstance(told, int) and 0 <= told <= _MOST_TOKENS else 0


def read_error(body: object) -> dict[str, Any]:
    """The provider's error object."""
    error = body.get("error", body) if isinstance(body, dict) else None
    return error if isinstance(error, dict) else {}


def refused_text(error: dict[str, Any]) -> str | None:
    """What the model said where the provider itself refused it as no JSON, or as a call of a tool it was not offered."""
    if error.get("code") not in ("json_validate_failed", "tool_use_failed"):
        return None
    return str(make_storable(str(error.get("failed_generation") or ""))) or "(nothing)"


def _call(function: _Function) -> ToolCall:
    given = function.arguments
    arguments = given if isinstance(given, str) else "" if given is None else json.dumps(given)
    return ToolCall(name=make_storable(function.name)[:_LONGEST_NAME], arguments=make_storable(arguments)[:_LONGEST_ARGUMENTS])


MAX_BODY = 4_000_000
"""Bytes of an answer that are read."""
_CONNECT, _POOL = 3.0, 2.0
"""Seconds to connect, and to get a connection from the pool."""
_CONNECTIONS = 100
_CONNECT, _POOL = 3.0, 2.0
"""Seconds to connect, and to get a connection from the pool."""
_CONNECTIONS = 100

Provider = Literal["groq", "openai"]
_LIBRARIES: dict[Provider, tuple[str, str, str]] = {
    "groq": ("groq", "AsyncGroq", "httpx"),
    "openai": ("openai", "AsyncOpenAI", "httpx2"),
}
"""SDK, its client, and the HTTP library it stands on; imported when a client is made, since each costs most of a second."""


@dataclass(frozen=True)
class ChatRequest:
    """What is asked."""

    model: str
    messages: Sequence[Mapping[str, Any]]
    options: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class _Pool:
    client: Any
    users: int = 0


class ChatClient:
    """Chat completions of one provider.

    Args:
        provider: `groq`, or `openai` for any address that speaks OpenAI's API.
        key: the provider's key; an address without keys takes any.
        url: address instead of the provider's own.
    """

    def __init__(self, provider: Provider, key: str, url: str | None = None) -> None:
        self.provider: Provider = provider
        sdk, client, http = _LIBRARIES[provider]
        self._sdk, self._http = importlib.import_module(sdk), importlib.import_module(http)
        logging.getLogger(sdk).setLevel(logging.WARNING)  # at debug level it would log whole messages
        self._make = getattr(self._sdk, client)
        self._key, self._url = key, url
        self._pool = self._new_pool()

    async def close(self) -> None:
        """Close the connections."""
        await self._pool.client.close()

    async def send(self, call: ChatRequest, seconds: float) -> Completion:
        """Ask once.

        Raises:
            TryFailed: no usable answer within `seconds`.
        """
        async with self._borrowed() as client:
            try:
                async with asyncio.timeout(seconds):
                    return parse_completion(await self._post(client, call, seconds))
            except TimeoutError as error:
                raise TryFailed("the language model did not answer in time", again=True) from error
            except self._sdk.APIStatusError as error:
                told, stated = read_usage(error.response.content), read_error(error.body)
                if said := refused_text(stated):
                    return Completion(said, told, finish="rejected")
                raise failure_from_status(error.status_code, error.response.headers, stated.get("code"), told) from error
            except (self._sdk.APIConnectionError, self._http.HTTPError) as error:
                raise self._connection_failed(error) from error

    async def _post(self, client: Any, call: ChatRequest, seconds: float) -> bytes:
        request = client.chat.completions.with_streaming_response.create(
            model=call.model,
            messages=call.messages,
            extra_headers=call.headers,
            timeout=self._http.Timeout(seconds, connect=min(_CONNECT, seconds), pool=min(_POOL, seconds)),
            **call.options,
        )
        body = bytearray()
        async with request as response:
            async for chunk in response.iter_bytes():
                body += chunk
                if len(body) > MAX_BODY:
                    raise TryFailed("the language model's answer is too long", again=False)
        return bytes(body)

    def _connection_failed(self, error: Exception) -> TryFailed:
        cause = error.__cause__ if isinstance(error, self._sdk.APIConnectionError) else error
        if isinstance(cause, self._http.PoolTimeout):
            # Cancelled calls can leave slots of the pool taken for ever (httpcore #1093): a new pool has all of them.
            self._pool = self._new_pool()
            return TryFailed("no free connection to the language model", again=True, spent=CallUsage())
        if isinstance(cause, self._http.ConnectError | self._http.ConnectTimeout):
            return TryFailed("the language model cannot be reached", again=True, spent=CallUsage())
        return TryFailed("the connection to the language model broke", again=True)

    def _new_pool(self) -> _Pool:
        limits = self._http.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS)
        http = self._sdk.DefaultAsyncHttpxClient(limits=limits)
        return _Pool(self._make(api_key=self._key, base_url=self._url, max_retries=0, http_client=http))

    @asynccontextmanager
    async def _borrowed(self) -> AsyncIterator[Any]:
        """The client of the present pool; a pool that was replaced is closed by its last user."""
        pool = self._pool
        pool.users += 1
        try:
            yield pool.client
        finally:
            pool.users -= 1
            if pool is not self._pool and not pool.users:
                await pool.client.close()


_CHAT = "chat"


class CallTelemetry:
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

    async def send(self, client: ChatClient, call: ChatRequest, seconds: float) -> Completion:
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
                failure = _failure_type(failed)
                span.set_attribute("error.type", failure)
                self._used(call.model, failed.spent)
                raise
            finally:
                labels = (_CHAT, self._provider, call.model, self._purpose, failure)
                self._tracing.metrics.observe(MODEL_SECONDS, time.perf_counter() - began, *labels)
            _tag_answer(span, call, done)
            self._tracing.note(span, "gen_ai.output.messages", done.text)
            self._used(call.model, done.spent)
            return done

    def cost(self, model: str, spent: CallUsage) -> float | None:
        """What all tries cost, in US dollars, counted here; `None` where the model's price is not known."""
        paid = price_call(self._provider, model, spent)
        if paid:
            self._tracing.metrics.count(COST, model, self._purpose, by=paid)
        return paid

    def _used(self, model: str, spent: CallUsage) -> None:
        for kind, tokens in (("input", spent.input_tokens), ("output", spent.output_tokens)):
            if tokens:
                self._tracing.metrics.observe(MODEL_TOKENS, tokens, _CHAT, self._provider, model, self._purpose, kind)


def _tag_answer(span: Span, call: ChatRequest, done: Completion) -> None:
    spent = done.spent
    span.set_attribute("gen_ai.response.model", done.model or call.model)
    span.set_attribute("gen_ai.response.finish_reasons", [done.finish or "unknown"])
    span.set_attribute("gen_ai.usage.input_tokens", spent.input_tokens)
    span.set_attribute("gen_ai.usage.output_tokens", spent.output_tokens)
    if spent.cached_tokens:
        span.set_attribute("gen_ai.usage.cache_read.input_tokens", spent.cached_tokens)
    if spent.reasoning_tokens:
        span.set_attribute("gen_ai.usage.reasoning.output_tokens", spent.reasoning_tokens)


def _failure_type(failed: TryFailed) -> str:
    """The status that the provider answered with, or what broke."""
    cause = failed.__cause__
    status = getattr(cause, "status_code", None)
    return str(status) if status else type(cause).__name__ if cause is not None else "unusable"
