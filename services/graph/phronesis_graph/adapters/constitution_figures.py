"""Figures of the constitutional graph over Bolt: what is due, measured and decided. One read for each question."""

from __future__ import annotations

from collections.abc import Sequence

from phronesis_contracts import NotFound, TooLarge
from phronesis_contracts.constitution.kinds import Layer
from phronesis_contracts.constitution.paths import Outcomes
from phronesis_contracts.constitution.registry import NODE_LABEL, TYPES
from phronesis_contracts.constitution.values import ConstitutionNode

from ..constitution.figured import Due, Measured
from ..constitution.records import BAGS, columns, key_of, node_of
from ..constitution.walkable import Met
from ..constitution.windows import Window
from .bolt import Bolt, Row, Transaction
from .constitution_walks import MET, met

_MOST_OBSERVATIONS = 50_000
_MOST_OUTCOMES = 2_000


def _inside(name: str) -> str:
    # The first two are bounds for an index; the third leaves out what lies in the first day before the window begins.
    return f"n.{name} >= $day AND n.{name} <= $last AND (n.{name} >= $first OR n.{name} = $day)"


_OPEN = "MATCH (n:Task) WHERE n.tenant = $tenant AND n.status IN ['todo', 'in_progress']"
_DUE = f"{_OPEN} AND {_inside('dueDate')}"
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
    f"WHERE n.tenant = $tenant AND n.lifecycle = 'active' AND n.value IS NOT NULL AND {_inside('observedAt')} "
    "WITH m.id AS metric, n.observedAt AS at, n.value AS value ORDER BY at LIMIT $limit "
    "RETURN metric, collect(at) AS times, collect(value) AS amounts"
)

_SHOWN = ", ".join(f"n.{name} AS {name}" for name in columns(TYPES["decision"]) if name not in BAGS)
_DECISIONS = "MATCH (n:Decision) WHERE n.tenant = $tenant AND n.lifecycle = 'active'"
_BY_RETURN = (
    f"RETURN {_SHOWN}, n.roiTotal IS NULL AS unpaid, coalesce(n.decidedAt, '') AS decided "
    "ORDER BY unpaid, roiTotal DESC, decided DESC, id LIMIT $limit"
)
_OUTCOMES = (
    f"UNWIND $keys AS key MATCH (s:{NODE_LABEL} {{key: key}})-[r]->(n:{NODE_LABEL}) "
    "WHERE s.tenant = $tenant AND n.tenant = $tenant AND type(r) = $name "
    "AND (size($types) = 0 OR n.type IN $types) AND (size($statuses) = 0 OR n.status IN $statuses) "
    f"RETURN s.id AS source, {MET} ORDER BY updatedAt DESC, id LIMIT $limit"
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
    """The `FigureStore` over Bolt."""

    def __init__(self, bolt: Bolt) -> None:
        self._bolt = bolt

    async def due(self, tenant: str, window: Window, limit: int) -> Due:
        """Open tasks that are due in a window; see the port."""
        given: Row = {"tenant": tenant, **vars(window)}

        async def work(transaction: Transaction) -> Due:
            tasks = await transaction.rows(_TASKS, limit=limit, **given) if limit else []
            figures = await transaction.rows(_TASK_FIGURES, **given)
            [overdue] = await transaction.rows(_OVERDUE, **given)
            return Due(
                tasks=[node_of(row) for row in tasks],
                by_status={row["status"]: row["tasks"] for row in sorted(figures, key=lambda row: str(row["status"]))},
                hours=float(sum(row["hours"] for row in figures)),
                unestimated=sum(row["tasks"] - row["estimated"] for row in figures),
                overdue=overdue["tasks"],
            )

        return await self._bolt.read(work)

    async def measured(self, tenant: str, window: Window, metrics: Sequence[str]) -> list[Measured]:
        """Metrics with what was observed of them; see the port."""

        async def work(transaction: Transaction) -> tuple[list[Row], list[Row]]:
            if metrics:
                found = await transaction.rows(_THESE_METRICS, tenant=tenant, ids=list(metrics))
            else:
                found = await transaction.rows(_ALL_METRICS, tenant=tenant)
            keys = [key_of(tenant, row["id"]) for row in found]
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
        return [Measured(row["id"], row["title"], row["unit"], series.get(row["id"], ())) for row in found]

    async def decisions(self, tenant: str, min_roi: float | None, window: Window | None, limit: int) -> list[ConstitutionNode]:
        """Active decisions by their return; see the port."""
        given: Row = {"tenant": tenant, "limit": limit}
        where = _DECISIONS
        if min_roi is not None:
            where, given["roi"] = f"{where} AND n.roiTotal >= $roi", min_roi
        if window is not None:
            where, given = f"{where} AND {_inside('decidedAt')}", given | vars(window)
        return [node_of(row) for row in await self._bolt.read(lambda t: t.rows(f"{where} {_BY_RETURN}", **given))]

    async def outcomes(self, tenant: str, request: Outcomes) -> dict[str, list[Met]]:
        """By node that there is, those that a relationship leads to; see the port."""
        keys = [key_of(tenant, id) for id in dict.fromkeys(request.ids)]
        given = {"name": request.relationship, "types": list(request.types), "statuses": list(request.statuses)}

        async def work(transaction: Transaction) -> tuple[list[Row], list[Row]]:
            there = await transaction.rows(_EXIST, keys=keys, tenant=tenant)
            return there, await transaction.rows(_OUTCOMES, keys=keys, tenant=tenant, limit=_MOST_OUTCOMES, **given)

        there, rows = await self._bolt.read(work)
        found: dict[str, list[Met]] = {row["id"]: [] for row in there}
        for row in rows:
            found[row["source"]].append(met(row))
        return found

    async def foundation(self, tenant: str, limit: int) -> list[tuple[ConstitutionNode, Sequence[tuple[str, str]]]]:
        """Active nodes of the foundation with their relationships; see the port."""
        given = {"tenant": tenant, "layer": Layer.FOUNDATION.value}

        async def work(transaction: Transaction) -> tuple[list[Row], list[Row]]:
            nodes = await transaction.rows(_FOUNDATION, limit=limit, **given)
            return nodes, await transaction.rows(_FOUNDED, most=_MOST_FOUNDED, **given)

        nodes, rows = await self._bolt.read(work)
        links: dict[str, list[tuple[str, str]]] = {row["id"]: [] for row in nodes}
        for row in rows:
            if row["source"] in links:
                links[row["source"]].append((row["type"], row["target"]))
        return [(node_of(row), links[row["id"]]) for row in nodes]
