"""Relationships of the constitutional graph in the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from phronesis_contracts import NotFound
from phronesis_contracts.constitution.kinds import Layer
from phronesis_contracts.constitution.registry import NODE_LABEL, TYPES
from phronesis_contracts.constitution.values import ConstitutionLink
from phronesis_contracts.constitution.writes import Operation, Related, Unrelated
from phronesis_contracts.orchestrator import Audited

from ..constitution.ports import Ends, Order
from ..constitution.records import key_of, link_key, link_of, moment
from .bolt import Bolt, Row, Transaction
from .constitution_news import Turn, announced, link_news
from .constitution_nodes import existing
from .names import StoreNames
from .writes import first_result, keep_result, take_turn

_THERE = (
    f"MATCH (a:{NODE_LABEL} {{key: $a}})-[r:`%s`]->(b:{NODE_LABEL} {{key: $b}}) "
    "RETURN r.id AS id, type(r) AS type, a.id AS fromId, b.id AS toId LIMIT 1"
)
_CREATE = f"MATCH (a:{NODE_LABEL} {{key: $a}}) MATCH (b:{NODE_LABEL} {{key: $b}}) CREATE (a)-[r:`%s`]->(b) SET r = $row"
_STEP = (
    f"UNWIND $keys AS key MATCH (a:{NODE_LABEL} {{key: key}})-[:`%s`]->(b:{NODE_LABEL}) "
    "RETURN a.key AS a, b.key AS b, b.title AS title"
)
# `0` is the character after `/`: between these two are the tenant's keys, and an index has them in order.
_ONE = (
    f"MATCH (a:{NODE_LABEL})-[r]->(b:{NODE_LABEL}) WHERE a.key > $after AND a.key < $before AND r.id = $id"
    " RETURN r.id AS id, type(r) AS type, a.id AS fromId, b.id AS toId, a.type AS source, b.type AS target LIMIT 1"
)
_DELETE = f"MATCH (a:{NODE_LABEL} {{key: $a}})-[r:`%s`]->(b:{NODE_LABEL} {{key: $b}}) WHERE r.id = $id DELETE r"


class BoltLinks:
    """The `ConstitutionLinks` over Bolt. A type in a statement is a plain name in capitals, and stands in backticks (O-351)."""

    def __init__(self, bolt: Bolt, turn: Turn, names: StoreNames) -> None:
        self._bolt = bolt
        self._turn = turn
        self._names = names

    async def relate(
        self,
        order: Order,
        wanted: ConstitutionLink,
        check: Callable[[Ends], None],
        cycle: Callable[[Sequence[str]], None] | None,
        audit: Audited,
    ) -> Related:
        """Make a relationship, or give the one that there is; see the port."""
        tenant, name = order.call.who.tenant, wanted.type
        ends = {"a": key_of(tenant, wanted.from_id), "b": key_of(tenant, wanted.to_id)}

        async def work(transaction: Transaction) -> Related:
            await take_turn(transaction, tenant)
            if (first := await first_result(transaction, order.call, order.arguments, Related)) is not None:
                return first
            source, target = await _ends(transaction, tenant, wanted)
            check(Ends(TYPES[source["type"]], TYPES[target["type"]]))
            if there := await transaction.rows(_THERE % name, **ends):
                return Related(relationship=link_of(there[0]), created=False)
            if cycle is not None:
                cycle(await _chain(transaction, name, target, source))
            await transaction.rows(_CREATE % name, row=link_row(tenant, wanted), **ends)
            result = Related(relationship=wanted, created=True)
            news = [link_news(wanted, Operation.CREATE, source["type"], target["type"])]
            await announced(transaction, tenant, audit, links=news)
            await keep_result(transaction, order.call, order.arguments, result)
            return result

        async with self._turn.of(tenant):
            await self._names.type(name)
            return await self._bolt.write(work)

    async def unrelate(
        self, order: Order, id: str, check: Callable[[Layer], None], audit: Callable[[ConstitutionLink], Audited]
    ) -> Unrelated:
        """Remove a relationship; see the port."""
        tenant = order.call.who.tenant

        async def work(transaction: Transaction) -> Unrelated:
            await take_turn(transaction, tenant)
            if (first := await first_result(transaction, order.call, order.arguments, Unrelated)) is not None:
                return first
            rows = await transaction.rows(_ONE, id=id, **inside(tenant))
            if not rows:
                raise NotFound("there is no such relationship of the constitutional graph", field="id")
            link, source, target = link_of(rows[0]), rows[0]["source"], rows[0]["target"]
            check(TYPES[source].layer)
            ends = {"a": key_of(tenant, link.from_id), "b": key_of(tenant, link.to_id)}
            await transaction.rows(_DELETE % link.type, id=id, **ends)
            result = Unrelated(relationship=link)
            news = link_news(link, Operation.DELETE, source, target)
            await announced(transaction, tenant, audit(link), links=[news])
            await keep_result(transaction, order.call, order.arguments, result)
            return result

        async with self._turn.of(tenant):
            return await self._bolt.write(work)


def link_row(tenant: str, link: ConstitutionLink) -> Row:
    """The properties of a new relationship in the store."""
    key = link_key(tenant, link.from_id, link.type, link.to_id)
    return {"id": link.id, "key": key, "tenant": tenant, "createdAt": moment(datetime.now(UTC))}


def inside(tenant: str) -> dict[str, str]:
    """The bounds between which the keys of a tenant's nodes lie."""
    return {"after": key_of(tenant, ""), "before": f"{tenant}/constitution0"}


async def _ends(transaction: Transaction, tenant: str, wanted: ConstitutionLink) -> tuple[Row, Row]:
    source = await existing(transaction, tenant, wanted.from_id, "fromId")
    return source, await existing(transaction, tenant, wanted.to_id, "toId")


async def _chain(transaction: Transaction, name: str, start: Row, end: Row) -> list[str]:
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
