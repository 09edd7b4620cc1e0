"""What the graph service does with a part of a whole graph: each node and relationship held to the registry, then written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from uuid import uuid4

from phronesis_bus import Call, audited
from phronesis_contracts.constitution.loading import LOAD_TOOL, ConstitutionLoaded, LoadConstitution, LoadNode
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode
from phronesis_contracts.constitution.writes import NodeWritten, RegistryRefused
from phronesis_contracts.orchestrator import Audited

from .checking import differing, found_type, merged, told
from .joining import check_name
from .ports import ConstitutionLoads, Order
from .records import content_of
from .ruling import Ruling
from .writing import digest, made, signed


class Loading:
    """Takes parts of a graph.

    Args:
        store: where the graph is.
        ruling: the rules of each tenant.
        wake: tells the relay that there is news.
    """

    def __init__(self, store: ConstitutionLoads, ruling: Ruling, wake: Callable[[], None]) -> None:
        self._store = store
        self._ruling = ruling
        self._wake = wake

    async def load(self, call: Call, request: LoadConstitution) -> ConstitutionLoaded:
        """Write one part, all of it or nothing.

        Raises:
            RegistryRefused: a node or a relationship is none that the registry allows; `field` names which.
            NotFound: an end of a relationship is no node of the tenant.
        """
        _once([node.id for node in request.nodes], "nodes")
        for number, link in enumerate(request.relationships):
            check_name(link.type)
            if link.from_id == link.to_id:
                raise RegistryRefused("a node is not joined to itself", field=f"relationships.{number}.toId")
        now = datetime.now(UTC)

        def decide(before: Mapping[str, ConstitutionNode]) -> list[NodeWritten]:
            return [_decided(call, now, number, node, before.get(node.id)) for number, node in enumerate(request.nodes)]

        def entry(done: ConstitutionLoaded) -> Audited:
            return audited(call.who, LOAD_TOOL.name, done.model_dump())

        links = [ConstitutionLink(id=str(uuid4()), **link.model_dump(by_alias=False)) for link in request.relationships]
        order = Order(call, digest(LOAD_TOOL.name, request))
        done = await self._store.load(order, request.remove, [node.id for node in request.nodes], decide, links, entry)
        self._ruling.drop(call.who.tenant)
        self._wake()
        return done


def _once(ids: list[str], field: str) -> None:
    seen: set[str] = set()
    for number, id in enumerate(ids):
        if id in seen:
            raise RegistryRefused("an id stands twice in one part", field=f"{field}.{number}.id")
        seen.add(id)


def _decided(call: Call, now: datetime, number: int, node: LoadNode, old: ConstitutionNode | None) -> NodeWritten:
    """What becomes of one node; a refusal says which of the part it is."""
    where = f"nodes.{number}"
    try:
        kind = found_type(node.type)
        given = told(node.model_dump(by_alias=True, exclude_unset=True, exclude={"type"}))
        if old is not None and old.type != kind.name:
            raise RegistryRefused(f"{old.id} is a {old.type}", field="type")
        before = {} if old is None else content_of(old)
        after = merged(kind, before, given)
    except RegistryRefused as error:
        raise RegistryRefused(error.detail, field=f"{where}.{error.field}" if error.field else where) from error
    changed = differing(before, after)
    if old is not None and not changed:
        return NodeWritten(node=old)
    if old is None:
        after["provenance"] = signed(call, now, after.get("provenance", {}))
    begun = now if old is None else old.created_at or now
    version = 1 if old is None else (old.version or 0) + 1
    return NodeWritten(node=made(kind, node.id, after, begun, now, version), changed=changed)
