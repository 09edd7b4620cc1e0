"""What the graph service does with each write of a node: sort it, hold it against registry and rules, and write it."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from phronesis_bus import Call, audited
from phronesis_contracts import Conflict, Message, Principal, Role, ServiceError
from phronesis_contracts.constitution import writes
from phronesis_contracts.constitution.kinds import Layer, NodeType
from phronesis_contracts.constitution.registry import TYPES
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_contracts.constitution.writes import GuardrailHit, NodeDeletedForGood, NodeWritten, RegistryRefused
from phronesis_contracts.orchestrator import Audited

from .checking import OWN_WORDS, differing, merged, told
from .guardrails import RULES, Rule, allow, hits, subject
from .joining import check_writer
from .ports import ConstitutionNodes, Order
from .records import content_of, moment
from .ruling import Ruling

Refuse = Callable[[Principal, str, dict[str, Any], ServiceError], Awaitable[None]]
"""Enters a refusal in the audit trail."""


class Writing:
    """One method for each kind of write.

    Args:
        nodes: where nodes are.
        ruling: the rules of each tenant.
        refuse: enters a refusal in the audit trail.
        wake: tells the relay that there is news.
    """

    def __init__(self, nodes: ConstitutionNodes, ruling: Ruling, refuse: Refuse, wake: Callable[[], None]) -> None:
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
        content = merged(kind, {}, told(given))
        named = tuple(content)
        content["provenance"] = signed(call, now, content.get("provenance", {}))
        node = made(kind, request.id or str(uuid4()), content, now, now, 1)
        rules = await self._rules(call, kind)
        async with self._entered(call, name, given):
            acknowledged = allow(hits(rules, subject(kind.name, content)), request.acknowledge)
        result = NodeWritten(
            node=node, changed=named, embedding_state=_embedding(kind, set(kind.text)), acknowledged=acknowledged
        )
        order = Order(call, digest(name, request), request.request_id)
        entry = audited(call.who, name, {**given, "id": node.id})
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
            return audited(call.who, name, gone.model_dump())

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
            _expected(node, kind, request)
            check_writer(call.who.role, node.layer)
            return _changed(node, {**(fields or {}), **told(given)}, rules, request.acknowledge)

        def entry(result: NodeWritten) -> Audited:
            return audited(call.who, name, {**given, "changed": result.changed, "version": result.node.version})

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
        if type_name in RULES:
            self._ruling.drop(call.who.tenant)
        self._wake()


def digest(name: str, request: Message) -> str:
    """What tells two calls of a tool apart."""
    return hashlib.sha256(f"{name} {request.model_dump_json()}".encode()).hexdigest()


def _expected(node: ConstitutionNode, kind: NodeType | None, request: writes.UpdateConstitutionNode) -> None:
    if kind is not None and node.type != kind.name:
        raise RegistryRefused(f"{node.id} is a {node.type}; {node.type}.update.v1 changes it", field="id")
    if request.version not in (None, node.version):
        raise Conflict(f"it has version {node.version} by now, and not {request.version}", field="version")


def _changed(
    node: ConstitutionNode, given: Mapping[str, Any], rules: tuple[Rule, ...], acknowledge: tuple[str, ...]
) -> NodeWritten:
    kind, before = TYPES[node.type], content_of(node)
    after = merged(kind, before, given)
    changed = differing(before, after)
    embedding = _embedding(kind, set(changed))
    if not changed:
        return NodeWritten(node=node, embedding_state=embedding)
    held_to = () if kind.layer is Layer.FOUNDATION else rules
    acknowledged = allow(hits(held_to, subject(kind.name, after), frozenset(changed)), acknowledge)
    now = datetime.now(UTC)
    new = made(kind, node.id, after, node.created_at or now, now, (node.version or 0) + 1)
    return NodeWritten(node=new, changed=changed, embedding_state=embedding, acknowledged=acknowledged)


def made(kind: NodeType, id: str, content: Mapping[str, Any], begun: datetime, now: datetime, version: int) -> ConstitutionNode:
    """A node of a type with its content, and what the service keeps of it."""
    known = {"id": id, "type": kind.name, "layer": kind.layer, "createdAt": begun, "updatedAt": now, "version": version}
    return ConstitutionNode.model_validate({**content, **known})


def signed(call: Call, now: datetime, given: Mapping[str, Any]) -> dict[str, Any]:
    """A provenance with what the service says in front (O-348)."""
    own = dict(zip(OWN_WORDS, (call.who.user, call.who.role.value, call.service, moment(now)), strict=True))
    return {**own, **given}


def _embedding(kind: NodeType, changed: set[str]) -> str:
    if kind.tier is None:
        return "none"
    return "pending" if changed & set(kind.text) else "current"
