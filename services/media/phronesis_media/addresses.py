"""Which addresses of the web may be fetched: public ones alone (TRAPS 71)."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import httpx

from phronesis_contracts import BadRequest

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


def refusal(why: str) -> BadRequest:
    """The error for an address that is not fetched; it never says what the address leads to."""
    return BadRequest(why, field="url")


def checked(text: str) -> httpx.URL:
    """The address, parsed once; what is fetched is this value and not the text.

    Raises:
        BadRequest: not http or https, another port than theirs, a user name, or a host that is no proper name.
    """
    url = parsed(text)
    host = url.raw_host.decode("ascii").lower()
    if url.port not in (None, PORTS[url.scheme]):
        raise refusal("only the usual ports are fetched")
    if literal(host) is None and not _proper(host):
        raise refusal("the address is not a public one")
    return url


def parsed(text: str) -> httpx.URL:
    """The address, parsed. Raises `BadRequest` where it is not http or https, or names a user."""
    if _FORBIDDEN.search(text):
        raise refusal("the address has characters that are not allowed")
    try:
        url = httpx.URL(text)
        url.raw_host.decode("ascii")
    except (httpx.InvalidURL, UnicodeError, ValueError) as error:
        raise refusal("the address does not parse") from error
    if url.scheme not in PORTS:
        raise refusal("only http and https are fetched")
    if url.userinfo or "@" in _AUTHORITY.split(text.partition("//")[2], maxsplit=1)[0]:
        raise refusal("an address with a user name is not fetched")
    return url


def literal(host: str) -> IPv4Address | IPv6Address | None:
    """The IP address that `host` writes out; `None` where it is a name, or an address of one network interface."""
    try:
        return None if "%" in host else ip_address(host)
    except ValueError:
        return None


def is_public(text: str) -> bool:
    """Whether an IP address belongs to the public internet."""
    address = literal(text)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    match address:
        case IPv4Address():
            return address.is_global and not address.is_multicast and not any(address in n for n in _REFUSED_V4)
        case IPv6Address():
            return address.is_global and address in _PUBLIC_V6 and not any(address in n for n in _REFUSED_V6)
        case _:
            return False


def _proper(host: str) -> bool:
    """Whether this is a name with a dot that is not of the inside, nor a number that some resolvers take for an address."""
    bare = host.removesuffix(".")
    last = bare.rpartition(".")[2]
    return bool(_HOST.match(bare)) and not _NUMBER.fullmatch(last) and not f".{bare}".endswith(_INSIDE)
