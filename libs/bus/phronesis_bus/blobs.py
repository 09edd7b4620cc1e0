"""Buckets of the NATS Object Store: the way for what is larger than a message."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable
from typing import TypeVar

from nats.errors import Error as NatsError
from nats.js.errors import BucketNotFoundError, NotFoundError, ObjectDeletedError, ObjectNotFoundError
from nats.js.object_store import ObjectStore

from phronesis_contracts import NotFound, Unavailable

from .connection import Bus

T = TypeVar("T")
_LONGEST = 30.0
"""Seconds that one object may take: the library waits for each piece of it, and for a lost one without an end."""


class Blobs:
    def __init__(self, bus: Bus, bucket: str) -> None:
        self._bus = bus
        self._bucket = bucket
        self._open: ObjectStore | None = None

    async def put(self, name: str, data: bytes) -> None:
        store = await self._store()
        await _translate_errors(store.put(name, io.BytesIO(data)))

    async def get(self, name: str) -> bytes:
        """The bytes under `name`. Raises `NotFound`: there are none."""
        store = await self._store()
        found = await _translate_errors(store.get(name))
        return found.data or b""

    async def delete(self, name: str) -> None:
        store = await self._store()
        try:
            await _translate_errors(store.delete(name))
        except NotFound:
            return

    async def names(self) -> list[str]:
        store = await self._store()

        async def listed() -> list[str]:
            try:
                return [str(info.name) for info in await store.list(ignore_deletes=True)]
            except NotFoundError:  # the library's word for an empty bucket
                return []

        return await _translate_errors(listed())

    async def _store(self) -> ObjectStore:
        if not self._bus.connected:
            raise Unavailable("the broker is away", retry_after=1)
        if self._open is None:
            self._open = await _translate_errors(self._bus.nats.jetstream(timeout=10).object_store(self._bucket))
        return self._open


async def _translate_errors(work: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(_LONGEST):
            return await work
    except (ObjectNotFoundError, ObjectDeletedError) as error:
        raise NotFound("no such object") from error
    except BucketNotFoundError as error:
        raise Unavailable("the bucket is not there yet", retry_after=1) from error
    except (NatsError, TimeoutError, OSError) as error:
        raise Unavailable("the object store does not answer", retry_after=1) from error
