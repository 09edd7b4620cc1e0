"""The constitutional graph's part of the service's table of contents."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from phronesis_bus import Bus, News, follow, serve
from phronesis_bus.streams import refused
from phronesis_contracts.constitution import insight, keeping, loading, writes
from phronesis_contracts.constitution.registry import TYPES

from ..adapters.bolt import Bolt
from ..adapters.constitution_changes import BoltChanges
from ..adapters.constitution_links import BoltLinks
from ..adapters.constitution_lists import BoltLists
from ..adapters.constitution_load import BoltLoads
from ..adapters.constitution_news import Turn
from ..adapters.constitution_nodes import BoltConstitution
from ..adapters.constitution_restore import BoltRestores
from ..adapters.constitution_rules import BoltRules
from ..adapters.names import StoreNames
from ..adapters.schema import Schema
from .engines import Engine
from .keeping import Keeping
from .list_serving import serve_lists
from .loading import Loading
from .policing import Policing
from .relating import Relating
from .restoring import Restoring
from .ruling import Ruling
from .walk_serving import serve_walks
from .writing import Writing


async def serve_constitution(
    bus: Bus, bolt: Bolt, schema: Schema, names: StoreNames, engine: Engine, wake: Callable[[], None]
) -> None:
    """Answer the messages of the constitutional graph.

    Args:
        bus: the connected bus.
        bolt: the store.
        schema: has to stand before anything is written.
        names: relationship types that the store knows.
        engine: computes algorithms.
        wake: tells the relay that there is news.
    """
    turn = await _serve_writes(bus, bolt, schema, names, wake)
    kept = await serve_lists(bus, bolt, schema)
    turn.tell(kept.changed)
    projections = await serve_walks(bus, bolt, engine)
    turn.tell(projections.changed)
    asked = Keeping(BoltChanges(bolt, schema), BoltLists(bolt, schema))
    await serve(bus, keeping.CHANGED_SINCE, asked.changed_since)
    await serve(bus, keeping.WALK_LINKS, asked.walk_links)


async def _serve_writes(bus: Bus, bolt: Bolt, schema: Schema, names: StoreNames, wake: Callable[[], None]) -> Turn:
    turn, ruling = Turn(schema), Ruling(BoltRules(bolt, schema))
    writing = Writing(BoltConstitution(bolt, turn), ruling, partial(refused, bus), wake)
    relating = Relating(BoltLinks(bolt, turn, names), wake)
    for name, kind in TYPES.items():
        await serve(bus, writes.CREATE[name], partial(writing.create, kind))
        await serve(bus, writes.UPDATE[name], partial(writing.update, kind))
    await serve(bus, writes.UPDATE_NODE_TOOL, writing.update_node)
    await serve(bus, writes.DELETE_CONSTITUTION_NODE_TOOL, writing.delete_node)
    await serve(bus, writes.RELATE_TOOL, relating.relate)
    await serve(bus, writes.UNRELATE_TOOL, relating.unrelate)
    await serve(bus, insight.CHECK_POLICY_TOOL, Policing(ruling).check_policy)
    await serve(bus, keeping.RESTORE_GRAPH, Restoring(BoltRestores(bolt, turn, names), ruling, wake).restore)
    await serve(bus, loading.LOAD_TOOL, Loading(BoltLoads(bolt, turn, names), ruling, wake).load)
    bus.on_reconnect(ruling.drop_all)

    async def on_changed(news: News, event: writes.ConstitutionChanged) -> None:
        turn.heard(news.tenant, event)
        await ruling.on_constitution_changed(news, event)

    await follow(bus, writes.CONSTITUTION_CHANGED, on_changed, every_copy=True)
    return turn
