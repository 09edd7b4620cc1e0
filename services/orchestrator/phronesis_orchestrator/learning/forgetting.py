"""Forgetting here: the texts of turns, what streams keep of them, and what this process keeps of conversations."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from phronesis_bus import News
from phronesis_contracts.forgetting import CopiesPurged, MemoryForgotten

from ..cognition.recent import RecentPasts
from .ports import Copies, Streams

_SHOWN = 3_700.0
"""Seconds for which a line that was shown of a turn may be in its stream: an hour, and what clocks differ by."""
_PARKED = 31 * 24 * 3_600.0
"""Seconds for which a message of a turn may be parked: thirty days, and a day on the way there."""


class Forgetting:
    """Follows what memory forgets.

    Args:
        copies: what turns hold of memories.
        streams: what the broker keeps of turns.
        pasts: what this process keeps of conversations.
        wake: called after a transaction that wrote news.
    """

    def __init__(self, copies: Copies, streams: Streams, pasts: RecentPasts, wake: Callable[[], None]) -> None:
        self._copies = copies
        self._streams = streams
        self._pasts = pasts
        self._wake = wake

    async def on_memory_forgotten(self, news: News, event: MemoryForgotten) -> None:
        """Remove what was forgotten. A repeat erases in the streams again what the first try may not have reached."""
        await self._copies.forget(news.tenant, event)
        shown = await self._copies.erased(news.tenant, event.owner, _SHOWN)
        await self._streams.erase_shown(news.tenant, event.owner, shown)
        turns = await self._copies.erased(news.tenant, event.owner, _PARKED)
        named = dict.fromkeys((*turns, *event.turns, *(id for id in (*event.ids, *event.found_by) if _is_uuid(id))))
        await self._streams.erase_parked(news.tenant, list(named))
        self._wake()

    async def on_copies_purged(self, news: News, event: CopiesPurged) -> None:
        """The rows are gone: no copy of this service keeps what it read of them."""
        self._pasts.drop(news.tenant)


def _is_uuid(text: str) -> bool:
    """Whether an id is one of ours: a name that somebody gave may stand in another's message by chance."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
