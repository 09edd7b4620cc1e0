"""What the service answers, and the loading of its content."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from phronesis.bus import Call
from phronesis.contracts import NotFound, ServiceError, Unavailable
from phronesis.contracts.instructions import AgentProfile, AgentRef

from .domain import AgentContent
from .ports import Store

log = logging.getLogger(__name__)


class Handlers:
    """The handlers of the service.

    Args:
        store: where released instructions stand.
        cache_seconds: how long a profile is served without asking the store.
        clock: seconds that only grow.
    """

    def __init__(self, store: Store, cache_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._cache_seconds = cache_seconds
        self._clock = clock
        self._cached: dict[str, tuple[float, AgentProfile]] = {}  # agents that exist, so it has their number
        self._releases = 0
        self._loaded = False

    async def agent_get(self, call: Call, request: AgentRef) -> AgentProfile:
        """The profile of an agent; before the content is loaded, an unknown agent may only be late."""
        cached = self._cached.get(request.agent)
        if cached is not None and self._clock() < cached[0]:
            return cached[1]
        releases = self._releases
        profile = await self._store.profile(request.agent)
        if profile is None:
            await self.ready()
            raise NotFound("no such agent")
        if releases == self._releases:  # else it may have been read just before the release
            self._cached[request.agent] = (self._clock() + self._cache_seconds, profile)
        return profile

    async def ready(self) -> None:
        """Raise `Unavailable` until the content is loaded."""
        if not self._loaded:
            raise Unavailable("the instructions are not loaded yet", retry_after=1)

    async def load(self, contents: tuple[AgentContent, ...], retry_seconds: float, released: Callable[[], None]) -> None:
        """Release every agent's content, trying again for as long as the store is not there.

        Args:
            contents: what the files hold.
            retry_seconds: between tries.
            released: called after a release that wrote something.
        """
        missing = contents
        while True:
            missing = tuple([content for content in missing if not await self._released(content, released)])
            if not missing:
                break
            await asyncio.sleep(retry_seconds)
        self._loaded = True

    async def _released(self, content: AgentContent, released: Callable[[], None]) -> bool:
        try:
            wrote = await self._store.release(content)
        except ServiceError as error:
            log.warning("%s is not released yet: %s", content.agent, error.code)
            return False
        except Exception:
            # The task may not end: the service would stay unready with nobody to notice why.
            log.exception("%s is not released yet", content.agent)
            return False
        if wrote:
            self._releases += 1
            self._cached.clear()
            released()
        return True
