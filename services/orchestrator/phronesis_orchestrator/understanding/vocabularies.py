"""The lexicons of tenants, read from the graph once and dropped when its nodes or its ontology change."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from dataclasses import dataclass, field

from phronesis_bus import News
from phronesis_contracts import Principal, ServiceError
from phronesis_contracts.ontology import VOCABULARY, AskVocabulary
from phronesis_contracts.twin import READERS, NodeChanged

from ..turns.ports import Neighbours
from .language import Language
from .lexicon import Lexicon, VocabularyView

log = logging.getLogger(__name__)

_TENANTS = 32
"""Tenants whose words are kept at most; the one that was longest not asked for goes first."""
_FRESH = 600.0
"""Seconds for which a vocabulary is good without news of a change: news can be lost while the broker is away."""
_AT_MOST_EVERY = 2.0
"""Seconds between two readings for one tenant, however many changes are announced: a load announces thousands."""
_PAGES = 25
"""Pages of names that are read: 50,000 nodes."""
_TRIES = 3
_LOCKS = 16
"""Readings that may run side by side; two tenants seldom share one."""


@dataclass
class _Kept:
    view: VocabularyView
    at: float
    stale: bool = False
    lexicons: dict[str, Lexicon] = field(default_factory=dict)


class Vocabularies:
    """One of it for a process.

    Args:
        neighbours: whom the graph is asked by; not those of one turn, whose record a vocabulary would fill.
    """

    def __init__(self, neighbours: Neighbours) -> None:
        self._neighbours = neighbours
        self._of: OrderedDict[str, _Kept] = OrderedDict()
        self._changes = 0
        self._locks = tuple(asyncio.Lock() for _ in range(_LOCKS))

    def drop(self, tenant: str) -> None:
        """Read the tenant's words anew before its next question."""
        if (kept := self._of.get(tenant)) is not None:
            kept.stale = True
        self._changes += 1

    async def on_node_changed(self, news: News, event: NodeChanged) -> None:
        """Nodes of a tenant changed: its names and values may have."""
        self.drop(news.tenant)

    async def lexicon(self, who: Principal, language: Language) -> Lexicon | None:
        """The words of the caller's twin in a language; `None` where the caller may not read the twin.

        Raises:
            ServiceError: the graph cannot be asked, and no earlier vocabulary is at hand.
        """
        if who.role not in READERS:
            return None
        async with self._locks[hash(who.tenant) % _LOCKS]:
            kept = await self._current(who)
            if language.name not in kept.lexicons:
                kept.lexicons[language.name] = await asyncio.to_thread(Lexicon.build, kept.view, language)
        return kept.lexicons[language.name]

    async def _current(self, who: Principal) -> _Kept:
        kept, now = self._of.get(who.tenant), time.monotonic()
        if kept is not None:
            self._of.move_to_end(who.tenant)
            due = kept.stale or now - kept.at > _FRESH
            if not due or now - kept.at < _AT_MOST_EVERY:
                return kept
        changes = self._changes
        try:
            view = await self._read(who)
        except ServiceError as error:
            if kept is None:
                raise
            log.warning("the words of the twin are an older reading: %s", error.code)
            return kept
        fresh = _Kept(view, time.monotonic(), stale=changes != self._changes)  # what changed meanwhile may be missing
        self._of[who.tenant] = fresh
        self._of.move_to_end(who.tenant)
        if len(self._of) > _TENANTS:
            self._of.popitem(last=False)
        return fresh

    async def _read(self, who: Principal) -> VocabularyView:
        """All pages of one version; begun again where the ontology changed between two of them."""
        for _ in range(_TRIES):
            pages = [await self._neighbours.ask(who, VOCABULARY, AskVocabulary())]
            while pages[-1].next is not None and len(pages) < _PAGES:
                page = await self._neighbours.ask(who, VOCABULARY, AskVocabulary(after=pages[-1].next))
                pages.append(page)
            if len({page.version for page in pages}) == 1:
                break
        if pages[-1].next is not None:
            log.warning("the twin has more names than are read; those beyond %d pages are found by search alone", _PAGES)
        return VocabularyView.of(pages)
