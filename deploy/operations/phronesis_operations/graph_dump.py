"""The graph into an archive. Neither store gives one view over several reads, so the twin's writers are watched."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from phronesis_graph.adapters.bolt import Bolt, Row, Transaction
from phronesis_graph.adapters.labels import LOCKS, NEWS
from phronesis_graph.curation import KNOWLEDGE
from phronesis_graph.ontology import Ontology

from .errors import Failed
from .frames import packed
from .graph_model import DOUBLE, labels, own_name, simplified, types, written
from .tenancy import bounds

_PAGE = 500
_TRIES = 4
_PAUSE = 1.0
"""Seconds before the second try; doubled for each further one."""
# The lock of a tenant's twin has its name; those of the owners of knowledge items, which are projections, hold a slash.
_TURNS = f"MATCH (lock:{LOCKS}) WHERE NOT lock.key CONTAINS '/' RETURN sum(lock.turns) AS turns"
_INSIDE = "n.key > $after AND ($before IS NULL OR n.key < $before)"


class Sink(Protocol):
    """Takes packed records."""

    def append(self, record: bytes, rows: int) -> None:
        """Take one."""
        ...

    def clear(self) -> None:
        """Forget all that was taken."""
        ...


class GraphDump:
    """One dump.

    Args:
        bolt: the store.
        ontology: what it may hold.
        tenant: whose part of it, all by default.
    """

    def __init__(self, bolt: Bolt, ontology: Ontology, tenant: str | None = None) -> None:
        self._bolt = bolt
        self._labels = [label for label in labels(ontology) if tenant is None or label not in (LOCKS, NEWS)]
        self._types = types(ontology)
        limits = bounds(tenant) if tenant is not None else {"after": "", "before": None}
        self._first, self._before = limits["after"], limits["before"]
        self._known: npt.NDArray[np.int64] = np.zeros(0, np.int64)

    async def run(self, nodes: Sink, relationships: Sink) -> bool:
        """Write everything; again from the start where the twin was written meanwhile, a few times.

        Returns:
            Whether nothing was written to the twin meanwhile. Otherwise a batch of nodes that was written after the point
            may be there in part: its key is not, so that whoever repeats it completes it.

        Raises:
            Failed: it holds something that an archive does not take.
        """
        for attempt in range(_TRIES):
            if attempt:
                await asyncio.sleep(_PAUSE * 2 ** (attempt - 1))
            nodes.clear()
            relationships.clear()
            before = await self._turns()
            await self._nodes(nodes)
            await self._relationships(relationships)
            if await self._turns() == before:
                return True
        return False

    async def _turns(self) -> int:
        return int((await self._rows(_TURNS))[0]["turns"] or 0)

    async def _nodes(self, sink: Sink) -> None:
        known = array("q")
        for label in self._labels:
            async for rows in self._pages(label, "labels(n) AS labels, properties(n)"):
                for row in rows:
                    sink.append(_node(label, row), 1)
                    known.append(hash((label, row["key"])))
        self._known = np.sort(np.frombuffer(known, dtype=np.int64)) if known else self._known[:0]

    async def _relationships(self, sink: Sink) -> None:
        for label in self._labels:
            statement = (
                f"UNWIND $keys AS key MATCH (a:{label} {{key: key}})-[r]->(b) RETURN a.key AS source, type(r) AS type, "
                "labels(b) AS labels, b.key AS target, properties(r) AS properties"
            )
            async for rows in self._pages(label, "1"):
                for row in await self._rows(statement, keys=[row["key"] for row in rows]):
                    self._relationship(sink, label, row)

    def _relationship(self, sink: Sink, label: str, row: Row) -> None:
        own = label in DOUBLE and label in row["labels"] and own_name(row["type"])
        if not own and (len(row["labels"]) != 1 or row["type"] not in self._types):
            raise Failed(f"the graph holds a relationship of the type {row['type']}, which the ontology does not know")
        end = label if own else row["labels"][0]
        ends = {"source": row["source"], "target": row["target"], "from": label, "to": end}
        # An item that was stored after the nodes were read: the news of it, which the archive holds, links it again.
        if self._there(label, row["source"]) and self._there(end, row["target"]):
            properties = simplified(row["properties"]) if own else row["properties"]
            sink.append(packed({"type": row["type"], **ends}, written(properties)), 1)

    def _there(self, label: str, key: str) -> bool:
        wanted = hash((label, key))
        place = int(np.searchsorted(self._known, wanted))
        return place < len(self._known) and int(self._known[place]) == wanted

    async def _pages(self, label: str, wanted: str) -> AsyncIterator[list[Row]]:
        # A node of the agents may have a label that users' items have too.
        alone = "" if label in DOUBLE else f" AND NOT n:{KNOWLEDGE}"
        inside = f"MATCH (n:{label}) WHERE {_INSIDE}{alone}"
        statement = f"{inside} RETURN n.key AS key, {wanted} AS found ORDER BY n.key LIMIT {_PAGE}"
        after = self._first
        while rows := await self._rows(statement, after=after, before=self._before):
            yield rows
            after = rows[-1]["key"]

    async def _rows(self, statement: str, **parameters: Any) -> list[Row]:
        async def work(transaction: Transaction) -> list[Row]:
            return await transaction.rows(statement, **parameters)

        return await self._bolt.read(work)


def _node(label: str, row: Row) -> bytes:
    if label not in DOUBLE:
        return packed({"label": label}, written(row["found"]))
    own = sorted(set(row["labels"]) - {label})
    return packed({"label": label, "labels": own}, written(simplified(row["found"])))
