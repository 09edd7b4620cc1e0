"""What the graph service does with messages about the links of users' items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from phronesis_bus import Call, News
from phronesis_contracts import Nothing
from phronesis_contracts.deletions import PartErased, UserData
from phronesis_contracts.memory import ItemsForgotten, KnowledgeStored
from phronesis_contracts.twin import Expand, Expanded, Neighbour

from .items import check_links


class LinkStore(Protocol):
    """The users' knowledge items and the links between them: ids and types, no content."""

    async def store(self, tenant: str, news: KnowledgeStored) -> None:
        """Take over items and links; what is older than what is held changes nothing. Raises `Unavailable`."""

    async def forget(self, tenant: str, news: ItemsForgotten) -> None:
        """Remove items with their links for good, and report to the deletion that they went with. Raises `Unavailable`."""

    async def held(self, tenant: str, user: str) -> tuple[dict[str, int], int]:
        """How many nodes are held of a user's items, by kind, and how many ids of what they forgot. Raises `Unavailable`."""

    async def erase(self, tenant: str, user: str) -> dict[str, int]:
        """Remove a bounded number of the nodes of a user's items; how many of what. Raises `Unavailable`."""

    async def expand(self, tenant: str, user: str, question: Expand) -> Sequence[Neighbour]:
        """Seeds and neighbours, nearest first, of items the user's or shared in the tenant. Raises `Unavailable`."""


class LinkHandlers:
    def __init__(self, links: LinkStore, wake: Callable[[], None]) -> None:
        self._links, self._wake = links, wake

    async def expand(self, call: Call, request: Expand) -> Expanded:
        items = await self._links.expand(call.who.tenant, call.who.user, request)
        return Expanded(items=tuple(items))

    async def user_data(self, call: Call, request: Nothing) -> UserData:
        """How much is held of the caller. Ids of what they forgot are kept for thirty days, so that late news is known."""
        counts, forgotten = await self._links.held(call.who.tenant, call.who.user)
        held = {name: count for name, count in counts.items() if count}
        return UserData(held=held, kept={"forgotten_ids": forgotten} if forgotten else {})

    async def user_erase(self, call: Call, request: Nothing) -> PartErased:
        """Erase some of what is held of the caller."""
        counts = await self._links.erase(call.who.tenant, call.who.user)
        removed = {name: count for name, count in counts.items() if count}
        return PartErased(removed=removed, done=not removed)

    async def on_item_stored(self, news: News, event: KnowledgeStored) -> None:
        """Take over stored knowledge items and their links. Raises `BadRequest`: a link of a type that there is not."""
        check_links(event)
        await self._links.store(news.tenant, event)

    async def on_item_forgotten(self, news: News, event: ItemsForgotten) -> None:
        await self._links.forget(news.tenant, event)
        self._wake()
