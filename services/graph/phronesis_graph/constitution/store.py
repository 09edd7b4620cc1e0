"""Nodes, relationships and rules of the constitutional graph in the store, each write in one transaction with its events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, datetime

from phronesis_bus import Call, sendable
from phronesis_contracts import Conflict, NotFound
from phronesis_contracts.constitution.registry import NODE_LABEL, TYPES, Layer, Lifecycle
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode
from phronesis_contracts.constitution.writes import (
    CONSTITUTION_CHANGED,
    ConstitutionChanged,
    LinkNews,
    NodeDeletedForGood,
    NodeNews,
    NodeWritten,
    Operation,
    Related,
    Unrelated,
)
from phronesis_contracts.orchestrator import Audited
from phronesis_contracts.service import AUDITED

from ..bolt.driver import Bolt, Row, Transaction
from ..bolt.schema import Schema
from ..bolt.writes import SERVICE, Out, Turns, count_changes, news_id, write_news, write_once
from ..knowledge.store import StoreNames
from .guardrails import RULE_TYPES
from .ports import Ends, Order
from .records import format_time, link_from_row, link_key, node_from_row, node_key, node_to_row

_OF_ONE_EVENT = 250
"""Nodes, and relationships, that one event names: with ids and names of full length it fits into a message."""
_events_of_write: ContextVar[list[ConstitutionChanged] | None] = ContextVar("announced", default=None)
"""What the write at hand announces, once for each of its tries."""


class WriteTurns:
    """What every write of the graph goes through; one for all. The schema has to stand before anything is written."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._turns = Turns()
        self._subscribers: list[Callable[[str, ConstitutionChanged], None]] = []

    def subscribe(self, handler: Callable[[str, ConstitutionChanged], None]) -> None:
        """Tell `handler`, with the tenant, what a write may have changed: of this process at once, of others by its news."""
        self._subscribers.append(handler)

    def notify(self, tenant: str, event: ConstitutionChanged) -> None:
        for handler in self._subscribers:
            handler(tenant, event)

    @asynccontextmanager
    async def of(self, tenant: str) -> AsyncIterator[None]:
        """A tenant's turn, for the length of a block. Raises `Unavailable`."""
        await self._schema.declared()
        async with self._turns.of(tenant):
            events: list[ConstitutionChanged] = []
            token = _events_of_write.set(events)
            try:
                yield
            finally:  # a write that failed may have been committed
                _events_of_write.reset(token)
                for event in events:
                    self.notify(tenant, event)


class GraphWriter:
    """Writes of the constitutional graph, each in its tenant's turn and in one transaction, once for the call's key.

    Labels in statements come from the registry, never from a caller; the type of a relationship is a plain name in
    capitals, and stands in backticks.

    Args:
        names: the types of relationships that the store knows; each is declared before it is first written.
    """

    def __init__(self, bolt: Bolt, turn: WriteTurns, names: StoreNames) -> None:
        self._bolt, self._turn, self._names = bolt, turn, names

    async def _write(
        self,
        order: Order,
        output: type[Out],
        work: Callable[[Transaction], Awaitable[Out]],
        *,
        types: Iterable[str] = (),
        keep: Callable[[Out], bool] = lambda _: True,
        seconds: float | None = None,
    ) -> Out:
        tenant, calls = order.call.who.tenant, _request_calls(order)
        async with self._turn.of(tenant):
            for name in sorted(set(types)):
                await self._names.type(name)
            return await write_once(self._bolt, tenant, calls, order.arguments, output, work, keep=keep, seconds=seconds)


async def announce(
    transaction: Transaction, tenant: str, audit: Audited, nodes: Sequence[NodeNews] = (), links: Sequence[LinkNews] = ()
) -> None:
    """Write the news of a write and its audit entry, in its transaction."""
    starts = range(0, max(len(nodes), len(links)), _OF_ONE_EVENT)
    last = await count_changes(transaction, tenant, len(starts)) if starts else 0
    events = [
        ConstitutionChanged(
            nodes=tuple(nodes[at : at + _OF_ONE_EVENT]),
            relationships=tuple(links[at : at + _OF_ONE_EVENT]),
            actor=audit.who,
            number=number,
        )
        for number, at in enumerate(starts, last - len(starts) + 1)
    ]
    if (told := _events_of_write.get()) is not None:
        told += events
    news = [sendable(SERVICE, news_id(), tenant, CONSTITUTION_CHANGED, event) for event in events]
    await write_news(transaction, [*news, sendable(SERVICE, news_id(), tenant, AUDITED[SERVICE], audit)])


