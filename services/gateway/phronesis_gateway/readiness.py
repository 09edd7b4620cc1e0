"""Whether the stack can work: every service is asked how it is, side by side."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from phronesis_bus import Bus, ask, health
from phronesis_contracts import SYSTEM_TENANT, Nothing, Principal, Role, ServiceError
from phronesis_contracts.service import HEALTH, SERVICES

LIMIT = 1.5
"""Seconds that a service has to answer."""
KEPT = 1.0
"""Seconds that an answer is good for, so that being asked often costs nothing."""
_WHO = Principal(tenant=SYSTEM_TENANT, user="gateway", role=Role.ADMIN)


class Readiness:
    """Finds out what is down.

    Args:
        bus: the connected bus.
        pings: the gateway's own dependencies.
    """

    def __init__(self, bus: Bus, pings: dict[str, Callable[[], Awaitable[None]]]) -> None:
        self._bus = bus
        self._pings = pings
        self._asking = asyncio.Lock()
        self._down: tuple[str, ...] = ()
        self._known_until = 0.0
        self.stopping = False
        """Whether the gateway takes no more work."""

    async def down(self) -> tuple[str, ...]:
        """What is down: `<service>` where one does not answer, `<service>.<dependency>` where it says so itself."""
        if self.stopping or self._bus.stopping.is_set():
            return ("gateway",)
        async with self._asking:
            if time.monotonic() >= self._known_until:
                self._down = await self._ask_all()
                self._known_until = time.monotonic() + KEPT
            return self._down

    async def _ask_all(self) -> tuple[str, ...]:
        own = await health("gateway", self._pings)
        down = [f"gateway.{name}" for name in own.down]
        if not self._bus.connected:
            # Without the broker nothing is known of the others.
            return tuple(down)
        with self._bus.tracing.span("readiness"):
            answers = await asyncio.gather(*(self._ask(name) for name in SERVICES if name != "gateway"))
        return (*down, *(name for answer in answers for name in answer))

    async def _ask(self, service: str) -> tuple[str, ...]:
        try:
            answer = await ask(self._bus, _WHO, HEALTH[service], Nothing(), timeout=LIMIT)
        except ServiceError:
            return (service,)
        return tuple(f"{service}.{name}" for name in answer.down) or (() if answer.ready else (service,))
