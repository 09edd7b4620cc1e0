"""The handlers of the twin: upserts, nodes, reading statements, surveys, chains, gaps and names."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from phronesis_bus import Call, audit_entry
from phronesis_contracts import BadRequest, TooLarge
from phronesis_contracts import twin as contract
from phronesis_contracts.ontology import AskVocabulary, OntologyView, Vocabulary

from ..bolt.writes import digest
from .chains import Walks, choose_walk
from .diagnosis import Diagnosis
from .entities import find_best
from .ontology import Ontology, suggest_nearest
from .ports import (
    MOST_ROWS,
    AuditRefusal,
    QueryStore,
    ReasoningStore,
    StatementCheck,
    TwinStore,
    VocabularyStore,
    redact_literals,
)
from .upserts import plan_batch
from .vocabulary import to_names

LONGEST_ANSWER = 1_500_000
"""Bytes of texts in one answer; the broker takes no message over 2 MiB."""
_AUDITED_ENTRIES = 5


class TwinHandlers:
    """One method for each message."""

    def __init__(self, ontology: Ontology, twin: TwinStore, wake: Callable[[], None]) -> None:
        self._ontology, self._twin, self._wake = ontology, twin, wake

    async def upsert(self, call: Call, request: contract.Upsert) -> contract.Upserted:
        """Check a batch against the ontology and write it whole, with its news, or nothing. Raises `BadRequest`."""
        batch = plan_batch(self._ontology, call.who.tenant, request)
        arguments = digest(request.model_dump_json())
        result = await self._twin.upsert(
            call, arguments, batch, audit_entry(call.who, contract.UPSERT_TOOL.name, _summarize(request))
        )
        self._wake()
        return result

    async def nodes(self, call: Call, request: contract.NodeKeys) -> contract.Nodes:
        """The nodes of the caller's tenant that exist. Raises `TooLarge`: their texts do not fit; ask for fewer."""
        found = await self._twin.nodes(call.who.tenant, request.keys)
        if sum(len(text.text.encode()) for node in found for text in node.texts) > LONGEST_ANSWER:
            raise TooLarge("the texts of these nodes do not fit into one answer", field="keys")
        return contract.Nodes(nodes=tuple(found))


def _summarize(request: contract.Upsert) -> dict[str, object]:
    return {
        "nodes": [node.key for node in request.nodes[:_AUDITED_ENTRIES]],
        "nodes_total": len(request.nodes),
        "relationships": [f"{r.source.key} {r.type} {r.target.key}" for r in request.relationships[:_AUDITED_ENTRIES]],
        "relationships_total": len(request.relationships),
    }


log = logging.getLogger(__name__)


class QueryHandlers:
    """One method for the one message."""

    def __init__(self, check: StatementCheck, queries: QueryStore, refuse: AuditRefusal) -> None:
        self._check, self._queries, self._refuse = check, queries, refuse

    async def read_cypher(self, call: Call, request: contract.ReadCypher) -> contract.CypherRows:
        """Read the twin of the caller's tenant with one statement, once the guard has let it through.

        Raises `QueryRefused` (the guard or the store does not take it; the detail names the rule, and what to write instead),
        `TimedOut` (it took too long), `TooLarge` (a single row is larger than an answer may be), `Busy` (too many run already),
        `Unavailable` (the store is down).
        """
        await self._queries.ready()
        tenant, text = call.who.tenant, redact_literals(request.cypher_query)
        # Whom a query is about by this name, no caller chooses.
        parameters = {**request.parameters, "user_id": call.who.user}
        try:
            allowed = await asyncio.to_thread(self._check, request.cypher_query, parameters, tenant)
            for warning in allowed.warnings:
                log.warning("a reading query could be better: %s; %s", warning, text)
            found = await self._queries.read(tenant, allowed.statement, allowed.parameters, MOST_ROWS)
        except contract.QueryRefused as error:
            log.error("a reading query was refused: %s; %s", error.detail, text)
            await self._refuse(
                call.who, contract.READ_CYPHER_TOOL.name, {"cypher_query": text, "parameters": request.parameters}, error
            )
            raise
        log.info("a reading query gave %d rows", len(found.rows))
        return contract.CypherRows(rows=found.rows, truncated=found.truncated, warnings=allowed.warnings)


