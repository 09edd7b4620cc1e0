"""Nodes and relationships of the agents' own in the store, and the twin's nodes to be read beside them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from neo4j import Record

from phronesis_bus import Call, sendable
from phronesis_contracts import BadRequest, NotFound
from phronesis_contracts.knowledge_graph import FoundNode, NodeCreated, NodeDeleted, RelationshipCreated
from phronesis_contracts.orchestrator import Audited
from phronesis_contracts.service import AUDITED

from ..curation import ID, KNOWLEDGE, RELATIONSHIP_ID, Value, key_of
from ..curators import Gone, Join
from ..ontology import Ontology
from .bolt import Bolt, Transaction
from .names import StoreNames
from .queries import MOST_BYTES
from .schema import Schema
from .values import Values
from .writes import Turns, first_result, keep_result, news_id, take_turn, write_news

SERVICE = "graph"
_THERE = f"MATCH (n:{KNOWLEDGE} {{key: $key}}) WHERE n.tenant = $tenant RETURN labels(n) AS labels"
_COUNT = f"MATCH (n:{KNOWLEDGE} {{key: $key}})-[r]-() RETURN count(DISTINCT r) AS found"
_DELETE = f"MATCH (n:{KNOWLEDGE} {{key: $key}}) WHERE n.tenant = $tenant DETACH DELETE n"


class BoltNodes:
    """The `KnowledgeNodes` over Bolt. Names in statements have passed `curation`, and stand in backticks."""

    def __init__(self, bolt: Bolt, ontology: Ontology, schema: Schema, names: StoreNames) -> None:
        self._bolt = bolt
        self._ontology = ontology
        self._schema = schema
        self._names = names
        self._turns = Turns()

    async def create(
        self, call: Call, arguments: str, node_id: str, label: str, properties: Mapping[str, Value], audit: Audited
    ) -> NodeCreated:
        """Create a node; see the port."""
        await self._schema.declared()
        await self._names.label(label)
        tenant = call.who.tenant
        row = {**properties, "tenant": tenant, "key": key_of(tenant, node_id), ID: node_id}

        async def work(transaction: Transaction) -> NodeCreated:
            await take_turn(transaction, tenant)
            if (first := await first_result(transaction, call, arguments, NodeCreated)) is not None:
                return first
            await transaction.rows(f"CREATE (n:{KNOWLEDGE}:`{label}`) SET n = $row", row=row)
            result = NodeCreated(success=True, node_id=node_id, message="Node created successfully.")
            await entered(transaction, tenant, audit)
            await keep_result(transaction, call, arguments, result)
            return result

        async with self._turns.of(tenant):
            return await self._bolt.write(work)

    async def join(self, call: Call, arguments: str, wanted: Join, audit: Audited) -> RelationshipCreated:
        """Create a relationship; see the port."""
        await self._schema.declared()
        await self._names.type(wanted.type)
        tenant = call.who.tenant
        ends = {"a": key_of(tenant, wanted.source), "b": key_of(tenant, wanted.target)}
        row = {**wanted.properties, RELATIONSHIP_ID: wanted.id}

        async def work(transaction: Transaction) -> RelationshipCreated:
            await take_turn(transaction, tenant)
            if (first := await first_result(transaction, call, arguments, RelationshipCreated)) is not None:
                return first
            for field, end in (("from_node_id", "a"), ("to_node_id", "b")):
                if not await transaction.rows(_THERE, key=ends[end], tenant=tenant):
                    raise BadRequest("there is no such node of the knowledge graph", field=field)
            await transaction.rows(
                f"MATCH (a:{KNOWLEDGE} {{key: $a}}) MATCH (b:{KNOWLEDGE} {{key: $b}}) "
                f"CREATE (a)-[r:`{wanted.type}`]->(b) SET r = $row",
                row=row,
                **ends,
            )
            result = RelationshipCreated(success=True, relationship_id=wanted.id, message="Relationship created successfully.")
            await entered(transaction, tenant, audit)
            await keep_result(transaction, call, arguments, result)
            return result

        async with self._turns.of(tenant):
            return await self._bolt.write(work)

    async def delete(self, call: Call, arguments: str, node_id: str, audit: Callable[[Gone], Audited]) -> NodeDeleted:
        """Delete a node with its relationships; see the port."""
        await self._schema.declared()
        tenant = call.who.tenant
        which = {"key": key_of(tenant, node_id), "tenant": tenant}

        async def work(transaction: Transaction) -> NodeDeleted:
            await take_turn(transaction, tenant)
            if (first := await first_result(transaction, call, arguments, NodeDeleted)) is not None:
                return first
            found = await transaction.rows(_THERE, **which)
            if not found:
                raise NotFound("there is no such node of the knowledge graph", field="node_id")
            links = (await transaction.rows(_COUNT, key=which["key"]))[0]["found"]
            await transaction.rows(_DELETE, **which)
            gone = Gone(tuple(sorted(set(found[0]["labels"]) - {KNOWLEDGE})), int(links))
            message = f"Node deleted successfully, with {gone.relationships} relationships."
            result = NodeDeleted(success=True, message=message)
            await entered(transaction, tenant, audit(gone))
            await keep_result(transaction, call, arguments, result)
            return result

        async with self._turns.of(tenant):
            return await self._bolt.write(work)

    async def details(self, tenant: str, node_id: str) -> FoundNode | None:
        """One node; see the port."""
        label = node_id.split("/", 1)[0]
        label = label if label in self._ontology.nodes else KNOWLEDGE
        statement = f"MATCH (n:{label} {{key: $key}}) WHERE n.tenant = $tenant RETURN n"
        found = await self._found(tenant, [statement], {"key": f"{tenant}/{node_id}"}, 1)
        return found[0] if found else None

    async def search(self, tenant: str, label: str | None, wanted: Mapping[str, Value], limit: int) -> Sequence[FoundNode]:
        """Nodes with these values; see the port."""
        places = {f"v{number}": value for number, value in enumerate(wanted.values())}
        equal = "".join(f" AND n.`{name}` = $v{number}" for number, name in enumerate(wanted))
        # `0` is the character after `/`: between these two are the tenant's keys, and an index has them in order
        inside = "n.key > $after AND n.key < $before AND n.tenant = $tenant"
        statements = [
            f"MATCH (n:{where}) WHERE {inside}{equal} RETURN n ORDER BY n.key LIMIT $limit" for where in self._labels(label)
        ]
        return await self._found(tenant, statements, {**places, "after": f"{tenant}/", "before": f"{tenant}0"}, limit)

    def _labels(self, label: str | None) -> Iterator[str]:
        if label is None:
            yield from (KNOWLEDGE, *self._ontology.nodes)
        else:
            yield label if label in self._ontology.nodes else f"{KNOWLEDGE}:`{label}`"

    async def _found(self, tenant: str, statements: list[str], parameters: Mapping[str, Any], limit: int) -> list[FoundNode]:
        values = Values(self._ontology, tenant)

        async def work(transaction: Transaction) -> list[FoundNode]:
            found: list[FoundNode] = []
            size = 0

            def take(record: Record) -> bool:
                nonlocal size
                node = values.node(record["n"])
                size += len(json.dumps(node.model_dump(), ensure_ascii=False).encode())
                if size <= MOST_BYTES or not found:
                    found.append(node)
                return size <= MOST_BYTES

            for statement in statements:
                if len(found) < limit and size <= MOST_BYTES:
                    left = {**parameters, "tenant": tenant, "limit": limit - len(found)}
                    await transaction.taken(statement, left, take)
            return found

        return await self._bolt.read(work)


async def entered(transaction: Transaction, tenant: str, audit: Audited) -> None:
    """Write an entry of the audit trail, in the transaction of the deed."""
    await write_news(transaction, [sendable(SERVICE, news_id(), tenant, AUDITED[SERVICE], audit)])
