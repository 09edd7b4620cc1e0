"""Walks, projections and figures over Bolt: one statement for each hop and direction, or each question, begun at keys."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from phronesis_contracts import NotFound, TooLarge
from phronesis_contracts.constitution.paths import Outcomes
from phronesis_contracts.constitution.registry import NODE_LABEL, TYPES, Layer, Lifecycle
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode

from ..bolt.driver import Bolt, Row, Transaction
from .figures import DueTasks, MetricSeries, Window
from .records import BAGS, column_names, link_from_row, node_from_row, node_key
from .store import key_bounds
from .traversal import MOST_EDGES, Edge, EdgeFilter, WalkNode, WalkReader

T = TypeVar("T")

WALK_NODE_COLUMNS = ", ".join(f"n.{name} AS {name}" for name in ("id", "type", "title", "status", "lifecycle", "updatedAt"))
"""What a walk reads of a node `n`; `met` makes one of it."""
LOOK_UP = f"UNWIND $keys AS key MATCH (n:{NODE_LABEL} {{key: key}}) WHERE n.tenant = $tenant RETURN {WALK_NODE_COLUMNS}"
_ARROWS = {"out": "-[r]->", "in": "<-[r]-"}
# One text for each relationship: a driver takes four times as long to unpack rows. Of its parts only a title, which stands
# last, may hold a line's end.
_PARTS = ("s.id", "type(r)", "n.id", "n.type", "n.status", "n.lifecycle", "n.updatedAt", "n.title")
_TEXT = " + '\\n' + ".join(_PARTS)


def _around_statement(arrow: str, named: str) -> str:
    return (
        f"UNWIND $keys AS key MATCH (s:{NODE_LABEL} {{key: key}}){arrow}(n:{NODE_LABEL}) "
        f"WHERE s.tenant = $tenant AND n.tenant = $tenant AND n.lifecycle IN $lifecycles{named} "
        f"WITH {_TEXT} AS edge LIMIT $limit RETURN collect(edge) AS edges"
    )


AROUND = {way: _around_statement(arrow, "") for way, arrow in _ARROWS.items()}
AROUND_BY = {way: _around_statement(arrow, " AND type(r) IN $names") for way, arrow in _ARROWS.items()}
_FULL = tuple(dict.fromkeys(name for kind in TYPES.values() for name in column_names(kind) if name not in BAGS))


def _nodes_statement(names: Sequence[str]) -> str:
    shown = ", ".join(f"n.{name} AS {name}" for name in names)
    return f"UNWIND $keys AS key MATCH (n:{NODE_LABEL} {{key: key}}) WHERE n.tenant = $tenant RETURN {shown}"


NODES = {True: _nodes_statement(_FULL), False: _nodes_statement([name for name in _FULL if name != "description"])}
_LINKS = (
    f"UNWIND $keys AS key MATCH (a:{NODE_LABEL} {{key: key}})-[r]->(b:{NODE_LABEL}) "
    "WHERE a.tenant = $tenant AND b.tenant = $tenant AND b.key IN $keys "
    "RETURN r.id AS id, type(r) AS type, a.id AS fromId, b.id AS toId ORDER BY id LIMIT $limit"
)
STATEMENTS = (LOOK_UP, *AROUND.values(), *AROUND_BY.values(), *NODES.values(), _LINKS)
"""All of them."""


class BoltWalks:
    def __init__(self, bolt: Bolt) -> None:
        self._bolt = bolt

    async def read(self, tenant: str, work: Callable[[WalkReader], Awaitable[T]]) -> T:
        return await self._bolt.read(lambda transaction: work(_Reader(transaction, tenant)))


class _Reader:
    def __init__(self, transaction: Transaction, tenant: str) -> None:
        self._transaction, self._tenant = transaction, tenant

    async def met(self, ids: Sequence[str]) -> dict[str, WalkNode]:
        return {row["id"]: walk_node_from_row(row) for row in await self._rows(LOOK_UP, ids)}

    async def around(self, ids: Sequence[str], follow: EdgeFilter) -> list[Edge]:
        given: Row = {"lifecycles": list(follow.lifecycles), "limit": MOST_EDGES}
        statements = AROUND
        if follow.names:
            statements, given["names"] = AROUND_BY, list(follow.names)
        edges = []
        for way in ("out", "in") if follow.direction == "both" else (follow.direction,):
            for row in await self._rows(statements[way], ids, **given):
                edges += [_edge_from_text(text, way == "out") for text in row["edges"]]
        return edges

    async def nodes(self, ids: Sequence[str], *, full: bool) -> list[ConstitutionNode]:
        rows = {row["id"]: row for row in await self._rows(NODES[full], ids)}
        return [node_from_row(rows[id]) for id in ids if id in rows]

    async def links(self, ids: Sequence[str], most: int) -> list[ConstitutionLink]:
        return [link_from_row(row) for row in await self._rows(_LINKS, ids, limit=most)]

    async def _rows(self, statement: str, ids: Sequence[str], **given: object) -> list[Row]:
        keys = [node_key(self._tenant, id) for id in dict.fromkeys(ids)]
        return await self._transaction.rows(statement, keys=keys, tenant=self._tenant, **given)


def _edge_from_text(text: str, out: bool) -> Edge:
    source, name, id, type, status, lifecycle, updated_at, title = text.split("\n", len(_PARTS) - 1)
    return Edge(source, name, out, WalkNode(id, type, title, status, lifecycle, updated_at))


def walk_node_from_row(row: Row) -> WalkNode:
    """A node as a walk meets it, of a row with `WALK_NODE_COLUMNS`."""
    return WalkNode(row["id"], row["type"], row["title"], row["status"], row["lifecycle"], row["updatedAt"])


_MOST_NODES = 200_000
_MOST_LINKS = 1_000_000
# Gathered in the store: a driver that unpacks one row for each of them takes many times as long. A key holds its tenant, and
# that of a relationship its ends; to read those of the nodes takes the store longest.
_PROJECTED_NODES = (
    f"MATCH (n:{NODE_LABEL}) WHERE n.key > $after AND n.key < $before AND n.lifecycle = $active "
    "WITH n.type AS type, n.id AS id LIMIT $limit RETURN type, collect(id) AS ids"
)
_PROJECTED_LINKS = (
    f"MATCH (a:{NODE_LABEL})-[r:{{}}]->() WHERE a.key > $after AND a.key < $before "
    "WITH r.key AS key LIMIT $limit RETURN collect(key) AS keys"
)


class BoltProjection:
    def __init__(self, bolt: Bolt) -> None:
        self._bolt = bolt

    async def project(self, tenant: str, names: tuple[str, ...]) -> tuple[dict[str, str], list[tuple[str, str, str]]]:
        links = _PROJECTED_LINKS.format("|".join(f"`{name}`" for name in names))

        async def work(transaction: Transaction) -> tuple[list[Row], list[Row]]:
            bounds = key_bounds(tenant)
            nodes = await transaction.rows(_PROJECTED_NODES, active=Lifecycle.ACTIVE.value, limit=_MOST_NODES + 1, **bounds)
            return nodes, await transaction.rows(links, limit=_MOST_LINKS + 1, **bounds)

        nodes, rows = await self._bolt.read(work)
        keys = [key for row in rows for key in row["keys"]]
        return await asyncio.to_thread(_to_projection, tenant, names, nodes, keys)


def _to_projection(
    tenant: str, names: tuple[str, ...], nodes: list[Row], keys: list[str]
) -> tuple[dict[str, str], list[tuple[str, str, str]]]:
    types = {id: row["type"] for row in nodes for id in row["ids"]}
    if len(types) > _MOST_NODES or len(keys) > _MOST_LINKS:
        raise TooLarge(f"algorithms run over {_MOST_NODES} nodes and {_MOST_LINKS} relationships at most")
    return types, [_split_key(key[len(tenant) + 1 :], names) for key in keys]


def _split_key(key: str, names: tuple[str, ...]) -> tuple[str, str, str]:
    """From, type and to, of a key as `link_key` makes it."""
    parts = key.split("/")
    if len(parts) == 3:
        return parts[0], parts[1], parts[2]
    source, name, target = next(found for name in names if (found := key.partition(f"/{name}/"))[1])
    return source, name.strip("/"), target


_MOST_OBSERVATIONS = 50_000
_MOST_OUTCOMES = 2_000


def _within_window(name: str) -> str:
    # The first two are bounds for an index; the third leaves out what lies in the first day before the window begins.
    return f"n.{name} >= $day AND n.{name} <= $last AND (n.{name} >= $first OR n.{name} = $day)"


_OPEN = "MATCH (n:Task) WHERE n.tenant = $tenant AND n.status IN ['todo', 'in_progress']"
_DUE = f"{_OPEN} AND {_within_window('dueDate')}"
_TASK = ("id", "type", "layer", "title", "status", "dueDate", "priority", "effortHours", "updatedAt")
_TASKS = (
    f"{_DUE} RETURN {', '.join(f'n.{name} AS {name}' for name in _TASK)}, coalesce(n.priority, 0) AS rank "
    "ORDER BY dueDate, rank DESC, id LIMIT $limit"
)
_TASK_FIGURES = (
    f"{_DUE} RETURN n.status AS status, count(n) AS tasks, count(n.effortHours) AS estimated, "
    "sum(coalesce(n.effortHours, 0.0)) AS hours"
)
_OVERDUE = f"{_OPEN} AND n.dueDate < $first AND n.dueDate <> $day RETURN count(n) AS tasks"

_METRICS = "MATCH (n:Metric) WHERE n.tenant = $tenant AND {} RETURN n.id AS id, n.title AS title, n.unit AS unit"
_ALL_METRICS = _METRICS.format("n.lifecycle = 'active'")
_THESE_METRICS = _METRICS.format("n.id IN $ids")
_OBSERVED = (
    "UNWIND $keys AS key MATCH (m:Metric {key: key})<-[:MEASURES]-(n:Observation) "
    f"WHERE n.tenant = $tenant AND n.lifecycle = 'active' AND n.value IS NOT NULL AND {_within_window('observedAt')} "
    "WITH m.id AS metric, n.observedAt AS at, n.value AS value ORDER BY at LIMIT $limit "
    "RETURN metric, collect(at) AS times, collect(value) AS amounts"
)

_SHOWN = ", ".join(f"n.{name} AS {name}" for name in column_names(TYPES["decision"]) if name not in BAGS)
_DECISIONS = "MATCH (n:Decision) WHERE n.tenant = $tenant AND n.lifecycle = 'active'"
_BY_RETURN = (
    f"RETURN {_SHOWN}, n.roiTotal IS NULL AS unpaid, coalesce(n.decidedAt, '') AS decided "
    "ORDER BY unpaid, roiTotal DESC, decided DESC, id LIMIT $limit"
)
_OUTCOMES = (
    f"UNWIND $keys AS key MATCH (s:{NODE_LABEL} {{key: key}})-[r]->(n:{NODE_LABEL}) "
    "WHERE s.tenant = $tenant AND n.tenant = $tenant AND type(r) = $name "
    "AND (size($types) = 0 OR n.type IN $types) AND (size($statuses) = 0 OR n.status IN $statuses) "
    f"RETURN s.id AS source, {WALK_NODE_COLUMNS} ORDER BY updatedAt DESC, id LIMIT $limit"
)
_EXIST = f"UNWIND $keys AS key MATCH (n:{NODE_LABEL} {{key: key}}) WHERE n.tenant = $tenant RETURN n.id AS id"

_OF_LAYER = "{0}.tenant = $tenant AND {0}.layer = $layer AND {0}.lifecycle = 'active'"
_FOUNDATION = (
    f"MATCH (n:{NODE_LABEL}) WHERE {_OF_LAYER.format('n')} RETURN n.id AS id, n.type AS type, n.layer AS layer, "
    "n.title AS title, n.summary AS summary, n.description AS description ORDER BY id LIMIT $limit"
)
_FOUNDED = (
    f"MATCH (n:{NODE_LABEL})-[r]->(b:{NODE_LABEL}) WHERE {_OF_LAYER.format('n')} AND {_OF_LAYER.format('b')} "
    "RETURN n.id AS source, type(r) AS type, b.id AS target ORDER BY source, type, target LIMIT $most"
)
_MOST_FOUNDED = 20_000


class BoltFigures:
    def __init__(self, bolt: Bolt) -> None:
        self._bolt = bolt

    async def due(self, tenant: str, window: Window, limit: int) -> DueTasks:
        given: Row = {"tenant": tenant, **vars(window)}

        async def work(transaction: Transaction) -> DueTasks:
            tasks = await transaction.rows(_TASKS, limit=limit, **given) if limit else []
            figures = await transaction.rows(_TASK_FIGURES, **given)
            [overdue] = await transaction.rows(_OVERDUE, **given)
            return DueTasks(
                tasks=[node_from_row(row) for row in tasks],
                by_status={row["status"]: row["tasks"] for row in sorted(figures, key=lambda row: str(row["status"]))},
                hours=float(sum(row["hours"] for row in figures)),
                unestimated=sum(row["tasks"] - row["estimated"] for row in figures),
                overdue=overdue["tasks"],
            )

        return await self._bolt.read(work)

    async def measured(self, tenant: str, window: Window, metrics: Sequence[str]) -> list[MetricSeries]:
        async def work(transaction: Transaction) -> tuple[list[Row], list[Row]]:
            if metrics:
                found = await transaction.rows(_THESE_METRICS, tenant=tenant, ids=list(metrics))
            else:
                found = await transaction.rows(_ALL_METRICS, tenant=tenant)
            keys = [node_key(tenant, row["id"]) for row in found]
            given = {"tenant": tenant, "keys": keys, "limit": _MOST_OBSERVATIONS + 1, **vars(window)}
            return found, await transaction.rows(_OBSERVED, **given) if keys else []

        found, observed = await self._bolt.read(work)
        missing = set(metrics) - {row["id"] for row in found}
        if missing:
            raise NotFound(f"there is no metric {min(missing)}")
        if sum(len(row["times"]) for row in observed) > _MOST_OBSERVATIONS:
            raise TooLarge(f"more than {_MOST_OBSERVATIONS} observations; ask for a shorter time or fewer metrics")
        series = {row["metric"]: list(zip(row["times"], row["amounts"], strict=True)) for row in observed}
        found.sort(key=lambda row: (row["title"], row["id"]))
        return [MetricSeries(row["id"], row["title"], row["unit"], series.get(row["id"], ())) for row in found]

    async def decisions(self, tenant: str, min_roi: float | None, window: Window | None, limit: int) -> list[ConstitutionNode]:
        given: Row = {"tenant": tenant, "limit": limit}
        where = _DECISIONS
        if min_roi is not None:
            where, given["roi"] = f"{where} AND n.roiTotal >= $roi", min_roi
        if window is not None:
            where, given = f"{where} AND {_within_window('decidedAt')}", given | vars(window)
        return [node_from_row(row) for row in await self._bolt.read(lambda t: t.rows(f"{where} {_BY_RETURN}", **given))]

    async def outcomes(self, tenant: str, request: Outcomes) -> dict[str, list[WalkNode]]:
        keys = [node_key(tenant, id) for id in dict.fromkeys(request.ids)]
        given = {"name": request.relationship, "types": list(request.types), "statuses": list(request.statuses)}

        async def work(transaction: Transaction) -> tuple[list[Row], list[Row]]:
            there = await transaction.rows(_EXIST, keys=keys, tenant=tenant)
            return there, await transaction.rows(_OUTCOMES, keys=keys, tenant=tenant, limit=_MOST_OUTCOMES, **given)

        there, rows = await self._bolt.read(work)
        found: dict[str, list[WalkNode]] = {row["id"]: [] for row in there}
        for row in rows:
            found[row["source"]].append(walk_node_from_row(row))
        return found

    async def foundation(self, tenant: str, limit: int) -> list[tuple[ConstitutionNode, Sequence[tuple[str, str]]]]:
        given = {"tenant": tenant, "layer": Layer.FOUNDATION.value}

        async def work(transaction: Transaction) -> tuple[list[Row], list[Row]]:
            nodes = await transaction.rows(_FOUNDATION, limit=limit, **given)
            return nodes, await transaction.rows(_FOUNDED, most=_MOST_FOUNDED, **given)

        nodes, rows = await self._bolt.read(work)
        links: dict[str, list[tuple[str, str]]] = {row["id"]: [] for row in nodes}
        for row in rows:
            if row["source"] in links:
                links[row["source"]].append((row["type"], row["target"]))
        return [(node_from_row(row), links[row["id"]]) for row in nodes]
