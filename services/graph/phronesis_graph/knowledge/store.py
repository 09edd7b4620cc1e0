"""The agents' own nodes and relationships in the store: their names, their writes, and changing statements."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from neo4j import Record, SummaryCounters

from phronesis_bus import Call, sendable
from phronesis_contracts import BadRequest, Conflict, NotFound, ServiceError
from phronesis_contracts.knowledge_graph import FoundNode, NodeCreated, NodeDeleted, QueryExecuted, RelationshipCreated
from phronesis_contracts.orchestrator import Audited
from phronesis_contracts.service import AUDITED
from phronesis_contracts.twin import QueryRefused

from ..bolt.driver import Bolt, Row, Transaction
from ..bolt.queries import MOST_BYTES, BoltQueries, RowCollector, Values, run_statement
from ..bolt.schema import WRITES, Schema
from ..bolt.writes import SERVICE, Turns, news_id, write_news, write_once
from ..twin.ontology import Ontology
from ..twin.ports import StatementResult
from .model import ID, KNOWLEDGE, RELATIONSHIP_ID, KnowledgeNames, PropertyValue, knowledge_key
from .ports import ChangeStatement, DeletedNode, NewRelationship, query_envelope

MOST_NAMES = 2_000
"""Labels, and relationship types, in one store; on ArcadeDB each has files of its own."""
_LABELS = "CALL db.labels() YIELD label RETURN label AS name"
_TYPES = "CALL db.relationshipTypes() YIELD relationshipType RETURN relationshipType AS name"
_DECLARE_LABEL = f"CREATE (n:{KNOWLEDGE}:`%s` {{key: '/declared'}}) DELETE n"
_DECLARE_TYPE = f"CREATE (a:{KNOWLEDGE} {{key: '/from'}})-[:`%s`]->(b:{KNOWLEDGE} {{key: '/to'}}) DETACH DELETE a, b"


class StoreNames:
    """The names that this process has seen in the store."""

    def __init__(self, bolt: Bolt) -> None:
        self._bolt = bolt
        self._labels: frozenset[str] = frozenset()
        self._types: frozenset[str] = frozenset()
        self._lock = asyncio.Lock()

    async def label(self, name: str) -> None:
        """Return when the store knows the label. `name` is a checked name.

        Raises:
            BadRequest: it is the name of a relationship type, or there are too many labels.
        """
        if name not in self._labels:
            async with self._lock:
                await self._look()
                await self._declare(name, self._labels, self._types, "label", _DECLARE_LABEL)

    async def type(self, name: str) -> None:
        """Return when the store knows the relationship type; as `label` does."""
        if name not in self._types:
            async with self._lock:
                await self._look()
                await self._declare(name, self._types, self._labels, "type", _DECLARE_TYPE)

    @asynccontextmanager
    async def perhaps_new(self, names: Iterable[str]) -> AsyncIterator[None]:
        """Alone for the length of a block, if one of these names is new. Raises `BadRequest`: there are too many names."""
        wanted = set(names)
        if wanted <= self._labels | self._types:
            yield
            return
        async with self._lock:
            await self._look()
            if wanted - self._labels - self._types and max(len(self._labels), len(self._types)) >= MOST_NAMES:
                raise BadRequest(f"the graph has {MOST_NAMES} labels or types; use one of them", field="cypher_query")
            yield

    async def _declare(self, name: str, known: frozenset[str], others: frozenset[str], field: str, statement: str) -> None:
        if name in known:
            return
        if name in others:
            raise BadRequest(f"{name} is the name of another kind of thing in the graph; choose another", field=field)
        if len(known) >= MOST_NAMES:
            raise BadRequest(f"the graph has {MOST_NAMES} of them; use one that there is", field=field)

        async def work(transaction: Transaction) -> None:
            await transaction.rows(statement % name)

        try:
            await self._bolt.write(work)
        except ServiceError:
            await self._look()  # another process may have made it meanwhile
            if name not in self._labels | self._types:
                raise

    async def _look(self) -> None:
        async def work(transaction: Transaction) -> tuple[list[Row], list[Row]]:
            return await transaction.rows(_LABELS), await transaction.rows(_TYPES)

        labels, types = await self._bolt.write(work)
        self._labels, self._types = (frozenset(row["name"] for row in rows) for rows in (labels, types))


_THERE = f"MATCH (n:{KNOWLEDGE} {{key: $key}}) WHERE n.tenant = $tenant RETURN labels(n) AS labels"
_COUNT = f"MATCH (n:{KNOWLEDGE} {{key: $key}})-[r]-() RETURN count(DISTINCT r) AS found"
_DELETE = f"MATCH (n:{KNOWLEDGE} {{key: $key}}) WHERE n.tenant = $tenant DETACH DELETE n"


class BoltNodes:
    """`KnowledgeStore` over Bolt. Names in statements have passed `KnowledgeNames`, and stand in backticks."""

    def __init__(self, bolt: Bolt, ontology: Ontology, schema: Schema, names: StoreNames) -> None:
        self._bolt, self._ontology = bolt, ontology
        self._schema, self._names = schema, names
        self._turns = Turns()

    async def create(
        self, call: Call, arguments: str, node_id: str, label: str, properties: Mapping[str, PropertyValue], audit: Audited
    ) -> NodeCreated:
        await self._schema.declared()
        await self._names.label(label)
        tenant = call.who.tenant
        row = {**properties, "tenant": tenant, "key": knowledge_key(tenant, node_id), ID: node_id}

        async def work(transaction: Transaction) -> NodeCreated:
            await transaction.rows(f"CREATE (n:{KNOWLEDGE}:`{label}`) SET n = $row", row=row)
            result = NodeCreated(success=True, node_id=node_id, message="Node created successfully.")
            await write_audit(transaction, tenant, audit)
            return result

        async with self._turns.of(tenant):
            return await write_once(self._bolt, tenant, [call], arguments, NodeCreated, work)

    async def join(self, call: Call, arguments: str, wanted: NewRelationship, audit: Audited) -> RelationshipCreated:
        await self._schema.declared()
        await self._names.type(wanted.type)
        tenant = call.who.tenant
        ends = {"a": knowledge_key(tenant, wanted.source), "b": knowledge_key(tenant, wanted.target)}
        row = {**wanted.properties, RELATIONSHIP_ID: wanted.id}

        async def work(transaction: Transaction) -> RelationshipCreated:
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
            await write_audit(transaction, tenant, audit)
            return result

        async with self._turns.of(tenant):
            return await write_once(self._bolt, tenant, [call], arguments, RelationshipCreated, work)

    async def delete(self, call: Call, arguments: str, node_id: str, audit: Callable[[DeletedNode], Audited]) -> NodeDeleted:
        await self._schema.declared()
        tenant = call.who.tenant
        which = {"key": knowledge_key(tenant, node_id), "tenant": tenant}

        async def work(transaction: Transaction) -> NodeDeleted:
            found = await transaction.rows(_THERE, **which)
            if not found:
                raise NotFound("there is no such node of the knowledge graph", field="node_id")
            links = (await transaction.rows(_COUNT, key=which["key"]))[0]["found"]
            await transaction.rows(_DELETE, **which)
            gone = DeletedNode(tuple(sorted(set(found[0]["labels"]) - {KNOWLEDGE})), int(links))
            message = f"Node deleted successfully, with {gone.relationships} relationships."
            result = NodeDeleted(success=True, message=message)
            await write_audit(transaction, tenant, audit(gone))
            return result

        async with self._turns.of(tenant):
            return await write_once(self._bolt, tenant, [call], arguments, NodeDeleted, work)

    async def details(self, tenant: str, node_id: str) -> FoundNode | None:
        label = node_id.split("/", 1)[0]
        label = label if label in self._ontology.nodes else KNOWLEDGE
        statement = f"MATCH (n:{label} {{key: $key}}) WHERE n.tenant = $tenant RETURN n"
        found = await self._found(tenant, [statement], {"key": f"{tenant}/{node_id}"}, 1)
        return found[0] if found else None

    async def search(
        self, tenant: str, label: str | None, wanted: Mapping[str, PropertyValue], limit: int
    ) -> Sequence[FoundNode]:
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


async def write_audit(transaction: Transaction, tenant: str, audit: Audited) -> None:
    """Write an entry of the audit trail, in the transaction of the deed."""
    await write_news(transaction, [sendable(SERVICE, news_id(), tenant, AUDITED[SERVICE], audit)])


_FRESH = 600.0
"""Seconds for which a token confirms."""
_AFTER_COLON = re.compile(r"[:|&]\s*`?([A-Za-z_][A-Za-z0-9_]{0,63})`?")
_TOKEN = f"CREATE (w:{WRITES} {{key: $key, arguments: $arguments, result: '', at: $at}})"
_CONFIRM = f"MATCH (w:{WRITES} {{key: $key}}) RETURN w.arguments AS arguments, w.at AS at"
_SPEND = f"MATCH (w:{WRITES} {{key: $key}}) DELETE w"
_NAME = (
    "MATCH (n:`%s`) WHERE n.tenant = $tenant AND n.key IS NULL WITH n, randomUUID() AS id "
    f"SET n.{ID} = id, n.key = $tenant + '/' + id RETURN elementId(n) AS old, id AS id"
)
# A label of its own: on ArcadeDB another label is another place, and the node's id there changes with it.
_ADOPT = f"MATCH (n:`%s`) WHERE n.key IN $keys SET n:{KNOWLEDGE}"
_TWIN_REFUSAL = (
    "a statement that creates or deletes relationships names no label and no relationship type of the twin: those are written"
    " by graph_upsert, and nothing is joined to its nodes"
)
# A relationship of the twin has no properties.
_COUNT_MARKED = "MATCH (n:%s)-[r]-() WHERE n.tenant = $tenant AND size(keys(r)) > 0 RETURN count(r) AS found"
_NAME_LINKS = (
    f"MATCH (a:{KNOWLEDGE})-[r:`%s`]->() WHERE a.tenant = $tenant AND r.{RELATIONSHIP_ID} IS NULL "
    f"SET r.{RELATIONSHIP_ID} = randomUUID()"
)


class BoltChanges:
    def __init__(
        self, bolt: Bolt, ontology: Ontology, schema: Schema, queries: BoltQueries, names: StoreNames, taken: KnowledgeNames
    ) -> None:
        self._bolt, self._ontology, self._schema = bolt, ontology, schema
        self._queries, self._names, self._taken = queries, names, taken
        self._turns = Turns()

    async def run(
        self, call: Call, arguments: str, change: ChangeStatement, audit: Callable[[Mapping[str, int]], Audited]
    ) -> QueryExecuted:
        await self._schema.declared()
        tenant = call.who.tenant
        named = frozenset(_AFTER_COLON.findall(change.statement))

        async def work(transaction: Transaction) -> QueryExecuted:
            if change.token is not None:
                await _spend_token(transaction, call, change)
            records: list[Record] = []
            summary = await run_statement(transaction, change.statement, change.parameters, _take_at_most(records, change.most))
            adopted = await self._adopt(transaction, tenant, named, summary.counters)
            result = query_envelope(_to_result(records, Values(self._ontology, tenant, adopted), change.most))
            await write_audit(transaction, tenant, audit(_count_changes(summary.counters)))
            return result

        async with self._turns.of(tenant), self._names.perhaps_new(named), self._queries.place():
            seconds = self._bolt.query_timeout
            return await write_once(self._bolt, tenant, [call], arguments, QueryExecuted, work, seconds=seconds)

    async def ask_to_confirm(self, call: Call, digest: str) -> str:
        await self._schema.declared()
        token = uuid4().hex

        async def work(transaction: Transaction) -> None:
            await transaction.rows(_TOKEN, key=_token_key(call, token), arguments=digest, at=time.time())

        await self._bolt.write(work)
        return token

    async def _adopt(
        self, transaction: Transaction, tenant: str, named: frozenset[str], counters: SummaryCounters
    ) -> dict[str, str]:
        """Give each node and relationship that a statement created its id.

        Returns:
            The new nodes' ids, by the ids that the store gave them.

        Raises:
            QueryRefused: it created a node without a label, or with a label that is not the agents', or it may have changed
                relationships of the twin.
        """
        if (counters.relationships_created or counters.relationships_deleted) and named & self._taken.everything:
            raise QueryRefused(_TWIN_REFUSAL, field="cypher_query")
        if counters.properties_set:
            for label in sorted(named & self._taken.labels):
                if (await transaction.rows(_COUNT_MARKED % label, tenant=tenant))[0]["found"]:
                    raise QueryRefused(_TWIN_REFUSAL, field="cypher_query")
        adopted: dict[str, str] = {}
        if counters.nodes_created:
            for name in sorted(named - self._taken.labels):
                found = await transaction.rows(_NAME % name, tenant=tenant)
                await transaction.rows(_ADOPT % name, keys=[f"{tenant}/{row['id']}" for row in found])
                adopted |= {row["old"]: row["id"] for row in found}
            if len(adopted) + counters.nodes_deleted < counters.nodes_created:
                raise QueryRefused("give each node that you create a label of your own", field="cypher_query")
        if counters.relationships_created:
            for name in sorted(named):
                await transaction.rows(_NAME_LINKS % name, tenant=tenant)
        return adopted


def _take_at_most(records: list[Record], most: int) -> Callable[[Record], bool]:
    """Takes records into `records`, and one more than `most` of them, so that it can be told that there were more."""

    def take(record: Record) -> bool:
        records.append(record)
        return len(records) <= most

    return take


def _to_result(records: list[Record], values: Values, most: int) -> StatementResult:
    rows = RowCollector(values, most)
    for record in records:
        if not rows.take(record):
            break
    return rows.found()


async def _spend_token(transaction: Transaction, call: Call, change: ChangeStatement) -> None:
    """Spend a confirmed statement's token in its transaction, once. Raises `Conflict`: another's, too old, or spent."""
    key = _token_key(call, change.token or "")
    found = await transaction.rows(_CONFIRM, key=key)
    if not found or found[0]["arguments"] != change.digest or time.time() - found[0]["at"] > _FRESH:
        raise Conflict("this token confirms nothing; send the statement without it, and confirm it anew", field="confirm_token")
    await transaction.rows(_SPEND, key=key)


def _token_key(call: Call, token: str) -> str:
    return f"{call.who.tenant}/{call.who.user}/confirm/{token}"


def _count_changes(counters: SummaryCounters) -> dict[str, int]:
    names = ("nodes_created", "nodes_deleted", "relationships_created", "relationships_deleted", "properties_set")
    return {name: count for name in names if (count := getattr(counters, name))}
