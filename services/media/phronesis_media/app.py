"""All that the media service answers."""

from __future__ import annotations

from typing import Any

from phronesis_bus import MEDIA, Blobs, Bus, announce, audit_entry, follow, serve, serve_basics
from phronesis_contracts import Principal
from phronesis_contracts import media as contract
from phronesis_contracts.deletions import AGED_DROP, USER_DATA, USER_ERASE, Purged
from phronesis_contracts.orchestrator import CONVERSATION_DELETED
from phronesis_contracts.service import AUDITED

from .fetching.handlers import FetchHandlers, PageHandlers
from .fetching.web import DestinationResolver
from .media import Reader, Web
from .uploads.handlers import EndingHandlers, MediaHandlers, RemovalHandlers
from .uploads.store import MediaStore


async def build(bus: Bus, reader: Reader, web: Web, resolver: DestinationResolver) -> None:
    """Wire the service to the bus."""

    async def audit(who: Principal, action: str, arguments: dict[str, Any]) -> None:
        await announce(bus, who.tenant, AUDITED["media"], audit_entry(who, action, arguments))

    async def report(tenant: str, purged: Purged) -> None:
        await announce(bus, tenant, contract.MEDIA_PURGED, purged, id=f"{purged.deletion_id}.{purged.part}")

    async def ready(tenant: str, medium: contract.MediaReady) -> None:
        await announce(bus, tenant, contract.MEDIA_READY, medium, id=medium.media_id)

    store = MediaStore(Blobs(bus, MEDIA))
    handlers = MediaHandlers(Blobs(bus, contract.UPLOADS), store, reader, web, audit, ready)
    # Each of these may hold a whole file in memory, so few run at once.
    await serve(bus, contract.ACCEPT_UPLOAD, handlers.accept, workers=4)
    await serve(bus, contract.FETCH, handlers.fetch, workers=4)
    await serve(bus, contract.READ_WEB, PageHandlers(web).read, workers=16)
    fetching = FetchHandlers(web, resolver, reader, audit)
    await serve(bus, contract.HTTP_FETCH_TOOL, fetching.http_fetch, workers=8)
    await serve(bus, contract.RESOLVE_ADDRESS, fetching.resolve, workers=16)
    await serve(bus, contract.EXTRACT_TEXT_TOOL, handlers.extract_text, workers=8)
    await serve(bus, contract.CAPTION_TOOL, handlers.caption, workers=8)
    await serve(bus, contract.TRANSCRIBE_TOOL, handlers.transcribe, workers=8)
    await serve(bus, contract.MEDIA_GET, handlers.get)
    await serve(bus, contract.FILE_LIST, handlers.files, workers=2)
    await serve(bus, contract.MEDIA_OPEN, handlers.open, workers=4)
    await serve(bus, contract.MEDIA_DELETE, handlers.delete, workers=4)
    await follow(bus, CONVERSATION_DELETED, RemovalHandlers(store, report).on_conversation_deleted, workers=2)
    ending = EndingHandlers(store)
    await serve(bus, USER_DATA["media"], ending.held)
    await serve(bus, USER_ERASE["media"], ending.erase)
    await serve(bus, AGED_DROP["media"], ending.drop_aged)
    await serve_basics(bus, {"broker": bus.ping})
