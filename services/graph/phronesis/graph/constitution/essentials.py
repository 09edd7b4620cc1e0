"""What the graph service does with the two layers that every session begins with: foundation and vision, listed whole."""

from __future__ import annotations

import time
from collections.abc import Sequence

from phronesis.bus import Call, News
from phronesis.contracts import TooLarge
from phronesis.contracts.constitution.kinds import Layer
from phronesis.contracts.constitution.lists import (
    FOUNDATION_BUDGET,
    LIST_FOUNDATION_TOOL,
    LIST_VISION_TOOL,
    LISTS,
    VISION_BUDGET,
    WHOLE,
    FoundationListed,
    ListFoundation,
    ListVision,
    VisionListed,
)
from phronesis.contracts.constitution.writes import ConstitutionChanged

from . import foundation, vision
from .fitting import Fitted, fitted
from .list_cache import Kept, Touches
from .list_measures import Listed
from .list_ports import Layers, Row
from .records import node_of
from .telling import FOUNDATION, VISION, kinds_of, told
from .trimming import budget, order


class Essentials:
    """One method for each message. Answers are kept until a write touches them."""

    def __init__(self, store: Layers, kept: Kept, listed: Listed) -> None:
        self._store = store
        self._kept = kept
        self._listed = listed

    async def foundation(self, call: Call, request: ListFoundation) -> FoundationListed:
        """The foundation, by type and age, within `FOUNDATION_BUDGET`.

        Raises:
            BadRequest: there is no such type, or the cursor is none of this list.
            TooLarge: the layer has too many nodes to be listed whole.
        """
        began, tenant = time.perf_counter(), call.who.tenant
        result, cached = await self._kept.of(tenant, request, lambda: self._foundation(tenant, request))
        self._listed.enter(LIST_FOUNDATION_TOOL.name, result.stats, began, cached)
        return result

    async def vision(self, call: Call, request: ListVision) -> VisionListed:
        """The vision with its parents, by type, horizon and age, within `VISION_BUDGET`; raises as `foundation` does."""
        began, tenant = time.perf_counter(), call.who.tenant
        result, cached = await self._kept.of(tenant, request, lambda: self._vision(tenant, request))
        self._listed.enter(LIST_VISION_TOOL.name, result.stats, began, cached)
        return result

    async def on_changed(self, news: News, event: ConstitutionChanged) -> None:
        """Drop what a write touches, whichever process made it."""
        self._kept.changed(news.tenant, event)

    async def _foundation(self, tenant: str, request: ListFoundation) -> tuple[FoundationListed, Touches]:
        types = request.description_types
        described = {kind.name for kind in kinds_of(types, "descriptionTypes")} if types else set()
        columns, after = told(foundation.KINDS, request.exclude_fields, FOUNDATION), foundation.behind(request.cursor)
        asked = tuple(dict.fromkeys((*columns, "description", "createdAt")))
        rows, links = await self._store.foundation(tenant, request.status, asked, request.include_relationships, WHOLE + 1)
        _bounded(rows, Layer.FOUNDATION)
        rows = sorted((row for row in rows if foundation.place_of(row) > after), key=foundation.place_of)
        shown = [foundation.shaped(row, columns, described) for row in rows]
        joined = foundation.by_source(links, shown)
        found = Fitted(tuple(node_of(row) for row in shown), foundation.flat(joined), False, True)
        listed = foundation.listed(found, rows)
        if listed.stats.token_estimate > FOUNDATION_BUDGET[0][1]:
            most = budget(FOUNDATION_BUDGET, await self._store.size(tenant))
            found = fitted(shown, node_of, joined, order(columns, FOUNDATION), most)
            listed = foundation.listed(found, rows)
        return listed, foundation.touching(request.include_relationships)

    async def _vision(self, tenant: str, request: ListVision) -> tuple[VisionListed, Touches]:
        columns, after = told(vision.KINDS, request.exclude_fields, VISION), vision.behind(request.cursor)
        asked = tuple(dict.fromkeys((*columns, "horizon", "createdAt")))
        rows, parents = await self._store.vision(tenant, request.status, asked, request.include_hierarchy, WHOLE + 1)
        _bounded(rows, Layer.VISION)
        rows = sorted((row for row in rows if vision.place_of(row) > after), key=vision.place_of)
        shown = [{name: row[name] for name in columns} for row in rows]
        make = vision.with_parents(vision.by_child(parents))
        listed = vision.listed(Fitted(tuple(make(row) for row in shown), (), False, True), rows)
        if listed.stats.token_estimate > VISION_BUDGET[0][1]:
            most = budget(VISION_BUDGET, await self._store.size(tenant))
            listed = vision.listed(fitted(shown, make, {}, order(columns, VISION), most), rows)
        return listed, vision.touching(parents, request.include_hierarchy)


def _bounded(rows: Sequence[Row], layer: Layer) -> None:
    if len(rows) > WHOLE:
        raise TooLarge(f"the layer has more than {WHOLE} nodes in this status; {LISTS[layer].name} gives them page by page")
