"""One try of a chat call, through the provider's own SDK; every way it can fail becomes one error that says what to do next."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from ..reasoner import Spent
from .chat_bodies import Completion, completion, refused, spent_in, stated_in
from .chat_errors import TryFailed, status_failed

MAX_BODY = 4_000_000
"""Bytes of an answer that are read."""
_CONNECT, _POOL = 3.0, 2.0
"""Seconds to connect, and to get a connection from the pool."""
_CONNECTIONS = 100
_CONNECT, _POOL = 3.0, 2.0
"""Seconds to connect, and to get a connection from the pool."""
_CONNECTIONS = 100
_MOST_TOKENS = 100_000_000
"""More than any call uses: a greater figure is not believed."""

Provider = Literal["groq", "openai"]
_LIBRARIES: dict[Provider, tuple[str, str, str]] = {
    "groq": ("groq", "AsyncGroq", "httpx"),
    "openai": ("openai", "AsyncOpenAI", "httpx2"),
}
"""SDK, its client, and the HTTP library it stands on; imported when a client is made, since each costs most of a second."""


@dataclass(frozen=True)
class ChatCall:
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

    async def send(self, call: ChatCall, seconds: float) -> Completion:
        """Ask once.

        Raises:
            TryFailed: no usable answer within `seconds`.
        """
        async with self._borrowed() as client:
            try:
                async with asyncio.timeout(seconds):
                    return completion(await self._post(client, call, seconds))
            except TimeoutError as error:
                raise TryFailed("the language model did not answer in time", again=True) from error
            except self._sdk.APIStatusError as error:
                told, stated = spent_in(error.response.content), stated_in(error.body)
                if said := refused(stated):
                    return Completion(said, told, finish="rejected")
                raise status_failed(error.status_code, error.response.headers, stated.get("code"), told) from error
            except (self._sdk.APIConnectionError, self._http.HTTPError) as error:
                raise self._connection_failed(error) from error

    async def _post(self, client: Any, call: ChatCall, seconds: float) -> bytes:
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
            return TryFailed("no free connection to the language model", again=True, spent=Spent())
        if isinstance(cause, self._http.ConnectError | self._http.ConnectTimeout):
            return TryFailed("the language model cannot be reached", again=True, spent=Spent())
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
