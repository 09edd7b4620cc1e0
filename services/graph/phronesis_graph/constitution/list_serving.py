"""The lists' part of the service's table of contents."""

from __future__ import annotations

from functools import partial

from phronesis_bus import Bus, serve
from phronesis_contracts.constitution import lists

from ..adapters.bolt import Bolt
from ..adapters.constitution_lists import BoltLists
from ..adapters.constitution_survey import BoltSurvey
from ..adapters.schema import Schema
from .essentials import Essentials
from .inventory import Inventories
from .list_cache import Kept
from .list_measures import Listed
from .listing import Lists
from .whole import Whole


async def serve_lists(bus: Bus, bolt: Bolt, schema: Schema) -> Kept:
    """Answer lists, single nodes and the inventory; gives the kept answers, which want to hear of every change.

    When the broker was away, changes may have been missed, and all of them are dropped.
    """
    store, kept, listed = BoltLists(bolt, schema), Kept(), Listed(bus.tracing.metrics)
    pages, essentials = Lists(store, listed), Essentials(Whole(store), kept, listed)
    bus.on_reconnect(kept.clear)
    for layer, tool in lists.LISTS.items():
        await serve(bus, tool, partial(pages.layer, layer))
    await serve(bus, lists.LIST_FOUNDATION_TOOL, essentials.foundation)
    await serve(bus, lists.LIST_VISION_TOOL, essentials.vision)
    await serve(bus, lists.GET_ALL_TOOL, pages.get_all)
    await serve(bus, lists.GET_NODE_TOOL, pages.node)
    await serve(bus, lists.READ_NODES, pages.read_nodes)
    await serve(bus, lists.WALK_NODES, pages.walk_nodes)
    await serve(bus, lists.INVENTORY_TOOL, Inventories(BoltSurvey(bolt, schema)).inventory)
    return kept
