"""What the graph service does with messages about the twin.

Upserts, nodes, reading statements, surveys, chains, gaps and names; and about the links of users' items.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable

from phronesis_bus import Call, News, audit_entry
from phronesis_contracts import BadRequest, ServiceError, TooLarge
from phronesis_contracts.memory import ItemsForgotten, KnowledgeStored
from phronesis_contracts.principal import Principal
from phronesis_contracts.twin import (
    READ_CYPHER_TOOL,
    UPSERT_TOOL,
    ChainPath,
    ChainRun,
    CypherRows,
    Diagnosed,
    DiagnoseGaps,
    Entities,
    Expand,
    Expanded,
    FindEntities,
    NodeKeys,
    Nodes,
    QueryRefused,
    ReadCypher,
    RunChain,
    Survey,
    Surveyed,
    Upsert,
    Upserted,
)

from ..links.items import check_links
from .chains import Walks, choose_walk
from .diagnosis import Diagnosis
from .entities import find_best
from .ontology import Ontology, suggest_nearest
from .ports import KnowledgeStore, QueryStore, ReasoningStore, StatementCheck, TwinStore, redact_literals
from .upserts import plan_batch

LONGEST_ANSWER = 1_500_000
"""Bytes of texts in one answer; the broker takes no message over 2 MiB."""
_AUDITED_ENTRIES = 5


class TwinHandlers:
    """One method for each message."""

    def __init__(self, ontology: Ontology, twin: TwinStore, knowledge: KnowledgeStore, wake: Callable[[], None]) -> None:
        self._ontology = ontology
        self._twin = twin
        self._knowledge = knowledge
        self._wake = wake

    async def upsert(self, call: Call, request: Upsert) -> Upserted:
        """Check a batch against the ontology and write it whole, with its news.

        Raises:
            BadRequest: the batch breaks the ontology; nothing is written.
        """
        batch = plan_batch(self._ontology, call.who.tenant, request)
        arguments = hashlib.sha256(request.model_dump_json().encode()).hexdigest()
        result = await self._twin.upsert(call, arguments, batch, audit_entry(call.who, UPSERT_TOOL.name, _summarize(request)))
        self._wake()
        return result

    async def nodes(self, call: Call, request: NodeKeys) -> Nodes:
        """The nodes of the caller's tenant that exist.

        Raises:
            TooLarge: their texts do not fit into one answer; ask for fewer.
        """
        found = await self._twin.nodes(call.who.tenant, request.keys)
        if sum(len(text.text.encode()) for node in found for text in node.texts) > LONGEST_ANSWER:
            raise TooLarge("the texts of these nodes do not fit into one answer", field="keys")
        return Nodes(nodes=tuple(found))

    async def expand(self, call: Call, request: Expand) -> Expanded:
        """Neighbours of the caller's knowledge items."""
        items = await self._knowledge.expand(call.who.tenant, call.who.user, request)
        return Expanded(items=tuple(items))

    async def on_item_stored(self, news: News, event: KnowledgeStored) -> None:
        """Take over stored knowledge items and their links.

        Raises:
            BadRequest: a link of a type that there is not.
        """
        check_links(event)
        await self._knowledge.store(news.tenant, event)

    async def on_item_forgotten(self, news: News, event: ItemsForgotten) -> None:
        """Remove forgotten knowledge items and their links."""
        await self._knowledge.forget(news.tenant, event)
        self._wake()


def _summarize(request: Upsert) -> dict[str, object]:
    return {
        "nodes": [node.key for node in request.nodes[:_AUDITED_ENTRIES]],
        "nodes_total": len(request.nodes),
        "relationships": [f"{r.source.key} {r.type} {r.target.key}" for r in request.relationships[:_AUDITED_ENTRIES]],
        "relationships_total": len(request.relationships),
    }


log = logging.getLogger(__name__)

