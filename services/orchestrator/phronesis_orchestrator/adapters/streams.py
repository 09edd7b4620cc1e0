"""What the broker keeps of turns, erased."""

from __future__ import annotations

from collections.abc import Sequence

from phronesis_bus import Bus, erase_parked, erase_shown
from phronesis_contracts.orchestrator import PROGRESS


class BusStreams:
    """`Streams` on the bus."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def erase_shown(self, tenant: str, user: str, turns: Sequence[str]) -> None:
        """See `Streams`."""
        await erase_shown(self._bus, PROGRESS, tenant, user, turns)

    async def erase_parked(self, tenant: str, ids: Sequence[str]) -> None:
        """See `Streams`."""
        await erase_parked(self._bus, tenant, ids)
