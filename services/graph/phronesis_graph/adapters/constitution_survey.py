"""What there is in the constitutional graph, counted over Bolt, and the indexes that the store keeps for it."""

from __future__ import annotations

from collections.abc import Iterator

from phronesis_contracts.constitution.lists import IndexState
from phronesis_contracts.constitution.registry import NODE_LABEL

from ..constitution.list_ports import Counted
from .bolt import Bolt, Row, Transaction
from .constitution_links import inside
from .constitution_schema import INDEXES, KEY
from .schema import Schema

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
    """The `Survey` over Bolt."""

    def __init__(self, bolt: Bolt, schema: Schema) -> None:
        self._bolt = bolt
        self._schema = schema

    async def counted(self, tenant: str, bags: int) -> Counted:
        """What there is; see the port."""
        await self._schema.declared()
        own = {"tenant": tenant, **inside(tenant)}

        async def work(transaction: Transaction) -> Counted:
            types = await transaction.rows(_TYPES, **own)
            relationships = await transaction.rows(_RELATIONSHIPS, **own)
            found = await transaction.rows(_BAGS, **own, limit=bags)
            return Counted(_by_name(types), _by_name(relationships), [(row["type"], row["bag"]) for row in found])

        return await self._bolt.read(work)

    async def indexes(self) -> list[IndexState]:
        """The indexes; see the port."""
        await self._schema.declared()
        rows = await self._bolt.read(lambda transaction: transaction.rows(_INDEXES))
        return list(_indexes(rows))


def _by_name(rows: list[Row]) -> dict[str, int]:
    return {row["name"]: int(row["count"]) for row in rows}


def _indexes(rows: list[Row]) -> Iterator[IndexState]:
    """The declared indexes by their declared names; ArcadeDB gives names of its own."""
    found = {(tuple(row["labelsOrTypes"] or ()), tuple(row["properties"] or ())): row for row in rows}
    for index in (KEY, *INDEXES):
        row = found.get(((index.label,), (index.property,)))
        if row is not None:
            yield IndexState(
                name=index.name, type=row["type"], state=row["state"], population_percent=float(row["populationPercent"])
            )
