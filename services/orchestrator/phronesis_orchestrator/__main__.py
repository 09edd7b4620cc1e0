"""The orchestrator's process, and the choice of its reasoner: Groq, an OpenAI-compatible address, or rules alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from phronesis_bus import Bus, Relay, run, secrets_dir
from phronesis_bus.tracing import Tracing
from phronesis_postgres import Database, PostgresOutbox, PostgresSettings
from phronesis_tokens import load

from .agents.cognition.state import Cognition
from .agents.extractive import Extractive
from .app import build
from .models.reasoner import Reasoner
from .models.templates import ANSWER
from .sessions.calendar_sources import CalendarReaders
from .sessions.store import AesSeal
from .settings import CalendarSettings, CognitionSettings, ModelSettings, OrchestratorSettings, OutsideSettings
from .stores import open_stores
from .turns.neighbours import BusExperience
from .turns.store import QueueDepth


@asynccontextmanager
async def open_reasoner(settings: ModelSettings, tracing: Tracing) -> AsyncIterator[Reasoner]:
    """The reasoner that the settings name, for the length of a block."""
    await asyncio.to_thread(load)  # here, and not inside the first turn
    if not settings.groq_api_key and settings.model_url is None:
        yield Extractive()
        return
    from .models.language_model import build_language_model

    groq = bool(settings.groq_api_key)
    key = settings.groq_api_key or settings.model_key
    model = build_language_model(
        "groq" if groq else "openai",
        key.get_secret_value() if key else "none",
        tracing,
        url=settings.model_url,
        model=settings.model,
        light_model=settings.light_model,
        budget=settings.context_tokens - ANSWER,
    )
    try:
        yield model
    finally:
        await model.close()


OpenReasoner = Callable[[ModelSettings, Tracing], AbstractAsyncContextManager[Reasoner]]


@asynccontextmanager
async def start(bus: Bus, reasoners: OpenReasoner = open_reasoner) -> AsyncIterator[None]:
    settings, of_calendars = OrchestratorSettings(), CalendarSettings(_secrets_dir=secrets_dir())
    reader = CalendarReaders(of_calendars.calendar_readers)
    bus.on_stop(reader.close)
    async with (
        Database.open(PostgresSettings(), "orchestrator", bus.tracing) as database,
        reasoners(ModelSettings(_secrets_dir=secrets_dir()), bus.tracing) as thinks,
    ):
        bus.tracing.metrics.probe(QueueDepth(database, bus.tracing.metrics).look)
        await build(
            bus,
            settings,
            open_stores(database),
            Relay(bus, PostgresOutbox(database)),
            thinks,
            {"postgres": database.ping},
            AesSeal(of_calendars.calendar_key),
            reader,
            Cognition(CognitionSettings(_secrets_dir=secrets_dir()), BusExperience(bus)),
            commands=OutsideSettings().outside_commands,
        )
        yield


if __name__ == "__main__":
    run("orchestrator", start)
