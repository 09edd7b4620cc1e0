"""Statements of agents that change their knowledge: run in one transaction with what they leave behind."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from uuid import uuid4

from neo4j import Record, SummaryCounters

from phronesis_bus import Call
from phronesis_contracts import Conflict
from phronesis_contracts.cypher import QueryRefused
from phronesis_contracts.knowledge_graph import QueryExecuted
from phronesis_contracts.orchestrator import Audited

from ..curation import ID, KNOWLEDGE, RELATIONSHIP_ID, Names
from ..curators import Change, executed
from ..ontology import Ontology
from ..querying import Found
from .bolt import Bolt, Transaction
from .labels import WRITES
from .names import StoreNames
from .nodes import entered
from .queries import BoltQueries, Rows, run
from .schema import Schema
from .values import Values
from .writes import Turns, first_result, keep_result, take_turn

_FRESH = 600.0
"""Seconds for which a token confirms."""
_AFTER_COLON = re.compile(r"[:|&]\s*`?([A-Za-z_][A-Za-z0-9_]{0,63})`?")
_TOKEN = f"CREATE (w:{WRITES} {{key: $key, arguments: $arguments, result: '', at: $at}})"
_CONFIRM = f"MATCH (w:{WRITES} {{key: $key}}) RETURN w.arguments AS arguments, w.at AS at"
_SPENT = f"MATCH (w:{WRITES} {{key: $key}}) DELETE w"
_NAME = (
    "MATCH (n:`%s`) WHERE n.tenant = $tenant AND n.key IS NULL WITH n, randomUUID() AS id "
    f"SET n.{ID} = id, n.key = $tenant + '/' + id RETURN elementId(n) AS old, id AS id"
)
# A label of its own: on ArcadeDB another label is another place, and the node's id there changes with it.
_ADOPT = f"MATCH (n:`%s`) WHERE n.key IN $keys SET n:{KNOWLEDGE}"
_OF_THE_TWIN = (
    "a statement that creates or deletes relationships names no label and no relationship type of the twin: those are written"
    " by graph_upsert, and nothing is joined to its nodes"
)
# A relationship of the twin has no properties.
_MARKED = "MATCH (n:%s)-[r]-() WHERE n.tenant = $tenant AND size(keys(r)) > 0 RETURN count(r) AS found"
_NAME_LINKS = (
    f"MATCH (a:{KNOWLEDGE})-[r:`%s`]->() WHERE a.tenant = $tenant AND r.{RELATIONSHIP_ID} IS NULL "
    f"SET r.{RELATIONSHIP_ID} = randomUUID()"
)


class BoltChanges:
    """The `Changes` over Bolt."""

    def __init__(
        self, bolt: Bolt, ontology: Ontology, schema: Schema, queries: BoltQueries, names: StoreNames, taken: Names
    ) -> None:
        self._bolt = bolt
        self._ontology = ontology
        self._schema = schema
        self._queries = queries
        self._names = names
        self._taken = taken
        self._turns = Turns()

    async def run(
        self, call: Call, arguments: str, change: Change, audit: Callable[[Mapping[str, int]], Audited]
    ) -> QueryExecuted:
        """Run a changing statement; see the port."""
        await self._schema.declared()
        tenant = call.who.tenant
        named = frozenset(_AFTER_COLON.findall(change.statement))

        async def work(transaction: Transaction) -> QueryExecuted:
            await take_turn(transaction, tenant)
            if (first := await first_result(transaction, call, arguments, QueryExecuted)) is not None:
                return first
            if change.token is not None:
                await _confirmed(transaction, call, change)
            records: list[Record] = []
            summary = await run(transaction, change.statement, change.parameters, _few(records, change.most))
            adopted = await self._adopt(transaction, tenant, named, summary.counters)
            result = executed(_found(records, Values(self._ontology, tenant, adopted), change.most))
            await entered(transaction, tenant, audit(_counted(summary.counters)))
            await keep_result(transaction, call, arguments, result)
            return result

        async with self._turns.of(tenant), self._names.perhaps_new(named), self._queries.place():
            return await self._bolt.write(work, self._bolt.query_timeout)

    async def ask_to_confirm(self, call: Call, digest: str) -> str:
        """A token for one statement; see the port."""
        await self._schema.declared()
        token = uuid4().hex

        async def work(transaction: Transaction) -> None:
            await transaction.rows(_TOKEN, key=_key(call, token), arguments=digest, at=time.time())

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
            raise QueryRefused(_OF_THE_TWIN, field="cypher_query")
        if counters.properties_set:
            for label in sorted(named & self._taken.labels):
                if (await transaction.rows(_MARKED % label, tenant=tenant))[0]["found"]:
                    raise QueryRefused(_OF_THE_TWIN, field="cypher_query")
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


def _few(records: list[Record], most: int) -> Callable[[Record], bool]:
    """Takes records into `records`, and one more than `most` of them, so that it can be told that there were more."""

    def take(record: Record) -> bool:
        records.append(record)
        return len(records) <= most

    return take


def _found(records: list[Record], values: Values, most: int) -> Found:
    rows = Rows(values, most)
    for record in records:
        if not rows.take(record):
            break
    return rows.found()


async def _confirmed(transaction: Transaction, call: Call, change: Change) -> None:
    """Spend the token of a confirmed statement, in the statement's transaction: it confirms once.

    Raises:
        Conflict: it is another's, another statement's, too old, or spent.
    """
    key = _key(call, change.token or "")
    found = await transaction.rows(_CONFIRM, key=key)
    if not found or found[0]["arguments"] != change.digest or time.time() - found[0]["at"] > _FRESH:
        raise Conflict("this token confirms nothing; send the statement without it, and confirm it anew", field="confirm_token")
    await transaction.rows(_SPENT, key=key)


def _key(call: Call, token: str) -> str:
    return f"{call.who.tenant}/{call.who.user}/confirm/{token}"


def _counted(counters: SummaryCounters) -> dict[str, int]:
    names = ("nodes_created", "nodes_deleted", "relationships_created", "relationships_deleted", "properties_set")
    return {name: count for name in names if (count := getattr(counters, name))}
