"""Where addresses lead: each host is looked up once, and what it leads to is held to the rules for foreign addresses."""

from __future__ import annotations

from collections.abc import Callable, Collection

import httpx

from ..addresses import PORTS, checked, is_public, literal, parsed, refusal
from ..domain import Destination
from ..ports import Resolver

_ADDRESSES = 3
"""Addresses of one host that are tried."""


class Destinations:
    """Looks addresses up.

    Args:
        resolver: looks hosts up.
        allowed: which IP addresses may be connected to.
        trusted: `host:port` that an operator lets services connect to wherever they lead, as a server beside the platform.
    """

    def __init__(self, resolver: Resolver, allowed: Callable[[str], bool] = is_public, trusted: Collection[str] = ()) -> None:
        self._resolver = resolver
        self._allowed = allowed
        self._trusted = frozenset(each.lower() for each in trusted)

    async def resolve(self, text: str) -> Destination:
        """Where an address leads, for who connects there itself.

        Raises:
            BadRequest: the address is refused.
            Unavailable: names cannot be looked up at this time.
        """
        url = parsed(text)
        port = url.port or PORTS[url.scheme]
        if f"{url.host.lower()}:{port}" in self._trusted:
            found = (url.host,) if literal(url.host) else await self._resolver.addresses(url.host)
            if not found:
                raise refusal("the address leads nowhere")
            return Destination(str(url), tuple(found)[:_ADDRESSES], trusted=True)
        return Destination(str(url), await self.addresses(checked(text)))

    async def addresses(self, url: httpx.URL) -> tuple[str, ...]:
        """The IP addresses of a checked address, those of IPv4 first. Raises what `resolve` does."""
        host = url.raw_host.decode("ascii")
        found = (host,) if literal(host) else await self._resolver.addresses(host)
        # One address inside is enough to refuse: a name that has both is made for getting past a check.
        if not found or not all(self._allowed(address) for address in found):
            raise refusal("the address is not a public one")
        return tuple(sorted(found, key=lambda address: ":" in address))[:_ADDRESSES]
