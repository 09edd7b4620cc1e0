"""Rows of the table `vectors`, from and to values."""

from __future__ import annotations

from collections.abc import Sequence

import asyncpg
import numpy as np

from phronesis_contracts.memory import ItemKind

from ..domain.values import Vector, VectorEntry, VectorHit
from .halves import rounded


def written(vector: Vector) -> str:
    """A vector as Postgres takes it."""
    return "[" + ",".join(["%.6g"] * vector.size) % tuple(rounded(vector).tolist()) + "]"


def hits(rows: Sequence[asyncpg.Record], vectors: int) -> list[list[VectorHit]]:
    """The hits of each of so many asked vectors, in the order of the rows."""
    found: list[list[VectorHit]] = [[] for _ in range(vectors)]
    for row in rows:
        hit = VectorHit(str(row["item_id"]), ItemKind(row["kind"]), float(row["cosine"]), row["family"])
        found[row["n"] - 1].append(hit)
    return found


def entry(row: asyncpg.Record) -> VectorEntry:
    """One entry, with its numbers as they are kept."""
    passages = tuple(_read(passage) for passage in row["passages"])
    of = (str(row["item_id"]), row["tenant"], row["owner"], ItemKind(row["kind"]))
    return VectorEntry(*of, _read(row["embedding"]), row["family"], passages)


def _read(text: str) -> Vector:
    return np.array(text[1:-1].split(","), np.float32)
