"""What the graph service does with the six tools of the agents' knowledge. Each answers by its envelope, whatever is wrong."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar
from uuid import uuid4

from pydantic import ValidationError

from phronesis_bus import Call, audit_entry
from phronesis_contracts import (
    BadRequest,
    Conflict,
    Internal,
    KeyReused,
    NotFound,
    ServiceError,
    TimedOut,
    TooLarge,
    Unavailable,
)
from phronesis_contracts import knowledge_graph as contract
from phronesis_contracts.knowledge_graph import ConfirmationNeeded, Envelope, Given
from phronesis_contracts.orchestrator import Audited
from phronesis_contracts.twin import QueryRefused

from ..bolt.writes import digest
from ..twin.ports import MOST_ROWS, AuditRefusal, StatementCheck, redact_literals
from .model import KnowledgeNames, check_form, check_properties
from .ports import ChangeStatement, DeletedNode, KnowledgeStores, NewRelationship, query_envelope

_ADVICE: tuple[tuple[type[ServiceError], str], ...] = (
    (QueryRefused, "Change the statement and call again."),
    (TooLarge, "Ask for less and call again."),
    (BadRequest, "Correct the argument and call again."),
    (NotFound, "Find ids with search_nodes."),
    (KeyReused, "Use a key of its own for each call."),
    (Conflict, "Look at the present state and call again."),
    (Unavailable, "The database is unavailable at this moment: repeat the same call later, a write with the same key."),
    (TimedOut, "Narrow the call and repeat it, a write with the same key."),
)
_OTHER_ADVICE = "A repeat will hardly help: tell who runs the platform."


def failure_message(error: ServiceError) -> str:
    """The message of an envelope. It holds no text of the store: an error's detail never does."""
    advice = next((text for kind, text in _ADVICE if isinstance(error, kind)), _OTHER_ADVICE)
    where = f"{error.field}: " if error.field else ""
    return f"{where}{error.detail.rstrip('.')}. {advice}"


log = logging.getLogger(__name__)

E = TypeVar("E", bound=Envelope)


