"""Knowledge items and their links in the store: taken over from events, walked for retrieval, and forgotten."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping

from phronesis_bus import sendable
from phronesis_contracts.deletions import Purged
from phronesis_contracts.memory import ItemsForgotten, KnowledgeStored
from phronesis_contracts.twin import GRAPH_PURGED, Expand, Neighbour

from ..bolt.driver import Bolt, Row, Transaction
from ..bolt.schema import GONE, LINKS, Schema
from ..bolt.writes import SERVICE, Turns, news_id, take_turn, write_news
from .items import ITEM_LABELS, LINK_TYPES, item_key, order_by_distance, readable_owners

_MARK_FORGOTTEN = f"UNWIND $keys AS key MERGE (gone:{GONE} {{key: key}}) SET gone.at = $at"
_FIND_FORGOTTEN = f"UNWIND $keys AS key MATCH (gone:{GONE} {{key: key}}) RETURN gone.key AS key"
_LINKS = " UNION ALL ".join(
    f"UNWIND $keys AS key MATCH (n:{label} {{key: key}})-[link]-() RETURN count(DISTINCT link) AS links"
    for label in ITEM_LABELS
)
_REMOVE = {label: f"UNWIND $keys AS key MATCH (n:{label} {{key: key}}) DETACH DELETE n RETURN key" for label in ITEM_LABELS}
_DROP_WAITING_ENDS = tuple(
    f"UNWIND $keys AS key MATCH (w:{LINKS} {{{end}: key}}) DETACH DELETE w RETURN key" for end in ("source", "target")
)


async def forget_items(transaction: Transaction, tenant: str, news: ItemsForgotten) -> None:
    """Remove the items of one event, and write the report to their deletion, in the transaction of their owner's turn."""
    keys = [item_key(tenant, news.owner, id) for id in news.ids]
    removed = {"items": 0, "links": 0}
    if keys:
        await transaction.rows(_MARK_FORGOTTEN, keys=keys, at=time.time())
        removed["links"] = sum(row["links"] for row in await transaction.rows(_LINKS, keys=keys))
        for statement in _REMOVE.values():
            removed["items"] += len(await transaction.rows(statement, keys=keys))
        for statement in _DROP_WAITING_ENDS:
            await transaction.rows(statement, keys=keys)
    if news.deletion_id is not None:
        report = Purged(deletion_id=news.deletion_id, removed=removed, part=news.part, parts=news.parts)
        await write_news(transaction, [sendable(SERVICE, news_id(), tenant, GRAPH_PURGED, report)])


async def find_forgotten(transaction: Transaction, keys: list[str]) -> set[str]:
    """Which of these items were forgotten."""
    return {row["key"] for row in await transaction.rows(_FIND_FORGOTTEN, keys=keys)} if keys else set()


_ANY = "|".join(ITEM_LABELS)
LOOK_UP = " UNION ALL ".join(
    f"UNWIND $keys AS key MATCH (n:{label} {{key: key}}) WHERE n.tenant = $tenant AND n.owner IN $owners "
    f"RETURN n.key AS key, n.id AS id, '{label}' AS type, n.version AS version"
    for label in ITEM_LABELS
)
STEP = {
    label: f"UNWIND $keys AS key MATCH (s:{label} {{key: key}})--(n:{_ANY}) "
    "WHERE n.tenant = $tenant AND n.owner IN $owners "
    "RETURN DISTINCT n.key AS key, n.id AS id, n.type AS type LIMIT $limit"
    for label in ITEM_LABELS
}
_UNLINK = {
    label: f"UNWIND $keys AS key MATCH (n:{label} {{key: key}})-[link:{'|'.join(LINK_TYPES)}]->() "
    "WHERE link.version < $version DELETE link"
    for label in ITEM_LABELS
}
_DROP_WAITING = f"UNWIND $keys AS key MATCH (w:{LINKS} {{source: key}}) WHERE w.version < $version DELETE w"
_WAIT = f"UNWIND $rows AS row MERGE (w:{LINKS} {{key: row.key}}) SET w = row"
_WAITING = " UNION ".join(
    f"UNWIND $keys AS key MATCH (w:{LINKS} {{{end}: key}}) RETURN w.source AS source, w.target AS target, "
    "w.type AS type, w.version AS version, w.key AS waiting"
    for end in ("source", "target")
)
_ARRIVED = f"UNWIND $keys AS key MATCH (w:{LINKS} {{key: key}}) DELETE w"


