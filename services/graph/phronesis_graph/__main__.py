"""Run the graph service."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from phronesis_bus import Bus, run

# The driver loads pandas where it is installed, for results as data frames, which nobody here asks for: a second of each start.
sys.modules.setdefault("pandas", None)  # type: ignore[arg-type]

from .app import build  # noqa: E402
from .bolt.driver import Bolt  # noqa: E402
from .settings import GraphSettings  # noqa: E402


@asynccontextmanager
async def start(bus: Bus) -> AsyncIterator[None]:
    settings = GraphSettings()
    async with Bolt.open(settings) as bolt:
        await build(bus, bolt, settings.dialect)
        yield


if __name__ == "__main__":
    run("graph", start)