class KnowledgeHandlers:
    def __init__(
        self,
        names: KnowledgeNames,
        stores: KnowledgeStores,
        reading: StatementCheck,
        changing: StatementCheck,
        refuse: AuditRefusal,
        wake: Callable[[], None],
    ) -> None:
        self._names, self._stores, self._reading = names, stores, reading
        self._changing, self._refuse, self._wake = changing, refuse, wake

    async def create_node(self, call: Call, request: contract.CreateNode) -> contract.NodeCreated:

        async def work() -> contract.NodeCreated:
            form = check_form(request, contract.CreateNodeForm)
            label, values, id = self._names.label(form.label), check_properties(form.properties), str(uuid4())
            entry = audit_entry(call.who, "create_node", {"node_id": id, "label": label, "properties": values})
            return await self._stores.nodes.create(call, _digest(request), id, label, values, entry)

        return await self._answered(call, "create_node", request, work, contract.NodeCreated)

    async def create_relationship(self, call: Call, request: contract.CreateRelationship) -> contract.RelationshipCreated:

        async def work() -> contract.RelationshipCreated:
            form = check_form(request, contract.CreateRelationshipForm)
            kind, values = self._names.type(form.type), check_properties(form.properties)
            wanted = NewRelationship(str(uuid4()), form.from_node_id, form.to_node_id, kind, values)
            entry = audit_entry(call.who, "create_relationship", {"relationship_id": wanted.id, **form.model_dump()})
            return await self._stores.nodes.join(call, _digest(request), wanted, entry)

        return await self._answered(call, "create_relationship", request, work, contract.RelationshipCreated)

    async def query_graph(self, call: Call, request: contract.QueryGraph) -> contract.QueryExecuted:
        """Run a statement: a reading one at once, a changing one in one transaction, a dangerous one once it is confirmed."""

        async def work() -> contract.QueryExecuted:
            form = check_form(request, contract.QueryGraphForm)
            if not form.read_only:
                return await self._change(call, request, form)
            allowed = await asyncio.to_thread(self._reading, form.cypher_query, form.parameters, call.who.tenant)
            await self._stores.queries.ready()
            return query_envelope(
                await self._stores.queries.read(call.who.tenant, allowed.statement, allowed.parameters, MOST_ROWS)
            )

        return await self._answered(call, "query_graph", request, work, contract.QueryExecuted)

    async def search_nodes(self, call: Call, request: contract.SearchNodes) -> contract.NodesFound:

        async def work() -> contract.NodesFound:
            form = check_form(request, contract.SearchNodesForm)
            label = None if form.label is None else self._names.searched(form.label)
            wanted = check_properties(form.properties)
            found = await self._stores.nodes.search(call.who.tenant, label, wanted, form.limit)
            count = f"{len(found)} node{'' if len(found) == 1 else 's'}"
            return contract.NodesFound(success=True, nodes=tuple(found), message=f"Search executed successfully: {count}.")

        return await self._answered(call, "search_nodes", request, work, contract.NodesFound)

    async def get_node_details(self, call: Call, request: contract.GetNodeDetails) -> contract.NodeDetails:

        async def work() -> contract.NodeDetails:
            form = check_form(request, contract.GetNodeDetailsForm)
            found = await self._stores.nodes.details(call.who.tenant, form.node_id)
            if found is None:
                raise NotFound("the node was not found", field="node_id")
            return contract.NodeDetails(success=True, node=found, message="Node details retrieved successfully.")

        return await self._answered(call, "get_node_details", request, work, contract.NodeDetails)

    async def delete_node(self, call: Call, request: contract.DeleteNode) -> contract.NodeDeleted:

        async def work() -> contract.NodeDeleted:
            form = check_form(request, contract.DeleteNodeForm)
            if not form.force_delete:
                raise BadRequest("the node was left as it is: only true deletes, for good", field="force_delete")

            def entry(gone: DeletedNode) -> Audited:
                lost = {"labels": gone.labels, "relationships": gone.relationships}
                return audit_entry(call.who, "delete_node", {"node_id": form.node_id, **lost})

            return await self._stores.nodes.delete(call, _digest(request), form.node_id, entry)

        return await self._answered(call, "delete_node", request, work, contract.NodeDeleted)

    async def _change(self, call: Call, request: Given, form: contract.QueryGraphForm) -> contract.QueryExecuted:
        verdict = await asyncio.to_thread(self._changing, form.cypher_query, form.parameters, call.who.tenant)
        stated = {"cypher_query": redact_literals(form.cypher_query), "parameters": form.parameters}
        own = digest(json.dumps([form.cypher_query, form.parameters], sort_keys=True))
        if verdict.dangerous is not None and form.confirm_token is None:
            given = await self._stores.changes.ask_to_confirm(call, own)
            raise ConfirmationNeeded(f"the statement is dangerous and was not run: {verdict.dangerous}", token=given)
        # A token that nothing asked for is not spent.
        token = form.confirm_token if verdict.dangerous is not None else None
        change = ChangeStatement(verdict.statement, verdict.parameters, own, token, MOST_ROWS)

        def entry(changed: Mapping[str, int]) -> Audited:
            return audit_entry(call.who, "query_graph", {**stated, "read_only": False, "changed": dict(changed)})

        return await self._stores.changes.run(call, _digest(request), change, entry)

    async def _answered(self, call: Call, tool: str, request: Given, work: Callable[[], Awaitable[E]], envelope: type[E]) -> E:
        try:
            result = await work()
        except ValidationError:
            log.exception("%s would have answered with something that is no answer", tool)
            return await self._failed(call, tool, request, Internal("the answer was withheld"), envelope)
        except ServiceError as error:
            log.warning("%s failed: %s at %s", tool, error.code, error.field)
            return await self._failed(call, tool, request, error, envelope)
        self._wake()
        return result

    async def _failed(self, call: Call, tool: str, request: Given, error: ServiceError, envelope: type[E]) -> E:
        given = dict(request.model_extra or {})
        if isinstance(query := given.get("cypher_query"), str):
            given["cypher_query"] = redact_literals(query)
        await self._refuse(call.who, tool, {"reason": error.detail, **given}, error)
        more = f" To run it, repeat the call with confirm_token {error.token}." if isinstance(error, ConfirmationNeeded) else ""
        return envelope(success=False, message=failure_message(error) + more)


def _digest(request: Given) -> str:
    return digest(json.dumps(request.model_extra, sort_keys=True))
