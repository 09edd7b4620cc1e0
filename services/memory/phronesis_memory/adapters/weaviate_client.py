"""The connection to Weaviate: made when it is needed, and made anew after whatever went wrong on it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
from weaviate import WeaviateAsyncClient
from weaviate.auth import Auth
from weaviate.classes.init import AdditionalConfig, Timeout
from weaviate.config import GrpcConfig
from weaviate.connect import ConnectionParams
from weaviate.exceptions import InsufficientPermissionsError, UnexpectedStatusCodeError, WeaviateBaseError

from phronesis_contracts import Unavailable

from ..settings import WeaviateSettings
from .weaviate_schema import ensure

log = logging.getLogger(__name__)
logging.getLogger("weaviate-client").setLevel(logging.WARNING)  # it tells each retry with the server's own words

_CONNECT, _LONGEST = 2, 60
"""Seconds to reach the server, and that one call of the driver may take where the caller sets no shorter limit."""
_CHANNEL = [("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 1_000)]
"""A server that is back is found within a second; by default that is two minutes."""
_DENIED = (401, 403)


@dataclass
class _Opened:
    """A client, how many use it, and whether the next use gets another."""

    client: WeaviateAsyncClient
    users: int = 0
    doubted: bool = False


class Weaviate:
    """One service's connection. `open()` makes one."""

    def __init__(self, settings: WeaviateSettings) -> None:
        self._settings = settings
        self._opened: _Opened | None = None
        self._opening = asyncio.Lock()

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: WeaviateSettings) -> AsyncIterator[Weaviate]:
        """The connection for the length of a block. The server need not be there yet: each use finds that out by itself."""
        weaviate = cls(settings)
        try:
            yield weaviate
        finally:
            if weaviate._opened is not None:
                await weaviate._opened.client.close()

    @asynccontextmanager
    async def client(self, seconds: float) -> AsyncIterator[WeaviateAsyncClient]:
        """A client on a server that has the collections. After an error of the driver the next use gets a new one.

        Args:
            seconds: for the whole block.

        Raises:
            Unavailable: the server is down, refuses, or does not answer in time.
        """
        try:
            async with asyncio.timeout(seconds), self._used() as client:
                yield client
        except (InsufficientPermissionsError, UnexpectedStatusCodeError) as error:
            if isinstance(error, InsufficientPermissionsError) or error.status_code in _DENIED:
                log.error("the vector store does not let the service in")
                raise Unavailable("the vector store does not let the service in", retry_after=5) from error
            raise Unavailable("the vector store refuses", retry_after=1) from error
        except TimeoutError as error:
            raise Unavailable("the vector store does not answer in time", retry_after=1) from error
        except (WeaviateBaseError, httpx.HTTPError, OSError) as error:
            raise Unavailable("the vector store does not answer", retry_after=1) from error

    @asynccontextmanager
    async def _used(self) -> AsyncIterator[WeaviateAsyncClient]:
        opened = self._opened or await self._current()
        opened.users += 1
        try:
            yield opened.client
        except (Exception, asyncio.CancelledError):
            if opened is self._opened:
                self._opened = None
            opened.doubted = True
            raise
        finally:
            opened.users -= 1
            if opened.doubted and not opened.users:
                await opened.client.close()

    async def _current(self) -> _Opened:
        async with self._opening:
            if self._opened is None:
                self._opened = _Opened(await self._connected())
            return self._opened

    async def ensure(self, client: WeaviateAsyncClient) -> None:
        """Make the collections that are missing, as the settings say."""
        await ensure(client, self._settings.max_connections, self._settings.ef_construction)

    async def _connected(self) -> WeaviateAsyncClient:
        client = self._made()
        try:
            await client.connect()
            await self.ensure(client)
        except BaseException:
            await client.close()
            raise
        return client

    def _made(self) -> WeaviateAsyncClient:
        assert self._settings.url is not None
        http, grpc = urlsplit(self._settings.url), urlsplit(self._settings.grpc_url)
        where = ConnectionParams.from_params(
            http_host=http.hostname or "",
            http_port=http.port or (443 if http.scheme == "https" else 80),
            http_secure=http.scheme == "https",
            grpc_host=grpc.hostname or "",
            grpc_port=grpc.port or (443 if grpc.scheme == "https" else 80),
            grpc_secure=grpc.scheme == "https",
        )
        file = self._settings.key_file
        return WeaviateAsyncClient(
            where,
            auth_client_secret=Auth.api_key(file.read_text().strip()) if file else None,
            additional_config=AdditionalConfig(
                timeout=Timeout(init=_CONNECT, query=_LONGEST, insert=_LONGEST),
                grpc_config=GrpcConfig(channel_options=_CHANNEL),
            ),
            skip_init_checks=True,  # they ask the package index for a newer driver
        )
