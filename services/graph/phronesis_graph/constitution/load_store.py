"""Loading and restoring parts of a constitutional graph, many nodes in one transaction; restored ones carry a mark."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from phronesis_contracts import BadRequest, NotFound
from phronesis_contracts.constitution.maintenance import GraphRestored, RestoreGraph
from phronesis_contracts.constitution.registry import NODE_LABEL, RELATIONSHIPS, TYPES
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode
from phronesis_contracts.constitution.writes import ConstitutionLoaded, LinkNews, NodeNews, NodeWritten, Operation
from phronesis_contracts.orchestrator import Audited

from ..bolt.driver import Row, Transaction
from .ports import Order
from .records import link_from_row, node_content, node_from_row, node_key, node_to_row
from .store import GraphWriter, announce, deletion_news, key_bounds, link_news, link_row, node_news
from .validation import changed_fields, check_cycle, check_ends

_SECONDS = 55.0
"""Seconds that one part may take."""
_READ_NODES = f"UNWIND $keys AS key MATCH (n:{NODE_LABEL} {{key: key}}) RETURN n.key AS key, properties(n) AS node"
_CREATE = f"UNWIND $rows AS row CREATE (n:{NODE_LABEL}:`%s`) SET n = row"
_SET = f"UNWIND $rows AS row MATCH (n:{NODE_LABEL} {{key: row.key}}) SET n = row"
_DROP = f"UNWIND $keys AS key MATCH (n:{NODE_LABEL} {{key: key}}) DETACH DELETE n"
_EXISTING_PAIRS = (
    f"UNWIND $rows AS row MATCH (a:{NODE_LABEL} {{key: row.a}})-[r:`%s`]->(b:{NODE_LABEL} {{key: row.b}})"
    " RETURN row.a AS a, row.b AS b"
)
_CREATE_LINKS = (
    f"UNWIND $rows AS row MATCH (a:{NODE_LABEL} {{key: row.a}}) MATCH (b:{NODE_LABEL} {{key: row.b}})"
    " CREATE (a)-[r:`%s`]->(b) SET r.id = row.id, r.key = row.key, r.tenant = row.tenant, r.createdAt = row.createdAt"
)
_STEP = (
    f"UNWIND $keys AS key MATCH (a:{NODE_LABEL} {{key: key}})-[:`%s`]->(b:{NODE_LABEL})"
    " RETURN a.key AS a, b.key AS b, b.title AS title"
)


class BoltLoads(GraphWriter):
    """Parts of a graph, many nodes at a time. Each write raises `KeyReused`, and `Unavailable` where the store is down."""

    async def load(
        self,
        order: Order,
        remove: Sequence[str],
        ids: Sequence[str],
        decide: Callable[[Mapping[str, ConstitutionNode]], list[NodeWritten]],
        links: Sequence[ConstitutionLink],
        audit: Callable[[ConstitutionLoaded], Audited],
    ) -> ConstitutionLoaded:
        """Remove nodes, write nodes, join nodes: all of it or nothing.

        Args:
            remove: ids of nodes to remove; unknown ones are passed over.
            decide: what they are to be, from those of them that there are.
            links: relationships to make where there are none.

        Raises:
            RegistryRefused: a relationship does not lead between such ends, or closes a chain; or what `decide` raises.
            NotFound: an end of a relationship is no node of the tenant.
        """
        tenant = order.call.who.tenant

        async def work(transaction: Transaction) -> ConstitutionLoaded:
            part = _LoadPart(transaction, tenant)
            gone = await part.removed(remove)
            before = await part.held(ids)
            results = decide({row["id"]: node_from_row(row) for row in before.values()})
            news = await part.nodes(results, set(before))
            joined = await part.links(links)
            done = ConstitutionLoaded(
                created=len(results) - len(before),
                updated=sum(bool(one.changed) for one in results) - (len(results) - len(before)),
                unchanged=sum(not one.changed for one in results),
                removed=len(gone),
                relationships=len(joined),
            )
            await announce(transaction, tenant, audit(done), [*gone, *news], joined)
            return done

        return await self._write(order, ConstitutionLoaded, work, types=(link.type for link in links), seconds=_SECONDS)

    async def restore(self, order: Order, part: RestoreGraph, audit: Callable[[GraphRestored], Audited]) -> GraphRestored:
        """Write one part; the last removes what stood in none. Raises `BadRequest`: an end stands in no part so far."""
        tenant = order.call.who.tenant

        async def work(transaction: Transaction) -> GraphRestored:
            restore = _RestorePart(transaction, tenant, part.restore_id)
            nodes = await restore.nodes(part.nodes)
            links = await restore.links(part.relationships)
            gone, cut = await restore.rest() if part.last else ([], [])
            result = GraphRestored(nodes=len(nodes), relationships=len(links), removed_nodes=len(gone))
            await announce(transaction, tenant, audit(result), [*nodes, *gone], [*links, *cut])
            return result

        types = (link.type for link in part.relationships)
        return await self._write(order, GraphRestored, work, types=types, seconds=_SECONDS)


class _Part:
    def __init__(self, transaction: Transaction, tenant: str) -> None:
        self._transaction, self._tenant = transaction, tenant

    async def held(self, ids: Iterable[str]) -> dict[str, Row]:
        keys = sorted(node_key(self._tenant, id) for id in ids)
        return {row["key"]: row["node"] for row in await self._transaction.rows(_READ_NODES, keys=keys)}

    async def write(self, same: Sequence[Row], fresh: Mapping[str, Sequence[Row]]) -> None:
        await self._transaction.rows(_SET, rows=same)
        for label, rows in fresh.items():
            await self._transaction.rows(_CREATE % label, rows=rows)

    def link_row(self, link: ConstitutionLink) -> Row:
        ends = {"a": node_key(self._tenant, link.from_id), "b": node_key(self._tenant, link.to_id)}
        return {**ends, **link_row(self._tenant, link)}


class _LoadPart(_Part):
    async def removed(self, ids: Sequence[str]) -> list[NodeNews]:
        held = await self.held(ids)
        await self._transaction.rows(_DROP, keys=sorted(held))
        return [deletion_news(row) for row in held.values()]

    async def nodes(self, results: Sequence[NodeWritten], before: set[str]) -> list[NodeNews]:
        fresh: dict[str, list[Row]] = defaultdict(list)
        same: list[Row] = []
        news: list[NodeNews] = []
        for result in results:
            if not result.changed:
                continue
            row = node_to_row(self._tenant, result.node)
            there = row["key"] in before
            news.append(node_news(result, Operation.UPDATE if there else Operation.CREATE))
            (same if there else fresh[TYPES[result.node.type].label]).append(row)
        await self.write(same, fresh)
        return news

    async def links(self, links: Sequence[ConstitutionLink]) -> list[LinkNews]:
        ends = await self.held(sorted({end for link in links for end in (link.from_id, link.to_id)}))
        types = {row["id"]: row["type"] for row in ends.values()}
        by_type: dict[str, list[ConstitutionLink]] = defaultdict(list)
        for number, link in enumerate(links):
            for field, end in (("fromId", link.from_id), ("toId", link.to_id)):
                if end not in types:
                    raise NotFound(f"there is no node {end[:60]!r}", field=f"relationships.{number}.{field}")
            check_ends(link.type, TYPES[types[link.from_id]], TYPES[types[link.to_id]])
            by_type[link.type].append(link)
        news: list[LinkNews] = []
        for name, of_type in by_type.items():
            fresh = await self._joined(name, of_type)
            news += [link_news(link, Operation.CREATE, types[link.from_id], types[link.to_id]) for link in fresh]
        return news

    async def _joined(self, name: str, links: Sequence[ConstitutionLink]) -> list[ConstitutionLink]:
        rows = {(link.from_id, link.to_id): (link, self.link_row(link)) for link in links}
        given = [row for _, row in rows.values()]
        there = {(row["a"], row["b"]) for row in await self._transaction.rows(_EXISTING_PAIRS % name, rows=given)}
        fresh = [(link, row) for link, row in rows.values() if (row["a"], row["b"]) not in there]
        await self._transaction.rows(_CREATE_LINKS % name, rows=[row for _, row in fresh])
        declared = RELATIONSHIPS.get(name)
        if declared is not None and declared.acyclic:
            await self._without_cycle(name, [row["a"] for _, row in fresh])
        return [link for link, _ in fresh]

    async def _without_cycle(self, name: str, edge: list[str]) -> None:
        """Refuse the part where a chain of this type comes back: only one that a new relationship begins can."""
        above: dict[str, set[str]] = {}
        titles: dict[str, str] = {}
        while edge:
            above |= {key: set() for key in edge}
            for row in await self._transaction.rows(_STEP % name, keys=edge):
                above[row["a"]].add(row["b"])
                titles[row["b"]] = row["title"]
            edge = [key for key in titles if key not in above]
        try:
            TopologicalSorter(above).prepare()
        except CycleError as error:
            check_cycle(name, [titles[key] for key in reversed(error.args[1])])


_EXISTING_LINKS = (
    f"UNWIND $rows AS row MATCH (a:{NODE_LABEL} {{key: row.a}})-[r:`%s`]->(b:{NODE_LABEL} {{key: row.b}}) RETURN r.id AS id"
)
_MERGE_LINKS = (
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


class _RestorePart(_Part):
    def __init__(self, transaction: Transaction, tenant: str, restore: str) -> None:
        super().__init__(transaction, tenant)
        self._restore = restore

    async def nodes(self, nodes: Iterable[ConstitutionNode]) -> list[NodeNews]:
        wanted = {node_key(self._tenant, node.id): node for node in nodes}
        held = await self.held(node.id for node in wanted.values())
        news, fresh, same, moved = [], defaultdict(list), [], []
        for key, node in wanted.items():
            old = held.get(key)
            told = None if old is None else node_from_row(old)
            changed = changed_fields({} if told is None else node_content(told), node_content(node))
            if told is not None and not changed and told.type == node.type:
                same.append(self._row(node.model_copy(update={"version": told.version})))
                continue
            new = node.model_copy(update={"version": max(node.version or 1, (told.version or 0) + 1 if told else 1)})
            news.append(
                node_news(NodeWritten(node=new, changed=changed), Operation.CREATE if told is None else Operation.UPDATE)
            )
            if told is not None and told.type == node.type:
                same.append(self._row(new))
            else:
                moved += [key] if told is not None else []
                fresh[TYPES[node.type].label].append(self._row(new))
        await self._transaction.rows(_DROP, keys=moved)
        await self.write(same, fresh)
        return news

    async def links(self, links: Iterable[ConstitutionLink]) -> list[LinkNews]:
        by_type: dict[str, list[ConstitutionLink]] = defaultdict(list)
        for link in links:
            by_type[link.type].append(link)
        ends = {end for of_type in by_type.values() for one in of_type for end in (one.from_id, one.to_id)}
        held = await self.held(ends)
        marked = {row["id"]: row["type"] for row in held.values() if row.get("restored") == self._restore}
        if len(marked) < len(ends):
            raise BadRequest("an end of a relationship stands in no part so far; send nodes first", field="relationships")
        news: list[LinkNews] = []
        for name, of_type in by_type.items():
            rows = [{**self.link_row(link), "restored": self._restore} for link in of_type]
            there = {row["id"] for row in await self._transaction.rows(_EXISTING_LINKS % name, rows=rows)}
            await self._transaction.rows(_MERGE_LINKS % name, rows=rows)
            fresh = [link for link in of_type if link.id not in there]
            news += [link_news(link, Operation.CREATE, marked[link.from_id], marked[link.to_id]) for link in fresh]
        return news

    async def rest(self) -> tuple[list[NodeNews], list[LinkNews]]:
        """Remove what no part named, and tell it."""
        which = {**key_bounds(self._tenant), "restore": self._restore}
        cut = await self._transaction.rows(_STALE_LINKS, **which)
        gone = await self._transaction.rows(f"{_STALE} RETURN properties(n) AS node", **which)
        await self._transaction.rows(f"{_STALE_LINK} DELETE r", **which)
        await self._transaction.rows(f"{_STALE} DETACH DELETE n", **which)
        links = [link_news(link_from_row(row), Operation.DELETE, row["source"], row["target"]) for row in cut]
        return [deletion_news(row["node"]) for row in gone], links

    def _row(self, node: ConstitutionNode) -> Row:
        return {**node_to_row(self._tenant, node), "restored": self._restore}
