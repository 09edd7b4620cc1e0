"""The public web alone (TRAPS 71): each host is resolved once, checked, and connected to at the address that was checked."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import Callable, Collection, Mapping
from contextlib import asynccontextmanager
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING

import httpx

from phronesis_contracts import BadRequest, TimedOut, TooLarge, Unavailable

from ..media import Destination, Fetched, HostResolver, WebPage, WebRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


PORTS = {"http": 80, "https": 443}
_NUMBER = re.compile(r"(?:\d+|0x[0-9a-f]*)", re.I)
_HOST = re.compile(r"(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$")
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f\\]")
_AUTHORITY = re.compile(r"[/?#]")
_INSIDE = (".localhost", ".local", ".internal", ".localdomain", ".home.arpa")
_REFUSED_V4 = tuple(
    ip_network(text)
    for text in (
        "192.0.0.0/24",  # protocol assignments
        "192.88.99.0/24",  # relays into IPv6
        "168.63.129.16/32",  # a cloud's own services, on an address that looks public
    )
)
_PUBLIC_V6 = ip_network("2000::/3")
_REFUSED_V6 = tuple(ip_network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))


def refused_address(why: str) -> BadRequest:
    """The error for an address that is not fetched; it never says what the address leads to."""
    return BadRequest(why, field="url")


def parse_public_url(text: str) -> httpx.URL:
    """The address, parsed once; what is fetched is this value and not the text.

    Raises:
        BadRequest: not http or https, another port than theirs, a user name, or a host that is no proper name.
    """
    url = parse_url(text)
    host = url.raw_host.decode("ascii").lower()
    if url.port not in (None, PORTS[url.scheme]):
        raise refused_address("only the usual ports are fetched")
    if literal_ip(host) is None and not _is_public_name(host):
        raise refused_address("the address is not a public one")
    return url


def parse_url(text: str) -> httpx.URL:
    """The address, parsed. Raises `BadRequest` where it is not http or https, or names a user."""
    if _FORBIDDEN.search(text):
        raise refused_address("the address has characters that are not allowed")
    try:
        url = httpx.URL(text)
        url.raw_host.decode("ascii")
    except (httpx.InvalidURL, UnicodeError, ValueError) as error:
        raise refused_address("the address does not parse") from error
    if url.scheme not in PORTS:
        raise refused_address("only http and https are fetched")
    if url.userinfo or "@" in _AUTHORITY.split(text.partition("//")[2], maxsplit=1)[0]:
        raise refused_address("an address with a user name is not fetched")
    return url


def literal_ip(host: str) -> IPv4Address | IPv6Address | None:
    """The IP address that `host` writes out; `None` where it is a name, or an address of one network interface."""
    try:
        return None if "%" in host else ip_address(host)
    except ValueError:
        return None


def is_public(text: str) -> bool:
    """Whether an IP address belongs to the public internet."""
    address = literal_ip(text)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    match address:
        case IPv4Address():
            return address.is_global and not address.is_multicast and not any(address in n for n in _REFUSED_V4)
        case IPv6Address():
            return address.is_global and address in _PUBLIC_V6 and not any(address in n for n in _REFUSED_V6)
        case _:
            return False


def _is_public_name(host: str) -> bool:
    """Whether this is a name with a dot that is not of the inside, nor a number that some resolvers take for an address."""
    bare = host.removesuffix(".")
    last = bare.rpartition(".")[2]
    return bool(_HOST.match(bare)) and not _NUMBER.fullmatch(last) and not f".{bare}".endswith(_INSIDE)


_ADDRESSES = 3
"""Addresses of one host that are tried."""


class DestinationResolver:
    """Looks addresses up.

    Args:
        resolver: looks hosts up.
        allowed: which IP addresses may be connected to.
        trusted: `host:port` that an operator lets services connect to wherever they lead, as a server beside the platform.
    """

    def __init__(
        self, resolver: HostResolver, allowed: Callable[[str], bool] = is_public, trusted: Collection[str] = ()
    ) -> None:
        self._resolver = resolver
        self._allowed = allowed
        self._trusted = frozenset(each.lower() for each in trusted)

    async def resolve(self, text: str) -> Destination:
        """Where an address leads, for who connects there itself.

        Raises:
            BadRequest: the address is refused.
            Unavailable: names cannot be looked up at this time.
        """
        url = parse_url(text)
        port = url.port or PORTS[url.scheme]
        if f"{url.host.lower()}:{port}" in self._trusted:
            found = (url.host,) if literal_ip(url.host) else await self._resolver.addresses(url.host)
            if not found:
                raise refused_address("the address leads nowhere")
            return Destination(str(url), tuple(found)[:_ADDRESSES], trusted=True)
        return Destination(str(url), await self.addresses(parse_public_url(text)))

    async def addresses(self, url: httpx.URL) -> tuple[str, ...]:
        """The IP addresses of a checked address, those of IPv4 first. Raises what `resolve` does."""
        host = url.raw_host.decode("ascii")
        found = (host,) if literal_ip(host) else await self._resolver.addresses(host)
        # One address inside is enough to refuse: a name that has both is made for getting past a check.
        if not found or not all(self._allowed(address) for address in found):
            raise refused_address("the address is not a public one")
        return tuple(sorted(found, key=lambda address: ":" in address))[:_ADDRESSES]


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
        resolver: HostResolver,
        *,
        seconds: float,
        allowed: Callable[[str], bool] = is_public,
        ports: Mapping[str, int] = PORTS,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._destinations = DestinationResolver(resolver, allowed)
        self._seconds = seconds
        self._ports = ports
        self._tls = tls or httpx.create_ssl_context(trust_env=False)

    async def fetch(self, url: str) -> Fetched:
        """What `url` gives, after at most five redirects, each checked like the first address."""
        page = await self.read(WebRequest(url))
        if page.status != 200:
            # 4xx is the address's fault, and a repeat changes nothing
            if 400 <= page.status < 500 and page.status not in (408, 429):
                raise BadRequest(f"the address answered {page.status}", field="url")
            raise Unavailable(f"the address answered {page.status}")
        where = httpx.URL(page.url)
        return Fetched(page.data, where.path.rstrip("/").rpartition("/")[2] or where.host, page.claimed_type)

    async def read(self, order: WebRequest) -> WebPage:
        """What an address answers to `order`, after as many redirects. A login goes over https alone, and to its host alone."""
        seconds = min(self._seconds, order.seconds or self._seconds)
        try:
            async with asyncio.timeout(seconds):
                return await self._follow(parse_public_url(order.url), order)
        except TimeoutError as error:
            raise TimedOut("the address did not give all its content in time") from error

    async def _follow(self, url: httpx.URL, order: WebRequest) -> WebPage:
        if order.login is not None and url.scheme != "https":
            raise refused_address("a login is sent over https alone")
        for _ in range(_REDIRECTS + 1):
            found = await self._ask(url, order)
            if isinstance(found, WebPage):
                return found
            moved = parse_public_url(_redirect_target(url, found))
            if (moved.scheme, moved.raw_host.lower()) != (url.scheme, url.raw_host.lower()):
                order = order.elsewhere()
            url = moved
        raise refused_address("the address redirects too often")

    async def _ask(self, url: httpx.URL, order: WebRequest) -> WebPage | str:
        """The answer, or where the content has moved to."""
        failed: httpx.HTTPError | None = None
        # A client would read the redirect too, and call one that leads nowhere a fault of the line.
        async with httpx.AsyncHTTPTransport(verify=self._tls, trust_env=False) as transport:
            for address in await self._destinations.addresses(url):
                try:
                    async with _send_request(transport, self._request(url, address, order)) as response:
                        return await _read_content(response, url, order.most)
                except httpx.ConnectError as error:
                    failed = error
                except (httpx.HTTPError, httpx.InvalidURL) as error:
                    raise Unavailable("the address could not be fetched") from error
        raise Unavailable("the address could not be reached") from failed

    def _request(self, url: httpx.URL, address: str, order: WebRequest) -> httpx.Request:
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


def _redirect_target(url: httpx.URL, place: str) -> str:
    """Where a page has moved to."""
    try:
        return str(url.join(place))
    except (httpx.InvalidURL, UnicodeError, ValueError) as error:
        raise refused_address("the address redirects to what does not parse") from error


@asynccontextmanager
async def _send_request(transport: httpx.AsyncHTTPTransport, request: httpx.Request) -> AsyncIterator[httpx.Response]:
    response = await transport.handle_async_request(request)
    try:
        yield response
    finally:
        await response.aclose()


async def _read_content(response: httpx.Response, url: httpx.URL, most: int) -> WebPage | str:
    if response.status_code in _MOVED and "location" in response.headers:
        return str(response.headers["location"])
    kind = response.headers.get("content-type")
    if response.status_code not in _READ:
        return WebPage(response.status_code, b"", str(url), kind)
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
    return WebPage(response.status_code, bytes(data), str(url), kind)


def _too_large(most: int) -> TooLarge:
    return TooLarge(f"the address gives over {most} bytes", field="url")
