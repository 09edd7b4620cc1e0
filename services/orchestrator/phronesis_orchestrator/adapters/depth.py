"""How many turns wait, and for how long: asked when the metrics are read, and at no other time."""

from __future__ import annotations

from phronesis_bus import Metrics
from phronesis_postgres import EVERY_TENANT, Database

from ..measures import OLDEST, OPEN

# Each status by itself: it is the form in which the indexes of open turns are used.
_OPEN = """
SELECT status, count(*) AS count, coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8 AS age
FROM turns WHERE status IN ('queued', 'running', 'waiting') GROUP BY status
"""
_STATUSES = ("queued", "running", "waiting")


class Depth:
    """Sets the gauges of the queue.

    Args:
        database: the orchestrator's schema.
        metrics: where the gauges are.
    """

    def __init__(self, database: Database, metrics: Metrics) -> None:
        self._database = database
        self._metrics = metrics

    async def look(self) -> None:
        """Look once. Raises `Unavailable`."""
        async with self._database.connection(EVERY_TENANT) as connection:
            found = {row["status"]: row for row in await connection.fetch(_OPEN)}
        for status in _STATUSES:
            self._metrics.set(OPEN, found[status]["count"] if status in found else 0, status)
        self._metrics.set(OLDEST, found["queued"]["age"] if "queued" in found else 0)
