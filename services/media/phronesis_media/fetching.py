"""Pages of the public web as text for agents, and where addresses lead for services that connect there themselves."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from phronesis_bus import Call
from phronesis_contracts import UnsupportedMedia
from phronesis_contracts.media import HttpFetch, HttpFetched, MediaKind, ResolveAddress, ResolvedAddress

from . import formats
from .domain import Order, Page
from .ports import Audit, Places, Reader, Web
from .sniff import medium_type

MAX_CONTENT = 4 * 1024 * 1024
"""Bytes that a fetched page may have."""


class Fetching:
    """Answers what agents and services ask of the public web. Nothing of it is kept.

    Args:
        web: fetches by the rules for foreign addresses.
        places: looks addresses up by the same rules.
        reader: reads documents, in a process of its own.
        audit: announces who asked which host.
    """

    def __init__(self, web: Web, places: Places, reader: Reader, audit: Audit) -> None:
        self._web = web
        self._places = places
        self._reader = reader
        self._audit = audit

    async def http_fetch(self, call: Call, request: HttpFetch) -> HttpFetched:
        """What a public address gives, as text.

        Raises:
            BadRequest: the address is refused; `field` is `url`.
            TooLarge: over 4 MiB.
            UnsupportedMedia: it is no text and no document.
            Unavailable: it could not be reached, or nothing reads it at this time.
            TimedOut: it took too long.
        """
        # Of an address the host alone: the rest may be all that keeps strangers out.
        await self._audit(call.who, "http_fetch", {"host": urlsplit(request.url).hostname, "method": request.method})
        page = await self._web.read(Order(url=request.url, method=request.method, most=MAX_CONTENT, seconds=request.seconds))
        text = await self._text(page)
        return HttpFetched(
            status=page.status,
            url=page.url,
            type=page.claimed_type,
            text=text[: request.most],
            truncated=len(text) > request.most,
        )

    async def resolve(self, call: Call, request: ResolveAddress) -> ResolvedAddress:
        """Where an address leads. Who connects there connects to these IP addresses and looks nothing up again.

        Raises:
            BadRequest: the address is refused; `field` is `url`.
            Unavailable: names cannot be looked up at this time.
        """
        found = await self._places.resolve(request.url)
        return ResolvedAddress(url=found.url, addresses=found.addresses, trusted=found.trusted)

    async def _text(self, page: Page) -> str:
        if not page.data:
            return ""
        type = await asyncio.to_thread(medium_type, page.data, urlsplit(page.url).path.rpartition("/")[2], page.claimed_type)
        if formats.KINDS[type] is not MediaKind.DOCUMENT:
            raise UnsupportedMedia(f"{type} is no text; upload it as an attachment to have it read", field="url")
        return (await self._reader.read(page.data, type)).text
