"""What the graph service does with each message."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from phronesis_bus import Call, News, audited
from phronesis_contracts import TooLarge
from phronesis_contracts.graph import UPSERT_TOOL, Expand, Expanded, NodeKeys, Nodes, Upsert, Upserted
from phronesis_contracts.memory import ItemsForgotten, KnowledgeStored

from .domain import plan
from .knowledge import check_links
from .ontology import Ontology
from .ports import KnowledgeStore, TwinStore

LONGEST_ANSWER = 1_500_000
"""Bytes of texts in one answer; the broker takes no message over 2 MiB."""
_AUDITED_ENTRIES = 5


class Handlers:
    """One method for each message."""

    def __init__(self, ontology: Ontology, twin: TwinStore, knowledge: KnowledgeStore, wake: Callable[[], None]) -> None:
        self._ontology = ontology
        self._twin = twin
        self._knowledge = knowledge
        self._wake = wake

    async def upsert(self, call: Call, request: Upsert) -> Upserted:
        """Check a batch against the ontology and write it whole, with its news.

        Raises:
            BadRequest: the batch breaks the ontology; nothing is written.
        """
        batch = plan(self._ontology, call.who.tenant, request)
        arguments = hashlib.sha256(request.model_dump_json().encode()).hexdigest()
        result = await self._twin.upsert(call, arguments, batch, audited(call.who, UPSERT_TOOL.name, _summary(request)))
        self._wake()
        return result

    async def nodes(self, call: Call, request: NodeKeys) -> Nodes:
        """The nodes of the caller's tenant that exist.

        Raises:
            TooLarge: their texts do not fit into one answer; ask for fewer.
        """
        found = await self._twin.nodes(call.who.tenant, request.keys)
        if sum(len(text.text.encode()) for node in found for text in node.texts) > LONGEST_ANSWER:
            raise TooLarge("the texts of these nodes do not fit into one answer", field="keys")
        return Nodes(nodes=tuple(found))

    async def expand(self, call: Call, request: Expand) -> Expanded:
        """Neighbours of the caller's knowledge items."""
        items = await self._knowledge.expand(call.who.tenant, call.who.user, request)
        return Expanded(items=tuple(items))

    async def on_item_stored(self, news: News, event: KnowledgeStored) -> None:
        """Take over stored knowledge items and their links.

        Raises:
            BadRequest: a link of a type that there is not.
        """
        check_links(event)
        await self._knowledge.store(news.tenant, event)

    async def on_item_forgotten(self, news: News, event: ItemsForgotten) -> None:
        """Remove forgotten knowledge items and their links."""
        await self._knowledge.forget(news.tenant, event)
        self._wake()


def _summary(request: Upsert) -> dict[str, object]:
    return {
        "nodes": [node.key for node in request.nodes[:_AUDITED_ENTRIES]],
        "nodes_total": len(request.nodes),
        "relationships": [f"{r.source.key} {r.type} {r.target.key}" for r in request.relationships[:_AUDITED_ENTRIES]],
        "relationships_total": len(request.relationships),
    }
