"""The graph's tools as a page calls them: on the one path of every interface, for the person who is signed in."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from phronesis_bus import Bus
from phronesis_contracts import Principal, Tool
from phronesis_contracts.constitution.lists import (
    GET_NODE_TOOL,
    INVENTORY_TOOL,
    LIST_FOUNDATION_TOOL,
    LIST_VISION_TOOL,
    LISTS,
    ConstitutionNodeFound,
    FoundationListed,
    Inventory,
    LayerListed,
    VisionListed,
)
from phronesis_contracts.constitution.paths import CLIMB_LADDER_TOOL, SUBGRAPH_TOOL, LadderClimbed, SubgraphFound
from phronesis_contracts.constitution.registry import Layer, Lifecycle
from phronesis_contracts.messages import Message

from ...auth.authentication import scope_idempotency_key
from ...tools.offers import Offers, call_tool

Out = TypeVar("Out", bound=Message)
LayerPage = FoundationListed | VisionListed | LayerListed

AROUND = 60
"""Nodes of a drawing or of a neighbourhood at most."""
_PAGE = 100
"""Nodes of one page of a layer; of foundation and vision, what an answer holds."""


class GraphTools:
    def __init__(self, bus: Bus, offers: Offers) -> None:
        self._bus = bus
        self._offers = offers

    async def tool(self, who: Principal, tool: Tool[Any, Out], given: dict[str, Any], key: str | None = None) -> Out:
        """What a tool answers; `key` is the idempotency key of a write. Raises as `calling.call` does."""
        answer: Any = await call_tool(self._bus, self._offers, who, tool, given, scope_idempotency_key(who, key))
        found: Out = answer
        return found

    async def inventory(self, who: Principal) -> Inventory:
        return await self.tool(who, INVENTORY_TOOL, {})

    async def layer(self, who: Principal, layer: Layer, status: Lifecycle, cursor: str | None) -> LayerPage:
        """Nodes of a layer in a status, a page of them, by the newest version of its list: an older one may be retired."""
        given: dict[str, Any] = {"status": status.value, "cursor": cursor}
        match layer:
            case Layer.FOUNDATION:
                return await self.tool(who, LIST_FOUNDATION_TOOL, given | {"includeRelationships": False})
            case Layer.VISION:
                return await self.tool(who, LIST_VISION_TOOL, given | {"includeHierarchy": False})
            case _:
                return await self.tool(who, LISTS[layer], given | {"limit": _PAGE})

    async def node(self, who: Principal, id: str) -> ConstitutionNodeFound:
        return await self.tool(who, GET_NODE_TOOL, {"id": id})

    async def around(self, who: Principal, ids: list[str], depth: int) -> SubgraphFound:
        return await self.tool(who, SUBGRAPH_TOOL, {"ids": ids, "depth": depth, "limit": AROUND})

    async def ladder(self, who: Principal, id: str) -> LadderClimbed:
        return await self.tool(who, CLIMB_LADDER_TOOL, {"id": id})

    async def summit(self, who: Principal) -> SubgraphFound:
        """The top of the graph: active nodes of foundation and vision, and what joins them."""
        layers = (Layer.VISION, Layer.FOUNDATION)
        pages = await asyncio.gather(*(self.layer(who, one, Lifecycle.ACTIVE, None) for one in layers))
        ids = [node.id for page in pages for node in page.items[: AROUND // 2]][:50]
        return await self.around(who, ids, 0) if ids else _NOTHING


_NOTHING = SubgraphFound.model_validate({"nodes": (), "relationships": (), "stats": {}})
