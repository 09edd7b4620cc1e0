"""What the memory service asks of the graph to keep its records of it: what changed lately, and every relationship."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from phronesis_bus import Call
from phronesis_contracts.constitution.keeping import ChangedNodes, ChangedSince, LinksRead, WalkLinks

from .list_ports import Nodes, Wanted

_MOST = 5_000


class Changes(Protocol):
    """What changed."""

    async def since(self, tenant: str, at: datetime, types: tuple[str, ...], limit: int) -> dict[str, int]:
        """Versions by id of nodes of these types that changed since then, those that changed last. Raises `Unavailable`."""


class Keeping:
    """Answers the memory service.

    Args:
        changes: what changed.
        nodes: nodes and relationships, page by page.
    """

    def __init__(self, changes: Changes, nodes: Nodes) -> None:
        self._changes = changes
        self._nodes = nodes

    async def changed_since(self, call: Call, request: ChangedSince) -> ChangedNodes:
        """Nodes that changed since a time."""
        return ChangedNodes(versions=await self._changes.since(call.who.tenant, request.at, request.types, _MOST))

    async def walk_links(self, call: Call, request: WalkLinks) -> LinksRead:
        """A page of all relationships."""
        after = (request.after_from, request.after)
        return LinksRead(relationships=tuple(await self._nodes.links(call.who.tenant, Wanted(), after, request.limit)))
