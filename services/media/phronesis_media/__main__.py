"""Run the media service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from phronesis_bus import Bus, run, secrets_dir

from .app import build
from .fetching.web import DestinationResolver, PublicWeb, SystemResolver
from .media import Reader
from .reading.readers import GroqReader, LocalReader
from .settings import AddressSettings, MediaSettings


@asynccontextmanager
async def start(bus: Bus) -> AsyncIterator[None]:
    """The service for the length of a block."""
    settings = MediaSettings(_secrets_dir=secrets_dir())
    web = PublicWeb(SystemResolver(), seconds=settings.fetch_seconds)
    async with AsyncExitStack() as closing:
        local = LocalReader(settings)
        closing.push_async_callback(local.close)
        reader: Reader = local
        if settings.groq_api_key:
            reader = groq = GroqReader(settings, local)
            closing.push_async_callback(groq.close)
        await build(bus, reader, web, DestinationResolver(SystemResolver(), trusted=AddressSettings().trusted_hosts))
        yield


if __name__ == "__main__":
    run("media", start)
