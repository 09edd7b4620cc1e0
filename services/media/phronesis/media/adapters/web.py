"""Fetches public addresses: each host is resolved once, checked, and connected to at the address that was checked."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx

from phronesis.contracts import BadRequest, TimedOut, TooLarge, Unavailable
from phronesis.contracts.media import MAX_UPLOAD

from ..addresses import PORTS, checked, is_public, literal, refusal
from ..domain import Fetched
from ..ports import Resolver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_REDIRECTS = 5
_ADDRESSES = 3
"""Addresses of one host that are tried."""
_MOVED = frozenset({301, 302, 303, 307, 308})
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
        self._resolver = resolver
        self._seconds = seconds
        self._allowed = allowed
        self._ports = ports
        self._tls = tls or httpx.create_ssl_context(trust_env=False)

    async def fetch(self, url: str) -> Fetched:
        """What `url` gives, after at most five redirects, each checked like the first address."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._follow(checked(url))
        except TimeoutError as error:
            raise TimedOut("the address did not give all its content in time") from error

    async def _follow(self, url: httpx.URL) -> Fetched:
        for _ in range(_REDIRECTS + 1):
            found = await self._get(url)
            if isinstance(found, Fetched):
                return found
            url = checked(_joined(url, found))
        raise refusal("the address redirects too often")

    async def _get(self, url: httpx.URL) -> Fetched | str:
        """The content, or where it has moved to."""
        failed: httpx.HTTPError | None = None
        # A client would read the redirect too, and call one that leads nowhere a fault of the line.
        async with httpx.AsyncHTTPTransport(verify=self._tls, trust_env=False) as transport:
            for address in await self._addresses(url):
                try:
                    async with _response(transport, self._request(url, address)) as response:
                        return await _content(response, url)
                except httpx.ConnectError as error:
                    failed = error
                except (httpx.HTTPError, httpx.InvalidURL) as error:
                    raise Unavailable("the address could not be fetched") from error
        raise Unavailable("the address could not be reached") from failed

    async def _addresses(self, url: httpx.URL) -> tuple[str, ...]:
        host = url.raw_host.decode("ascii")
        found = (host,) if literal(host) else await self._resolver.addresses(host)
        # One address inside is enough to refuse: a name that has both is made for getting past a check.
        if not found or not all(self._allowed(address) for address in found):
            raise refusal("the address is not a public one")
        return tuple(sorted(found, key=lambda address: ":" in address))[:_ADDRESSES]

    def _request(self, url: httpx.URL, address: str) -> httpx.Request:
        pinned = url.copy_with(host=address, port=self._ports[url.scheme], fragment=None)
        host = url.raw_host.decode("ascii")
        shown = f"[{host}]" if ":" in host else host
        timeout = httpx.Timeout(self._seconds).as_dict()
        return httpx.Request(
            "GET",
            pinned,
            headers={**_HEADERS, "Host": shown},
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


async def _content(response: httpx.Response, url: httpx.URL) -> Fetched | str:
    if response.status_code in _MOVED and "location" in response.headers:
        return str(response.headers["location"])
    if response.status_code != 200:
        # 4xx is the address's fault, and a repeat changes nothing
        if 400 <= response.status_code < 500 and response.status_code not in (408, 429):
            raise BadRequest(f"the address answered {response.status_code}", field="url")
        raise Unavailable(f"the address answered {response.status_code}")
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise Unavailable("the address sends packed content though it was asked not to")
    length = response.headers.get("content-length", "")
    if length.isascii() and length.isdigit() and len(length) < 20 and int(length) > MAX_UPLOAD:
        raise _too_large()
    data = bytearray()
    async for chunk in response.aiter_raw():
        data += chunk
        if len(data) > MAX_UPLOAD:
            raise _too_large()
    name = url.path.rstrip("/").rpartition("/")[2] or url.host
    return Fetched(bytes(data), name, response.headers.get("content-type"))


def _too_large() -> TooLarge:
    return TooLarge(f"the address gives over {MAX_UPLOAD} bytes", field="url")
