"""Fetches public addresses: each host is resolved once, checked, and connected to at the address that was checked."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx

from phronesis_contracts import BadRequest, TimedOut, TooLarge, Unavailable

from ..addresses import PORTS, checked, is_public, refusal
from ..domain import Fetched, Order, Page
from ..ports import Resolver
from .destinations import Destinations

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_REDIRECTS = 5
_MOVED = frozenset({301, 302, 303, 307, 308})
_READ = frozenset({200, 207})
"""Statuses whose content is read; what an error page says is nobody's concern."""
_HEADERS = {"User-Agent": "phronesis-media", "Accept": "*/*", "Accept-Encoding": "identity", "Connection": "close"}


class SystemResolver:
    """The machine's own resolver."""

    async def addresses(self, host: str) -> tuple[str, ...]:
        """Every address of `host`."""
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except socket.gaierror as error:
            if error.errno == socket.EAI_AGAIN:
                raise Unavailable("names of hosts cannot be looked up at this time", retry_after=5) from error
            return ()
        except UnicodeError:
            return ()
        return tuple(dict.fromkeys(str(address[4][0]) for address in found))


class PublicWeb:
    """The public internet by http and https.

    Args:
        resolver: looks hosts up.
        seconds: how long one fetch may take.
        allowed: which IP addresses may be connected to.
        ports: the port that each scheme is connected to.
        tls: whom to trust; the usual authorities where it is not given.
    """

    def __init__(
        self,
        resolver: Resolver,
        *,
        seconds: float,
        allowed: Callable[[str], bool] = is_public,
        ports: Mapping[str, int] = PORTS,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._destinations = Destinations(resolver, allowed)
        self._seconds = seconds
        self._ports = ports
        self._tls = tls or httpx.create_ssl_context(trust_env=False)

    async def fetch(self, url: str) -> Fetched:
        """What `url` gives, after at most five redirects, each checked like the first address."""
        page = await self.read(Order(url))
        if page.status != 200:
            # 4xx is the address's fault, and a repeat changes nothing
            if 400 <= page.status < 500 and page.status not in (408, 429):
                raise BadRequest(f"the address answered {page.status}", field="url")
            raise Unavailable(f"the address answered {page.status}")
        where = httpx.URL(page.url)
        return Fetched(page.data, where.path.rstrip("/").rpartition("/")[2] or where.host, page.claimed_type)

    async def read(self, order: Order) -> Page:
        """What an address answers to `order`, after as many redirects. A login goes over https alone, and to its host alone."""
        seconds = min(self._seconds, order.seconds or self._seconds)
        try:
            async with asyncio.timeout(seconds):
                return await self._follow(checked(order.url), order)
        except TimeoutError as error:
            raise TimedOut("the address did not give all its content in time") from error

    async def _follow(self, url: httpx.URL, order: Order) -> Page:
        if order.login is not None and url.scheme != "https":
            raise refusal("a login is sent over https alone")
        for _ in range(_REDIRECTS + 1):
            found = await self._ask(url, order)
            if isinstance(found, Page):
                return found
            moved = checked(_joined(url, found))
            if (moved.scheme, moved.raw_host.lower()) != (url.scheme, url.raw_host.lower()):
                order = order.elsewhere()
            url = moved
        raise refusal("the address redirects too often")

    async def _ask(self, url: httpx.URL, order: Order) -> Page | str:
        """The answer, or where the content has moved to."""
        failed: httpx.HTTPError | None = None
        # A client would read the redirect too, and call one that leads nowhere a fault of the line.
        async with httpx.AsyncHTTPTransport(verify=self._tls, trust_env=False) as transport:
            for address in await self._destinations.addresses(url):
                try:
                    async with _response(transport, self._request(url, address, order)) as response:
                        return await _content(response, url, order.most)
                except httpx.ConnectError as error:
                    failed = error
                except (httpx.HTTPError, httpx.InvalidURL) as error:
                    raise Unavailable("the address could not be fetched") from error
        raise Unavailable("the address could not be reached") from failed

    def _request(self, url: httpx.URL, address: str, order: Order) -> httpx.Request:
        pinned = url.copy_with(host=address, port=self._ports[url.scheme], fragment=None)
        host = url.raw_host.decode("ascii")
        shown = f"[{host}]" if ":" in host else host
        timeout = httpx.Timeout(self._seconds).as_dict()
        login = {} if order.login is None else {"Authorization": order.login}
        return httpx.Request(
            order.method,
            pinned,
            headers={**_HEADERS, **dict(order.headers), **login, "Host": shown},
            content=order.body or None,
            extensions={"sni_hostname": host.removesuffix("."), "timeout": timeout},
        )


def _joined(url: httpx.URL, place: str) -> str:
    """Where a page has moved to."""
    try:
        return str(url.join(place))
    except (httpx.InvalidURL, UnicodeError, ValueError) as error:
        raise refusal("the address redirects to what does not parse") from error


@asynccontextmanager
async def _response(transport: httpx.AsyncHTTPTransport, request: httpx.Request) -> AsyncIterator[httpx.Response]:
    response = await transport.handle_async_request(request)
    try:
        yield response
    finally:
        await response.aclose()


async def _content(response: httpx.Response, url: httpx.URL, most: int) -> Page | str:
    if response.status_code in _MOVED and "location" in response.headers:
        return str(response.headers["location"])
    kind = response.headers.get("content-type")
    if response.status_code not in _READ:
        return Page(response.status_code, b"", str(url), kind)
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise Unavailable("the address sends packed content though it was asked not to")
    length = response.headers.get("content-length", "")
    if length.isascii() and length.isdigit() and len(length) < 20 and int(length) > most:
        raise _too_large(most)
    data = bytearray()
    async for chunk in response.aiter_raw():
        data += chunk
        if len(data) > most:
            raise _too_large(most)
    return Page(response.status_code, bytes(data), str(url), kind)


def _too_large(most: int) -> TooLarge:
    return TooLarge(f"the address gives over {most} bytes", field="url")
