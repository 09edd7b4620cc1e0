"""What the graph service does with relationships of the constitutional graph."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from uuid import uuid4

from phronesis_bus import Call, audited
from phronesis_contracts.constitution import writes
from phronesis_contracts.constitution.kinds import Layer
from phronesis_contracts.constitution.relationships import RELATIONSHIPS
from phronesis_contracts.constitution.values import ConstitutionLink
from phronesis_contracts.constitution.writes import RegistryRefused, Related, Unrelated
from phronesis_contracts.orchestrator import Audited

from .joining import check_cycle, check_ends, check_name, check_writer
from .ports import ConstitutionLinks, Ends, Order
from .writing import digest


class Relating:
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
        check_name(request.type)
        if request.from_id == request.to_id:
            raise RegistryRefused("a node is not joined to itself", field="toId")

        def check(ends: Ends) -> None:
            check_writer(call.who.role, ends.source.layer)
            check_ends(request.type, ends.source, ends.target)

        declared = RELATIONSHIPS.get(request.type)
        cycle = partial(check_cycle, request.type) if declared is not None and declared.acyclic else None
        name, wanted = writes.RELATE_TOOL.name, ConstitutionLink(id=str(uuid4()), **request.model_dump(by_alias=False))
        entry = audited(call.who, name, {"id": wanted.id, **request.model_dump()})
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
            return audited(call.who, name, gone.model_dump())

        gone = await self._links.unrelate(Order(call, digest(name, request)), request.id, check, entry)
        self._wake()
        return gone
