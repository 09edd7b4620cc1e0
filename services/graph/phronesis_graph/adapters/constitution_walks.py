"""Walks in the constitutional graph over Bolt: one statement for each hop and direction, begun at keys.

Statements are constants; every value is a parameter, and every node is held to its tenant.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from phronesis_contracts.constitution.registry import NODE_LABEL, TYPES
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode

from ..constitution.records import BAGS, columns, key_of, link_of, node_of
from ..constitution.walkable import MOST_EDGES, Edge, Follow, Met, Reader
from .bolt import Bolt, Row, Transaction

T = TypeVar("T")

MET = ", ".join(f"n.{name} AS {name}" for name in ("id", "type", "title", "status", "lifecycle", "updatedAt"))
"""What a walk reads of a node `n`; `met` makes one of it."""
LOOK_UP = f"UNWIND $keys AS key MATCH (n:{NODE_LABEL} {{key: key}}) WHERE n.tenant = $tenant RETURN {MET}"
_ARROWS = {"out": "-[r]->", "in": "<-[r]-"}
# One text for each relationship: a driver takes four times as long to unpack rows. Of its parts only a title, which stands
# last, may hold a line's end.
_PARTS = ("s.id", "type(r)", "n.id", "n.type", "n.status", "n.lifecycle", "n.updatedAt", "n.title")
_TEXT = " + '\\n' + ".join(_PARTS)


def _around(arrow: str, named: str) -> str:
    return (
        f"UNWIND $keys AS key MATCH (s:{NODE_LABEL} {{key: key}}){arrow}(n:{NODE_LABEL}) "
        f"WHERE s.tenant = $tenant AND n.tenant = $tenant AND n.lifecycle IN $lifecycles{named} "
        f"WITH {_TEXT} AS edge LIMIT $limit RETURN collect(edge) AS edges"
    )


AROUND = {way: _around(arrow, "") for way, arrow in _ARROWS.items()}
AROUND_BY = {way: _around(arrow, " AND type(r) IN $names") for way, arrow in _ARROWS.items()}
_FULL = tuple(dict.fromkeys(name for kind in TYPES.values() for name in columns(kind) if name not in BAGS))


def _nodes(names: Sequence[str]) -> str:
    shown = ", ".join(f"n.{name} AS {name}" for name in names)
    return f"UNWIND $keys AS key MATCH (n:{NODE_LABEL} {{key: key}}) WHERE n.tenant = $tenant RETURN {shown}"


NODES = {True: _nodes(_FULL), False: _nodes([name for name in _FULL if name != "description"])}
_LINKS = (
    f"UNWIND $keys AS key MATCH (a:{NODE_LABEL} {{key: key}})-[r]->(b:{NODE_LABEL}) "
    "WHERE a.tenant = $tenant AND b.tenant = $tenant AND b.key IN $keys "
    "RETURN r.id AS id, type(r) AS type, a.id AS fromId, b.id AS toId ORDER BY id LIMIT $limit"
)
STATEMENTS = (LOOK_UP, *AROUND.values(), *AROUND_BY.values(), *NODES.values(), _LINKS)
"""All of them."""


class BoltWalks:
    """The `WalkStore` over Bolt."""

    def __init__(self, bolt: Bolt) -> None:
        self._bolt = bolt

    async def read(self, tenant: str, work: Callable[[Reader], Awaitable[T]]) -> T:
        """Do some work with a tenant's nodes in one read; see the port."""
        return await self._bolt.read(lambda transaction: work(_Reader(transaction, tenant)))


class _Reader:
    """The `Reader` of one transaction."""

    def __init__(self, transaction: Transaction, tenant: str) -> None:
        self._transaction = transaction
        self._tenant = tenant

    async def met(self, ids: Sequence[str]) -> dict[str, Met]:
        """Those of the nodes that there are; see the port."""
        return {row["id"]: met(row) for row in await self._rows(LOOK_UP, ids)}

    async def around(self, ids: Sequence[str], follow: Follow) -> list[Edge]:
        """The relationships from nodes to their neighbours; see the port."""
        given: Row = {"lifecycles": list(follow.lifecycles), "limit": MOST_EDGES}
        statements = AROUND
        if follow.names:
            statements, given["names"] = AROUND_BY, list(follow.names)
        edges = []
        for way in ("out", "in") if follow.direction == "both" else (follow.direction,):
            for row in await self._rows(statements[way], ids, **given):
                edges += [_edge(text, way == "out") for text in row["edges"]]
        return edges

    async def nodes(self, ids: Sequence[str], *, full: bool) -> list[ConstitutionNode]:
        """Those of the nodes that there are, in the order asked; see the port."""
        rows = {row["id"]: row for row in await self._rows(NODES[full], ids)}
        return [node_of(rows[id]) for id in ids if id in rows]

    async def links(self, ids: Sequence[str], most: int) -> list[ConstitutionLink]:
        """Relationships between two of the nodes; see the port."""
        return [link_of(row) for row in await self._rows(_LINKS, ids, limit=most)]

    async def _rows(self, statement: str, ids: Sequence[str], **given: object) -> list[Row]:
        keys = [key_of(self._tenant, id) for id in dict.fromkeys(ids)]
        return await self._transaction.rows(statement, keys=keys, tenant=self._tenant, **given)


def _edge(text: str, out: bool) -> Edge:
    source, name, id, type, status, lifecycle, updated_at, title = text.split("\n", len(_PARTS) - 1)
    return Edge(source, name, out, Met(id, type, title, status, lifecycle, updated_at))


def met(row: Row) -> Met:
    """A node as a walk meets it, of a row with `MET`."""
    return Met(row["id"], row["type"], row["title"], row["status"], row["lifecycle"], row["updatedAt"])
