"""All that the media service answers."""

from __future__ import annotations

from typing import Any

from phronesis.bus import MEDIA, Blobs, Bus, announce, audited, serve, serve_basics
from phronesis.contracts import Principal
from phronesis.contracts import media as contract
from phronesis.contracts.service import AUDITED

from .handlers import Handlers
from .ports import Reader, Web
from .shelf import Shelf


async def build(bus: Bus, reader: Reader, web: Web) -> None:
    """Wire the service to the bus."""

    async def audit(who: Principal, action: str, arguments: dict[str, Any]) -> None:
        await announce(bus, who.tenant, AUDITED["media"], audited(who, action, arguments))

    handlers = Handlers(Blobs(bus, contract.UPLOADS), Shelf(Blobs(bus, MEDIA)), reader, web, audit)
    # Each of these may hold a whole file in memory, so few run at once.
    await serve(bus, contract.ACCEPT_UPLOAD, handlers.accept, workers=4)
    await serve(bus, contract.FETCH, handlers.fetch, workers=4)
    await serve(bus, contract.EXTRACT_TEXT_TOOL, handlers.extract_text, workers=8)
    await serve(bus, contract.MEDIA_GET, handlers.get)
    await serve_basics(bus, {"broker": bus.ping})
