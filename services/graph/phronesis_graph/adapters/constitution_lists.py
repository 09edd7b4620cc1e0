"""Lists of the constitutional graph over Bolt: one or two statements for each, every node held to the tenant."""

from __future__ import annotations

from collections.abc import Sequence

from phronesis_contracts.constitution.kinds import Layer, Lifecycle
from phronesis_contracts.constitution.registry import NODE_LABEL
from phronesis_contracts.constitution.relationships import PARENTS
from phronesis_contracts.constitution.values import ConstitutionLink

from ..constitution.list_ports import LINKS_EACH, Parent, Row, Wanted
from ..constitution.records import key_of, link_of
from .bolt import Bolt, Transaction
from .constitution_links import inside
from .schema import Schema

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
    """The `Nodes` and the `Layers` over Bolt. Names in statements are the registry's; the rest are parameters."""

    def __init__(self, bolt: Bolt, schema: Schema) -> None:
        self._bolt = bolt
        self._schema = schema

    async def nodes(self, tenant: str, wanted: Wanted, columns: Sequence[str], after: str, limit: int) -> list[Row]:
        """A page of nodes; see the port."""
        statement = (
            f"MATCH (n:{NODE_LABEL}) WHERE n.key > $after AND n.key < $before AND n.tenant = $tenant{_fits('n', wanted)} "
            f"RETURN {_columns(columns)} ORDER BY n.key LIMIT $limit"
        )
        return await self._rows(statement, tenant=tenant, **_behind(tenant, after), **_given(wanted), limit=limit)

    async def links(self, tenant: str, wanted: Wanted, after: tuple[str, str], limit: int) -> list[ConstitutionLink]:
        """A page of relationships; see the port."""
        source, id = after
        statement = (
            f"MATCH (a:{NODE_LABEL})-[r]->(b:{NODE_LABEL}) WHERE a.key >= $after AND a.key < $before AND a.tenant = $tenant "
            f"AND (a.key > $after OR r.id > $id) AND b.tenant = $tenant{_fits('a', wanted)}{_fits('b', wanted)} "
            f"RETURN {_LINK} ORDER BY a.key, r.id LIMIT $limit"
        )
        rows = await self._rows(statement, tenant=tenant, **_behind(tenant, source), **_given(wanted), id=id, limit=limit)
        return [link_of(row) for row in rows]

    async def read(self, tenant: str, ids: Sequence[str]) -> list[Row]:
        """Nodes by id; see the port."""
        rows = await self._rows(_READ, tenant=tenant, keys=[key_of(tenant, id) for id in ids])
        return [row["row"] for row in rows]

    async def around(self, tenant: str, id: str, limit: int) -> list[ConstitutionLink]:
        """Relationships of a node; see the port."""
        rows = await self._rows(_AROUND, tenant=tenant, key=key_of(tenant, id), limit=limit)
        return [link_of(row) for row in rows]

    async def foundation(
        self, tenant: str, status: Lifecycle, columns: Sequence[str], links: bool, limit: int
    ) -> tuple[list[Row], list[ConstitutionLink]]:
        """The foundation; see the port."""
        rows, found = await self._layer(tenant, Layer.FOUNDATION, status, columns, _WITHIN if links else None, limit)
        return rows, [link_of(row) for row in found]

    async def vision(
        self, tenant: str, status: Lifecycle, columns: Sequence[str], parents: bool, limit: int
    ) -> tuple[list[Row], list[Parent]]:
        """The vision; see the port."""
        rows, found = await self._layer(tenant, Layer.VISION, status, columns, _PARENTS if parents else None, limit)
        return rows, [_parent(row) for row in found]

    async def size(self, tenant: str) -> int:
        """How many nodes there are; see the port."""
        [row] = await self._rows(_SIZE, tenant=tenant, **inside(tenant))
        return int(row["size"])

    async def _layer(
        self, tenant: str, layer: Layer, status: Lifecycle, columns: Sequence[str], beside: str | None, limit: int
    ) -> tuple[list[Row], list[Row]]:
        await self._schema.declared()
        given = {"tenant": tenant, "layer": layer.value, "status": status.value}

        async def work(transaction: Transaction) -> tuple[list[Row], list[Row]]:
            statement = f"MATCH (n:{NODE_LABEL}) WHERE {_WHOLE} RETURN {_columns(columns)} LIMIT $limit"
            rows = await transaction.rows(statement, **given, limit=limit)
            found = await transaction.rows(beside, **given, limit=limit * LINKS_EACH) if beside and rows else []
            return rows, found

        return await self._bolt.read(work)

    async def _rows(self, statement: str, **parameters: object) -> list[Row]:
        await self._schema.declared()
        return await self._bolt.read(lambda transaction: transaction.rows(statement, **parameters))


def _columns(names: Sequence[str]) -> str:
    return ", ".join(f"n.{name} AS {name}" for name in names)


def _fits(node: str, wanted: Wanted) -> str:
    conditions = (
        (wanted.layers, f" AND {node}.layer IN $layers"),
        (wanted.types, f" AND {node}.type IN $types"),
        (wanted.status, f" AND {node}.lifecycle = $status"),
    )
    return "".join(condition for given, condition in conditions if given)


def _given(wanted: Wanted) -> dict[str, object]:
    given: dict[str, object] = {"layers": [layer.value for layer in wanted.layers], "types": list(wanted.types)}
    return {name: value for name, value in {**given, "status": wanted.status and wanted.status.value}.items() if value}


def _behind(tenant: str, id: str) -> dict[str, str]:
    return inside(tenant) | {"after": key_of(tenant, id)}


def _parent(row: Row) -> Parent:
    active = row["lifecycle"] == Lifecycle.ACTIVE
    return Parent(row["child"], row["relationship"], row["id"], row["type"], row["title"], active)
