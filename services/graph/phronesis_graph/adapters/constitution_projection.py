"""Projections of the constitutional graph over Bolt."""

from __future__ import annotations

import asyncio

from phronesis_contracts import TooLarge
from phronesis_contracts.constitution.kinds import Lifecycle
from phronesis_contracts.constitution.registry import NODE_LABEL

from .bolt import Bolt, Row, Transaction
from .constitution_links import inside

_MOST_NODES = 200_000
_MOST_LINKS = 1_000_000
# Gathered in the store: a driver that unpacks one row for each of them takes many times as long. A key holds its tenant, and
# that of a relationship its ends; to read those of the nodes takes the store longest.
_NODES = (
    f"MATCH (n:{NODE_LABEL}) WHERE n.key > $after AND n.key < $before AND n.lifecycle = $active "
    "WITH n.type AS type, n.id AS id LIMIT $limit RETURN type, collect(id) AS ids"
)
_LINKS = (
    f"MATCH (a:{NODE_LABEL})-[r:{{}}]->() WHERE a.key > $after AND a.key < $before "
    "WITH r.key AS key LIMIT $limit RETURN collect(key) AS keys"
)


class BoltProjection:
    """The `ProjectionStore` over Bolt."""

    def __init__(self, bolt: Bolt) -> None:
        self._bolt = bolt

    async def project(self, tenant: str, names: tuple[str, ...]) -> tuple[dict[str, str], list[tuple[str, str, str]]]:
        """Live nodes and the relationships of some types, in one read; see the port."""
        links = _LINKS.format("|".join(f"`{name}`" for name in names))

        async def work(transaction: Transaction) -> tuple[list[Row], list[Row]]:
            bounds = inside(tenant)
            nodes = await transaction.rows(_NODES, active=Lifecycle.ACTIVE.value, limit=_MOST_NODES + 1, **bounds)
            return nodes, await transaction.rows(links, limit=_MOST_LINKS + 1, **bounds)

        nodes, rows = await self._bolt.read(work)
        keys = [key for row in rows for key in row["keys"]]
        return await asyncio.to_thread(_found, tenant, names, nodes, keys)


def _found(
    tenant: str, names: tuple[str, ...], nodes: list[Row], keys: list[str]
) -> tuple[dict[str, str], list[tuple[str, str, str]]]:
    types = {id: row["type"] for row in nodes for id in row["ids"]}
    if len(types) > _MOST_NODES or len(keys) > _MOST_LINKS:
        raise TooLarge(f"algorithms run over {_MOST_NODES} nodes and {_MOST_LINKS} relationships at most")
    return types, [_triple(key[len(tenant) + 1 :], names) for key in keys]


def _triple(key: str, names: tuple[str, ...]) -> tuple[str, str, str]:
    """From, type and to, of a key as `link_key` makes it."""
    parts = key.split("/")
    if len(parts) == 3:
        return parts[0], parts[1], parts[2]
    source, name, target = next(found for name in names if (found := key.partition(f"/{name}/"))[1])
    return source, name.strip("/"), target
