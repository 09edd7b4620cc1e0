"""Which model the stored vectors are of: one row of the schema, and the truth for every index of it."""

from __future__ import annotations

import time

from phronesis_contracts import SYSTEM_TENANT
from phronesis_contracts.memory import EmbeddingMismatch
from phronesis_postgres import Connection, Database

from ..domain.values import Vector

_OF = "SELECT model, dimension FROM embedding"
_CLAIMED = "SELECT model, dimension FROM embedding FOR SHARE"
_BELIEVED = 60.0
"""Seconds for which a search takes the model for granted: another process may have made the vectors anew with another one."""


class Agreement:
    """Compares the stored vectors' model with the service's.

    Args:
        database: the schema, with the table `embedding`.
        model: name of the service's model.
        dimension: numbers in its vectors.
    """

    def __init__(self, database: Database, model: str, dimension: int) -> None:
        self._database = database
        self._model = model
        self._dimension = dimension
        self._agreed = float("-inf")

    async def expect(self) -> None:
        """Raise `EmbeddingMismatch` where the stored vectors are another model's; asked again only after a while."""
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