MOST_ROWS = 500
AuditRefusal = Callable[[Principal, str, dict[str, object], ServiceError], Awaitable[None]]
"""Enters a refusal in the audit trail: who was refused, which tool, with which arguments, and why."""


class QueryHandlers:
    """One method for the one message."""

    def __init__(self, check: StatementCheck, queries: QueryStore, refuse: AuditRefusal) -> None:
        self._check = check
        self._queries = queries
        self._refuse = refuse

    async def read_cypher(self, call: Call, request: ReadCypher) -> CypherRows:
        """Read the twin of the caller's tenant with one statement, once the guard has let it through.

        Raises:
            QueryRefused: the guard or the store does not take it; the detail names the rule, and what to write instead.
            TimedOut: it took too long.
            TooLarge: a single row is larger than an answer may be.
            Busy: too many run already.
            Unavailable: the store is down.
        """
        await self._queries.ready()
        tenant, text = call.who.tenant, redact_literals(request.cypher_query)
        # Whom a query is about by this name, no caller chooses (NC-067).
        parameters = {**request.parameters, "user_id": call.who.user}
        try:
            allowed = await asyncio.to_thread(self._check, request.cypher_query, parameters, tenant)
            for warning in allowed.warnings:
                log.warning("a reading query could be better: %s; %s", warning, text)
            found = await self._queries.read(tenant, allowed.statement, allowed.parameters, MOST_ROWS)
        except QueryRefused as error:
            log.error("a reading query was refused: %s; %s", error.detail, text)
            await self._refuse(call.who, READ_CYPHER_TOOL.name, {"cypher_query": text, "parameters": request.parameters}, error)
            raise
        log.info("a reading query gave %d rows", len(found.rows))
        return CypherRows(rows=found.rows, truncated=found.truncated, warnings=allowed.warnings)


class ReasoningHandlers:
    """One method for each message. Everything is asked for in the caller's tenant."""

    def __init__(self, ontology: Ontology, walks: Walks, store: ReasoningStore) -> None:
        self._ontology = ontology
        self._walks = walks
        self._store = store

    async def survey(self, call: Call, request: Survey) -> Surveyed:
        """Count, add up, group or list nodes of one type.

        Raises:
            BadRequest: it names what the ontology has not; `field` is the path to the name.
            TooLarge: what is to be shown does not fit into one answer.
        """
        return await self._store.survey(call.who.tenant, request)

    async def run_chain(self, call: Call, request: RunChain) -> ChainRun:
        """Walk a chain within one year and level; where nothing reaches its end, the walks that stop on the way.

        Raises:
            BadRequest: there is no such chain, or no such node type to begin at.
        """
        walk = choose_walk(self._walks, request.chain, request.start_type, "chain", "start_type")
        found = await self._store.paths(call.who.tenant, walk, request)
        return found.model_copy(update={"paths": tuple(sorted(found.paths, key=_longest_first_key))})

    async def diagnose_gaps(self, call: Call, request: DiagnoseGaps) -> Diagnosed:
        """Which of the questions have a gap, and which one.

        Raises:
            BadRequest: a question names what the ontology has not; `field` is the path to the name.
        """
        return await Diagnosis(self._ontology, self._walks, self._store, call.who.tenant).of(request.questions)

    async def find_entities(self, call: Call, request: FindEntities) -> Entities:
        """Nodes by name, those of several years as one.

        Raises:
            BadRequest: a node type that there is not.
        """
        for i, type in enumerate(request.types):
            if type not in self._ontology.nodes:
                raise BadRequest(f"no such node type{suggest_nearest(type, self._ontology.nodes)}", field=f"types.{i}")
        found = await self._store.named(call.who.tenant, request.types, request.text, request.year)
        return Entities(entities=find_best(request.text, found, request.limit))


def _longest_first_key(path: ChainPath) -> tuple[int, list[str]]:
    return -len(path.nodes), [node.id for node in path.nodes]