# Both ends of a link have one owner.
_OF_USER = {
    "items": tuple(f"MATCH (n:{label}) WHERE n.key STARTS WITH $prefix" for label in ITEM_LABELS),
    "waiting_links": (f"MATCH (n:{LINKS}) WHERE n.source STARTS WITH $prefix",),
}
_GONE_OF_USER = f"MATCH (n:{GONE}) WHERE n.key STARTS WITH $prefix RETURN count(n) AS found"
_STEP = 1_000
"""Nodes that one step of an erasure removes of a kind."""


class BoltLinkStore:
    def __init__(self, bolt: Bolt, schema: Schema) -> None:
        self._bolt, self._schema = bolt, schema
        self._turns = Turns()

    async def store(self, tenant: str, news: KnowledgeStored) -> None:
        await self._schema.declared()
        turn = item_key(tenant, news.owner, "")

        async def work(transaction: Transaction) -> None:
            await take_turn(transaction, turn)
            await _Takeover(transaction, tenant, news).run()

        async with self._turns.of(turn):
            await self._bolt.write(work)

    async def forget(self, tenant: str, news: ItemsForgotten) -> None:
        await self._schema.declared()
        turn = item_key(tenant, news.owner, "")

        async def work(transaction: Transaction) -> None:
            await take_turn(transaction, turn)
            await forget_items(transaction, tenant, news)

        async with self._turns.of(turn):
            await self._bolt.write(work)

    async def held(self, tenant: str, user: str) -> tuple[dict[str, int], int]:
        """How many nodes are held of a user's items, by kind, and how many ids of what they forgot."""
        await self._schema.declared()
        prefix = item_key(tenant, user, "")

        async def work(transaction: Transaction) -> tuple[dict[str, int], int]:
            counts = dict.fromkeys(_OF_USER, 0)
            for name, statements in _OF_USER.items():
                for statement in statements:
                    rows = await transaction.rows(f"{statement} RETURN count(n) AS found", prefix=prefix)
                    counts[name] += sum(row["found"] for row in rows)
            gone = await transaction.rows(_GONE_OF_USER, prefix=prefix)
            return counts, sum(row["found"] for row in gone)

        return await self._bolt.read(work)

    async def erase(self, tenant: str, user: str) -> dict[str, int]:
        """Remove a bounded number of the nodes of a user's items, with their links; how many of what. Raises `Unavailable`."""
        await self._schema.declared()
        prefix = item_key(tenant, user, "")

        async def work(transaction: Transaction) -> dict[str, int]:
            await take_turn(transaction, prefix)
            removed = dict.fromkeys(_OF_USER, 0)
            for name, statements in _OF_USER.items():
                for statement in statements:
                    remove = f"{statement} WITH n LIMIT {_STEP} DETACH DELETE n RETURN 1 AS one"
                    removed[name] += len(await transaction.rows(remove, prefix=prefix))
            return removed

        async with self._turns.of(prefix):
            return await self._bolt.write(work)

    async def expand(self, tenant: str, user: str, question: Expand) -> list[Neighbour]:
        """Walk from the seeds, hop by hop.

        Each hop is a question of its own that starts at keys and is cut at the limit, so that a hub costs what the
        limit allows and no more.
        """
        ids = tuple(dict.fromkeys(question.ids))
        scope = {"tenant": tenant, "owners": readable_owners(user)}

        async def work(transaction: Transaction) -> list[Neighbour]:
            keys = [item_key(tenant, owner, id) for owner in readable_owners(user) for id in ids]
            edge = await transaction.rows(LOOK_UP, keys=keys, **scope)
            types = {row["id"]: row["type"] for row in edge}
            seeds = [Neighbour(id=id, type=types.get(id, ""), hop=0) for id in ids]
            seen = {row["key"] for row in edge}
            found: list[Neighbour] = []
            for hop in range(1, question.hops + 1):
                if not edge or len(seeds) + len(found) >= question.limit:
                    break
                # Of what a step gives, all but the nodes walked already is new: so many more rows may be needed.
                limit = question.limit + len(seen)
                edge = [row for row in await _step_from(transaction, edge, scope, limit) if row["key"] not in seen]
                seen |= {row["key"] for row in edge}
                found += [Neighbour(id=row["id"], type=row["type"], hop=hop) for row in edge]
            return order_by_distance(seeds, found, question.limit)

        return await self._bolt.read(work)


