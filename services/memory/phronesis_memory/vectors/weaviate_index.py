"""The vector index in Weaviate, and its connection: what transactions noted is applied after their commit, or by a sweep."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

import httpx
from weaviate import WeaviateAsyncClient
from weaviate.auth import Auth
from weaviate.classes.init import AdditionalConfig, Timeout
from weaviate.config import GrpcConfig
from weaviate.connect import ConnectionParams
from weaviate.exceptions import InsufficientPermissionsError, UnexpectedStatusCodeError, WeaviateBaseError

from phronesis_contracts import SYSTEM_TENANT, Unavailable
from phronesis_postgres import EVERY_TENANT, Connection, Database, reach_of

from ..ports import Transaction
from ..settings import WeaviateSettings
from ..values import Audience, Vector, VectorEntry, VectorHit
from . import weaviate_collections as collections
from .changes import Changes, E, ItemChanges
from .format import StoredModel
from .sync import BATCH, IndexSync

log = logging.getLogger(__name__)
logging.getLogger("weaviate-client").setLevel(logging.WARNING)  # it logs each retry with the server's own words

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
    stale: bool = False


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
        """A client on a server with the collections, a new one after a driver's error. Raises `Unavailable`."""
        try:
            async with asyncio.timeout(seconds), self._use() as client:
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

    async def apply(
        self,
        due: Mapping[str, Changes[E]],
        write: Callable[[WeaviateAsyncClient, str, Changes[E]], Awaitable[list[str]]],
        seconds: float,
    ) -> dict[str, list[str]]:
        """Write changes, by tenant, in so many seconds; by tenant what the server refuses. Raises `Unavailable`."""
        async with self.client(seconds) as client:
            return {tenant: await write(client, tenant, changes) for tenant, changes in due.items()}

    @asynccontextmanager
    async def _use(self) -> AsyncIterator[WeaviateAsyncClient]:
        opened = self._opened or await self._current()
        opened.users += 1
        try:
            yield opened.client
        except (Exception, asyncio.CancelledError):
            if opened is self._opened:
                self._opened = None
            opened.stale = True
            raise
        finally:
            opened.users -= 1
            if opened.stale and not opened.users:
                await opened.client.close()

    async def _current(self) -> _Opened:
        async with self._opening:
            if self._opened is None:
                self._opened = _Opened(await self._connect())
            return self._opened

    async def ensure(self, client: WeaviateAsyncClient) -> None:
        """Make the collections that are missing, as the settings say."""
        await collections.ensure_collections(client, self._settings.max_connections, self._settings.ef_construction)

    async def _connect(self) -> WeaviateAsyncClient:
        client = self._make_client()
        try:
            await client.connect()
            await self.ensure(client)
        except BaseException:
            await client.close()
            raise
        return client

    def _make_client(self) -> WeaviateAsyncClient:
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


ASK, APPLY, _WRITE = 10.0, 5.0, 30.0
"""Seconds of one question, of changes whose rows are locked meanwhile, and of a batch that nobody else waits for."""


