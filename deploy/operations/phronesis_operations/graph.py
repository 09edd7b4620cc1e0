"""The graph into an archive, and out of one into an empty store of either kind."""

from __future__ import annotations

import asyncio
import json
import re
from array import array
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from phronesis_contracts.constitution.registry import NODE_LABEL
from phronesis_contracts.knowledge_graph import NAME
from phronesis_graph.bolt.driver import Bolt, Row, Transaction
from phronesis_graph.bolt.schema import GONE, LINKS, LOCKS, NEWS, WRITES
from phronesis_graph.knowledge.model import KNOWLEDGE
from phronesis_graph.links.items import ITEM_LABELS, LINK_TYPES
from phronesis_graph.settings import GraphSettings
from phronesis_graph.twin.ontology import Ontology

from .format import Frame, pack
from .reporting import Damaged, Failed
from .tenancy import Tenancy, bounds

DOUBLE = (KNOWLEDGE, NODE_LABEL)
"""Labels of nodes that have another one beside it: the agents' own, and those of the constitutional graph."""
NODES, RELATIONSHIPS = "graph/nodes", "graph/relationships"
_SECONDS = 120.0
_INT64 = 2**63
_NAME = re.compile(NAME)


def labels(ontology: Ontology) -> tuple[str, ...]:
    """Every label that the service writes, in the order of reading; each node has one of these, and a unique `key`. Those
    of `DOUBLE` have another label beside it.

    Keys of writes come first, so that a write whose key was read is read whole. News comes last, so that of every node
    that was read its news was read, or had been sent before.
    """
    return (WRITES, LOCKS, *ontology.nodes, *ITEM_LABELS, *DOUBLE, LINKS, GONE, NEWS)


def types(ontology: Ontology) -> frozenset[str]:
    """Every type of relationship that the service writes. Between nodes of `DOUBLE` there are types of their own."""
    return frozenset((*ontology.relationships, *LINK_TYPES))


def own_name(name: object) -> str | None:
    """A label or a type of the agents' own, if it is a plain name that can stand in a statement."""
    return name if isinstance(name, str) and _NAME.fullmatch(name) else None


@asynccontextmanager
async def open_graph(settings: GraphSettings) -> AsyncIterator[Bolt]:
    """The store for the length of a block, with time for large reads; asked by the writing user, who sees everything."""
    patient = {"read_timeout": _SECONDS, "write_timeout": _SECONDS, "read_user": None, "read_password_file": None}
    async with Bolt.open(settings.model_copy(update=patient)) as bolt:
        yield bolt


def to_json(properties: Mapping[str, Any]) -> bytes:
    """Properties as JSON: a whole number stays one, and a fraction stays one, `1.0` too.

    Raises:
        Failed: a value has a type that the platform does not write.
    """
    for name, value in properties.items():
        if not _is_plain(value):
            raise Failed(f"the graph holds a {type(value).__name__} in `{name}`, which an archive does not take")
    return json.dumps(properties, ensure_ascii=False, separators=(",", ":")).encode()


def simplify(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Properties that agents gave: what their statements computed and an archive does not take, a day for instance, as text."""
    return {name: value if _is_plain(value) else _text(value) for name, value in properties.items()}


def _text(value: Any) -> str:
    return str(value.iso_format()) if hasattr(value, "iso_format") else str(value)


def from_json(body: bytes) -> dict[str, Any]:
    """The properties again. Raises `Damaged`: these are none."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Damaged("properties of the graph cannot be read") from error
    if not isinstance(found, dict) or not all(map(_is_plain, found.values())):
        raise Damaged("properties of the graph cannot be read")
    return found


def _is_plain(value: object) -> bool:
    match value:
        case list():
            return all(not isinstance(one, list) and _is_plain(one) for one in value)
        case bool() | str() | float() | None:
            return True
        case int():
            return -_INT64 <= value < _INT64
        case _:
            return False


def batches(
    rows: Iterator[tuple[Any, dict[str, Any], int]], most: int, size: int
) -> Iterator[tuple[Any, list[dict[str, Any]]]]:
    """Rows of one kind after another, as batches of `most` rows or about `size` bytes."""
    batch: list[dict[str, Any]] = []
    kind, held = None, 0
    for of_row, row, weight in rows:
        if batch and (of_row != kind or len(batch) >= most or held >= size):
            yield kind, batch
            batch, held = [], 0
        kind, held = of_row, held + weight
        batch.append(row)
    if batch:
        yield kind, batch


_PAGE = 500
_TRIES = 4
_PAUSE = 1.0
"""Seconds before the second try; doubled for each further one."""
# The lock of a tenant's twin has its name; those of the owners of knowledge items, which are projections, hold a slash.
_TURNS = f"MATCH (lock:{LOCKS}) WHERE NOT lock.key CONTAINS '/' RETURN sum(lock.turns) AS turns"
_INSIDE = "n.key > $after AND ($before IS NULL OR n.key < $before)"


class Sink(Protocol):
    """Takes packed records."""

    def append(self, record: bytes, rows: int) -> None: ...

    def clear(self) -> None: ...


class GraphDump:
    """One dump. `tenant`: whose part of it, all by default."""

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
            properties = simplify(row["properties"]) if own else row["properties"]
            sink.append(pack({"type": row["type"], **ends}, to_json(properties)), 1)

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
        return pack({"label": label}, to_json(row["found"]))
    own = sorted(set(row["labels"]) - {label})
    return pack({"label": label, "labels": own}, to_json(simplify(row["found"])))


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
        return await self._number(_ANY, "found"), await self._number(_JOINS, "found")

    async def empty(self) -> None:
        while await self._number(_EMPTY, "gone"):
            pass

    async def of_tenant(self, tenant: str) -> int:
        inside = "n.key > $after AND n.key < $before"
        statements = [f"MATCH (n:{label}) WHERE {inside} RETURN count(n) AS found" for label in sorted(self._labels)]
        return sum([await self._number(one, "found", **bounds(tenant)) for one in statements])

    async def remove(self, tenant: str) -> None:
        for label in sorted(self._labels):
            statement = (
                f"MATCH (n:{label}) WHERE n.key > $after AND n.key < $before "
                "WITH n LIMIT 1000 DETACH DELETE n RETURN count(*) AS gone"
            )
            while await self._number(statement, "gone", **bounds(tenant)):
                pass

    async def nodes(self, frames: Iterator[Frame]) -> int:
        count = 0
        rows = (self._node(frame) for frame in frames)
        for label, batch in batches(rows, _BATCH, _BYTES):
            await self._run(f"UNWIND $rows AS row CREATE (n:{label}) SET n = row", batch)
            count += len(batch)
        return count

    async def relationships(self, frames: Iterator[Frame]) -> int:
        """Create relationships between nodes that are there; how many there were. Raises `Failed`: an end of one is missing."""
        waiting: dict[Kind, list[dict[str, Any]]] = defaultdict(list)
        held = count = 0
        for frame in frames:
            kind = (self._label(frame, "from"), self._type(frame), self._label(frame, "to"))
            ends = {"a": self._key(frame, "source"), "b": self._key(frame, "target")}
            properties = from_json(frame.body)
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
        label, properties = self._label(frame, "label"), from_json(frame.body)
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