def link_news(link: ConstitutionLink, operation: Operation, source: str, target: str) -> LinkNews:
    layers = tuple(dict.fromkeys((TYPES[source].layer, TYPES[target].layer)))
    return LinkNews(id=link.id, type=link.type, from_id=link.from_id, to_id=link.to_id, operation=operation, layers=layers)


_REQUESTS = "constitution"
"""Stands for the service in the keys of requests that callers gave ids of their own; no service has the name."""
NODE_BY_KEY = f"MATCH (n:{NODE_LABEL} {{key: $key}}) WHERE n.tenant = $tenant RETURN properties(n) AS node"
_SET = f"MATCH (n:{NODE_LABEL} {{key: $key}}) SET n = $row"
_LINKS = (
    f"MATCH (n:{NODE_LABEL} {{key: $key}})-[r]->(m:{NODE_LABEL}) RETURN r.id AS id, type(r) AS type, n.id AS fromId,"
    " m.id AS toId, n.type AS source, m.type AS target UNION "
    f"MATCH (n:{NODE_LABEL} {{key: $key}})<-[r]-(m:{NODE_LABEL}) RETURN r.id AS id, type(r) AS type, m.id AS fromId,"
    " n.id AS toId, m.type AS source, n.type AS target"
)
_DELETE_NODE = f"MATCH (n:{NODE_LABEL} {{key: $key}}) DETACH DELETE n"


class BoltConstitution(GraphWriter):
    """Nodes of the constitutional graph. Each write raises `KeyReused`, and `Unavailable` where the store is down."""

    async def create(self, order: Order, result: NodeWritten, audit: Audited) -> NodeWritten:
        """Write a new node. Raises `Conflict`: the tenant has a node with its id."""
        tenant, node = order.call.who.tenant, result.node

        async def work(transaction: Transaction) -> NodeWritten:
            if await find_node(transaction, tenant, node.id) is not None:
                raise Conflict("there is a node with this id", field="id")
            statement = f"CREATE (n:{NODE_LABEL}:`{TYPES[node.type].label}`) SET n = $row"
            await transaction.rows(statement, row=node_to_row(tenant, node))
            await announce(transaction, tenant, audit, [node_news(result, Operation.CREATE)])
            return result

        return await self._write(order, NodeWritten, work)

    async def change(
        self, order: Order, id: str, decide: Callable[[ConstitutionNode], NodeWritten], audit: Callable[[NodeWritten], Audited]
    ) -> NodeWritten:
        """Write a node as `decide` says, if that changes it. Raises `NotFound`, `ServiceError` (what `decide` raises)."""
        tenant = order.call.who.tenant

        async def work(transaction: Transaction) -> NodeWritten:
            result = decide(node_from_row(await require_node(transaction, tenant, id)))
            if result.changed:
                await transaction.rows(_SET, key=node_key(tenant, id), row=node_to_row(tenant, result.node))
                await announce(transaction, tenant, audit(result), [node_news(result, Operation.UPDATE)])
            return result

        return await self._write(order, NodeWritten, work)

    async def delete(self, order: Order, id: str, audit: Callable[[NodeDeletedForGood], Audited]) -> NodeDeletedForGood:
        """Remove a node with its relationships. Raises `NotFound`."""
        tenant, key = order.call.who.tenant, node_key(order.call.who.tenant, id)

        async def work(transaction: Transaction) -> NodeDeletedForGood:
            row = await require_node(transaction, tenant, id)
            links = await transaction.rows(_LINKS, key=key)
            await transaction.rows(_DELETE_NODE, key=key)
            result = NodeDeletedForGood(id=id, type=row["type"], relationships=len(links))
            lost = [link_news(link_from_row(link), Operation.DELETE, link["source"], link["target"]) for link in links]
            await announce(transaction, tenant, audit(result), [deletion_news(row)], lost)
            return result

        return await self._write(order, NodeDeletedForGood, work)


async def find_node(transaction: Transaction, tenant: str, id: str) -> Row | None:
    """The properties of a node of the tenant, if there is one."""
    rows = await transaction.rows(NODE_BY_KEY, key=node_key(tenant, id), tenant=tenant)
    return rows[0]["node"] if rows else None


