"""Pages of the web that other services read: by the rules for foreign addresses, with nothing kept."""

from __future__ import annotations

import asyncio
import base64
import zlib

from phronesis_bus import Call
from phronesis_contracts import BadRequest, TooLarge
from phronesis_contracts.media import ReadWeb, WebRead

from .domain import Order
from .ports import Web

_REPLY = 1_900_000
"""Characters of a content in one answer, below what the broker carries."""


class Pages:
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
            Order(
                url=request.url,
                method=request.method,
                headers=tuple((name, value) for name, value in headers.items() if value),
                login=login,
                body=(request.body or "").encode(),
                most=request.most,
                seconds=request.seconds,
            )
        )
        content = await asyncio.to_thread(_packed, page.data)  # it may not hold the loop
        if len(content) > _REPLY:
            raise TooLarge("the content is more than one answer carries", field="url")
        return WebRead(status=page.status, url=page.url, type=page.claimed_type, content=content)


def _packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode("ascii") if data else ""
