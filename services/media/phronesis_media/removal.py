"""Removing media for good: what only a deleted conversation referred to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from phronesis_bus import News
from phronesis_contracts import NotFound, Principal
from phronesis_contracts.deletions import ConversationDeleted, Purged

from .shelf import Shelf

Report = Callable[[str, Purged], Awaitable[None]]
"""Announce in a tenant what was removed."""


class Removal:
    """Follows deletions of conversations.

    Args:
        shelf: the media.
        report: announces what was removed.
    """

    def __init__(self, shelf: Shelf, report: Report) -> None:
        self._shelf = shelf
        self._report = report

    async def on_conversation_deleted(self, news: News, event: ConversationDeleted) -> None:
        """Remove the media that nothing else refers to; of a repeat, what is gone already is not counted again."""
        owner = Principal(tenant=news.tenant, user=event.user)
        removed = 0
        for id in event.media:
            try:
                medium = await self._shelf.find(owner, id)
            except NotFound:
                continue
            await self._shelf.remove(medium)
            removed += 1
        report = Purged(deletion_id=event.deletion_id, removed={"media": removed}, part=event.part, parts=event.parts)
        await self._report(news.tenant, report)
