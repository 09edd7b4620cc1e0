"""The orchestrator's process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from phronesis.bus import Bus, Relay, run, secrets_dir
from phronesis.bus.tracing import Tracing
from phronesis.postgres import Database, PostgresOutbox, PostgresSettings

from .adapters.calendars import PostgresCalendars
from .adapters.copies import PostgresCopies
from .adapters.depth import Depth
from .adapters.experience import BusExperience
from .adapters.ical_readers import CalendarReaders
from .adapters.outside import PostgresServers
from .adapters.reasoners import reasoner
from .adapters.seal import Seal
from .adapters.store import PostgresConversations, PostgresJournal, PostgresRecords, PostgresTurns
from .adapters.tasks import PostgresTasks
from .adapters.unlearnt import PostgresUnlearnt
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
            PostgresTurns(database),
            PostgresJournal(database),
            PostgresConversations(database),
            PostgresRecords(database),
            Relay(bus, PostgresOutbox(database)),
            thinks,
            {"postgres": database.ping},
            PostgresCalendars(database),
            Seal(of_calendars.calendar_key),
            reader,
            PostgresUnlearnt(database),
            PostgresCopies(database),
            PostgresServers(database),
            OutsideSettings().outside_commands,
            Cognition(CognitionSettings(_secrets_dir=secrets_dir()), BusExperience(bus)),
            PostgresTasks(database),
        )
        yield


if __name__ == "__main__":
    run("orchestrator", start)
