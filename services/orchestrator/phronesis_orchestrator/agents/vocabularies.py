"""The vocabularies of tenants' twins, kept until a node or the ontology changes."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from phronesis_bus import News
from phronesis_contracts import Forbidden, Principal, Unavailable
from phronesis_contracts.ontology import AskVocabulary, OntologyChanged, Vocabulary
from phronesis_contracts.twin import READERS, NodeChanged

MAX_TENANTS = 50
MAX_PAGES = 50
"""Pages of one vocabulary: 100,000 nodes. What lies behind them is not known by name."""
FRESH = 300.0
"""Seconds after which a vocabulary is asked for anew: news of a change may be lost."""
_TRIES = 3
"""Of a vocabulary whose ontology changed between two pages."""


AskGraph = Callable[[Principal, AskVocabulary], Awaitable[Vocabulary]]
"""Asks the graph for a page."""


class Vocabularies:
    """By tenant; everybody who may read a tenant's twin reads all of it."""

    def __init__(self, ask: AskGraph) -> None:
        self._ask = ask
        self._kept: OrderedDict[str, tuple[Vocabulary, float]] = OrderedDict()
        self._changes = 0
        self._locks = tuple(asyncio.Lock() for _ in range(16))

    async def of(self, who: Principal) -> Vocabulary:
        """The whole vocabulary of the caller's twin, as one page.

        Raises `Forbidden` (the caller may not read the twin) and what the graph raises.
        """
        if who.role not in READERS:
            raise Forbidden("the role may not read the twin")
        async with self._locks[hash(who.tenant) % len(self._locks)]:
            kept = self._kept.get(who.tenant)
            if kept is not None and time.monotonic() - kept[1] < FRESH:
                self._kept.move_to_end(who.tenant)
                return kept[0]
            changes = self._changes
            found = await self._read(who)
            if changes == self._changes:  # else it may be older than the change
                self._kept[who.tenant] = (found, time.monotonic())
                while len(self._kept) > MAX_TENANTS:
                    self._kept.popitem(last=False)
            return found

    async def on_node_changed(self, news: News, event: NodeChanged) -> None:
        """Nodes of a tenant changed: its vocabulary is asked for anew."""
        self._drop(news.tenant)

    async def on_ontology_changed(self, news: News, event: OntologyChanged) -> None:
        """A tenant's ontology changed: its vocabulary is asked for anew."""
        self._drop(news.tenant)

    def _drop(self, tenant: str) -> None:
        self._changes += 1
        self._kept.pop(tenant, None)

    async def _read(self, who: Principal) -> Vocabulary:
        for _ in range(_TRIES):
            first = page = await self._ask(who, AskVocabulary())
            names = list(first.names)
            for _ in range(MAX_PAGES - 1):
                if page.next is None:
                    break
                page = await self._ask(who, AskVocabulary(after=page.next))
                names += page.names
            if page.version == first.version:
                return first.model_copy(update={"names": tuple(names), "next": page.next})
        raise Unavailable("the ontology is being changed", retry_after=1)