class WeaviateIndex:
    """`VectorIndex` on Weaviate's collections and the table `vector_changes`. `open()` makes one that sweeps."""

    def __init__(self, database: Database, weaviate: Weaviate, model: str, dimension: int) -> None:
        self._database, self._weaviate = database, weaviate
        self._stored_model = StoredModel(database, model, dimension)
        self._changes = ItemChanges()
        self._sync = IndexSync(database, self._apply, self._changes)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, settings: WeaviateSettings, database: Database, model: str, dimension: int
    ) -> AsyncIterator[WeaviateIndex]:
        """The index for the length of a block, in which what waits is applied."""
        async with Weaviate.open(settings) as weaviate:
            index = cls(database, weaviate, model, dimension)
            async with index._sync.sweeping():
                yield index

    @property
    def weaviate(self) -> Weaviate:
        return self._weaviate

    async def upsert(self, entries: Sequence[VectorEntry], *, within: Transaction | None = None) -> None:
        for entry in entries:
            for vector in (entry.vector, *entry.passages):
                self._stored_model.fit(vector)
        if entries and within is not None:
            await self._stored_model.claim(cast(Connection, within))
            await self._changes.note(cast(Connection, within), entries)
            return
        for start in range(0, len(entries), BATCH):
            await self._write(entries[start : start + BATCH])

    async def delete(self, tenant: str, ids: Sequence[str], *, within: Transaction | None = None) -> bool:
        if within is not None:
            await self._changes.note_gone(cast(Connection, within), tenant, ids)
            return not ids
        async with self._database.transaction(tenant) as connection:
            await self._changes.drop(connection, tenant, ids)
            async with self._weaviate.client(_WRITE) as client:
                await collections.remove(client, tenant, ids)
        return True

    async def settle(self, tenant: str, ids: Sequence[str]) -> None:
        await self._sync.settle(tenant, ids)

    async def search(self, audience: Audience, vectors: Sequence[Vector], limit: int) -> list[list[VectorHit]]:
        await self._stored_model.expect(*vectors)
        async with self._weaviate.client(ASK) as client:
            return await collections.search(client, audience, vectors, limit)

    async def similarity(
        self, audience: Audience, vectors: Sequence[Vector], ids: Sequence[Sequence[str]]
    ) -> list[dict[str, float]]:
        await self._stored_model.expect(*vectors)
        async with self._weaviate.client(ASK) as client:
            asked = zip(vectors, ids, strict=True)
            return await asyncio.gather(*(collections.cosines(client, audience, vector, some) for vector, some in asked))

    async def count(self, tenant: str, owners: Sequence[str], prefix: str) -> int:
        async with self._weaviate.client(ASK) as client:
            return await collections.count(client, tenant, owners, prefix)

    async def check(self) -> None:
        await self._stored_model.check()
        async with self._weaviate.client(ASK) as client:
            await collections.answers(client, SYSTEM_TENANT)

    async def scan(self, size: int) -> AsyncIterator[list[VectorEntry]]:
        """What waits is applied first."""
        await self._sync.drain()
        async with self._weaviate.client(ASK) as client:
            places = await collections.places(client)
        for place in places:
            last = ""
            while page := await self._page(place, last, size):
                yield page
                last = page[-1].id

    async def clear(self) -> None:
        async with self._database.transaction(EVERY_TENANT) as connection:
            await self._changes.drop_all(connection)
            async with self._weaviate.client(_WRITE) as client:
                await collections.remove_all(client)
                await self._weaviate.ensure(client)
            await self._stored_model.forget(connection)
            await self._changes.release_events(connection)

    async def _page(self, place: tuple[str, str], last: str, size: int) -> list[VectorEntry]:
        async with self._weaviate.client(ASK) as client:
            return await collections.page(client, place, last, size)

    async def _write(self, entries: Sequence[VectorEntry]) -> None:
        """Store entries past the table. What it holds of these items is older, and may not come after them."""
        async with self._database.transaction(reach_of(*(entry.tenant for entry in entries))) as connection:
            await self._stored_model.claim(connection)
            due: dict[str, Changes[VectorEntry]] = {}
            for tenant in sorted({entry.tenant for entry in entries}):
                due[tenant] = Changes(tuple(entry for entry in entries if entry.tenant == tenant))
                await self._changes.drop(connection, tenant, [entry.id for entry in due[tenant].entries])
            if any((await self._apply(due, _WRITE)).values()):
                raise Unavailable("the vector store does not take every vector", retry_after=1)

    async def _apply(self, due: Mapping[str, Changes[VectorEntry]], seconds: float = APPLY) -> dict[str, list[str]]:
        return await self._weaviate.apply(due, _write_changes, seconds)


async def _write_changes(client: WeaviateAsyncClient, tenant: str, changes: Changes[VectorEntry]) -> list[str]:
    if changes.gone:
        await collections.remove(client, tenant, changes.gone)
    return await collections.put(client, tenant, changes.entries)
