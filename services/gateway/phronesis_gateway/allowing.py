"""Which tools the constitutional agents may use: their allow-lists, as the instructions service tells them now."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from phronesis_bus import Bus, News, ask
from phronesis_contracts import SYSTEM_TENANT, NotFound, Principal, Role, TimedOut, Unavailable
from phronesis_contracts.instructions import AGENT_GET, AgentProfile, AgentRef, Released

log = logging.getLogger(__name__)

AGENTS = frozenset({Role.DISCUSS, Role.DECISIONS, Role.EXECUTE, Role.MIND})
"""Roles of agents with an allow-list; each is called as its agent is."""
_FRESH = 10.0
"""Seconds that a list serves without a question: news of a release is sooner, but a copy of the instructions service that
has not heard it yet may answer with the list before."""
_KEPT = 1_000
"""Lists that are kept at most: one for each tenant and agent, and for each user who is in an experiment."""
_LIMIT = 2.0
"""Seconds that a question for a list may take."""

_Key = tuple[str, str, str]
Read = Callable[[Principal], Awaitable[AgentProfile]]
"""Reads the profile of the agent that a caller is."""


def told_by(bus: Bus) -> Read:
    """Reads profiles from the instructions service."""

    async def read(who: Principal) -> AgentProfile:
        return await ask(bus, who, AGENT_GET, AgentRef(agent=who.role.value), timeout=_LIMIT)

    return read


@dataclass(frozen=True)
class _List:
    tools: tuple[str, ...]
    until: float


class AllowLists:
    """A cache of the lists.

    It fails closed: without a list there is no tool. While the instructions service is away a list that was read still holds,
    since nothing but a release changes one; a list that a release has made stale never does.

    Args:
        read: reads an agent's profile.
        clock: seconds that only grow.
    """

    def __init__(self, read: Read, clock: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._clock = clock
        self._lists: OrderedDict[_Key, _List] = OrderedDict()
        self._drops = 0

    async def of(self, who: Principal) -> tuple[str, ...] | None:
        """Names of the tools that a caller's agent may use, in its order; `None` for a role that has no list.

        Raises:
            Unavailable: the list is not at hand, and the instructions service is away.
            TimedOut: the same, without an answer in time.
        """
        if who.role not in AGENTS:
            return None
        of_user, of_all = (who.tenant, who.role.value, who.user), (who.tenant, who.role.value, "")
        kept = self._lists.get(of_user) or self._lists.get(of_all)
        if kept is not None and self._clock() < kept.until:
            return kept.tools
        drops = self._drops
        try:
            profile = await self._profile(who)
        except (Unavailable, TimedOut) as error:
            if kept is None or drops != self._drops:
                raise
            log.warning("instructions are away; the tools of %s are those that were read before: %s", who.role, error.code)
            return kept.tools
        tools = profile.tools if profile else ()
        if drops == self._drops:  # else it may have been read just before the release
            self._lists.pop(of_user, None)
            self._keep(of_user if profile and profile.arms else of_all, tools)
        return tools

    async def on_released(self, news: News, released: Released) -> None:
        """Drop what a release may have made stale: the lists of its tenant, or everybody's after one of the platform."""
        self._drops += 1
        stale = [key for key in self._lists if news.tenant in (SYSTEM_TENANT, key[0])]
        for key in stale:
            del self._lists[key]

    async def _profile(self, who: Principal) -> AgentProfile | None:
        try:
            return await self._read(who)
        except NotFound:
            log.error("there is no agent %s, so it has no tools", who.role)
            return None

    def _keep(self, key: _Key, tools: tuple[str, ...]) -> None:
        self._lists[key] = _List(tools, self._clock() + _FRESH)
        self._lists.move_to_end(key)
        if len(self._lists) > _KEPT:
            self._lists.popitem(last=False)
