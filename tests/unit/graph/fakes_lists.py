"""A constitutional graph in a dictionary: the ports of its lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from phronesis_contracts.constitution.registry import PARENTS, TYPES, Layer, Lifecycle
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode
from phronesis_graph.constitution.pages import full_columns
from phronesis_graph.constitution.ports import LayerRow, NodeFilter, Parent
from phronesis_graph.constitution.records import node_to_row


class Graph:
    """The `Nodes` and the `Layers` of one tenant's graph; it counts the questions that it is asked."""

    def __init__(self, nodes: Iterable[ConstitutionNode], links: Sequence[ConstitutionLink] = ()) -> None:
        nothing: LayerRow = dict.fromkeys(full_columns(TYPES.values()))
        self.rows = {node.id: nothing | node_to_row("t", node) for node in nodes}
        self.joined = list(links)
        self.asked = 0

    async def nodes(self, tenant: str, wanted: NodeFilter, columns: Sequence[str], after: str, limit: int) -> list[LayerRow]:
        self.asked += 1
        found = sorted((row for row in self.rows.values() if row["id"] > after and _fits(row, wanted)), key=lambda r: r["id"])
        return [_cut(row, columns) for row in found[:limit]]

    async def links(self, tenant: str, wanted: NodeFilter, after: tuple[str, str], limit: int) -> list[ConstitutionLink]:
        self.asked += 1
        fitting = (one for one in self.joined if _fits(self.rows[one.from_id], wanted) and _fits(self.rows[one.to_id], wanted))
        return sorted((one for one in fitting if (one.from_id, one.id) > after), key=lambda one: (one.from_id, one.id))[:limit]

    async def read(self, tenant: str, ids: Sequence[str]) -> list[LayerRow]:
        return [self.rows[id] for id in ids if id in self.rows]

    async def around(self, tenant: str, id: str, limit: int) -> list[ConstitutionLink]:
        return sorted((one for one in self.joined if id in (one.from_id, one.to_id)), key=lambda one: one.id)[:limit]

    async def foundation(
        self, tenant: str, status: Lifecycle, columns: Sequence[str], links: bool, limit: int
    ) -> tuple[list[LayerRow], list[ConstitutionLink]]:
        wanted = NodeFilter((Layer.FOUNDATION,), (), status)
        rows = await self.nodes(tenant, wanted, columns, "", limit)
        return rows, await self.links(tenant, wanted, ("", ""), 10 * limit) if links else []

    async def vision(
        self, tenant: str, status: Lifecycle, columns: Sequence[str], parents: bool, limit: int
    ) -> tuple[list[LayerRow], list[Parent]]:
        rows = await self.nodes(tenant, NodeFilter((Layer.VISION,), (), status), columns, "", limit)
        there = {row["id"] for row in rows}
        found = [one for one in self.joined if parents and one.from_id in there and one.type in PARENTS]
        return rows, [self._parent(one) for one in found]

    async def size(self, tenant: str) -> int:
        return len(self.rows)

    def _parent(self, one: ConstitutionLink) -> Parent:
        row = self.rows[one.to_id]
        active = row["lifecycle"] == Lifecycle.ACTIVE
        return Parent(one.from_id, one.type, row["id"], row["type"], row["title"], active)


def _cut(row: LayerRow, columns: Sequence[str]) -> LayerRow:
    return {name: row[name] for name in columns}


def _fits(row: LayerRow, wanted: NodeFilter) -> bool:
    return (
        (not wanted.layers or row["layer"] in wanted.layers)
        and (not wanted.types or row["type"] in wanted.types)
        and (wanted.status is None or row["lifecycle"] == wanted.status)
    )
