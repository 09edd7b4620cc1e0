"""What the graph service does with the two layers that every session begins with: foundation and vision, listed whole."""

from __future__ import annotations

from phronesis_bus import Call
from phronesis_contracts.constitution.lists import (
    LIST_FOUNDATION_TOOL,
    LIST_VISION_TOOL,
    FoundationListed,
    ListFoundation,
    ListVision,
    VisionListed,
)

from .list_cache import Kept
from .list_measures import Listed
from .whole import Whole


class Essentials:
    """One method for each message. Answers are kept until a write touches them."""

    def __init__(self, whole: Whole, kept: Kept, listed: Listed) -> None:
        self._whole = whole
        self._kept = kept
        self._listed = listed

    async def foundation(self, call: Call, request: ListFoundation) -> FoundationListed:
        """The foundation, by type and age, within `FOUNDATION_BUDGET`.

        Raises:
            BadRequest: there is no such type, or the cursor is none of this list.
            TooLarge: the layer has too many nodes to be listed whole.
        """
        tenant = call.who.tenant
        with self._listed.call(LIST_FOUNDATION_TOOL.name, request) as came:
            result, came.cached = await self._kept.of(tenant, request, lambda: self._whole.foundation(tenant, request))
            came.stats = result.stats
        return result

    async def vision(self, call: Call, request: ListVision) -> VisionListed:
        """The vision with its parents, by type, horizon and age, within `VISION_BUDGET`; raises as `foundation` does."""
        tenant = call.who.tenant
        with self._listed.call(LIST_VISION_TOOL.name, request) as came:
            result, came.cached = await self._kept.of(tenant, request, lambda: self._whole.vision(tenant, request))
            came.stats = result.stats
        return result
