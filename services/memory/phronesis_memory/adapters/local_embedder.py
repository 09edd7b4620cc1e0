"""`Embedder` on the local model."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

from phronesis_contracts import ServiceError, Unavailable

from ..domain.values import Vector
from .lanes import Lanes
from .minilm import DIMENSION, MAX_TOKENS, MODEL, MiniLm

log = logging.getLogger(__name__)

BATCH = 32
BATCH_TOKENS = 256
"""Padded tokens of a batch. Larger ones are slower on two cores, take more memory, and keep a question waiting for longer."""


class LocalEmbedder:
    """MiniLM in a thread of its own. `open()` makes one."""

    model = MODEL
    dimension = DIMENSION
    floor: float | None = 0.28
    """MiniLM separates related from unrelated texts here (measured)."""

    def __init__(self, model: MiniLm, lanes: Lanes) -> None:
        self._minilm = model
        self._lanes = lanes

    @classmethod
    @asynccontextmanager
    async def open(cls, threads: int) -> AsyncIterator[LocalEmbedder]:
        """The embedder for the length of a block.

        Raises:
            WrongModel: the installed weights are not the right ones.
        """
        model = await asyncio.to_thread(MiniLm, threads)
        async with Lanes.open() as lanes:
            yield cls(model, lanes)

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """See `Embedder`. A vector is the same to the last bit whatever it is padded with and computed beside."""
        return await self._in_batches(texts, urgent=True)

    async def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        """See `Embedder`."""
        return await self._in_batches(texts)

    async def _in_batches(self, texts: Sequence[str], *, urgent: bool = False) -> list[Vector]:
        """Equal texts are embedded once; batches hold texts of like lengths."""
        distinct = list(dict.fromkeys(texts))
        found: dict[str, Vector] = {}
        # Characters stand for tokens here: sorting needs no exact figure, and tokenising belongs in the thread.
        for some in _groups(sorted(distinct, key=len)):
            found |= dict(zip(some, await self._do(some, urgent=urgent), strict=True))
        return [found[text] for text in texts]

    async def _do(self, texts: list[str], *, urgent: bool) -> list[Vector]:
        def work() -> list[Vector]:
            return self._minilm.run([self._minilm.tokens(text) for text in texts])

        try:
            vectors = await self._lanes.do(work, urgent=urgent)
        except ServiceError:
            raise
        except Exception as error:
            log.exception("the embedding model failed")
            raise Unavailable("the embedding model failed", retry_after=1) from error
        return vectors


def _groups(texts: Sequence[str]) -> Iterator[list[str]]:
    """Texts, sorted by length, in batches whose padded size stays near the limit.

    The limit is on memory, before anything is tokenised, so that characters will do: four are about a token, and outside
    the Latin script each is one.
    """
    group: list[str] = []
    for text in texts:
        tokens = min(MAX_TOKENS, len(text) // 4 + len(text.encode()) - len(text) + 2)
        if group and (len(group) >= BATCH or tokens * (len(group) + 1) > BATCH_TOKENS):
            yield group
            group = []
        group.append(text)
    if group:
        yield group
