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
from .app import build, open_stores
from .models.reasoner import RULES, Reasoner
from .sessions.calendar import CalendarReaders
from .sessions.store import AesSeal
from .settings import CalendarSettings, CognitionSettings, ModelSettings, OrchestratorSettings, OutsideSettings, with_profile
from .turns.ports import BusExperience
from .turns.store import QueueDepth


@asynccontextmanager
async def open_reasoner(settings: ModelSettings, tracing: Tracing) -> AsyncIterator[Reasoner]:
    """The reasoner that the settings name, for the length of a block."""
    await asyncio.to_thread(load)  # here, and not inside the first turn
    if not settings.groq_api_key and settings.model_url is None:
        yield RULES
        return
    from .models.client import Provider
    from .models.language_model import build_language_model

    key = settings.groq_api_key or settings.model_key
    provider: Provider = "groq" if settings.groq_api_key else "openai"
    model = build_language_model(provider, key.get_secret_value() if key else "none", tracing, settings)
    model.capabilities.begin(model.models)
    try:
        yield model
    finally:
        await model.close()


OpenReasoner = Callable[[ModelSettings, Tracing], AbstractAsyncContextManager[Reasoner]]


@asynccontextmanager
async def start(bus: Bus, reasoners: OpenReasoner = open_reasoner) -> AsyncIterator[None]:
    """Open the store and the reasoner, and wire the handlers."""
    of_models, of_calendars = ModelSettings(_secrets_dir=secrets_dir()), CalendarSettings(_secrets_dir=secrets_dir())
    settings = with_profile(OrchestratorSettings(), of_models.model_profile)
    of_cognition = with_profile(CognitionSettings(_secrets_dir=secrets_dir()), of_models.model_profile)
    reader = CalendarReaders(of_calendars.calendar_readers)
    bus.on_stop(reader.close)
    async with (
        Database.open(PostgresSettings(), "orchestrator", bus.tracing) as database,
        reasoners(of_models, bus.tracing) as thinks,
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
            Cognition(of_cognition, BusExperience(bus)),
            commands=OutsideSettings().outside_commands,
            of_models=of_models,
        )
        yield


if __name__ == "__main__":
    run("orchestrator", start)
