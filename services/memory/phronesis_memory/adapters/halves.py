"""Vectors in half precision: both indexes keep the same numbers, so that they rank the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..domain.values import Vector


def rounded(vector: Vector) -> Vector:
    """The numbers that are kept of a vector, and asked with."""
    return vector.astype(np.float16).astype(np.float32)


def packed(vectors: Sequence[Vector]) -> bytes:
    """Vectors of one dimension as bytes, two for each number, one vector after the other."""
    return b"".join(vector.astype("<f2").tobytes() for vector in vectors)


def unpacked(data: bytes, dimension: int) -> tuple[Vector, ...]:
    """The vectors that `packed` made these bytes of."""
    return tuple(np.frombuffer(data, "<f2").astype(np.float32).reshape(-1, dimension))


def received(sent: bytes) -> Vector:
    """A vector as `halfvec_send` gives it: two numbers of two bytes stand before its own."""
    return np.frombuffer(sent, ">f2", offset=4).astype(np.float32)
