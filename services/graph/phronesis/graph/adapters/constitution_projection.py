"""Projections of the constitutional graph over Bolt."""

from __future__ import annotations

from phronesis.contracts import TooLarge
from phronesis.contracts.constitution.kinds import Lifecycle
from phronesis.contracts.constitution.registry import NODE_LABEL

from .bolt import Bolt, Row, Transaction
from .constitution_links import inside

_MOST_NODES = 200_000
_MOST_LINKS = 1_000_000
# Gathered in the store: a driver that unpacks one row for each node takes ten times as long.
_NODES = (
    f"MATCH (n:{NODE_LABEL}) WHERE n.key > $after AND n.key < $before AND n.tenant = $tenant AND n.lifecycle = $active "
    "WITH n.type AS type, n.id AS id LIMIT $limit RETURN type, collect(id) AS ids"
)
_LINKS = (
    f"MATCH (a:{NODE_LABEL})-[r]->(b:{NODE_LABEL}) "
    "WHERE a.key > $after AND a.key < $before AND a.tenant = $tenant AND b.tenant = $tenant AND type(r) IN $names "
    "WITH a.id AS source, type(r) AS name, b.id AS target LIMIT $limit "
    "RETURN source, name, collect(target) AS targets"
)


class BoltProjection:
    """The `ProjectionStore` over Bolt."""

    def __init__(self, bolt: Bolt) -> None:
        self._bolt = bolt

    async def project(self, tenant: str, names: tuple[str, ...]) -> tuple[dict[str, str], list[tuple[str, str, str]]]:
        """Live nodes and the relationships of some types, in one read; see the port."""

        async def work(transaction: Transaction) -> tuple[list[Row], list[Row]]:
            given = {"tenant": tenant, **inside(tenant)}
            nodes = await transaction.rows(_NODES, active=Lifecycle.ACTIVE.value, limit=_MOST_NODES + 1, **given)
            return nodes, await transaction.rows(_LINKS, names=list(names), limit=_MOST_LINKS + 1, **given)

        nodes, links = await self._bolt.read(work)
        types = {id: row["type"] for row in nodes for id in row["ids"]}
        found = [(row["source"], row["name"], target) for row in links for target in row["targets"]]
        if len(types) > _MOST_NODES or len(found) > _MOST_LINKS:
            raise TooLarge(f"algorithms run over {_MOST_NODES} nodes and {_MOST_LINKS} relationships at most")
        return types, found
