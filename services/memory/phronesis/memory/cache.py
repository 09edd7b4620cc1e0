"""The vectors of questions, kept for a while."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from .domain.values import Vector
from .ports import Embedder


class QueryVectors:
    """Embeds questions and remembers their vectors by tenant, text, model and dimension.

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
        self._kept: OrderedDict[tuple[str, str, str, int], tuple[Vector, float]] = OrderedDict()

    async def of(self, tenant: str, text: str) -> Vector:
        """The vector of a tenant's question.

        Raises:
            Unavailable: the model does not answer.
        """
        key = (tenant, text, self._embedder.model, self._embedder.dimension)
        kept = self._kept.get(key)
        if kept is not None and kept[1] > self._clock():
            self._kept.move_to_end(key)
            return kept[0]
        vector = await self._embedder.embed_query(text)
        self._kept[key] = (vector, self._clock() + self._seconds)
        self._kept.move_to_end(key)
        while len(self._kept) > self._size:
            self._kept.popitem(last=False)
        return vector
