"""The texts of each tenant, read once and kept until news of a release drops them."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from phronesis_bus import News
from phronesis_contracts import SYSTEM_TENANT
from phronesis_contracts.instructions import Released

from .domain.library import Library, Overlay, Platform
from .ports import Store

_TENANTS = 1_000
"""Tenants whose own texts are kept at most."""


class Libraries:
    """A cache over the store.

    Args:
        store: where released instructions stand.
        seconds: how long what was read is served without asking the store; news of a release is sooner.
        clock: seconds that only grow.
    """

    def __init__(self, store: Store, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._seconds = seconds
        self._clock = clock
        self._platform: tuple[float, Platform] | None = None
        self._overlays: OrderedDict[str, tuple[float, Overlay]] = OrderedDict()
        self._drops = 0

    async def of(self, tenant: str) -> Library:
        """The texts of a tenant.

        Raises:
            Unavailable: they are not at hand, and the store is down.
        """
        return Library(await self._shipped(), await self._own(tenant))

    async def at(self, tenant: str, number: int) -> Library:
        """The texts of a tenant as of one of its releases, without experiments; 0 is the platform's own.

        Raises:
            NotFound: the tenant has no such release.
            Unavailable: the store is down.
        """
        return Library(await self._shipped(), await self._store.overlay_at(tenant, number))

    def drop(self, tenant: str) -> None:
        """Read a tenant's texts anew, or everybody's after a release of what ships."""
        self._drops += 1
        if tenant == SYSTEM_TENANT:
            self._platform = None
        self._overlays.pop(tenant, None)

    async def on_released(self, news: News, released: Released) -> None:
        """Drop what a release has made stale, in each running copy."""
        self.drop(news.tenant)

    async def _shipped(self) -> Platform:
        if self._platform is not None and self._clock() < self._platform[0]:
            return self._platform[1]
        drops = self._drops
        platform = await self._store.platform()
        if drops == self._drops:  # else it may have been read just before the release
            self._platform = (self._clock() + self._seconds, platform)
        return platform

    async def _own(self, tenant: str) -> Overlay:
        kept = self._overlays.get(tenant)
        if kept is not None and self._clock() < kept[0]:
            self._overlays.move_to_end(tenant)
            return kept[1]
        drops = self._drops
        overlay = await self._store.overlay(tenant)
        if drops == self._drops:
            self._overlays[tenant] = (self._clock() + self._seconds, overlay)
            if len(self._overlays) > _TENANTS:
                self._overlays.popitem(last=False)
        return overlay
