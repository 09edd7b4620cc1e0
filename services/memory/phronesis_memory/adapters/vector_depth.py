"""How many changes of vectors wait for Weaviate: asked when the metrics are read, and at no other time."""

from __future__ import annotations

from phronesis_bus import Kind, Metric, Metrics
from phronesis_postgres import EVERY_TENANT, Database

from . import vector_changes as changes

WAITING = Metric(
    "phronesis_vectors_waiting",
    Kind.GAUGE,
    "Changes of vectors that the index has not been told yet, in all processes together.",
)


class VectorDepth:
    """Sets the gauge.

    Args:
        database: the memory service's schema.
        metrics: where the gauge is.
    """

    def __init__(self, database: Database, metrics: Metrics) -> None:
        self._database = database
        self._metrics = metrics

    async def look(self) -> None:
        """Look once. Raises `Unavailable`."""
        async with self._database.connection(EVERY_TENANT) as connection:
            self._metrics.set(WAITING, await changes.count(connection))
