"""Synthetic items: seeded texts and vectors that are distributed as those of real ones are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from phronesis_embedding.local import LocalEmbedder
from phronesis_memory.values import Vector

DIMENSION = 384
MODEL = "synthetic"
_VOCABULARY = 20_000
_LENGTH = 40
_CLUSTERS = 500
_SPREAD = 1.0
"""Noise beside a cluster's centre, as long as the centre: neighbours in a cluster have a cosine near 0.5, as MiniLM's do."""


class GivenVectors:
    """An embedder that is told the vectors of its questions."""

    model = MODEL
    dimension = DIMENSION
    floor: float | None = None

    def __init__(self) -> None:
        self.of: dict[str, Vector] = {}

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors that were given."""
        return [self.of[text] for text in texts]

    async def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors that were given."""
        return [self.of[text] for text in texts]


class Embedding:
    """The local model at work, with a made-up vector in place of its own, which would be far from all that is stored."""

    model, dimension = MODEL, DIMENSION
    floor: float | None = None

    def __init__(self, works: LocalEmbedder, given: GivenVectors) -> None:
        self._works = works
        self._given = given

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors that were given, once the model has made its own."""
        await self._works.embed_queries(texts)
        return await self._given.embed_queries(texts)

    async def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        """The same of what is stored."""
        await self._works.embed_texts(texts)
        return await self._given.embed_texts(texts)


class Synthetic:
    """A seeded source of texts and vectors."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._names = np.array([f"w{n}" for n in range(_VOCABULARY)])
        weights = 1 / np.arange(1, _VOCABULARY + 1) ** 1.05
        self._weights = weights / weights.sum()
        self._centres = self._unit(self._rng.normal(size=(_CLUSTERS, DIMENSION)))

    def texts(self, count: int, length: int = _LENGTH) -> list[str]:
        """Texts of `length` words; few words are common, most are rare."""
        drawn = self._rng.choice(_VOCABULARY, size=(count, length), p=self._weights)
        return [" ".join(row) for row in self._names[drawn]]

    def vectors(self, count: int) -> npt.NDArray[np.float32]:
        """Vectors of length 1 around the clusters' centres."""
        centres = self._centres[self._rng.integers(_CLUSTERS, size=count)]
        noise = self._unit(self._rng.normal(size=(count, DIMENSION)))
        return self._unit(centres + _SPREAD * noise).astype(np.float32)

    def vector(self, rng: np.random.Generator) -> Vector:
        """One vector of length 1 around a cluster's centre, by another's chance."""
        centre = self._centres[rng.integers(_CLUSTERS)]
        noise = self._unit(rng.normal(size=(1, DIMENSION)))
        drawn: Vector = self._unit(centre + _SPREAD * noise)[0].astype(np.float32)
        return drawn

    @staticmethod
    def _unit(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        unit: npt.NDArray[np.float64] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit
