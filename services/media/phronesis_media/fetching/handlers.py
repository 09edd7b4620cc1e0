"""Pages of the public web for agents and services, and where addresses lead for services that connect there themselves.

Nothing of it is kept.
"""

from __future__ import annotations

import asyncio
import base64
import zlib
from urllib.parse import urlsplit

from phronesis_bus import Call
from phronesis_contracts import BadRequest, TooLarge, UnsupportedMedia
from phronesis_contracts.media import HttpFetch, HttpFetched, MediaKind, ReadWeb, ResolveAddress, ResolvedAddress, WebRead

from ..media import Audit, Reader, Web, WebPage, WebRequest, tenant
from ..uploads import formats
from ..uploads.formats import detect_type
from .web import DestinationResolver

MAX_CONTENT = 4 * 1024 * 1024
"""Bytes that a fetched page may have."""


class FetchHandlers:
    """Answers what agents and services ask of the public web. Nothing of it is kept."""

    def __init__(self, web: Web, resolver: DestinationResolver, reader: Reader, audit: Audit) -> None:
        self._web = web
        self._resolver = resolver
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
        page = await self._web.read(
            WebRequest(url=request.url, method=request.method, most=MAX_CONTENT, seconds=request.seconds)
        )
        tenant.set(call.who.tenant)
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
        found = await self._resolver.resolve(request.url)
        return ResolvedAddress(url=found.url, addresses=found.addresses, trusted=found.trusted)

    async def _text(self, page: WebPage) -> str:
        if not page.data:
            return ""
        type = await asyncio.to_thread(detect_type, page.data, urlsplit(page.url).path.rpartition("/")[2], page.claimed_type)
        if formats.KINDS[type] is not MediaKind.DOCUMENT:
            raise UnsupportedMedia(f"{type} is no text; upload it as an attachment to have it read", field="url")
        return (await self._reader.read(page.data, type)).text


_REPLY = 1_900_000
"""Characters of a content in one answer, below what the broker carries."""


class PageHandlers:
    """Reads pages of public addresses."""

    def __init__(self, web: Web) -> None:
        self._web = web

    async def read(self, call: Call, request: ReadWeb) -> WebRead:
        """What the address answers.

        Raises:
            BadRequest: the address or its login is refused; `field` says which.
            TooLarge: the content is over the limit, or over what one answer carries.
            Unavailable: the address could not be reached.
            TimedOut: it took too long.
        """
        login = request.authorization
        if login is not None and not (login.isascii() and login.isprintable()):
            raise BadRequest("a login is printable ASCII", field="authorization")
        headers = {"Depth": request.depth, "Content-Type": request.body and "application/xml; charset=utf-8"}
        page = await self._web.read(
            WebRequest(
                url=request.url,
                method=request.method,
                headers=tuple((name, value) for name, value in headers.items() if value),
                login=login,
                body=(request.body or "").encode(),
                most=request.most,
                seconds=request.seconds,
            )
        )
        content = await asyncio.to_thread(_compress, page.data)  # it may not hold the loop
        if len(content) > _REPLY:
            raise TooLarge("the content is more than one answer carries", field="url")
        return WebRead(status=page.status, url=page.url, type=page.claimed_type, content=content)


def _compress(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode("ascii") if data else ""
