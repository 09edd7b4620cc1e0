"""Nodes of the constitutional graph that changed lately, by the index on the time of their change."""

from __future__ import annotations

from datetime import datetime

from phronesis_contracts.constitution.registry import NODE_LABEL

from ..constitution.records import moment
from .bolt import Bolt, Row
from .schema import Schema

_SINCE = f"""
MATCH (n:{NODE_LABEL}) WHERE n.updatedAt >= $at AND n.tenant = $tenant AND n.type IN $types
RETURN n.id AS id, n.version AS version ORDER BY n.updatedAt DESC LIMIT $limit
"""


class BoltChanges:
    """The `Changes` over Bolt."""

    def __init__(self, bolt: Bolt, schema: Schema) -> None:
        self._bolt = bolt
        self._schema = schema

    async def since(self, tenant: str, at: datetime, types: tuple[str, ...], limit: int) -> dict[str, int]:
        """See `Changes`."""
        await self._schema.declared()
        given = {"tenant": tenant, "at": moment(at), "types": list(types), "limit": limit}
        rows: list[Row] = await self._bolt.read(lambda transaction: transaction.rows(_SINCE, **given))
        return {row["id"]: int(row["version"]) for row in rows}
