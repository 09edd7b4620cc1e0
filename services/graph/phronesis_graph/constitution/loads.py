"""What the graph service does with a part of a whole graph, loaded or restored.

Each node and relationship held to the registry, then written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from uuid import uuid4

from phronesis_bus import Call, audit_entry
from phronesis_contracts import Forbidden, Role
from phronesis_contracts.constitution.maintenance import RESTORE_GRAPH, GraphRestored, RestoreGraph
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode
from phronesis_contracts.constitution.writes import (
    LOAD_TOOL,
    ConstitutionLoaded,
    LoadConstitution,
    LoadNode,
    NodeWritten,
    RegistryRefused,
)
from phronesis_contracts.orchestrator import Audited

from .guardrails import RuleCache
from .ports import ConstitutionLoads, ConstitutionRestores, Order
from .records import node_content
from .validation import changed_fields, check_relationship_name, find_type, merge_content, node_fields
from .writes import build_node, digest, sign_provenance


class LoadHandlers:
    """Takes parts of a graph.

    Args:
        store: where the graph is.
        ruling: the rules of each tenant.
        wake: tells the relay that there is news.
    """

    def __init__(self, store: ConstitutionLoads, ruling: RuleCache, wake: Callable[[], None]) -> None:
        self._store = store
        self._ruling = ruling
        self._wake = wake

    async def load(self, call: Call, request: LoadConstitution) -> ConstitutionLoaded:
        """Write one part, all of it or nothing.

        Raises:
            RegistryRefused: a node or a relationship is none that the registry allows; `field` names which.
            NotFound: an end of a relationship is no node of the tenant.
        """
        _check_unique([node.id for node in request.nodes], "nodes")
        for number, link in enumerate(request.relationships):
            check_relationship_name(link.type)
            if link.from_id == link.to_id:
                raise RegistryRefused("a node is not joined to itself", field=f"relationships.{number}.toId")
        now = datetime.now(UTC)

        def decide(before: Mapping[str, ConstitutionNode]) -> list[NodeWritten]:
            return [_decide_node(call, now, number, node, before.get(node.id)) for number, node in enumerate(request.nodes)]

        def entry(done: ConstitutionLoaded) -> Audited:
            return audit_entry(call.who, LOAD_TOOL.name, done.model_dump())

        links = [ConstitutionLink(id=str(uuid4()), **link.model_dump(by_alias=False)) for link in request.relationships]
        order = Order(call, digest(LOAD_TOOL.name, request))
        done = await self._store.load(order, request.remove, [node.id for node in request.nodes], decide, links, entry)
        self._ruling.drop(call.who.tenant)
        self._wake()
        return done


def _check_unique(ids: list[str], field: str) -> None:
    seen: set[str] = set()
    for number, id in enumerate(ids):
        if id in seen:
            raise RegistryRefused("an id stands twice in one part", field=f"{field}.{number}.id")
        seen.add(id)


def _decide_node(call: Call, now: datetime, number: int, node: LoadNode, old: ConstitutionNode | None) -> NodeWritten:
    """What becomes of one node; a refusal says which of the part it is."""
    where = f"nodes.{number}"
    try:
        kind = find_type(node.type)
        given = node_fields(node.model_dump(by_alias=True, exclude_unset=True, exclude={"type"}))
        if old is not None and old.type != kind.name:
            raise RegistryRefused(f"{old.id} is a {old.type}", field="type")
        before = {} if old is None else node_content(old)
        after = merge_content(kind, before, given)
    except RegistryRefused as error:
        raise RegistryRefused(error.detail, field=f"{where}.{error.field}" if error.field else where) from error
    changed = changed_fields(before, after)
    if old is not None and not changed:
        return NodeWritten(node=old)
    if old is None:
        after["provenance"] = sign_provenance(call, now, after.get("provenance", {}))
    begun = now if old is None else old.created_at or now
    version = 1 if old is None else (old.version or 0) + 1
    return NodeWritten(node=build_node(kind, node.id, after, begun, now, version), changed=changed)


class RestoreHandlers:
    """Takes the parts of a restore.

    Args:
        store: where the graph is.
        ruling: the rules of each tenant.
        wake: tells the relay that there is news.
    """

    def __init__(self, store: ConstitutionRestores, ruling: RuleCache, wake: Callable[[], None]) -> None:
        self._store = store
        self._ruling = ruling
        self._wake = wake

    async def restore(self, call: Call, request: RestoreGraph) -> GraphRestored:
        """Write one part, and with the last one remove what stood in none.

        Raises:
            Forbidden: the caller is no admin.
            RegistryRefused: a node or a relationship is none that the registry knows.
            BadRequest: an end of a relationship stands in no part so far.
        """
        if call.who.role is not Role.ADMIN:
            raise Forbidden(f"role {call.who.role} may not restore the graph")
        for link in request.relationships:
            check_relationship_name(link.type)
        part = request.model_copy(update={"nodes": tuple(map(_check_node, request.nodes))})

        def entry(done: GraphRestored) -> Audited:
            which = {"restore_id": request.restore_id, "last": request.last}
            return audit_entry(call.who, RESTORE_GRAPH.subject, {**which, **done.model_dump()})

        order = Order(call, digest(RESTORE_GRAPH.subject, request))
        done = await self._store.restore(order, part, entry)
        self._ruling.drop(call.who.tenant)
        self._wake()
        return done


def _check_node(node: ConstitutionNode) -> ConstitutionNode:
    kind, given = find_type(node.type), node_content(node)
    kept = {"provenance": given.pop("provenance", None)}
    content = merge_content(kind, {name: bag for name, bag in kept.items() if bag}, given)
    known = {"id": node.id, "type": kind.name, "layer": kind.layer, "version": node.version or 1}
    times = {"createdAt": node.created_at, "updatedAt": node.updated_at}
    return ConstitutionNode.model_validate({**content, **known, **times})
