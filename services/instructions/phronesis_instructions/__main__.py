"""Run the instructions service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from phronesis_bus import Bus, run
from phronesis_postgres import Database, PostgresSettings

from .app import build
from .library.content import read_agents, read_matrix
from .settings import InstructionsSettings


@asynccontextmanager
async def start(bus: Bus) -> AsyncIterator[None]:
    async with Database.open(PostgresSettings(), "instructions", bus.tracing) as database:
        await build(bus, database, (read_matrix(), *read_agents()), InstructionsSettings())
        yield


if __name__ == "__main__":
    run("instructions", start)
