"""Foundation and vision read whole, sorted, and kept to their budgets."""

from __future__ import annotations

from collections.abc import Sequence

from phronesis_contracts import TooLarge
from phronesis_contracts.constitution.kinds import Layer
from phronesis_contracts.constitution.lists import (
    FOUNDATION_BUDGET,
    LISTS,
    VISION_BUDGET,
    WHOLE,
    FoundationListed,
    ListFoundation,
    ListVision,
    VisionListed,
)

from . import foundation, vision
from .fitting import Fitted, fitted
from .list_cache import Touches
from .list_ports import LINKS_EACH, Layers, Row
from .records import node_of
from .telling import FOUNDATION, VISION, kinds_of, told
from .trimming import budget, order

_NOBODY = "-"


class Whole:
    """The two lists as they are in the store at this moment, each with what would make it another one."""

    def __init__(self, store: Layers) -> None:
        self._store = store

    async def warm(self) -> None:
        """Let the store plan what every session begins with.

        Raises:
            Unavailable: the store is down.
            TimedOut: it did not answer in time; what it has planned by then, it keeps.
        """
        await self.foundation(_NOBODY, ListFoundation())
        await self.vision(_NOBODY, ListVision())

    async def foundation(self, tenant: str, request: ListFoundation) -> tuple[FoundationListed, Touches]:
        """The foundation, within its budget.

        Raises:
            BadRequest: there is no such type, or the cursor is none of this list.
            TooLarge: the layer has too many nodes to be listed whole.
        """
        types = request.description_types
        described = {kind.name for kind in kinds_of(types, "descriptionTypes")} if types else set()
        columns, after = told(foundation.KINDS, request.exclude_fields, FOUNDATION), foundation.behind(request.cursor)
        asked = tuple(dict.fromkeys((*columns, "description", "createdAt")))
        rows, links = await self._store.foundation(tenant, request.status, asked, request.include_relationships, WHOLE + 1)
        _bounded(rows, links, Layer.FOUNDATION)
        rows = sorted((row for row in rows if foundation.place_of(row) > after), key=foundation.place_of)
        shown = [foundation.shaped(row, columns, described) for row in rows]
        joined = foundation.by_source(links, shown)
        everything = tuple(link for of in joined.values() for link in of)
        listed = foundation.listed(Fitted(tuple(node_of(row) for row in shown), everything, False, True), rows)
        if listed.stats.token_estimate > FOUNDATION_BUDGET[0][1]:
            most = budget(FOUNDATION_BUDGET, await self._store.size(tenant))
            listed = foundation.listed(fitted(shown, node_of, joined, order(columns, FOUNDATION), most), rows)
        return listed, foundation.touching(request.include_relationships)

    async def vision(self, tenant: str, request: ListVision) -> tuple[VisionListed, Touches]:
        """The vision with its parents, within its budget; raises as `foundation` does."""
        columns, after = told(vision.KINDS, request.exclude_fields, VISION), vision.behind(request.cursor)
        asked = tuple(dict.fromkeys((*columns, "horizon", "createdAt")))
        rows, parents = await self._store.vision(tenant, request.status, asked, request.include_hierarchy, WHOLE + 1)
        _bounded(rows, parents, Layer.VISION)
        rows = sorted((row for row in rows if vision.place_of(row) > after), key=vision.place_of)
        shown = [{name: row[name] for name in columns} for row in rows]
        make = vision.with_parents(vision.by_child(parents))
        listed = vision.listed(Fitted(tuple(make(row) for row in shown), (), False, True), rows)
        if listed.stats.token_estimate > VISION_BUDGET[0][1]:
            most = budget(VISION_BUDGET, await self._store.size(tenant))
            listed = vision.listed(fitted(shown, make, {}, order(columns, VISION), most), rows)
        return listed, vision.touching(parents, request.include_hierarchy)


def _bounded(rows: Sequence[Row], links: Sequence[object], layer: Layer) -> None:
    if len(rows) > WHOLE or len(links) > LINKS_EACH * WHOLE:
        raise TooLarge(f"the layer has too many nodes in this status to be listed whole; {LISTS[layer].name} gives pages of it")
