"""Which model the stored vectors are of: one row of the schema, and the truth for every index of it."""

from __future__ import annotations

from phronesis.contracts.memory import EmbeddingMismatch
from phronesis.postgres import Connection, Database

from ..domain.values import Vector


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
        self._agreed = False

    async def expect(self) -> None:
        """Raise `EmbeddingMismatch` where the stored vectors are another model's; asked once, when it agreed."""
        if not self._agreed:
            await self.check()

    async def check(self) -> None:
        """Raise `EmbeddingMismatch` where the stored vectors are another model's, `Unavailable` where nobody can tell."""
        async with self._database.connection() as connection:
            await self._agree(connection)

    async def claim(self, connection: Connection) -> None:
        """In the transaction that stores vectors: say whose they are, or raise `EmbeddingMismatch`."""
        await self._agree(connection, claim=True)

    async def forget(self, connection: Connection) -> None:
        """In the transaction that forgets all vectors: they are no model's from here on."""
        await connection.execute("DELETE FROM embedding")
        self._agreed = False

    def fit(self, vector: Vector) -> None:
        """Raise `EmbeddingMismatch` unless the vector has as many numbers as the model makes."""
        if vector.shape != (self._dimension,):
            raise EmbeddingMismatch(f"a vector has {vector.size} numbers, and {self._model} makes {self._dimension}")

    async def _agree(self, connection: Connection, *, claim: bool = False) -> None:
        if self._agreed:
            return
        row = await connection.fetchrow("SELECT model, dimension FROM embedding")
        # What this transaction claims is not remembered: it may be rolled back.
        self._agreed = row is not None and (row["model"], row["dimension"]) == (self._model, self._dimension)
        if row is None and claim:
            await connection.execute(
                "INSERT INTO embedding (model, dimension) VALUES ($1, $2) ON CONFLICT DO NOTHING", self._model, self._dimension
            )
            row = await connection.fetchrow("SELECT model, dimension FROM embedding")
        if row is not None and (row["model"], row["dimension"]) != (self._model, self._dimension):
            raise EmbeddingMismatch(
                f"the stored vectors are of {row['model']} ({row['dimension']} numbers), "
                f"and this service is set to {self._model} ({self._dimension}): make the vectors anew, or set the model back"
            )
