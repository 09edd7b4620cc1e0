"""One try of a chat call, through the provider's own SDK: its answer, its failures, its span and its cost."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from opentelemetry.trace import Span, SpanKind

from phronesis_bus import Tracing
from phronesis_bus.metrics import MODEL_SECONDS, MODEL_TOKENS
from phronesis_bus.tracing import conversation
from phronesis_tokens import count

from ..ledger.budgets import price_call
from ..ledger.usage import CallUsage
from ..metrics import COST
from .completions import (
    Completion,
    PiecedCompletion,
    TryFailed,
    failure_from_status,
    parse_completion,
    read_error,
    read_usage,
    refused_text,
)

MAX_BODY = 4_000_000
"""Bytes of an answer that are read."""
MAX_STREAM = 40_000_000
"""The same of one that comes in pieces, each of which is wrapped in some 200 bytes."""
_CONNECT, _POOL = 3.0, 2.0
"""Seconds to connect, and to get a connection from the pool."""
_CONNECTIONS = 100

_TOLD = 300
"""Characters of an error's text that are looked at."""
_COUNTED = 200_000
"""Tokens up to which a text is counted."""
_STREAMED: dict[str, Any] = {"stream": True, "extra_body": {"stream_options": {"include_usage": True}}}
OnText = Callable[[str], Awaitable[None]]
"""Takes a piece of an answer's text as it comes."""
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
    """

    def __init__(self, provider: Provider, key: str, url: str | None = None) -> None:
        self.provider: Provider = provider
        sdk, client, http = _LIBRARIES[provider]
        self._sdk, self._http = importlib.import_module(sdk), importlib.import_module(http)
        logging.getLogger(sdk).setLevel(logging.WARNING)  # at debug level it would log whole messages
        self._make = getattr(self._sdk, client)
        self._raw = self._http.Response
        self._key, self._url = key, url
        self._pool = self._new_pool()

    @property
    def url(self) -> str:
        """The address, without a user or a query that may stand for a secret."""
        address = self._pool.client.base_url
        return str(address.copy_with(userinfo=b"", query=None, fragment=None))

    async def close(self) -> None:
        await self._pool.client.close()

    async def send(self, call: ChatRequest, seconds: float, on_text: OnText | None = None) -> Completion:
        """Ask once.

        Args:
            seconds: that it may take.
            on_text: asks for the answer in pieces, and is given the text of each.

        Raises:
            TryFailed: no usable answer within `seconds`.
        """
        async with self._borrowed() as client:
            try:
                async with asyncio.timeout(seconds):
                    if on_text is not None:
                        return await self._stream(client, call, seconds, on_text)
                    return parse_completion(await self._post(client, call, seconds))
            except TimeoutError as error:
                raise TryFailed("the language model did not answer in time", again=True) from error
            except self._sdk.APIStatusError as error:
                told, stated = read_usage(error.response.content), read_error(error.body)
                if said := refused_text(stated):
                    return Completion(said, told, finish="rejected")
                failed = failure_from_status(error.status_code, error.response.headers, stated.get("code"), told)
                failed.told = str(stated.get("message") or "")[:_TOLD]
                raise failed from error
            except (self._sdk.APIConnectionError, self._http.HTTPError) as error:
                raise self._connection_failed(error) from error

    async def get(self, path: str, seconds: float) -> bytes | None:
        """What the endpoint says under a path beside its API; `None` where it says nothing.

        Args:
            path: from the API's address, or with a slash before it from the host's.
        """
        async with self._borrowed() as client:
            try:
                async with asyncio.timeout(seconds):
                    host = str(client.base_url.copy_with(path="/")).rstrip("/")
                    return bytes((await client.get(f"{host}{path}" if path[0] == "/" else path, cast_to=self._raw)).content)
            except (TimeoutError, self._sdk.APIError, self._http.HTTPError):
                return None

    async def _post(self, client: Any, call: ChatRequest, seconds: float) -> bytes:
        body = bytearray()
        async with self._request(client, call, seconds, {}) as response:
            async for chunk in response.iter_bytes():
                body += chunk
                _check_size(len(body))
        return bytes(body)

    async def _stream(self, client: Any, call: ChatRequest, seconds: float, on_text: OnText) -> Completion:
        pieces, size = PiecedCompletion(), 0
        async with self._request(client, call, seconds, _STREAMED) as response:
            whole = bytearray() if "text/event-stream" not in response.headers.get("content-type", "") else None
            async for chunk in response.iter_bytes():
                size += len(chunk)
                _check_size(size, MAX_BODY if whole is not None else MAX_STREAM)
                if whole is not None:
                    whole += chunk
                elif text := pieces.feed(chunk):
                    await on_text(text)
        if whole is not None:  # it does not know the option
            done = parse_completion(bytes(whole))
            await on_text(done.text)
            return replace(done, streamed=False)
        done = pieces.ended()
        return done if pieces.counted else replace(done, spent=_estimate(call, done))

    def _request(self, client: Any, call: ChatRequest, seconds: float, more: Mapping[str, Any]) -> Any:
        options = {**call.options, **more}
        options["extra_body"] = {**call.options.get("extra_body", {}), **more.get("extra_body", {})}
        return client.chat.completions.with_streaming_response.create(
            model=call.model,
            messages=call.messages,
            extra_headers=call.headers,
            timeout=self._http.Timeout(seconds, connect=min(_CONNECT, seconds), pool=min(_POOL, seconds)),
            **options,
        )

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


def _check_size(size: int, most: int = MAX_BODY) -> None:
    if size > most:
        raise TryFailed("the language model's answer is too long", again=False)


def _estimate(call: ChatRequest, done: Completion) -> CallUsage:
    """What a call used, counted here: some servers do not say it behind a stream."""
    read = sum(count(str(message.get("content") or ""), _COUNTED) for message in call.messages)
    return CallUsage(model_calls=1, input_tokens=read, output_tokens=count(done.text, _COUNTED))


_CHAT = "chat"


class CallTelemetry:
    """Watches the tries of one call.

    Args:
        tracing: where spans and figures go.
        provider: `groq` or `openai`.
        max_tokens: tokens that the model may write.
    """

    def __init__(self, tracing: Tracing, provider: str, purpose: str, max_tokens: int) -> None:
        self._tracing, self._provider, self._purpose, self._max_tokens = tracing, provider, purpose, max_tokens

    async def send(self, client: ChatClient, call: ChatRequest, seconds: float, on_text: OnText | None = None) -> Completion:
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
                done = await client.send(call, seconds, on_text)
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
    cause = failed.__cause__
    status = getattr(cause, "status_code", None)
    return str(status) if status else type(cause).__name__ if cause is not None else "unusable"