async def require_node(transaction: Transaction, tenant: str, id: str, field: str = "id") -> Row:
    """The properties of a node of the tenant. Raises `NotFound`: there is none; `field` names the argument at fault."""
    row = await find_node(transaction, tenant, id)
    if row is None:
        raise NotFound("there is no such node of the constitutional graph", field=field)
    return row


def deletion_news(row: Row) -> NodeNews:
    kind = TYPES[row["type"]]
    version = int(row.get("version") or 0) + 1
    return NodeNews(id=row["id"], type=kind.name, layer=kind.layer, operation=Operation.DELETE, version=version)


def _request_calls(order: Order) -> list[Call]:
    if order.request_id is None:
        return [order.call]
    return [order.call, replace(order.call, service=_REQUESTS, key=f"{order.call.who.user}/{order.request_id}")]


def node_news(result: NodeWritten, operation: Operation) -> NodeNews:
    node = result.node
    return NodeNews(
        id=node.id, type=node.type, layer=node.layer, operation=operation, version=node.version or 1, changed=result.changed
    )


_EXISTING_LINK = (
    f"MATCH (a:{NODE_LABEL} {{key: $a}})-[r:`%s`]->(b:{NODE_LABEL} {{key: $b}}) "
    "RETURN r.id AS id, type(r) AS type, a.id AS fromId, b.id AS toId LIMIT 1"
)
_CREATE = f"MATCH (a:{NODE_LABEL} {{key: $a}}) MATCH (b:{NODE_LABEL} {{key: $b}}) CREATE (a)-[r:`%s`]->(b) SET r = $row"
_STEP = (
    f"UNWIND $keys AS key MATCH (a:{NODE_LABEL} {{key: key}})-[:`%s`]->(b:{NODE_LABEL}) "
    "RETURN a.key AS a, b.key AS b, b.title AS title"
)
# `0` is the character after `/`: between these two are the tenant's keys, and an index has them in order.
_LINK_BY_ID = (
    f"MATCH (a:{NODE_LABEL})-[r]->(b:{NODE_LABEL}) WHERE a.key > $after AND a.key < $before AND r.id = $id"
    " RETURN r.id AS id, type(r) AS type, a.id AS fromId, b.id AS toId, a.type AS source, b.type AS target LIMIT 1"
)
_DELETE_LINK = f"MATCH (a:{NODE_LABEL} {{key: $a}})-[r:`%s`]->(b:{NODE_LABEL} {{key: $b}}) WHERE r.id = $id DELETE r"


class BoltLinks(GraphWriter):
    """Relationships of the constitutional graph. Each write raises `KeyReused`, and `Unavailable` where the store is down."""

    async def relate(
        self,
        order: Order,
        wanted: ConstitutionLink,
        check: Callable[[Ends], None],
        cycle: Callable[[Sequence[str]], None] | None,
        audit: Audited,
    ) -> Related:
        """Make a relationship, or give the one that there is.

        Args:
            wanted: the relationship, with the id that it has if it is new.
            check: holds its ends against the registry and the caller's rights.
            cycle: given where its type takes no cycle; is told the titles of the chain that the relationship would close.

        Raises:
            NotFound: an end is no node of the tenant; `field` names it.
            ServiceError: what `check` and `cycle` raise.
        """
        tenant, name = order.call.who.tenant, wanted.type
        ends = {"a": node_key(tenant, wanted.from_id), "b": node_key(tenant, wanted.to_id)}

        async def work(transaction: Transaction) -> Related:
            source, target = await _read_ends(transaction, tenant, wanted)
            check(Ends(TYPES[source["type"]], TYPES[target["type"]]))
            if there := await transaction.rows(_EXISTING_LINK % name, **ends):
                return Related(relationship=link_from_row(there[0]), created=False)
            if cycle is not None:
                cycle(await _find_cycle(transaction, name, target, source))
            await transaction.rows(_CREATE % name, row=link_row(tenant, wanted), **ends)
            result = Related(relationship=wanted, created=True)
            news = [link_news(wanted, Operation.CREATE, source["type"], target["type"])]
            await announce(transaction, tenant, audit, links=news)
            return result

        return await self._write(order, Related, work, types=[name], keep=lambda result: result.created)

    async def unrelate(
        self, order: Order, id: str, check: Callable[[Layer], None], audit: Callable[[ConstitutionLink], Audited]
    ) -> Unrelated:
        """Remove a relationship, if `check` allows the layer it leads from. Raises `NotFound`, and what `check` raises."""
        tenant = order.call.who.tenant

        async def work(transaction: Transaction) -> Unrelated:
            rows = await transaction.rows(_LINK_BY_ID, id=id, **key_bounds(tenant))
            if not rows:
                raise NotFound("there is no such relationship of the constitutional graph", field="id")
            link, source, target = link_from_row(rows[0]), rows[0]["source"], rows[0]["target"]
            check(TYPES[source].layer)
            ends = {"a": node_key(tenant, link.from_id), "b": node_key(tenant, link.to_id)}
            await transaction.rows(_DELETE_LINK % link.type, id=id, **ends)
            result = Unrelated(relationship=link)
            news = link_news(link, Operation.DELETE, source, target)
            await announce(transaction, tenant, audit(link), links=[news])
            return result

        return await self._write(order, Unrelated, work)


