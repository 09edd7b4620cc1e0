"""The twin in the store: batches written whole, nodes read by key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from phronesis_bus import Call, Sendable, sendable
from phronesis_contracts.orchestrator import Audited
from phronesis_contracts.service import AUDITED
from phronesis_contracts.twin import NODE_CHANGED, ChangedNode, Level, Node, NodeChanged, NodeText, Upserted

from ..bolt.driver import Bolt, Row, Transaction
from ..bolt.schema import Schema
from ..bolt.writes import SERVICE, Turns, news_id, write_news, write_once
from .ontology import RESERVED, Ontology
from .upserts import NodeRecord, Plan, RelationshipRecord, Stored, check_levels
from .vocabulary import split_aliases

T = TypeVar("T")

NODES_OF_ONE_EVENT = 100
TEXT_OF_ONE_EVENT = 400_000
"""Bytes of the texts of all nodes that one event names, so that one question for them has one answer that fits."""


@dataclass(frozen=True)
class _Change:
    node: NodeRecord
    version: int


class BoltTwin:
    """The `TwinStore` over Bolt. Labels and relationship types in statements come from the ontology, never from a caller."""

    def __init__(self, bolt: Bolt, ontology: Ontology, schema: Schema) -> None:
        self._bolt, self._ontology, self._schema = bolt, ontology, schema
        self._turns = Turns()

    async def upsert(self, call: Call, arguments: str, batch: Plan, audit: Audited) -> Upserted:
        await self._schema.declared()
        tenant = call.who.tenant

        async def work(transaction: Transaction) -> Upserted:
            stored = await _read_stored(transaction, batch)
            check_levels(self._ontology, batch, stored)
            changes = tuple(_find_changes(batch.nodes, stored))
            await _write_nodes(transaction, changes)
            created = await _write_relationships(transaction, batch.relationships)
            result = _to_result(batch, changes, created)
            await write_news(transaction, _build_news(tenant, changes, audit))
            return result

        async with self._turns.of(tenant):
            return await write_once(self._bolt, tenant, [call], arguments, Upserted, work)

    async def nodes(self, tenant: str, refs: tuple[str, ...]) -> list[Node]:
        asked = defaultdict(list)
        for ref in dict.fromkeys(refs):
            if (label := ref.split("/", 1)[0]) in self._ontology.nodes:
                asked[label].append(f"{tenant}/{ref}")

        async def work(transaction: Transaction) -> dict[str, Node]:
            found = {}
            for label, keys in asked.items():
                statement = (
                    f"UNWIND $keys AS key MATCH (n:{label} {{key: key}}) WHERE n.tenant = $tenant RETURN properties(n) AS node"
                )
                for row in await transaction.rows(statement, keys=keys, tenant=tenant):
                    node = self._node(label, row["node"])
                    found[node.key] = node
            return found

        by_ref = await self._bolt.read(work) if asked else {}
        return [by_ref[ref] for ref in dict.fromkeys(refs) if ref in by_ref]

    def _node(self, label: str, row: Row) -> Node:
        texts = self._ontology.nodes[label].texts
        shown = {name: value for name, value in row.items() if name not in RESERVED and name not in texts}
        if "quarter" in row:
            shown["quarter"] = row["quarter"]
        return Node(
            key=f"{label}/{row['id']}/{row['year']}",
            type=label,
            id=row["id"],
            year=row["year"],
            name=row["name"],
            aliases=split_aliases(row.get("aliases")),
            level=Level(row["level"]),
            version=row["version"],
            properties=shown,
            texts=tuple(NodeText(field=name, text=row[name]) for name in texts if row.get(name)),
        )


async def _read_stored(transaction: Transaction, batch: Plan) -> dict[str, Stored]:
    keys = defaultdict(set)
    for node in batch.nodes:
        keys[node.type].add(node.key)
    for _, end in batch.ends():
        keys[end.type].add(end.key)
    found = {}
    for label, wanted in keys.items():
        statement = (
            f"UNWIND $keys AS key MATCH (n:{label} {{key: key}}) "
            "RETURN key AS key, n.hash AS hash, n.level AS level, n.version AS version"
        )
        for row in await transaction.rows(statement, keys=sorted(wanted)):
            found[row["key"]] = Stored(row["hash"], Level(row["level"]), row["version"])
    return found


def _find_changes(nodes: Iterable[NodeRecord], stored: Mapping[str, Stored]) -> Iterator[_Change]:
    for node in nodes:
        old = stored.get(node.key)
        if old is None:
            yield _Change(node, 1)
        elif old.hash != node.hash:
            yield _Change(node, old.version + 1)


async def _write_nodes(transaction: Transaction, changes: Sequence[_Change]) -> None:
    rows = defaultdict(list)
    for change in changes:
        rows[change.node.type].append({**change.node.properties, "version": change.version})
    for label, of_type in rows.items():
        await transaction.rows(f"UNWIND $rows AS row MERGE (n:{label} {{key: row.key}}) SET n = row", rows=of_type)


async def _write_relationships(transaction: Transaction, relationships: Iterable[RelationshipRecord]) -> int:
    pairs = defaultdict(list)
    for each in relationships:
        pairs[each.source.type, each.type, each.target.type].append({"a": each.source.key, "b": each.target.key})
    created = 0
    for (source, name, target), of_type in pairs.items():
        created += await transaction.created(
            f"UNWIND $pairs AS pair MATCH (a:{source} {{key: pair.a}}) MATCH (b:{target} {{key: pair.b}}) "
            f"MERGE (a)-[:{name}]->(b)",
            pairs=of_type,
        )
    return created


def _to_result(batch: Plan, changes: Sequence[_Change], relationships_created: int) -> Upserted:
    created = sum(change.version == 1 for change in changes)
    return Upserted(
        nodes_created=created,
        nodes_updated=len(changes) - created,
        nodes_unchanged=len(batch.nodes) - len(changes),
        relationships_created=relationships_created,
        relationships_unchanged=len(batch.relationships) - relationships_created,
    )


def _build_news(tenant: str, changes: Iterable[_Change], audit: Audited) -> list[Sendable]:
    events = [
        NodeChanged(nodes=tuple(ChangedNode(key=change.node.ref, version=change.version) for change in part))
        for part in _split_changes(changes)
    ]
    news = [sendable(SERVICE, news_id(), tenant, NODE_CHANGED, event) for event in events]
    return [*news, sendable(SERVICE, news_id(), tenant, AUDITED[SERVICE], audit)]


def _split_changes(changes: Iterable[_Change]) -> Iterator[list[_Change]]:
    part: list[_Change] = []
    size = 0
    for change in changes:
        if part and (len(part) == NODES_OF_ONE_EVENT or size + change.node.text_bytes > TEXT_OF_ONE_EVENT):
            yield part
            part, size = [], 0
        part.append(change)
        size += change.node.text_bytes
    if part:
        yield part
