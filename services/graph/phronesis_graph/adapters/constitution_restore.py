"""A constitutional graph made to be again as it was, part by part. What a part named carries the mark of its restore."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from phronesis_contracts import BadRequest
from phronesis_contracts.constitution.keeping import GraphRestored, RestoreGraph
from phronesis_contracts.constitution.registry import NODE_LABEL, TYPES
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode
from phronesis_contracts.constitution.writes import LinkNews, NodeNews, Operation
from phronesis_contracts.orchestrator import Audited

from ..constitution.checking import differing
from ..constitution.ports import Order
from ..constitution.records import content_of, key_of, link_of, node_of, row_of
from .bolt import Bolt, Row, Transaction
from .constitution_links import inside, link_row
from .constitution_news import Turn, announced, link_news
from .constitution_nodes import deleted
from .names import StoreNames
from .writes import first_result, keep_result, take_turn

_SECONDS = 55.0
"""Seconds that one part may take."""
_HELD = f"UNWIND $keys AS key MATCH (n:{NODE_LABEL} {{key: key}}) RETURN n.key AS key, properties(n) AS node"
_CREATE = f"UNWIND $rows AS row CREATE (n:{NODE_LABEL}:`%s`) SET n = row"
_SET = f"UNWIND $rows AS row MATCH (n:{NODE_LABEL} {{key: row.key}}) SET n = row"
_DROP = f"UNWIND $keys AS key MATCH (n:{NODE_LABEL} {{key: key}}) DETACH DELETE n"
_JOINED = (
    f"UNWIND $rows AS row MATCH (a:{NODE_LABEL} {{key: row.a}})-[r:`%s`]->(b:{NODE_LABEL} {{key: row.b}}) RETURN r.id AS id"
)
_JOIN = (
    f"UNWIND $rows AS row MATCH (a:{NODE_LABEL} {{key: row.a}}) MATCH (b:{NODE_LABEL} {{key: row.b}}) "
    "MERGE (a)-[r:`%s`]->(b) SET r.id = row.id, r.key = row.key, r.tenant = row.tenant, r.restored = row.restored,"
    " r.createdAt = coalesce(r.createdAt, row.createdAt)"
)
_STALE_LINK = (
    f"MATCH (a:{NODE_LABEL})-[r]->(b:{NODE_LABEL}) WHERE a.key > $after AND a.key < $before"
    " AND (r.restored IS NULL OR r.restored <> $restore)"
)
_STALE_LINKS = (
    f"{_STALE_LINK} RETURN r.id AS id, type(r) AS type, a.id AS fromId, b.id AS toId, a.type AS source, b.type AS target"
)
_STALE = f"MATCH (n:{NODE_LABEL}) WHERE n.key > $after AND n.key < $before AND (n.restored IS NULL OR n.restored <> $restore)"


class BoltRestores:
    """The `ConstitutionRestores` over Bolt."""

    def __init__(self, bolt: Bolt, turn: Turn, names: StoreNames) -> None:
        self._bolt = bolt
        self._turn = turn
        self._names = names

    async def restore(self, order: Order, part: RestoreGraph, audit: Callable[[GraphRestored], Audited]) -> GraphRestored:
        """Write one part; see the port."""
        tenant = order.call.who.tenant

        async def work(transaction: Transaction) -> GraphRestored:
            await take_turn(transaction, tenant)
            if (first := await first_result(transaction, order.call, order.arguments, GraphRestored)) is not None:
                return first
            restore = _Part(transaction, tenant, part.restore_id)
            nodes = await restore.nodes(part.nodes)
            links = await restore.links(part.relationships)
            gone, cut = await restore.rest() if part.last else ([], [])
            result = GraphRestored(nodes=len(nodes), relationships=len(links), removed_nodes=len(gone))
            await announced(transaction, tenant, audit(result), [*nodes, *gone], [*links, *cut])
            await keep_result(transaction, order.call, order.arguments, result)
            return result

        async with self._turn.of(tenant):
            for name in sorted({link.type for link in part.relationships}):
                await self._names.type(name)
            return await self._bolt.write(work, _SECONDS)


class _Part:
    """One part of a restore, in its transaction."""

    def __init__(self, transaction: Transaction, tenant: str, restore: str) -> None:
        self._transaction = transaction
        self._tenant = tenant
        self._restore = restore

    async def nodes(self, nodes: Iterable[ConstitutionNode]) -> list[NodeNews]:
        """Write nodes, and tell those that are not as they were."""
        wanted = {key_of(self._tenant, node.id): node for node in nodes}
        held = await self._held(wanted)
        news, fresh, same, moved = [], defaultdict(list), [], []
        for key, node in wanted.items():
            old = held.get(key)
            told = None if old is None else node_of(old)
            changed = differing({} if told is None else content_of(told), content_of(node))
            if told is not None and not changed and told.type == node.type:
                same.append(self._row(node.model_copy(update={"version": told.version})))
                continue
            new = node.model_copy(update={"version": max(node.version or 1, (told.version or 0) + 1 if told else 1)})
            news.append(_news(new, Operation.CREATE if told is None else Operation.UPDATE, changed))
            if told is not None and told.type == node.type:
                same.append(self._row(new))
            else:
                moved += [key] if told is not None else []
                fresh[TYPES[node.type].label].append(self._row(new))
        await self._transaction.rows(_DROP, keys=moved)
        await self._transaction.rows(_SET, rows=same)
        for label, rows in fresh.items():
            await self._transaction.rows(_CREATE % label, rows=rows)
        return news

    async def links(self, links: Iterable[ConstitutionLink]) -> list[LinkNews]:
        """Write relationships, and tell those that were not there."""
        by_type: dict[str, list[ConstitutionLink]] = defaultdict(list)
        for link in links:
            by_type[link.type].append(link)
        ends = {
            key_of(self._tenant, end) for of_type in by_type.values() for one in of_type for end in (one.from_id, one.to_id)
        }
        held = await self._held(ends)
        marked = {row["id"]: row["type"] for row in held.values() if row.get("restored") == self._restore}
        if len(marked) < len(ends):
            raise BadRequest("an end of a relationship stands in no part so far; send nodes first", field="relationships")
        news: list[LinkNews] = []
        for name, of_type in by_type.items():
            rows = [self._link(link) for link in of_type]
            there = {row["id"] for row in await self._transaction.rows(_JOINED % name, rows=rows)}
            await self._transaction.rows(_JOIN % name, rows=rows)
            fresh = [link for link in of_type if link.id not in there]
            news += [link_news(link, Operation.CREATE, marked[link.from_id], marked[link.to_id]) for link in fresh]
        return news

    async def rest(self) -> tuple[list[NodeNews], list[LinkNews]]:
        """Remove what no part named, and tell it."""
        which = {**inside(self._tenant), "restore": self._restore}
        cut = await self._transaction.rows(_STALE_LINKS, **which)
        gone = await self._transaction.rows(f"{_STALE} RETURN properties(n) AS node", **which)
        await self._transaction.rows(f"{_STALE_LINK} DELETE r", **which)
        await self._transaction.rows(f"{_STALE} DETACH DELETE n", **which)
        links = [link_news(link_of(row), Operation.DELETE, row["source"], row["target"]) for row in cut]
        return [deleted(row["node"]) for row in gone], links

    async def _held(self, keys: Iterable[str]) -> dict[str, Row]:
        return {row["key"]: row["node"] for row in await self._transaction.rows(_HELD, keys=sorted(keys))}

    def _row(self, node: ConstitutionNode) -> Row:
        return {**row_of(self._tenant, node), "restored": self._restore}

    def _link(self, link: ConstitutionLink) -> Row:
        ends = {"a": key_of(self._tenant, link.from_id), "b": key_of(self._tenant, link.to_id)}
        return {**ends, **link_row(self._tenant, link), "restored": self._restore}


def _news(node: ConstitutionNode, operation: Operation, changed: tuple[str, ...]) -> NodeNews:
    version = node.version or 1
    return NodeNews(id=node.id, type=node.type, layer=node.layer, operation=operation, version=version, changed=changed)
