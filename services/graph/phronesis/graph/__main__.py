"""Run the graph service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from phronesis.bus import Bus, run

from .adapters.bolt import Bolt
from .app import build
from .settings import GraphSettings


@asynccontextmanager
async def start(bus: Bus) -> AsyncIterator[None]:
    """The service for the length of a block."""
    settings = GraphSettings()
    async with Bolt.open(settings) as bolt:
        await build(bus, bolt, settings.dialect)
        yield


if __name__ == "__main__":
    run("graph", start)
