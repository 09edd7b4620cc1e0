"""What the service does, one method for each message."""

from __future__ import annotations

from functools import partial
from typing import Any

from phronesis_bus import Call, News
from phronesis_contracts import BadRequest, Nothing
from phronesis_contracts.deletions import ConversationDeleted
from phronesis_contracts.graph import NodeChanged
from phronesis_contracts.memory import (
    AugmentedMemoryContext,
    DeleteProfile,
    Forget,
    Forgotten,
    ItemKind,
    Profile,
    Recall,
    Recalled,
    RecalledItem,
    Remember,
    Remembered,
    Retrieve,
    UpdateProfile,
)
from phronesis_contracts.orchestrator import TurnEndedNews, TurnStatus

from .domain.limits import cut, is_storable
from .domain.profile import check, merged
from .domain.values import Audience
from .drafting import Drafting, of_item, of_turn
from .nodes import NodeTexts
from .ports import Forgets, Knowledge, Profiles
from .retrieval import Retrieval
from .search import HybridSearch

_KEPT = frozenset({TurnStatus.COMPLETED, TurnStatus.FAILED, TurnStatus.PARKED})
"""Ends of turns that leave an episode (V-135)."""
_MADE = {ItemKind.NODE: "the graph", ItemKind.STRATEGY: "a task"}
"""Kinds that nobody stores by hand, and what makes them."""


class Handlers:
    """The handlers of the memory service.

    Args:
        knowledge: the store of items.
        forgetting: removes items from it.
        profiles: the store of profiles.
        search: hybrid search.
        retrieval: hybrid retrieval.
        drafting: completes what is to be stored.
        nodes: follows the graph.
    """

    def __init__(
        self,
        knowledge: Knowledge,
        forgetting: Forgets,
        profiles: Profiles,
        search: HybridSearch,
        retrieval: Retrieval,
        drafting: Drafting,
        nodes: NodeTexts,
    ) -> None:
        self._knowledge = knowledge
        self._forgetting = forgetting
        self._profiles = profiles
        self._search = search
        self._retrieval = retrieval
        self._drafting = drafting
        self._nodes = nodes

    async def remember(self, call: Call, request: Remember) -> Remembered:
        """Store the caller's items, all or none, once for the call's key."""
        _check(request)
        who = call.who
        external_ids = [item.external_id for item in request.items if item.external_id is not None]
        known = await self._knowledge.digests(who.tenant, who.user, external_ids)
        drafts = [of_item(item) for item in request.items]
        return await self._drafting.store(drafts, known, partial(self._knowledge.remember, call, request))

    async def recall(self, call: Call, request: Recall) -> Recalled:
        """What the caller's memory, and the tenant's, hold on a question."""
        audience = Audience.of(call.who, request.kinds)
        [found] = await self._search.find(audience, [request.query], request.limit)
        best = found.candidates[: request.limit]
        items = {item.id: item for item in await self._knowledge.items(audience, [one.id for one in best])} if best else {}
        return Recalled(
            items=tuple(
                RecalledItem(
                    id=one.id,
                    external_id=items[one.id].external_id,
                    kind=one.kind,
                    title=items[one.id].title,
                    text=cut(items[one.id].text, len(best)),
                    score=one.score,
                    why=one.why,
                )
                for one in best
                if one.id in items
            ),
            degraded=tuple(sorted(found.degraded)),
        )

    async def retrieve(self, call: Call, request: Retrieve) -> AugmentedMemoryContext:
        """Hybrid retrieval for the caller (D-066)."""
        return await self._retrieval.retrieve(call.who, request)

    async def profile_get(self, call: Call, request: Nothing) -> Profile:
        """The caller's profile."""
        return await self._profiles.get(call.who)

    async def profile_put(self, call: Call, request: Profile) -> Profile:
        """Replace the caller's profile."""
        given = check(request.profile)
        return await self._profiles.change(call, request, request.version, lambda _: given)

    async def profile_update(self, call: Call, request: UpdateProfile) -> Profile:
        """Correct the caller's profile."""
        patch = check(request.patch, "patch")
        return await self._profiles.change(call, request, request.version, lambda old: check(merged(old, patch), "patch"))

    async def profile_delete(self, call: Call, request: DeleteProfile) -> Profile:
        """Delete the caller's profile."""
        return await self._profiles.delete(call, request)

    async def forget(self, call: Call, request: Forget) -> Forgotten:
        """Remove items of the caller for good; what is another's is not there."""
        for number, id in enumerate(request.ids):
            if not is_storable(id):
                raise BadRequest("an id holds no NUL characters", field=f"ids.{number}")
        return await self._forgetting.forget(call, request)

    async def on_conversation_deleted(self, news: News, event: ConversationDeleted) -> None:
        """Remove what was learnt from a deleted conversation; the parts behind the first list media alone."""
        if event.part == 1:
            await self._forgetting.forget_conversation(news.tenant, event)

    async def on_node_changed(self, news: News, event: NodeChanged) -> None:
        """Bring the shared items of changed nodes up to date."""
        await self._nodes.follow(news.tenant, event.nodes)

    async def on_turn_ended(self, news: News, event: TurnEndedNews) -> None:
        """Keep a turn as an episode of its user, with what came of its tools, once; one that was cancelled leaves none."""
        if event.status not in _KEPT or not (event.user_text.strip() or event.reply_text.strip()):
            return
        draft = of_turn(event)
        known = await self._knowledge.digests(news.tenant, event.user, [draft.external_id or ""])
        if not known:
            ready = await self._drafting.complete([draft], {})
            await self._knowledge.record(news.tenant, event.user, ready[0], event.tools)


def _check(request: Remember) -> None:
    seen: set[str] = set()
    for number, item in enumerate(request.items):
        if item.kind in _MADE:
            raise BadRequest(f"a {item.kind} is made by {_MADE[item.kind]} alone", field=f"items.{number}.kind")
        if item.external_id in seen:
            raise BadRequest("an external id stands twice in one request", field=f"items.{number}.external_id")
        if item.external_id is not None:
            seen.add(item.external_id)
        said: dict[str, Any] = {
            "text": item.text,
            "title": item.title,
            "external_id": item.external_id,
            "metadata": item.metadata,
            "links": item.links,
            "sources": item.sources,
        }
        for name, value in said.items():
            if not is_storable(value):
                raise BadRequest("no NUL characters and no infinite numbers", field=f"items.{number}.{name}")
