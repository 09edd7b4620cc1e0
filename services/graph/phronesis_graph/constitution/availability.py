"""Which algorithms can be computed here: found out once at the start, and told with the service's health (O-219)."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime

from phronesis_bus import Bus
from phronesis_contracts import ServiceError

from .engines import Algorithm, Engine
from .projection import projection

log = logging.getLogger(__name__)

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_SMALL = projection({"a": "goal", "b": "goal", "c": "vision"}, ("SERVES",), [("a", "SERVES", "c"), ("b", "SERVES", "c")], _NOW)
WALKED = "shortest_path by service"


class Availability:
    """What an engine can do.

    Args:
        engine: the engine.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._found: tuple[str, ...] = (WALKED,)

    def start(self, bus: Bus) -> None:
        """Find out in the background; a process that ends meanwhile does not wait for it."""
        task = asyncio.create_task(self.look(), name="graph-algorithms")

        async def stop() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        bus.on_stop(stop)

    async def look(self) -> None:
        """Compute each algorithm over three nodes; what fails is logged and not told."""
        for algorithm in Algorithm:
            try:
                await self._engine.compute(algorithm, _SMALL)
            except ServiceError as error:
                log.error("%s cannot be computed by %s: %s", algorithm, self._engine.name, error.code)
            else:
                self._found += (f"{algorithm} by {self._engine.name}",)
        log.info("algorithms: %s", ", ".join(self._found))

    def found(self) -> tuple[str, ...]:
        """The algorithms, each with what computes it."""
        return self._found
