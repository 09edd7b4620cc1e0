"""Nodes of the constitutional graph in the store, each write in one transaction with what it leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from phronesis_bus import Call
from phronesis_contracts import Conflict, NotFound
from phronesis_contracts.constitution.registry import NODE_LABEL, TYPES
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_contracts.constitution.writes import NodeDeletedForGood, NodeNews, NodeWritten, Operation
from phronesis_contracts.orchestrator import Audited

from ..constitution.ports import Order
from ..constitution.records import key_of, link_of, node_of, row_of
from .bolt import Bolt, Row, Transaction
from .constitution_news import Turn, announced, link_news
from .writes import first_result, keep_result, take_turn

_REQUESTS = "constitution"
"""Stands for the service in the keys of requests that callers gave ids of their own; no service has the name."""
ONE = f"MATCH (n:{NODE_LABEL} {{key: $key}}) WHERE n.tenant = $tenant RETURN properties(n) AS node"
_SET = f"MATCH (n:{NODE_LABEL} {{key: $key}}) SET n = $row"
_LINKS = (
    f"MATCH (n:{NODE_LABEL} {{key: $key}})-[r]->(m:{NODE_LABEL}) RETURN r.id AS id, type(r) AS type, n.id AS fromId,"
    " m.id AS toId, n.type AS source, m.type AS target UNION "
    f"MATCH (n:{NODE_LABEL} {{key: $key}})<-[r]-(m:{NODE_LABEL}) RETURN r.id AS id, type(r) AS type, m.id AS fromId,"
    " n.id AS toId, m.type AS source, n.type AS target"
)
_DELETE = f"MATCH (n:{NODE_LABEL} {{key: $key}}) DETACH DELETE n"


class BoltConstitution:
    """The `ConstitutionNodes` over Bolt. Labels in statements come from the registry, never from a caller."""

    def __init__(self, bolt: Bolt, turn: Turn) -> None:
        self._bolt = bolt
        self._turn = turn

    async def create(self, order: Order, result: NodeWritten, audit: Audited) -> NodeWritten:
        """Write a new node; see the port."""
        tenant, node = order.call.who.tenant, result.node
        keys = _keys(order)

        async def work(transaction: Transaction) -> NodeWritten:
            await take_turn(transaction, tenant)
            for call in keys:
                if (first := await first_result(transaction, call, order.arguments, NodeWritten)) is not None:
                    return first
            if await found(transaction, tenant, node.id) is not None:
                raise Conflict("there is a node with this id", field="id")
            statement = f"CREATE (n:{NODE_LABEL}:`{TYPES[node.type].label}`) SET n = $row"
            await transaction.rows(statement, row=row_of(tenant, node))
            await announced(transaction, tenant, audit, [written(result, Operation.CREATE)])
            for call in keys:
                await keep_result(transaction, call, order.arguments, result)
            return result

        async with self._turn.of(tenant):
            return await self._bolt.write(work)

    async def change(
        self,
        order: Order,
        id: str,
        decide: Callable[[ConstitutionNode], NodeWritten],
        audit: Callable[[NodeWritten], Audited],
    ) -> NodeWritten:
        """Write a node as `decide` says; see the port."""
        tenant = order.call.who.tenant

        async def work(transaction: Transaction) -> NodeWritten:
            await take_turn(transaction, tenant)
            if (first := await first_result(transaction, order.call, order.arguments, NodeWritten)) is not None:
                return first
            result = decide(node_of(await existing(transaction, tenant, id)))
            if result.changed:
                await transaction.rows(_SET, key=key_of(tenant, id), row=row_of(tenant, result.node))
                await announced(transaction, tenant, audit(result), [written(result, Operation.UPDATE)])
            await keep_result(transaction, order.call, order.arguments, result)
            return result

        async with self._turn.of(tenant):
            return await self._bolt.write(work)

    async def delete(self, order: Order, id: str, audit: Callable[[NodeDeletedForGood], Audited]) -> NodeDeletedForGood:
        """Remove a node with its relationships; see the port."""
        tenant, key = order.call.who.tenant, key_of(order.call.who.tenant, id)

        async def work(transaction: Transaction) -> NodeDeletedForGood:
            await take_turn(transaction, tenant)
            if (first := await first_result(transaction, order.call, order.arguments, NodeDeletedForGood)) is not None:
                return first
            row = await existing(transaction, tenant, id)
            links = await transaction.rows(_LINKS, key=key)
            await transaction.rows(_DELETE, key=key)
            result = NodeDeletedForGood(id=id, type=row["type"], relationships=len(links))
            lost = [link_news(link_of(link), Operation.DELETE, link["source"], link["target"]) for link in links]
            await announced(transaction, tenant, audit(result), [deleted(row)], lost)
            await keep_result(transaction, order.call, order.arguments, result)
            return result

        async with self._turn.of(tenant):
            return await self._bolt.write(work)


async def found(transaction: Transaction, tenant: str, id: str) -> Row | None:
    """The properties of a node of the tenant, if there is one."""
    rows = await transaction.rows(ONE, key=key_of(tenant, id), tenant=tenant)
    return rows[0]["node"] if rows else None


async def existing(transaction: Transaction, tenant: str, id: str, field: str = "id") -> Row:
    """The properties of a node of the tenant.

    Raises:
        NotFound: there is none; `field` names the argument at fault.
    """
    row = await found(transaction, tenant, id)
    if row is None:
        raise NotFound("there is no such node of the constitutional graph", field=field)
    return row


def deleted(row: Row) -> NodeNews:
    """The news that a node went."""
    kind = TYPES[row["type"]]
    version = int(row.get("version") or 0) + 1
    return NodeNews(id=row["id"], type=kind.name, layer=kind.layer, operation=Operation.DELETE, version=version)


def _keys(order: Order) -> list[Call]:
    if order.request_id is None:
        return [order.call]
    return [order.call, replace(order.call, service=_REQUESTS, key=f"{order.call.who.user}/{order.request_id}")]


def written(result: NodeWritten, operation: Operation) -> NodeNews:
    """The news of a node as it was written."""
    node = result.node
    return NodeNews(
        id=node.id,
        type=node.type,
        layer=node.layer,
        operation=operation,
        version=node.version or 1,
        changed=result.changed,
    )