def link_row(tenant: str, link: ConstitutionLink) -> Row:
    key = link_key(tenant, link.from_id, link.type, link.to_id)
    return {"id": link.id, "key": key, "tenant": tenant, "createdAt": format_time(datetime.now(UTC))}


def key_bounds(tenant: str) -> dict[str, str]:
    """The bounds between which the keys of a tenant's nodes lie."""
    return {"after": node_key(tenant, ""), "before": f"{tenant}/constitution0"}


async def _read_ends(transaction: Transaction, tenant: str, wanted: ConstitutionLink) -> tuple[Row, Row]:
    source = await require_node(transaction, tenant, wanted.from_id, "fromId")
    return source, await require_node(transaction, tenant, wanted.to_id, "toId")


async def _find_cycle(transaction: Transaction, name: str, start: Row, end: Row) -> list[str]:
    """Titles along the chain that a relationship from `end` to `start` would close, or none.

    Each step is one question for a whole edge of nodes, so that what is asked grows with nodes and not with paths.
    """
    came: dict[str, tuple[str | None, str]] = {start["key"]: (None, start["title"])}
    edge = [start["key"]]
    while edge and end["key"] not in came:
        rows = await transaction.rows(_STEP % name, keys=edge)
        fresh = {row["b"]: (row["a"], row["title"]) for row in rows if row["b"] not in came}
        came |= fresh
        edge = list(fresh)
    titles: list[str] = []
    at: str | None = end["key"] if end["key"] in came else None
    while at is not None:
        at, title = came[at]
        titles.append(title)
    return [end["title"], *reversed(titles)] if titles else []


_MOST = 5_000
"""Rules that one tenant is held to."""
_RULES = (
    f"MATCH (n:{NODE_LABEL}) WHERE n.type IN $types AND n.tenant = $tenant AND n.lifecycle = $lifecycle"
    " RETURN properties(n) AS node ORDER BY n.createdAt, n.id LIMIT $most"
)


class BoltRules:
    def __init__(self, bolt: Bolt, schema: Schema) -> None:
        self._bolt, self._schema = bolt, schema

    async def read(self, tenant: str) -> Sequence[ConstitutionNode]:
        await self._schema.declared()
        scope = {"tenant": tenant, "types": list(RULE_TYPES), "lifecycle": Lifecycle.ACTIVE.value, "most": _MOST}

        async def work(transaction: Transaction) -> list[ConstitutionNode]:
            return [node_from_row(row["node"]) for row in await transaction.rows(_RULES, **scope)]

        return await self._bolt.read(work)


_SINCE = f"""
MATCH (n:{NODE_LABEL}) WHERE n.updatedAt >= $at AND n.tenant = $tenant AND n.type IN $types
RETURN n.id AS id, n.version AS version ORDER BY n.updatedAt DESC LIMIT $limit
"""


class BoltChanges:
    def __init__(self, bolt: Bolt, schema: Schema) -> None:
        self._bolt, self._schema = bolt, schema

    async def since(self, tenant: str, at: datetime, types: tuple[str, ...], limit: int) -> dict[str, int]:
        """Versions by id of nodes of these types that changed since then, those that changed last. Raises `Unavailable`."""
        await self._schema.declared()
        given = {"tenant": tenant, "at": format_time(at), "types": list(types), "limit": limit}
        rows: list[Row] = await self._bolt.read(lambda transaction: transaction.rows(_SINCE, **given))
        return {row["id"]: int(row["version"]) for row in rows}

    async def count(self, tenant: str) -> int:
        """How many changes there were of the tenant's graph. Raises `Unavailable`."""
        await self._schema.declared()
        return await self._bolt.read(lambda transaction: count_changes(transaction, tenant))
