"""The orchestrator's process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from phronesis.bus import Bus, Relay, run, secrets_dir
from phronesis.postgres import Database, PostgresOutbox, PostgresSettings

from .adapters.depth import Depth
from .adapters.reasoners import reasoner
from .adapters.store import PostgresConversations, PostgresJournal, PostgresRecords, PostgresTurns
from .app import build
from .settings import OrchestratorSettings


@asynccontextmanager
async def start(bus: Bus) -> AsyncIterator[None]:
    """Open the store and the reasoner, and wire the handlers."""
    settings = OrchestratorSettings(_secrets_dir=secrets_dir())
    async with (
        Database.open(PostgresSettings(), "orchestrator", bus.tracing) as database,
        reasoner(settings, bus.tracing) as thinks,
    ):
        bus.tracing.metrics.probe(Depth(database, bus.tracing.metrics).look)
        await build(
            bus,
            settings,
            PostgresTurns(database),
            PostgresJournal(database),
            PostgresConversations(database),
            PostgresRecords(database),
            Relay(bus, PostgresOutbox(database)),
            thinks,
            {"postgres": database.ping},
        )
        yield


if __name__ == "__main__":
    run("orchestrator", start)
