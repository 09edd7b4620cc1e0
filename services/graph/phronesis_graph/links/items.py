"""Users' knowledge items in the graph: whose they are, and what may link them."""

from __future__ import annotations

from collections.abc import Iterable

from phronesis_contracts import BadRequest
from phronesis_contracts.memory import SHARED, EntityType, KnowledgeStored
from phronesis_contracts.twin import Neighbour

LINK_TYPES = ("MENTIONS", "RELATED_TO")
"""The closed set; a link of any other type is refused."""
ITEM_LABELS = tuple(kind.value for kind in EntityType)
"""A walk never leaves these labels, so the twin is out of its reach (X-C06)."""


def item_key(tenant: str, owner: str, id: str) -> str:
    """Key of an item. It holds its owner, so no link can be made between two owners."""
    return f"{tenant}/{owner}/{id}"


def readable_owners(user: str) -> list[str]:
    """Whose items a user may walk over (D-088)."""
    return [user, SHARED]


def check_links(news: KnowledgeStored) -> None:
    """Hold the links of an event against the closed set.

    Raises:
        BadRequest: a link of another type.
    """
    for i, link in enumerate(news.links):
        if link.type not in LINK_TYPES:
            raise BadRequest(f"no such link type; there are {', '.join(LINK_TYPES)}", field=f"links.{i}.type")


def order_by_distance(seeds: Iterable[Neighbour], found: Iterable[Neighbour], limit: int) -> list[Neighbour]:
    """Seeds, then neighbours by hop, each once, `limit` in all; the seeds stay whatever the limit is (D-085, D-089)."""
    result: dict[str, Neighbour] = {seed.id: seed for seed in seeds}
    for item in sorted(found, key=lambda item: item.hop):
        if len(result) >= limit:
            break
        result.setdefault(item.id, item)
    return list(result.values())
