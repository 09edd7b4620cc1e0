"""What one write of the constitutional graph announces, and the turn that it waits for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar

from phronesis_bus import sendable
from phronesis_contracts.constitution.registry import TYPES
from phronesis_contracts.constitution.values import ConstitutionLink
from phronesis_contracts.constitution.writes import (
    CONSTITUTION_CHANGED,
    ConstitutionChanged,
    LinkNews,
    NodeNews,
    Operation,
)
from phronesis_contracts.orchestrator import Audited
from phronesis_contracts.service import AUDITED

from .bolt import Transaction
from .nodes import SERVICE
from .schema import Schema
from .writes import Turns, news_id, write_news

_OF_ONE_EVENT = 250
"""Nodes, and relationships, that one event names: with ids and names of full length it fits into a message."""
_announced: ContextVar[list[ConstitutionChanged] | None] = ContextVar("announced", default=None)
"""What the write at hand announces, once for each of its tries."""


class Turn:
    """What every write of the constitutional graph goes through; one for all of them.

    Args:
        schema: has to stand before anything is written.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._turns = Turns()
        self._hearers: list[Callable[[str, ConstitutionChanged], None]] = []

    def tell(self, hear: Callable[[str, ConstitutionChanged], None]) -> None:
        """Let `hear` know, with the tenant, what a write may have changed: of this process at once, of others by its news."""
        self._hearers.append(hear)

    def heard(self, tenant: str, event: ConstitutionChanged) -> None:
        """Tell all that hear of changes."""
        for hear in self._hearers:
            hear(tenant, event)

    @asynccontextmanager
    async def of(self, tenant: str) -> AsyncIterator[None]:
        """A tenant's turn, for the length of a block.

        Raises:
            Unavailable: the store is down.
        """
        await self._schema.declared()
        async with self._turns.of(tenant):
            events: list[ConstitutionChanged] = []
            token = _announced.set(events)
            try:
                yield
            finally:  # a write that failed may have been committed
                _announced.reset(token)
                for event in events:
                    self.heard(tenant, event)


async def announced(
    transaction: Transaction,
    tenant: str,
    audit: Audited,
    nodes: Sequence[NodeNews] = (),
    links: Sequence[LinkNews] = (),
) -> None:
    """Write the news of a write and its audit entry, in its transaction (O-115)."""
    most = max(len(nodes), len(links))
    events = [
        ConstitutionChanged(
            nodes=tuple(nodes[at : at + _OF_ONE_EVENT]), relationships=tuple(links[at : at + _OF_ONE_EVENT]), actor=audit.who
        )
        for at in range(0, most, _OF_ONE_EVENT)
    ]
    if (told := _announced.get()) is not None:
        told += events
    news = [sendable(SERVICE, news_id(), tenant, CONSTITUTION_CHANGED, event) for event in events]
    await write_news(transaction, [*news, sendable(SERVICE, news_id(), tenant, AUDITED[SERVICE], audit)])


def link_news(link: ConstitutionLink, operation: Operation, source: str, target: str) -> LinkNews:
    """The news of a relationship.

    Args:
        link: the relationship.
        operation: what was done with it.
        source: the type of the node that it leads from.
        target: the type of the node that it leads to.
    """
    layers = tuple(dict.fromkeys((TYPES[source].layer, TYPES[target].layer)))
    return LinkNews(id=link.id, type=link.type, from_id=link.from_id, to_id=link.to_id, operation=operation, layers=layers)