async def _step_from(transaction: Transaction, edge: Iterable[Row], scope: Mapping[str, object], limit: int) -> list[Row]:
    starts = defaultdict(list)
    for row in edge:
        starts[row["type"]].append(row["key"])
    found: dict[str, Row] = {}
    for label, keys in starts.items():
        for row in await transaction.rows(STEP[label], keys=keys, limit=limit, **scope):
            found.setdefault(row["key"], row)
    return list(found.values())


class _Takeover:
    """One event of the memory service, taken over in one transaction."""

    def __init__(self, transaction: Transaction, tenant: str, news: KnowledgeStored) -> None:
        self._transaction, self._tenant, self._news = transaction, tenant, news
        self._gone: set[str] = set()

    async def run(self) -> None:
        ids = {node.id for node in self._news.nodes} | {end for link in self._news.links for end in (link.source, link.target)}
        self._gone = await find_forgotten(self._transaction, sorted(map(self._key, ids)))
        fresh = await self._write_items()
        await self._forget_links(fresh)
        stated = [
            {
                "source": self._key(link.source),
                "target": self._key(link.target),
                "type": link.type,
                "version": self._news.version,
            }
            for link in self._news.links
            if link.source != link.target and self._gone.isdisjoint((self._key(link.source), self._key(link.target)))
        ]
        waiting = await self._transaction.rows(_WAITING, keys=[key for keys in fresh.values() for key in keys])
        await self._link([*waiting, *stated])

    async def _write_items(self) -> dict[str, list[str]]:
        news = self._news
        held = {row["key"]: row["version"] for row in await self._look_up(self._key(node.id) for node in news.nodes)}
        fresh: dict[str, list[str]] = defaultdict(list)
        rows: dict[str, list[Row]] = defaultdict(list)
        for node in news.nodes:
            key = self._key(node.id)
            if key in self._gone or held.get(key, -1) >= news.version:
                continue
            fresh[node.type.value].append(key)
            rows[node.type.value].append(
                {
                    "key": key,
                    "tenant": self._tenant,
                    "owner": news.owner,
                    "id": node.id,
                    "type": node.type.value,
                    "version": news.version,
                }
            )
        for label, of_type in rows.items():
            await self._transaction.rows(f"UNWIND $rows AS row MERGE (n:{label} {{key: row.key}}) SET n = row", rows=of_type)
        return fresh

    async def _forget_links(self, fresh: dict[str, list[str]]) -> None:
        for label, keys in fresh.items():
            await self._transaction.rows(_UNLINK[label], keys=keys, version=self._news.version)
            await self._transaction.rows(_DROP_WAITING, keys=keys, version=self._news.version)

    async def _link(self, links: list[Row]) -> None:
        """Make the links whose ends are there; the others wait for the end that is missing."""
        if not links:
            return
        ends = await self._look_up({link[end] for link in links for end in ("source", "target")})
        types = {row["key"]: row["type"] for row in ends}
        versions = {row["key"]: row["version"] for row in ends}
        ready = defaultdict(list)
        wait = []
        for link in links:
            if versions.get(link["source"], -1) > link["version"]:
                continue  # a newer version of the source has said what its links are
            if link["source"] in types and link["target"] in types:
                ready[types[link["source"]], link["type"], types[link["target"]]].append(link)
            elif "waiting" not in link:
                wait.append({**link, "key": f"{link['source']}\n{link['type']}\n{link['target']}"})
        for (source, name, target), of_type in ready.items():
            await self._transaction.rows(
                f"UNWIND $links AS row MATCH (a:{source} {{key: row.source}}) MATCH (b:{target} {{key: row.target}}) "
                f"MERGE (a)-[link:{name}]->(b) SET link.version = row.version",
                links=of_type,
            )
        arrived = [link["waiting"] for of_type in ready.values() for link in of_type if "waiting" in link]
        await self._transaction.rows(_ARRIVED, keys=arrived)
        await self._transaction.rows(_WAIT, rows=wait)

    async def _look_up(self, keys: Iterable[str]) -> list[Row]:
        return await self._transaction.rows(LOOK_UP, keys=sorted(set(keys)), tenant=self._tenant, owners=[self._news.owner])

    def _key(self, id: str) -> str:
        return item_key(self._tenant, self._news.owner, id)
