"""The graph out of an archive, into an empty store of either kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from phronesis_graph.adapters.bolt import Bolt, Transaction
from phronesis_graph.ontology import Ontology

from .errors import Damaged, Failed
from .frames import Frame
from .graph_model import DOUBLE, batches, labels, own_name, types, understood
from .tenancy import Tenancy, bounds

_BATCH = 500
_BYTES = 2 * 1024 * 1024
_WAITING = 20_000
"""Relationships held while those of their kind are collected."""
_ANY = "MATCH (n) RETURN count(n) AS found"
_JOINS = "MATCH ()-[r]->() RETURN count(r) AS found"
_EMPTY = "MATCH (n) WITH n LIMIT 1000 DETACH DELETE n RETURN count(*) AS gone"
Kind = tuple[str, str, str]


class GraphLoad:
    """Writes records of the graph. What a statement is made of is looked up in the ontology, never taken from a record."""

    def __init__(self, bolt: Bolt, ontology: Ontology, tenancy: Tenancy | None = None) -> None:
        self._bolt = bolt
        self._tenancy = tenancy
        self._labels = frozenset(labels(ontology))
        self._types = types(ontology)

    async def counts(self) -> tuple[int, int]:
        """Nodes and relationships that are there."""
        return await self._number(_ANY, "found"), await self._number(_JOINS, "found")

    async def empty(self) -> None:
        """Remove everything."""
        while await self._number(_EMPTY, "gone"):
            pass

    async def of_tenant(self, tenant: str) -> int:
        """How many nodes a tenant has."""
        inside = "n.key > $after AND n.key < $before"
        statements = [f"MATCH (n:{label}) WHERE {inside} RETURN count(n) AS found" for label in sorted(self._labels)]
        return sum([await self._number(one, "found", **bounds(tenant)) for one in statements])

    async def remove(self, tenant: str) -> None:
        """Remove what a tenant has."""
        for label in sorted(self._labels):
            statement = (
                f"MATCH (n:{label}) WHERE n.key > $after AND n.key < $before "
                "WITH n LIMIT 1000 DETACH DELETE n RETURN count(*) AS gone"
            )
            while await self._number(statement, "gone", **bounds(tenant)):
                pass

    async def nodes(self, frames: Iterator[Frame]) -> int:
        """Create nodes; how many there were."""
        count = 0
        rows = (self._node(frame) for frame in frames)
        for label, batch in batches(rows, _BATCH, _BYTES):
            await self._run(f"UNWIND $rows AS row CREATE (n:{label}) SET n = row", batch)
            count += len(batch)
        return count

    async def relationships(self, frames: Iterator[Frame]) -> int:
        """Create relationships between nodes that are there; how many there were.

        Raises:
            Failed: an end of one is missing.
        """
        waiting: dict[Kind, list[dict[str, Any]]] = defaultdict(list)
        held = count = 0
        for frame in frames:
            kind = (self._label(frame, "from"), self._type(frame), self._label(frame, "to"))
            ends = {"a": self._key(frame, "source"), "b": self._key(frame, "target")}
            properties = understood(frame.body)
            row = {**ends, "properties": self._tenancy.relationship(properties) if self._tenancy else properties}
            waiting[kind].append(row)
            held += 1
            count += 1
            if held >= _WAITING:
                held -= await self._joined(waiting, _BATCH)
        await self._joined(waiting, 1)
        return count

    async def _joined(self, waiting: dict[Kind, list[dict[str, Any]]], least: int) -> int:
        """Write those kinds of which `least` wait, or all where none has so many; how many relationships that were."""
        chosen = [kind for kind, rows in waiting.items() if len(rows) >= least] or list(waiting)
        done = 0
        for kind in chosen:
            rows = waiting.pop(kind)
            done += len(rows)
            for start in range(0, len(rows), _BATCH):
                await self._join(kind, rows[start : start + _BATCH])
        return done

    async def _join(self, kind: Kind, rows: list[dict[str, Any]]) -> None:
        source, name, target = kind
        statement = (
            f"UNWIND $rows AS row MATCH (a:{source} {{key: row.a}}) MATCH (b:{target} {{key: row.b}}) "
            f"CREATE (a)-[r:`{name}`]->(b) SET r = row.properties RETURN count(r) AS found"
        )
        if await self._number(statement, "found", rows=rows) != len(rows):
            raise Failed("the graph lacks an end of a relationship")

    async def _run(self, statement: str, rows: list[dict[str, Any]]) -> None:
        async def work(transaction: Transaction) -> None:
            await transaction.rows(statement, rows=rows)

        await self._bolt.write(work)

    async def _number(self, statement: str, name: str, **parameters: Any) -> int:
        async def work(transaction: Transaction) -> int:
            found = await transaction.rows(statement, **parameters)
            return int(found[0][name]) if found else 0

        return await self._bolt.write(work)

    def _label(self, frame: Frame, name: str) -> str:
        label = frame.header.get(name)
        if not isinstance(label, str) or label not in self._labels:
            raise Damaged("the archive holds a node of a type that this version does not know")
        return label

    def _type(self, frame: Frame) -> str:
        name = frame.header.get("type")
        if frame.header.get("from") == frame.header.get("to") in DOUBLE:
            name = own_name(name)
        elif not isinstance(name, str) or name not in self._types:
            name = None
        if name is None:
            raise Damaged("the archive holds a relationship of a type that this version does not know")
        return name

    def _node(self, frame: Frame) -> tuple[str, dict[str, Any], int]:
        label, properties = self._label(frame, "label"), understood(frame.body)
        if self._tenancy:
            properties = self._tenancy.node(label, properties)
        return self._all_labels(label, frame), properties, len(frame.body)

    def _all_labels(self, label: str, frame: Frame) -> str:
        """The labels as a statement has them: some nodes have another one beside the service's."""
        if label not in DOUBLE:
            return label
        given = frame.header.get("labels")
        own = [own_name(name) for name in given] if isinstance(given, list) else [None]
        if None in own:
            raise Damaged("the archive holds a label that is no name")
        return ":".join([label, *(f"`{name}`" for name in own)])

    def _key(self, frame: Frame, name: str) -> str:
        key = frame.header.get(name)
        if not isinstance(key, str):
            raise Damaged("the archive holds a relationship without its ends")
        return self._tenancy.key(key) if self._tenancy else key
