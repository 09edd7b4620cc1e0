"""Labels and relationship types of the agents' own: how many there may be, and how a new one comes into the store.

A name that is used first is schema on ArcadeDB. Two transactions that make the same one would get into each other's way, and
a label may not have the name of a relationship type.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from phronesis_contracts import BadRequest, ServiceError

from ..curation import KNOWLEDGE
from .bolt import Bolt, Row, Transaction

MOST = 2_000
"""Labels, and relationship types, in one store; on ArcadeDB each has files of its own."""
_LABELS = "CALL db.labels() YIELD label RETURN label AS name"
_TYPES = "CALL db.relationshipTypes() YIELD relationshipType RETURN relationshipType AS name"
_DECLARE_LABEL = f"CREATE (n:{KNOWLEDGE}:`%s` {{key: '/declared'}}) DELETE n"
_DECLARE_TYPE = f"CREATE (a:{KNOWLEDGE} {{key: '/from'}})-[:`%s`]->(b:{KNOWLEDGE} {{key: '/to'}}) DETACH DELETE a, b"


class StoreNames:
    """The names that this process has seen in the store."""

    def __init__(self, bolt: Bolt) -> None:
        self._bolt = bolt
        self._labels: frozenset[str] = frozenset()
        self._types: frozenset[str] = frozenset()
        self._lock = asyncio.Lock()

    async def label(self, name: str) -> None:
        """Return when the store knows the label. `name` is a checked name.

        Raises:
            BadRequest: it is the name of a relationship type, or there are too many labels.
        """
        if name not in self._labels:
            async with self._lock:
                await self._look()
                await self._declare(name, self._labels, self._types, "label", _DECLARE_LABEL)

    async def type(self, name: str) -> None:
        """Return when the store knows the relationship type; as `label` does."""
        if name not in self._types:
            async with self._lock:
                await self._look()
                await self._declare(name, self._types, self._labels, "type", _DECLARE_TYPE)

    @asynccontextmanager
    async def perhaps_new(self, names: Iterable[str]) -> AsyncIterator[None]:
        """Alone for the length of a block, if one of these names is new.

        Raises:
            BadRequest: there are too many names.
        """
        wanted = set(names)
        if wanted <= self._labels | self._types:
            yield
            return
        async with self._lock:
            await self._look()
            if wanted - self._labels - self._types and max(len(self._labels), len(self._types)) >= MOST:
                raise BadRequest(f"the graph has {MOST} labels or types; use one of them", field="cypher_query")
            yield

    async def _declare(self, name: str, known: frozenset[str], others: frozenset[str], field: str, statement: str) -> None:
        if name in known:
            return
        if name in others:
            raise BadRequest(f"{name} is the name of another kind of thing in the graph; choose another", field=field)
        if len(known) >= MOST:
            raise BadRequest(f"the graph has {MOST} of them; use one that there is", field=field)

        async def work(transaction: Transaction) -> None:
            await transaction.rows(statement % name)

        try:
            await self._bolt.write(work)
        except ServiceError:
            await self._look()  # another process may have made it meanwhile
            if name not in self._labels | self._types:
                raise

    async def _look(self) -> None:
        async def work(transaction: Transaction) -> tuple[list[Row], list[Row]]:
            return await transaction.rows(_LABELS), await transaction.rows(_TYPES)

        labels, types = await self._bolt.write(work)
        self._labels, self._types = (frozenset(row["name"] for row in rows) for rows in (labels, types))
