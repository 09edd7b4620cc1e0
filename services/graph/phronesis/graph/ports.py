"""What the handlers need of a store."""

from __future__ import annotations

from typing import Protocol

from phronesis.bus import Call
from phronesis.contracts.graph import Expand, Neighbour, Node, Upserted
from phronesis.contracts.memory import ItemsForgotten, KnowledgeStored
from phronesis.contracts.orchestrator import Audited

from .domain import Plan


class TwinStore(Protocol):
    """The typed nodes of every tenant, each tenant's apart from the others'."""

    async def upsert(self, call: Call, arguments: str, batch: Plan, audit: Audited) -> Upserted:
        """Write a batch, its news and its audit entry in one transaction, once for each key of the caller's service.

        Args:
            call: how the request came; its key makes a repeat answer with the first result.
            arguments: hash of the request as it came.
            batch: what to write.
            audit: the entry for the audit trail.

        Raises:
            BadRequest: an end that does not exist, or levels that may not be joined; nothing is written.
            KeyReused: the key came before with other arguments.
            Unavailable: the store is down, or the outcome of the commit is not known.
        """
        ...

    async def nodes(self, tenant: str, refs: tuple[str, ...]) -> list[Node]:
        """The nodes of `tenant` among `refs` (`type/id/year`) that exist, in the order asked.

        Raises:
            Unavailable: the store is down.
        """
        ...


class KnowledgeStore(Protocol):
    """The users' knowledge items and the links between them: ids and types, no content."""

    async def store(self, tenant: str, news: KnowledgeStored) -> None:
        """Take over items and links; what is older than what is held changes nothing.

        Raises:
            Unavailable: the store is down.
        """
        ...

    async def forget(self, tenant: str, news: ItemsForgotten) -> None:
        """Remove items with their links for good, and report to the deletion that they went with.

        Raises:
            Unavailable: the store is down.
        """
        ...

    async def expand(self, tenant: str, user: str, question: Expand) -> list[Neighbour]:
        """Seeds and their neighbours, nearest first, over items that are the user's or shared in the tenant.

        Raises:
            Unavailable: the store is down.
        """
        ...
