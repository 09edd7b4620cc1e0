"""The handlers of writes: nodes, relationships and parts of a graph, checked by registry and rules; and of policy checks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import uuid4

from phronesis_bus import Call, audit_entry
from phronesis_contracts import Conflict, Forbidden, Message
from phronesis_contracts.constitution import writes
from phronesis_contracts.constitution.insight import CheckPolicy, PolicyChecked, RuleHit
from phronesis_contracts.constitution.maintenance import RESTORE_GRAPH, GraphRestored, RestoreGraph
from phronesis_contracts.constitution.registry import RELATIONSHIPS, TYPES, Layer, Lifecycle, NodeType, lifecycle_of
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode
from phronesis_contracts.constitution.writes import GuardrailHit, NodeDeletedForGood, NodeWritten, RegistryRefused, Related
from phronesis_contracts.orchestrator import Audited

from ..bolt.writes import digest
from ..twin.ports import AuditRefusal
from .guardrails import RULE_TYPES, Rule, RuleCache, Subject, allow, rule_of_node, subject_of
from .load_store import BoltLoads
from .ports import Ends, Order
from .records import format_time, node_content, normalize_value
from .store import BoltConstitution, BoltLinks
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


class NodeHandlers:
    def __init__(self, nodes: BoltConstitution, ruling: RuleCache, refuse: AuditRefusal, wake: Callable[[], None]) -> None:
        self._nodes, self._ruling = nodes, ruling
        self._refuse, self._wake = refuse, wake

    async def create(self, kind: NodeType, call: Call, request: writes.CreateConstitutionNode) -> NodeWritten:
        """Create a node of a type.

        Raises `RegistryRefused` (the registry does not allow it), `GuardrailHit` (it breaks a rule that blocks, or one that was
        not acknowledged), `Forbidden` (somebody who is no admin overrides rules), `Conflict` (the id is taken, or the request
        id was used for something else).
        """
        _check_override(call, request)
        name, given, now = writes.CREATE[kind.name].name, request.model_dump(by_alias=True), datetime.now(UTC)
        content = merge_content(kind, {}, node_fields(given))
        named = tuple(content)
        content["provenance"] = sign_provenance(call, now, content.get("provenance", {}))
        node = build_node(kind, request.id or str(uuid4()), content, now, now, 1)
        rules = await self._rules(call, kind)
        async with self._entered(call, name, given):
            found = await self._ruling.find_hits(call.who.tenant, rules, subject_of(kind.name, content))
            broken = allow(found, request.acknowledge, override=request.override is not None)
        embedding = _embedding_state(kind, set(kind.text))
        result = NodeWritten(node=node, changed=named, embedding_state=embedding, enforced=_is_enforced(node), **broken)
        order = Order(call, tool_digest(name, request), request.request_id)
        entry = audit_entry(call.who, name, {**given, "id": node.id, **_overridden(result)})
        return self._written(call, await self._nodes.create(order, result, entry))

    async def update(self, kind: NodeType, call: Call, request: writes.UpdateConstitutionNode) -> NodeWritten:
        """Change a node of a type.

        Raises `RegistryRefused` (it is of another type, or the registry does not allow the change), `GuardrailHit` (as for
        `create`, of the rules that what changes is read by), `NotFound` (there is none), `Conflict` (it has another version by
        now).
        """
        return await self._change(writes.UPDATE[kind.name].name, kind, call, request)

    async def update_node(self, call: Call, request: writes.UpdateAnyNode) -> NodeWritten:
        """Change a node of whatever type; raises as `update` does, and `Forbidden` where the caller may not write its layer."""
        return await self._change(writes.UPDATE_NODE_TOOL.name, None, call, request, request.fields)

    async def delete_node(self, call: Call, request: writes.DeleteConstitutionNode) -> NodeDeletedForGood:
        """Remove a node for good, with its relationships. Raises `NotFound`: there is none."""
        name = writes.DELETE_CONSTITUTION_NODE_TOOL.name

        def entry(gone: NodeDeletedForGood) -> Audited:
            return audit_entry(call.who, name, gone.model_dump())

        gone = await self._nodes.delete(Order(call, tool_digest(name, request)), request.id, entry)
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
        _check_override(call, request)
        given = request.model_dump(by_alias=True)
        rules = await self._rules(call, kind)
        checked: dict[int, Sequence[RuleHit]] = {}

        def decide(node: ConstitutionNode) -> NodeWritten:
            _check_expected(node, kind, request)
            check_writer(call.who, node.layer)
            return _change_node(node, {**(fields or {}), **node_fields(given)}, rules, checked, request)

        def entry(result: NodeWritten) -> Audited:
            made = {"changed": result.changed, "version": result.node.version, **_overridden(result)}
            return audit_entry(call.who, name, {**given, **made})

        async with self._entered(call, name, given):
            order = Order(call, tool_digest(name, request))
            for _ in range(_TRIES):
                try:
                    return self._written(call, await self._nodes.change(order, request.id, decide, entry))
                except _Unchecked as asked:
                    checked[asked.version] = await self._ruling.find_hits(call.who.tenant, rules, asked.subject, asked.changed)
        raise Conflict("it is written too often to be held against the guardrails", field="version")

    async def _rules(self, call: Call, kind: NodeType | None) -> tuple[Rule, ...]:
        if kind is not None and kind.layer is Layer.FOUNDATION:
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


def tool_digest(name: str, request: Message) -> str:
    """What tells two calls of a tool apart."""
    return digest(f"{name} {request.model_dump_json()}")


def _check_override(call: Call, request: writes.NodeWrite) -> None:
    if request.override is not None and not call.who.administers:
        raise Forbidden("only an administrator overrides a rule, with a reason", field="override")


def _overridden(result: NodeWritten) -> dict[str, Any]:
    return {"overridden": result.overridden} if result.overridden else {}


def _is_enforced(node: ConstitutionNode) -> bool | None:
    """Whether writes are held against a guardrail; `None` for whatever is none."""
    if node.type != "guardrail":
        return None
    return lifecycle_of(node.status or "") is Lifecycle.ACTIVE and rule_of_node(node) is not None


def _check_expected(node: ConstitutionNode, kind: NodeType | None, request: writes.UpdateConstitutionNode) -> None:
    if kind is not None and node.type != kind.name:
        raise RegistryRefused(f"{node.id} is a {node.type}; {node.type}.update.v1 changes it", field="id")
    if request.version not in (None, node.version):
        raise Conflict(f"it has version {node.version} by now, and not {request.version}", field="version")


_TRIES = 5
"""Versions of a node that one change is checked on at most."""


class _Unchecked(Exception):
    """A change has not been held against the rules yet, which takes too long for a transaction; nothing was written."""

    def __init__(self, version: int, subject: Subject, changed: frozenset[str]) -> None:
        super().__init__("not held against the rules yet")
        self.version, self.subject, self.changed = version, subject, changed


def _change_node(
    node: ConstitutionNode,
    given: Mapping[str, Any],
    rules: tuple[Rule, ...],
    checked: Mapping[int, Sequence[RuleHit]],
    request: writes.NodeWrite,
) -> NodeWritten:
    kind, before = TYPES[node.type], node_content(node)
    after = merge_content(kind, before, given)
    changed = changed_fields(before, after)
    embedding = _embedding_state(kind, set(changed))
    if not changed:
        return NodeWritten(node=node, embedding_state=embedding)
    found: Sequence[RuleHit] = ()
    if rules and kind.layer is not Layer.FOUNDATION:
        version = node.version or 0
        if version not in checked:  # what is written then is what was checked: another version is checked again
            raise _Unchecked(version, subject_of(kind.name, after), frozenset(changed))
        found = checked[version]
    broken = allow(found, request.acknowledge, override=request.override is not None)
    now = datetime.now(UTC)
    new = build_node(kind, node.id, after, node.created_at or now, now, (node.version or 0) + 1)
    return NodeWritten(node=new, changed=changed, embedding_state=embedding, enforced=_is_enforced(new), **broken)


def build_node(
    kind: NodeType, id: str, content: Mapping[str, Any], begun: datetime, now: datetime, version: int
) -> ConstitutionNode:
    """A node of a type with its content, and what the service keeps of it."""
    known = {"id": id, "type": kind.name, "layer": kind.layer, "createdAt": begun, "updatedAt": now, "version": version}
    return ConstitutionNode.model_validate({**content, **known})


def sign_provenance(call: Call, now: datetime, given: Mapping[str, Any]) -> dict[str, Any]:
    """A provenance with what the service says in front."""
    own = dict(zip(PROVENANCE_FIELDS, (call.who.user, call.who.rights, call.service, format_time(now)), strict=True))
    return {**own, **given}


def _embedding_state(kind: NodeType, changed: set[str]) -> str:
    if kind.tier is None:
        return "none"
    return "pending" if changed & set(kind.text) else "current"


class RelationshipHandlers:
    def __init__(self, links: BoltLinks, wake: Callable[[], None]) -> None:
        self._links, self._wake = links, wake

    async def relate(self, call: Call, request: writes.Relate) -> Related:
        """Make a relationship, or give the one that there is.

        Raises `RegistryRefused` (its type does not lead from the one end to the other, or it would close a chain), `Forbidden`
        (the caller may not write the node that it leads from), `NotFound` (an end is no node of the tenant).
        """
        check_relationship_name(request.type)
        if request.from_id == request.to_id:
            raise RegistryRefused("a node is not joined to itself", field="toId")

        def check(ends: Ends) -> None:
            check_writer(call.who, ends.source.layer)
            check_ends(request.type, ends.source, ends.target)

        declared = RELATIONSHIPS.get(request.type)
        cycle = partial(check_cycle, request.type) if declared is not None and declared.acyclic else None
        name, wanted = writes.RELATE_TOOL.name, ConstitutionLink(id=str(uuid4()), **request.model_dump(by_alias=False))
        entry = audit_entry(call.who, name, {"id": wanted.id, **request.model_dump()})
        made = await self._links.relate(Order(call, tool_digest(name, request)), wanted, check, cycle, entry)
        self._wake()
        return made

    async def unrelate(self, call: Call, request: writes.Unrelate) -> writes.Unrelated:
        """Remove a relationship. Raises `Forbidden` (the caller may not write the node that it leads from), `NotFound`."""
        name = writes.UNRELATE_TOOL.name

        def check(layer: Layer) -> None:
            check_writer(call.who, layer)

        def entry(gone: ConstitutionLink) -> Audited:
            return audit_entry(call.who, name, gone.model_dump())

        gone = await self._links.unrelate(Order(call, tool_digest(name, request)), request.id, check, entry)
        self._wake()
        return gone


class LoadHandlers:
    """Takes parts of a graph, loaded or restored."""

    def __init__(self, store: BoltLoads, ruling: RuleCache, wake: Callable[[], None]) -> None:
        self._store = store
        self._rules = ruling
        self._wake = wake

    async def load(self, call: Call, request: writes.LoadConstitution) -> writes.ConstitutionLoaded:
        """Write one part, all of it or nothing.

        Raises `RegistryRefused` (a node or a relationship is none that the registry allows; `field` names which), `NotFound`
        (an end of a relationship is no node of the tenant).
        """
        _check_unique([node.id for node in request.nodes], "nodes")
        for number, link in enumerate(request.relationships):
            check_relationship_name(link.type)
            if link.from_id == link.to_id:
                raise RegistryRefused("a node is not joined to itself", field=f"relationships.{number}.toId")
        now = datetime.now(UTC)

        def decide(before: Mapping[str, ConstitutionNode]) -> list[NodeWritten]:
            return [_decide_node(call, now, number, node, before.get(node.id)) for number, node in enumerate(request.nodes)]

        def entry(done: writes.ConstitutionLoaded) -> Audited:
            return audit_entry(call.who, writes.LOAD_TOOL.name, done.model_dump())

        links = [ConstitutionLink(id=str(uuid4()), **link.model_dump(by_alias=False)) for link in request.relationships]
        order = Order(call, tool_digest(writes.LOAD_TOOL.name, request))
        done = await self._store.load(order, request.remove, [node.id for node in request.nodes], decide, links, entry)
        self._rules.drop(call.who.tenant)
        self._wake()
        return done

    async def restore(self, call: Call, request: RestoreGraph) -> GraphRestored:
        """Write one part, and with the last one remove what stood in none.

        Raises `Forbidden` (the caller is no administrator), `RegistryRefused` (a node or a relationship is none that the
        registry knows), `BadRequest` (an end of a relationship stands in no part so far).
        """
        if not call.who.administers:
            raise Forbidden(f"{call.who.rights} may not restore the graph")
        for link in request.relationships:
            check_relationship_name(link.type)
        part = request.model_copy(update={"nodes": tuple(map(_check_node, request.nodes))})

        def entry(done: GraphRestored) -> Audited:
            which = {"restore_id": request.restore_id, "last": request.last}
            return audit_entry(call.who, RESTORE_GRAPH.subject, {**which, **done.model_dump()})

        order = Order(call, tool_digest(RESTORE_GRAPH.subject, request))
        done = await self._store.restore(order, part, entry)
        self._rules.drop(call.who.tenant)
        self._wake()
        return done


def _check_unique(ids: list[str], field: str) -> None:
    seen: set[str] = set()
    for number, id in enumerate(ids):
        if id in seen:
            raise RegistryRefused("an id stands twice in one part", field=f"{field}.{number}.id")
        seen.add(id)


def _decide_node(call: Call, now: datetime, number: int, node: writes.LoadNode, old: ConstitutionNode | None) -> NodeWritten:
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


def _check_node(node: ConstitutionNode) -> ConstitutionNode:
    kind, given = find_type(node.type), node_content(node)
    kept = {"provenance": given.pop("provenance", None)}
    content = merge_content(kind, {name: bag for name, bag in kept.items() if bag}, given)
    known = {"id": node.id, "type": kind.name, "layer": kind.layer, "version": node.version or 1}
    times = {"createdAt": node.created_at, "updatedAt": node.updated_at}
    return ConstitutionNode.model_validate({**content, **known, **times})


class PolicyHandlers:
    """Answers before a decision is made."""

    def __init__(self, ruling: RuleCache) -> None:
        self._ruling = ruling

    async def check_policy(self, call: Call, request: CheckPolicy) -> PolicyChecked:
        """The rules that a text, or a node of some type with these fields, would go against. Raises `RegistryRefused`."""
        kind = find_type(request.type) if request.type else None
        fields = dict(request.fields)
        for one in kind.properties if kind else ():
            if fields.get(one.name) is not None:
                fields[one.name] = normalize_value(one, fields[one.name])
        of = subject_of(kind.name if kind else None, fields, request.text)
        found = await self._ruling.find_hits(call.who.tenant, await self._ruling.of(call.who.tenant), of)
        unenforced = await self._ruling.unenforced(call.who.tenant)
        return PolicyChecked(hits=found, allowed=all(hit.severity != "block" for hit in found), unenforced=unenforced)
