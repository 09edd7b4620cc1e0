"""A part of a constitutional graph in the store: many nodes and relationships in one transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from phronesis_contracts import NotFound
from phronesis_contracts.constitution.loading import ConstitutionLoaded
from phronesis_contracts.constitution.registry import NODE_LABEL, TYPES
from phronesis_contracts.constitution.relationships import RELATIONSHIPS
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode
from phronesis_contracts.constitution.writes import LinkNews, NodeNews, NodeWritten, Operation
from phronesis_contracts.orchestrator import Audited

from ..constitution.joining import check_cycle, check_ends
from ..constitution.ports import Order
from ..constitution.records import key_of, node_of, row_of
from .bolt import Bolt, Row, Transaction
from .constitution_links import link_row
from .constitution_news import Turn, announced, link_news
from .constitution_nodes import deleted, written
from .names import StoreNames
from .writes import first_result, keep_result, take_turn

_SECONDS = 55.0
"""Seconds that one part may take."""
_HELD = f"UNWIND $keys AS key MATCH (n:{NODE_LABEL} {{key: key}}) RETURN n.key AS key, properties(n) AS node"
_CREATE = f"UNWIND $rows AS row CREATE (n:{NODE_LABEL}:`%s`) SET n = row"
_SET = f"UNWIND $rows AS row MATCH (n:{NODE_LABEL} {{key: row.key}}) SET n = row"
_DROP = f"UNWIND $keys AS key MATCH (n:{NODE_LABEL} {{key: key}}) DETACH DELETE n"
_JOINED = (
    f"UNWIND $rows AS row MATCH (a:{NODE_LABEL} {{key: row.a}})-[r:`%s`]->(b:{NODE_LABEL} {{key: row.b}})"
    " RETURN row.a AS a, row.b AS b"
)
_JOIN = (
    f"UNWIND $rows AS row MATCH (a:{NODE_LABEL} {{key: row.a}}) MATCH (b:{NODE_LABEL} {{key: row.b}})"
    " CREATE (a)-[r:`%s`]->(b) SET r.id = row.id, r.key = row.key, r.tenant = row.tenant, r.createdAt = row.createdAt"
)
_STEP = (
    f"UNWIND $keys AS key MATCH (a:{NODE_LABEL} {{key: key}})-[:`%s`]->(b:{NODE_LABEL})"
    " RETURN a.key AS a, b.key AS b, b.title AS title"
)


class BoltLoads:
    """The `ConstitutionLoads` over Bolt."""

    def __init__(self, bolt: Bolt, turn: Turn, names: StoreNames) -> None:
        self._bolt = bolt
        self._turn = turn
        self._names = names

    async def load(
        self,
        order: Order,
        remove: Sequence[str],
        ids: Sequence[str],
        decide: Callable[[Mapping[str, ConstitutionNode]], list[NodeWritten]],
        links: Sequence[ConstitutionLink],
        audit: Callable[[ConstitutionLoaded], Audited],
    ) -> ConstitutionLoaded:
        """Write one part; see the port."""
        tenant = order.call.who.tenant

        async def work(transaction: Transaction) -> ConstitutionLoaded:
            await take_turn(transaction, tenant)
            if (first := await first_result(transaction, order.call, order.arguments, ConstitutionLoaded)) is not None:
                return first
            part = _Part(transaction, tenant)
            gone = await part.removed(remove)
            before = await part.held(ids)
            results = decide({row["id"]: node_of(row) for row in before.values()})
            news = await part.nodes(results, set(before))
            joined = await part.links(links)
            done = ConstitutionLoaded(
                created=len(results) - len(before),
                updated=sum(bool(one.changed) for one in results) - (len(results) - len(before)),
                unchanged=sum(not one.changed for one in results),
                removed=len(gone),
                relationships=len(joined),
            )
            await announced(transaction, tenant, audit(done), [*gone, *news], joined)
            await keep_result(transaction, order.call, order.arguments, done)
            return done

        async with self._turn.of(tenant):
            for name in sorted({link.type for link in links}):
                await self._names.type(name)
            return await self._bolt.write(work, _SECONDS)


class _Part:
    """One part, in its transaction."""

    def __init__(self, transaction: Transaction, tenant: str) -> None:
        self._transaction = transaction
        self._tenant = tenant

    async def held(self, ids: Sequence[str]) -> dict[str, Row]:
        """Those of these nodes that there are, by key."""
        keys = sorted(key_of(self._tenant, id) for id in ids)
        return {row["key"]: row["node"] for row in await self._transaction.rows(_HELD, keys=keys)}

    async def removed(self, ids: Sequence[str]) -> list[NodeNews]:
        """Remove nodes with their relationships."""
        held = await self.held(ids)
        await self._transaction.rows(_DROP, keys=sorted(held))
        return [deleted(row) for row in held.values()]

    async def nodes(self, results: Sequence[NodeWritten], before: set[str]) -> list[NodeNews]:
        """Write the nodes that changed."""
        fresh: dict[str, list[Row]] = defaultdict(list)
        same: list[Row] = []
        news: list[NodeNews] = []
        for result in results:
            if not result.changed:
                continue
            row = row_of(self._tenant, result.node)
            there = row["key"] in before
            news.append(written(result, Operation.UPDATE if there else Operation.CREATE))
            (same if there else fresh[TYPES[result.node.type].label]).append(row)
        await self._transaction.rows(_SET, rows=same)
        for label, rows in fresh.items():
            await self._transaction.rows(_CREATE % label, rows=rows)
        return news

    async def links(self, links: Sequence[ConstitutionLink]) -> list[LinkNews]:
        """Write the relationships that there are not."""
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
        rows = {(link.from_id, link.to_id): (link, self._row(link)) for link in links}
        given = [row for _, row in rows.values()]
        there = {(row["a"], row["b"]) for row in await self._transaction.rows(_JOINED % name, rows=given)}
        fresh = [(link, row) for link, row in rows.values() if (row["a"], row["b"]) not in there]
        await self._transaction.rows(_JOIN % name, rows=[row for _, row in fresh])
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

    def _row(self, link: ConstitutionLink) -> Row:
        ends = {"a": key_of(self._tenant, link.from_id), "b": key_of(self._tenant, link.to_id)}
        return {**ends, **link_row(self._tenant, link)}
