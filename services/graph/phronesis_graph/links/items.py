"""Users' knowledge items in the graph: whose they are, what may link them, and what is done with messages about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from phronesis_bus import Call, News
from phronesis_contracts import BadRequest, Nothing
from phronesis_contracts.deletions import PartErased, UserData
from phronesis_contracts.memory import SHARED, EntityType, ItemsForgotten, KnowledgeStored
from phronesis_contracts.twin import Expand, Expanded, Neighbour

LINK_TYPES = ("MENTIONS", "RELATED_TO")
"""The closed set; a link of any other type is refused."""
ITEM_LABELS = tuple(kind.value for kind in EntityType)
"""A walk never leaves these labels, so the twin is out of its reach."""


def item_key(tenant: str, owner: str, id: str) -> str:
    """Key of an item. It holds its owner, so no link can be made between two owners."""
    return f"{tenant}/{owner}/{id}"


def readable_owners(user: str) -> list[str]:
    """Whose items a user may walk over."""
    return [user, SHARED]


def check_links(news: KnowledgeStored) -> None:
    """Hold the links of an event against the closed set. Raises `BadRequest`: a link of another type."""
    for i, link in enumerate(news.links):
        if link.type not in LINK_TYPES:
            raise BadRequest(f"no such link type; there are {', '.join(LINK_TYPES)}", field=f"links.{i}.type")


def order_by_distance(seeds: Iterable[Neighbour], found: Iterable[Neighbour], limit: int) -> list[Neighbour]:
    """Seeds, then neighbours by hop, each once, `limit` in all; the seeds stay whatever the limit is."""
    result: dict[str, Neighbour] = {seed.id: seed for seed in seeds}
    for item in sorted(found, key=lambda item: item.hop):
        if len(result) >= limit:
            break
        result.setdefault(item.id, item)
    return list(result.values())


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
