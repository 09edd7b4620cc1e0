"""The embedding model, with the vectors of stored texts kept in a file between runs. Questions are always embedded anew."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np

from phronesis_embedding.local import LocalEmbedder
from phronesis_memory.values import Vector


class KeptEmbedder:
    """`Embedder` on the local model. `open()` makes one."""

    def __init__(self, model: LocalEmbedder, kept: dict[str, Vector]) -> None:
        self._local = model
        self._kept = kept
        self.model, self.dimension, self.floor = model.model, model.dimension, model.floor

    @classmethod
    @asynccontextmanager
    async def open(cls, threads: int, file: Path | None) -> AsyncIterator[KeptEmbedder]:
        """The embedder for the length of a block; without a file nothing outlives it."""
        kept: dict[str, Vector] = {}
        if file is not None and file.exists():
            with np.load(file) as stored:
                kept = dict(zip(stored["texts"].tolist(), stored["vectors"], strict=True))
        before = len(kept)
        async with LocalEmbedder.open(threads) as model:
            yield cls(model, kept)
        if file is not None and len(kept) > before:
            np.savez(file, texts=np.array(list(kept)), vectors=np.stack(list(kept.values())))

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors of questions, by the model."""
        return await self._local.embed_queries(texts)

    async def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors of texts, by the model where they are not kept."""
        new = [text for text in dict.fromkeys(texts) if text not in self._kept]
        self._kept.update(zip(new, await self._local.embed_texts(new), strict=True))
        return [self._kept[text] for text in texts]
