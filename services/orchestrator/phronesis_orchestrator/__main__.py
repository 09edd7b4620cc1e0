"""The orchestrator's process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from phronesis_bus import Bus, Relay, run, secrets_dir
from phronesis_bus.tracing import Tracing
from phronesis_postgres import Database, PostgresOutbox, PostgresSettings

from .adapters.depth import Depth
from .adapters.experience import BusExperience
from .adapters.ical_readers import CalendarReaders
from .adapters.reasoners import reasoner
from .adapters.seal import Seal
from .adapters.stores import stores
from .app import build
from .cognition.stages import Cognition
from .reasoner import Reasoner
from .settings import CalendarSettings, CognitionSettings, ModelSettings, OrchestratorSettings, OutsideSettings

Reasoners = Callable[[ModelSettings, Tracing], AbstractAsyncContextManager[Reasoner]]


@asynccontextmanager
async def start(bus: Bus, reasoners: Reasoners = reasoner) -> AsyncIterator[None]:
    """Open the store and the reasoner, and wire the handlers.

    Args:
        bus: the connected bus.
        reasoners: opens the reasoner that the settings name.
    """
    settings, of_calendars = OrchestratorSettings(), CalendarSettings(_secrets_dir=secrets_dir())
    reader = CalendarReaders(of_calendars.calendar_readers)
    bus.on_stop(reader.close)
    async with (
        Database.open(PostgresSettings(), "orchestrator", bus.tracing) as database,
        reasoners(ModelSettings(_secrets_dir=secrets_dir()), bus.tracing) as thinks,
    ):
        bus.tracing.metrics.probe(Depth(database, bus.tracing.metrics).look)
        await build(
            bus,
            settings,
            stores(database),
            Relay(bus, PostgresOutbox(database)),
            thinks,
            {"postgres": database.ping},
            Seal(of_calendars.calendar_key),
            reader,
            Cognition(CognitionSettings(_secrets_dir=secrets_dir()), BusExperience(bus)),
            commands=OutsideSettings().outside_commands,
        )
        yield


if __name__ == "__main__":
    run("orchestrator", start)
