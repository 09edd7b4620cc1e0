"""Lists and counts of the constitutional graph over Bolt, one or two statements each, every node held to the tenant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from phronesis_contracts.constitution.lists import IndexState
from phronesis_contracts.constitution.registry import NODE_LABEL, PARENTS, Layer, Lifecycle
from phronesis_contracts.constitution.values import ConstitutionLink

from ..bolt.driver import Bolt, Row, Transaction
from ..bolt.schema import INDEXES, KEY, Schema
from .ports import LINKS_EACH, GraphCounts, LayerRow, NodeFilter, Parent
from .records import link_from_row, node_key
from .store import key_bounds

_LINK = "r.id AS id, type(r) AS type, a.id AS fromId, b.id AS toId"
_WHOLE = "n.tenant = $tenant AND n.layer = $layer AND n.lifecycle = $status"
# `WITH` keeps Neo4j from beginning at the relationships, which are those of every tenant.
_WITHIN = f"""
MATCH (n:{NODE_LABEL}) WHERE {_WHOLE} WITH n AS a
MATCH (a)-[r]->(b:{NODE_LABEL}) WHERE b.tenant = $tenant AND b.layer = $layer AND b.lifecycle = $status
RETURN {_LINK} LIMIT $limit
"""
_PARENTS = f"""
MATCH (n:{NODE_LABEL}) WHERE {_WHOLE} WITH n
MATCH (n)-[r:{"|".join(PARENTS)}]->(p:{NODE_LABEL}) WHERE p.tenant = $tenant
RETURN n.id AS child, type(r) AS relationship, p.id AS id, p.type AS type, p.title AS title, p.lifecycle AS lifecycle
LIMIT $limit
"""
_SIZE = f"MATCH (n:{NODE_LABEL}) WHERE n.key > $after AND n.key < $before AND n.tenant = $tenant RETURN count(n) AS size"
_READ = f"UNWIND $keys AS key MATCH (n:{NODE_LABEL} {{key: key}}) WHERE n.tenant = $tenant RETURN properties(n) AS row"
_AROUND = f"""
MATCH (n:{NODE_LABEL} {{key: $key}})-[r]-(other:{NODE_LABEL}) WHERE n.tenant = $tenant AND other.tenant = $tenant
WITH DISTINCT r, startNode(r) AS a, endNode(r) AS b
RETURN {_LINK} ORDER BY id LIMIT $limit
"""


class BoltLists:
    """`NodePages` and `Layers` over Bolt. Names in statements are the registry's; the rest are parameters."""

    def __init__(self, bolt: Bolt, schema: Schema) -> None:
        self._bolt, self._schema = bolt, schema

    async def nodes(self, tenant: str, wanted: NodeFilter, columns: Sequence[str], after: str, limit: int) -> list[LayerRow]:
        statement = (
            f"MATCH (n:{NODE_LABEL}) WHERE n.key > $after AND n.key < $before AND n.tenant = $tenant"
            f"{_filter_condition('n', wanted)} RETURN {_return_columns(columns)} ORDER BY n.key LIMIT $limit"
        )
        return await self._rows(
            statement, tenant=tenant, **_keys_after(tenant, after), **_filter_parameters(wanted), limit=limit
        )

    async def links(self, tenant: str, wanted: NodeFilter, after: tuple[str, str], limit: int) -> list[ConstitutionLink]:
        source, id = after
        statement = (
            f"MATCH (a:{NODE_LABEL})-[r]->(b:{NODE_LABEL}) WHERE a.key >= $after AND a.key < $before AND a.tenant = $tenant "
            f"AND (a.key > $after OR r.id > $id) AND b.tenant = $tenant"
            f"{_filter_condition('a', wanted)}{_filter_condition('b', wanted)} RETURN {_LINK} ORDER BY a.key, r.id LIMIT $limit"
        )
        rows = await self._rows(
            statement, tenant=tenant, **_keys_after(tenant, source), **_filter_parameters(wanted), id=id, limit=limit
        )
        return [link_from_row(row) for row in rows]

    async def read(self, tenant: str, ids: Sequence[str]) -> list[LayerRow]:
        rows = await self._rows(_READ, tenant=tenant, keys=[node_key(tenant, id) for id in ids])
        return [row["row"] for row in rows]

    async def around(self, tenant: str, id: str, limit: int) -> list[ConstitutionLink]:
        rows = await self._rows(_AROUND, tenant=tenant, key=node_key(tenant, id), limit=limit)
        return [link_from_row(row) for row in rows]

    async def foundation(
        self, tenant: str, status: Lifecycle, columns: Sequence[str], links: bool, limit: int
    ) -> tuple[list[LayerRow], list[ConstitutionLink]]:
        rows, found = await self._layer(tenant, Layer.FOUNDATION, status, columns, _WITHIN if links else None, limit)
        return rows, [link_from_row(row) for row in found]

    async def vision(
        self, tenant: str, status: Lifecycle, columns: Sequence[str], parents: bool, limit: int
    ) -> tuple[list[LayerRow], list[Parent]]:
        rows, found = await self._layer(tenant, Layer.VISION, status, columns, _PARENTS if parents else None, limit)
        return rows, [_parent_from_row(row) for row in found]

    async def size(self, tenant: str) -> int:
        [row] = await self._rows(_SIZE, tenant=tenant, **key_bounds(tenant))
        return int(row["size"])

    async def _layer(
        self, tenant: str, layer: Layer, status: Lifecycle, columns: Sequence[str], beside: str | None, limit: int
    ) -> tuple[list[LayerRow], list[LayerRow]]:
        await self._schema.declared()
        given = {"tenant": tenant, "layer": layer.value, "status": status.value}

        async def work(transaction: Transaction) -> tuple[list[LayerRow], list[LayerRow]]:
            statement = f"MATCH (n:{NODE_LABEL}) WHERE {_WHOLE} RETURN {_return_columns(columns)} LIMIT $limit"
            rows = await transaction.rows(statement, **given, limit=limit)
            found = await transaction.rows(beside, **given, limit=limit * LINKS_EACH) if beside and rows else []
            return rows, found

        return await self._bolt.read(work)

    async def _rows(self, statement: str, **parameters: object) -> list[LayerRow]:
        await self._schema.declared()
        return await self._bolt.read(lambda transaction: transaction.rows(statement, **parameters))


