"""How vectors are stored: in half precision, as text, bytes and rows, and all of one model, which the schema names."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache

import asyncpg
import numpy as np

from phronesis_contracts import SYSTEM_TENANT
from phronesis_contracts.memory import EmbeddingMismatch, ItemKind
from phronesis_postgres import Connection, Database

from ..values import Vector, VectorEntry, VectorHit


def round_half(vector: Vector) -> Vector:
    """The numbers that are kept of a vector, and asked with."""
    return vector.astype(np.float16).astype(np.float32)


def pack(vectors: Sequence[Vector]) -> bytes:
    """Vectors of one dimension as bytes, two for each number, one vector after the other."""
    return b"".join(vector.astype("<f2").tobytes() for vector in vectors)


def unpack(data: bytes, dimension: int) -> tuple[Vector, ...]:
    """The vectors that `pack` made these bytes of."""
    return tuple(np.frombuffer(data, "<f2").astype(np.float32).reshape(-1, dimension))


def from_halfvec(sent: bytes) -> Vector:
    """A vector as `halfvec_send` gives it: two numbers of two bytes stand before its own."""
    return np.frombuffer(sent, ">f2", offset=4).astype(np.float32)


def to_halfvec(vector: Vector) -> str:
    """A vector as Postgres takes it."""
    return _written(vector.astype(np.float32).tobytes())


@lru_cache(64)
def _written(numbers: bytes) -> str:
    # A question is asked with its vector two or three times, and to write it out takes as long as a round trip.
    halves = np.frombuffer(numbers, np.float32).astype(np.float16).tolist()
    return "[" + ",".join(["%.6g"] * len(halves)) % tuple(halves) + "]"


def hits_from_rows(rows: Sequence[asyncpg.Record], vectors: int) -> list[list[VectorHit]]:
    """The hits of each of so many asked vectors, in the order of the rows."""
    found: list[list[VectorHit]] = [[] for _ in range(vectors)]
    for row in rows:
        figures = float(row["cosine"]), float(row["nearest"])
        hit = VectorHit(str(row["item_id"]), ItemKind(row["kind"]), *figures, row["family"])
        found[row["n"] - 1].append(hit)
    return found


def entry_from_row(row: asyncpg.Record) -> VectorEntry:
    """One entry, with its numbers as they are kept."""
    passages = tuple(_parse_vector(passage) for passage in row["passages"])
    of = (str(row["item_id"]), row["tenant"], row["owner"], ItemKind(row["kind"]))
    return VectorEntry(*of, _parse_vector(row["embedding"]), row["family"], passages)


def _parse_vector(text: str) -> Vector:
    return np.array(text[1:-1].split(","), np.float32)


_OF = "SELECT model, dimension FROM embedding"
_CLAIMED = "SELECT model, dimension FROM embedding FOR SHARE"
_BELIEVED = 60.0
"""Seconds for which a search takes the model for granted: another process may have made the vectors anew with another one."""


class StoredModel:
    """Compares the stored vectors' model with the service's."""

    def __init__(self, database: Database, model: str, dimension: int) -> None:
        self._database, self._model, self._dimension = database, model, dimension
        self._agreed = float("-inf")

    async def expect(self, *vectors: Vector) -> None:
        """Raise `EmbeddingMismatch` where one cannot search by these vectors; the stored model is read only once in a while."""
        for vector in vectors:
            self.fit(vector)
        if time.monotonic() > self._agreed + _BELIEVED:
            await self.check()

    async def check(self) -> None:
        """Raise `EmbeddingMismatch` where the stored vectors are another model's, `Unavailable` where nobody can tell."""
        async with self._database.connection(SYSTEM_TENANT) as connection:
            await self._agree(connection)

    async def claim(self, connection: Connection) -> None:
        """In the transaction that stores vectors: say whose they are, or raise `EmbeddingMismatch`."""
        await self._agree(connection, claim=True)

    async def forget(self, connection: Connection) -> None:
        """In the transaction that forgets all vectors: they are no model's from here on."""
        await connection.execute("DELETE FROM embedding")
        self._agreed = float("-inf")

    def fit(self, vector: Vector) -> None:
        """Raise `EmbeddingMismatch` unless the vector has as many numbers as the model makes."""
        if vector.shape != (self._dimension,):
            raise EmbeddingMismatch(f"a vector has {vector.size} numbers, and {self._model} makes {self._dimension}")

    async def _agree(self, connection: Connection, *, claim: bool = False) -> None:
        # Whoever forgets all vectors waits for those that are being stored.
        row = await connection.fetchrow(_CLAIMED if claim else _OF)
        if row is None and claim:  # not remembered: the transaction may be rolled back
            await connection.execute(
                "INSERT INTO embedding (model, dimension) VALUES ($1, $2) ON CONFLICT DO NOTHING", self._model, self._dimension
            )
            row = await connection.fetchrow(_OF)
        elif row is not None and (row["model"], row["dimension"]) == (self._model, self._dimension):
            self._agreed = time.monotonic()
        if row is not None and (row["model"], row["dimension"]) != (self._model, self._dimension):
            raise EmbeddingMismatch(
                f"the stored vectors are of {row['model']} ({row['dimension']} numbers), "
                f"and this service is set to {self._model} ({self._dimension}): make the vectors anew, or set the model back"
            )
