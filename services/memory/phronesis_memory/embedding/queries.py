"""The vectors of questions, kept for a while."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from phronesis_contracts import ServiceError, Unavailable

from ..ports import Embedder
from ..values import Vector

log = logging.getLogger(__name__)

_Key: TypeAlias = tuple[str, str, str, int]


@dataclass
class _Embedding:
    """Questions that are being embedded."""

    task: asyncio.Task[dict[str, Vector]]
    askers: int = 0


class QueryVectors:
    """Embeds questions and remembers their vectors by tenant, text, model and dimension.

    What is asked side by side, as the parts of one turn's recall are, is embedded once (V-T01).

    The tenant is part of the key, so that no tenant can tell from the time an answer takes what another one has asked.

    Args:
        embedder: the model.
        seconds: how long a vector is kept.
        size: how many are kept at most; the one unused for longest goes first.
        clock: seconds that only grow.
    """

    def __init__(self, embedder: Embedder, seconds: float, size: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._embedder = embedder
        self._seconds = seconds
        self._size = size
        self._clock = clock
        self._kept: OrderedDict[_Key, tuple[Vector, float]] = OrderedDict()
        self._under_way: dict[tuple[_Key, ...], _Embedding] = {}

    async def of(self, tenant: str, texts: Sequence[str]) -> dict[str, Vector]:
        """The vectors of a tenant's questions, by question; those that the model refuses are left out.

        Raises:
            Unavailable: the model does not answer.
        """
        found = {text: vector for text in texts if (vector := self._known(self._key(tenant, text))) is not None}
        new = [text for text in dict.fromkeys(texts) if text not in found]
        if new:
            embedded = await self._shared(tenant, new)
            for text, vector in embedded.items():
                self._keep(self._key(tenant, text), vector)
            found |= embedded
        return found

    async def _shared(self, tenant: str, texts: list[str]) -> dict[str, Vector]:
        """The vectors of questions, made once for all who ask for the same at that time, and given up with the last of them."""
        keys = tuple(self._key(tenant, text) for text in texts)
        work = self._under_way.get(keys)
        if work is None:
            work = self._under_way[keys] = _Embedding(asyncio.create_task(self._embedded(texts)))
        work.askers += 1
        try:
            return await asyncio.shield(work.task)
        finally:
            work.askers -= 1
            if not work.askers:
                self._under_way.pop(keys)
                work.task.cancel()

    async def _embedded(self, texts: list[str]) -> dict[str, Vector]:
        try:
            return dict(zip(texts, await self._embedder.embed_queries(texts), strict=True))
        except ServiceError:
            if len(texts) == 1:
                raise
        # One question that the model refuses does not lose the others (D-081).
        embedded: dict[str, Vector] = {}
        for text in texts:
            try:
                [embedded[text]] = await self._embedder.embed_queries([text])
            except ServiceError as error:
                log.warning("a question could not be embedded: %s", error.code)
        if not embedded:
            raise Unavailable("the model does not answer", retry_after=1)
        return embedded

    def drop(self, tenant: str) -> None:
        """Keep no question of a tenant any more: something was forgotten, and any of them may hold its words."""
        for key in [key for key in self._kept if key[0] == tenant]:
            del self._kept[key]

    def _key(self, tenant: str, text: str) -> _Key:
        return tenant, text, self._embedder.model, self._embedder.dimension

    def _known(self, key: _Key) -> Vector | None:
        kept = self._kept.get(key)
        if kept is None or kept[1] <= self._clock():
            return None
        self._kept.move_to_end(key)
        return kept[0]

    def _keep(self, key: _Key, vector: Vector) -> None:
        self._kept[key] = (vector, self._clock() + self._seconds)
        self._kept.move_to_end(key)
        while len(self._kept) > self._size:
            self._kept.popitem(last=False)
