"""Run the media service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from phronesis.bus import Bus, run

from .adapters.child import ChildReader
from .adapters.web import PublicWeb, SystemResolver
from .app import build
from .settings import MediaSettings


@asynccontextmanager
async def start(bus: Bus) -> AsyncIterator[None]:
    """The service for the length of a block."""
    settings = MediaSettings()
    await build(bus, ChildReader(settings), PublicWeb(SystemResolver(), seconds=settings.fetch_seconds))
    yield


if __name__ == "__main__":
    run("media", start)
