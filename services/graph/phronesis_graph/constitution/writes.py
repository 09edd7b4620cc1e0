"""What the graph service does with each write of a node or a relationship.

Sort it, hold it against registry and rules, and write it; and what the rules would say to one.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import uuid4

from phronesis_bus import Call, audit_entry
from phronesis_contracts import Conflict, Message, Principal, Role, ServiceError
from phronesis_contracts.constitution import writes
from phronesis_contracts.constitution.insight import CheckPolicy, PolicyChecked
from phronesis_contracts.constitution.registry import RELATIONSHIPS, TYPES, Layer, NodeType
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode
from phronesis_contracts.constitution.writes import (
    GuardrailHit,
    NodeDeletedForGood,
    NodeWritten,
    RegistryRefused,
    Related,
    Unrelated,
)
from phronesis_contracts.orchestrator import Audited

from .guardrails import RULE_TYPES, Rule, RuleCache, allow, find_hits, subject_of
from .ports import ConstitutionLinks, ConstitutionNodes, Ends, Order
from .records import format_time, node_content, normalize_value
from .validation import (
    PROVENANCE_FIELDS,
    changed_fields,
    check_cycle,
    check_ends,
    check_relationship_name,
    check_writer,
    find_type,
    merge_content,
    node_fields,
)

AuditRefusal = Callable[[Principal, str, dict[str, Any], ServiceError], Awaitable[None]]
"""Enters a refusal in the audit trail."""


class NodeHandlers:
    """One method for each kind of write.

    Args:
        nodes: where nodes are.
        ruling: the rules of each tenant.
        refuse: enters a refusal in the audit trail.
        wake: tells the relay that there is news.
    """

    def __init__(self, nodes: ConstitutionNodes, ruling: RuleCache, refuse: AuditRefusal, wake: Callable[[], None]) -> None:
        self._nodes = nodes
        self._ruling = ruling
        self._refuse = refuse
        self._wake = wake

    async def create(self, kind: NodeType, call: Call, request: writes.CreateConstitutionNode) -> NodeWritten:
        """Create a node of a type.

        Raises:
            RegistryRefused: the registry does not allow it.
            GuardrailHit: it breaks a rule that blocks, or one that was not acknowledged.
            Conflict: the id is taken, or the request id was used for something else.
        """
        name, given, now = writes.CREATE[kind.name].name, request.model_dump(by_alias=True), datetime.now(UTC)
        content = merge_content(kind, {}, node_fields(given))
        named = tuple(content)
        content["provenance"] = sign_provenance(call, now, content.get("provenance", {}))
        node = build_node(kind, request.id or str(uuid4()), content, now, now, 1)
        rules = await self._rules(call, kind)
        async with self._entered(call, name, given):
            acknowledged = allow(find_hits(rules, subject_of(kind.name, content)), request.acknowledge)
        result = NodeWritten(
            node=node, changed=named, embedding_state=_embedding_state(kind, set(kind.text)), acknowledged=acknowledged
        )
        order = Order(call, digest(name, request), request.request_id)
        entry = audit_entry(call.who, name, {**given, "id": node.id})
        return self._written(call, await self._nodes.create(order, result, entry))

    async def update(self, kind: NodeType, call: Call, request: writes.UpdateConstitutionNode) -> NodeWritten:
        """Change a node of a type.

        Raises:
            RegistryRefused: it is of another type, or the registry does not allow the change.
            GuardrailHit: as for `create`, of the rules that what changes is read by.
            NotFound: there is none.
            Conflict: it has another version by now.
        """
        return await self._change(writes.UPDATE[kind.name].name, kind, call, request)

    async def update_node(self, call: Call, request: writes.UpdateAnyNode) -> NodeWritten:
        """Change a node of whatever type; raises as `update` does, and `Forbidden` where the caller may not write its layer."""
        return await self._change(writes.UPDATE_NODE_TOOL.name, None, call, request, request.fields)

    async def delete_node(self, call: Call, request: writes.DeleteConstitutionNode) -> NodeDeletedForGood:
        """Remove a node for good, with its relationships.

        Raises:
            NotFound: there is none.
        """
        name = writes.DELETE_CONSTITUTION_NODE_TOOL.name

        def entry(gone: NodeDeletedForGood) -> Audited:
            return audit_entry(call.who, name, gone.model_dump())

        gone = await self._nodes.delete(Order(call, digest(name, request)), request.id, entry)
        self._dropped(call, gone.type)
        return gone

    async def _change(
        self,
        name: str,
        kind: NodeType | None,
        call: Call,
        request: writes.UpdateConstitutionNode,
        fields: Mapping[str, Any] | None = None,
    ) -> NodeWritten:
        given = request.model_dump(by_alias=True)
        rules = await self._rules(call, kind)

        def decide(node: ConstitutionNode) -> NodeWritten:
            _check_expected(node, kind, request)
            check_writer(call.who.role, node.layer)
            return _change_node(node, {**(fields or {}), **node_fields(given)}, rules, request.acknowledge)

        def entry(result: NodeWritten) -> Audited:
            return audit_entry(call.who, name, {**given, "changed": result.changed, "version": result.node.version})

        async with self._entered(call, name, given):
            result = await self._nodes.change(Order(call, digest(name, request)), request.id, decide, entry)
        return self._written(call, result)

    async def _rules(self, call: Call, kind: NodeType | None) -> tuple[Rule, ...]:
        if call.who.role is Role.ADMIN or (kind is not None and kind.layer is Layer.FOUNDATION):
            return ()
        return await self._ruling.of(call.who.tenant)

    @asynccontextmanager
    async def _entered(self, call: Call, name: str, given: Mapping[str, Any]) -> AsyncIterator[None]:
        """Enter in the audit trail what a rule does not let through."""
        try:
            yield
        except GuardrailHit as error:
            await self._refuse(call.who, name, {**given, "reason": error.detail}, error)
            raise

    def _written(self, call: Call, result: NodeWritten) -> NodeWritten:
        self._dropped(call, result.node.type)
        return result

    def _dropped(self, call: Call, type_name: str) -> None:
        if type_name in RULE_TYPES:
            self._ruling.drop(call.who.tenant)
        self._wake()


def digest(name: str, request: Message) -> str:
    """What tells two calls of a tool apart."""
    return hashlib.sha256(f"{name} {request.model_dump_json()}".encode()).hexdigest()


def _check_expected(node: ConstitutionNode, kind: NodeType | None, request: writes.UpdateConstitutionNode) -> None:
    if kind is not None and node.type != kind.name:
        raise RegistryRefused(f"{node.id} is a {node.type}; {node.type}.update.v1 changes it", field="id")
    if request.version not in (None, node.version):
        raise Conflict(f"it has version {node.version} by now, and not {request.version}", field="version")


def _change_node(
    node: ConstitutionNode, given: Mapping[str, Any], rules: tuple[Rule, ...], acknowledge: tuple[str, ...]
) -> NodeWritten:
    kind, before = TYPES[node.type], node_content(node)
    after = merge_content(kind, before, given)
    changed = changed_fields(before, after)
    embedding = _embedding_state(kind, set(changed))
    if not changed:
        return NodeWritten(node=node, embedding_state=embedding)
    held_to = () if kind.layer is Layer.FOUNDATION else rules
    acknowledged = allow(find_hits(held_to, subject_of(kind.name, after), frozenset(changed)), acknowledge)
    now = datetime.now(UTC)
    new = build_node(kind, node.id, after, node.created_at or now, now, (node.version or 0) + 1)
    return NodeWritten(node=new, changed=changed, embedding_state=embedding, acknowledged=acknowledged)


def build_node(
    kind: NodeType, id: str, content: Mapping[str, Any], begun: datetime, now: datetime, version: int
) -> ConstitutionNode:
    """A node of a type with its content, and what the service keeps of it."""
    known = {"id": id, "type": kind.name, "layer": kind.layer, "createdAt": begun, "updatedAt": now, "version": version}
    return ConstitutionNode.model_validate({**content, **known})


def sign_provenance(call: Call, now: datetime, given: Mapping[str, Any]) -> dict[str, Any]:
    """A provenance with what the service says in front (O-348)."""
    own = dict(zip(PROVENANCE_FIELDS, (call.who.user, call.who.role.value, call.service, format_time(now)), strict=True))
    return {**own, **given}


def _embedding_state(kind: NodeType, changed: set[str]) -> str:
    if kind.tier is None:
        return "none"
    return "pending" if changed & set(kind.text) else "current"


class RelationshipHandlers:
    """One method for each message.

    Args:
        links: where relationships are.
        wake: tells the relay that there is news.
    """

    def __init__(self, links: ConstitutionLinks, wake: Callable[[], None]) -> None:
        self._links = links
        self._wake = wake

    async def relate(self, call: Call, request: writes.Relate) -> Related:
        """Make a relationship, or give the one that there is.

        Raises:
            RegistryRefused: its type does not lead from the one end to the other, or it would close a chain.
            Forbidden: the caller may not write the node that it leads from.
            NotFound: an end is no node of the tenant.
        """
        check_relationship_name(request.type)
        if request.from_id == request.to_id:
            raise RegistryRefused("a node is not joined to itself", field="toId")

        def check(ends: Ends) -> None:
            check_writer(call.who.role, ends.source.layer)
            check_ends(request.type, ends.source, ends.target)

        declared = RELATIONSHIPS.get(request.type)
        cycle = partial(check_cycle, request.type) if declared is not None and declared.acyclic else None
        name, wanted = writes.RELATE_TOOL.name, ConstitutionLink(id=str(uuid4()), **request.model_dump(by_alias=False))
        entry = audit_entry(call.who, name, {"id": wanted.id, **request.model_dump()})
        made = await self._links.relate(Order(call, digest(name, request)), wanted, check, cycle, entry)
        self._wake()
        return made

    async def unrelate(self, call: Call, request: writes.Unrelate) -> Unrelated:
        """Remove a relationship.

        Raises:
            Forbidden: the caller may not write the node that it leads from.
            NotFound: the tenant has no such relationship.
        """
        name = writes.UNRELATE_TOOL.name

        def check(layer: Layer) -> None:
            check_writer(call.who.role, layer)

        def entry(gone: ConstitutionLink) -> Audited:
            return audit_entry(call.who, name, gone.model_dump())

        gone = await self._links.unrelate(Order(call, digest(name, request)), request.id, check, entry)
        self._wake()
        return gone


class PolicyHandlers:
    """Answers before a decision is made.

    Args:
        ruling: the rules of each tenant.
    """

    def __init__(self, ruling: RuleCache) -> None:
        self._ruling = ruling

    async def check_policy(self, call: Call, request: CheckPolicy) -> PolicyChecked:
        """The rules that a text, or a node of some type with these fields, would go against.

        Raises:
            RegistryRefused: there is no such type, or a field is none of its kind.
        """
        kind = find_type(request.type) if request.type else None
        fields = dict(request.fields)
        for one in kind.properties if kind else ():
            if fields.get(one.name) is not None:
                fields[one.name] = normalize_value(one, fields[one.name])
        of = subject_of(kind.name if kind else None, fields, request.text)
        found = find_hits(await self._ruling.of(call.who.tenant), of)
        return PolicyChecked(hits=found, allowed=all(hit.severity != "block" for hit in found))