class ReasoningHandlers:
    """One method for each message. Everything is asked for in the caller's tenant."""

    def __init__(self, ontology: Ontology, walks: Walks, store: ReasoningStore) -> None:
        self._ontology, self._walks, self._store = ontology, walks, store

    async def survey(self, call: Call, request: contract.Survey) -> contract.Surveyed:
        """Count, add up, group or list nodes of one type. Raises `BadRequest` (`field` is the path), `TooLarge`."""
        return await self._store.survey(call.who.tenant, request)

    async def links(self, call: Call, request: contract.LinksOf) -> contract.Links:
        """What nodes are linked to; a node that is not there has no links. Raises `BadRequest`: a name that there is not."""
        for i, key in enumerate(request.keys):
            _check_name("node type", key.split("/", 1)[0], self._ontology.nodes, f"keys.{i}")
        for i, name in enumerate(request.relationships):
            _check_name("relationship type", name, self._ontology.relationships, f"relationships.{i}")
        for i, name in enumerate(request.types):
            _check_name("node type", name, self._ontology.nodes, f"types.{i}")
        return await self._store.links(call.who.tenant, request)

    async def run_chain(self, call: Call, request: contract.RunChain) -> contract.ChainRun:
        """Walk a chain within one year and level, else the walks that stop on the way. Raises `BadRequest`."""
        walk = choose_walk(self._walks, request.chain, request.start_type, "chain", "start_type")
        found = await self._store.paths(call.who.tenant, walk, request)
        return found.model_copy(update={"paths": tuple(sorted(found.paths, key=_longest_first_key))})

    async def diagnose_gaps(self, call: Call, request: contract.DiagnoseGaps) -> contract.Diagnosed:
        """Which of the questions have a gap, and which one. Raises `BadRequest`: `field` is the path to what is unknown."""
        return await Diagnosis(self._ontology, self._walks, self._store, call.who.tenant).of(request.questions)

    async def find_entities(self, call: Call, request: contract.FindEntities) -> contract.Entities:
        """Nodes by name, those of several years as one. Raises `BadRequest`: a node type that there is not."""
        for i, type in enumerate(request.types):
            _check_name("node type", type, self._ontology.nodes, f"types.{i}")
        found = await self._store.named(call.who.tenant, request.types, request.text, request.year)
        return contract.Entities(entities=find_best(request.text, found, request.limit))


class VocabularyHandlers:
    """One method for the one message."""

    def __init__(self, ontology: Ontology, view: OntologyView, store: VocabularyStore) -> None:
        self._ontology, self._view, self._store = ontology, view, store

    async def vocabulary(self, call: Call, request: AskVocabulary) -> Vocabulary:
        """A page of what the caller's twin is told with. Raises `BadRequest`: `after` is the end of no page."""
        tenant = call.who.tenant
        page = await self._store.names(tenant, self._ontology, request)
        told = Vocabulary(version=self._view.version, ontology=self._view, names=to_names(page.rows), next=page.next)
        if request.after is not None:
            return told
        summary = await self._store.summary(tenant, self._ontology)
        return told.model_copy(update={"years": summary.years, "values": summary.values})


def _check_name(what: str, name: str, known: Mapping[str, object], field: str) -> None:
    if name not in known:
        raise BadRequest(f"no such {what}{suggest_nearest(name, known)}", field=field)


def _longest_first_key(path: contract.ChainPath) -> tuple[int, list[str]]:
    return -len(path.nodes), [node.id for node in path.nodes]