def _return_columns(names: Sequence[str]) -> str:
    return ", ".join(f"n.{name} AS {name}" for name in names)


def _filter_condition(node: str, wanted: NodeFilter) -> str:
    conditions = (
        (wanted.layers, f" AND {node}.layer IN $layers"),
        (wanted.types, f" AND {node}.type IN $types"),
        (wanted.status, f" AND {node}.lifecycle = $status"),
    )
    return "".join(condition for given, condition in conditions if given)


def _filter_parameters(wanted: NodeFilter) -> dict[str, object]:
    given: dict[str, object] = {"layers": [layer.value for layer in wanted.layers], "types": list(wanted.types)}
    return {name: value for name, value in {**given, "status": wanted.status and wanted.status.value}.items() if value}


def _keys_after(tenant: str, id: str) -> dict[str, str]:
    return key_bounds(tenant) | {"after": node_key(tenant, id)}


def _parent_from_row(row: LayerRow) -> Parent:
    active = row["lifecycle"] == Lifecycle.ACTIVE
    return Parent(row["child"], row["relationship"], row["id"], row["type"], row["title"], active)


_OWN = "n.key > $after AND n.key < $before AND n.tenant = $tenant"
_TYPES = f"MATCH (n:{NODE_LABEL}) WHERE {_OWN} RETURN n.type AS name, count(n) AS count"
_RELATIONSHIPS = f"""
MATCH (n:{NODE_LABEL})-[r]->(b:{NODE_LABEL}) WHERE {_OWN} AND b.tenant = $tenant
RETURN type(r) AS name, count(r) AS count
"""
_BAGS = f"""
MATCH (n:{NODE_LABEL}) WHERE {_OWN} AND n.properties IS NOT NULL
RETURN n.type AS type, n.properties AS bag LIMIT $limit
"""
_INDEXES = "SHOW INDEXES YIELD name, type, state, populationPercent, labelsOrTypes, properties"


class BoltSurvey:
    def __init__(self, bolt: Bolt, schema: Schema) -> None:
        self._bolt, self._schema = bolt, schema

    async def counted(self, tenant: str, bags: int) -> GraphCounts:
        await self._schema.declared()
        own = {"tenant": tenant, **key_bounds(tenant)}

        async def work(transaction: Transaction) -> GraphCounts:
            types = await transaction.rows(_TYPES, **own)
            relationships = await transaction.rows(_RELATIONSHIPS, **own)
            found = await transaction.rows(_BAGS, **own, limit=bags)
            return GraphCounts(
                _counts_by_name(types), _counts_by_name(relationships), [(row["type"], row["bag"]) for row in found]
            )

        return await self._bolt.read(work)

    async def indexes(self) -> list[IndexState]:
        await self._schema.declared()
        rows = await self._bolt.read(lambda transaction: transaction.rows(_INDEXES))
        return list(_index_states(rows))


def _counts_by_name(rows: list[Row]) -> dict[str, int]:
    return {row["name"]: int(row["count"]) for row in rows}


def _index_states(rows: list[Row]) -> Iterator[IndexState]:
    found = {(tuple(row["labelsOrTypes"] or ()), tuple(row["properties"] or ())): row for row in rows}
    for index in (KEY, *INDEXES):
        row = found.get(((index.label,), (index.property,)))
        if row is not None:
            yield IndexState(
                name=index.name, type=row["type"], state=row["state"], population_percent=float(row["populationPercent"])
            )
