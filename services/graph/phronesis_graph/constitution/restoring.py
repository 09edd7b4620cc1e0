"""What the graph service does with a graph that is to be again as it was."""

from __future__ import annotations

from collections.abc import Callable

from phronesis_bus import Call, audited
from phronesis_contracts import Forbidden, Role
from phronesis_contracts.constitution.keeping import RESTORE_GRAPH, GraphRestored, RestoreGraph
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_contracts.orchestrator import Audited

from .checking import found_type, merged
from .joining import check_name
from .ports import ConstitutionRestores, Order
from .records import content_of
from .ruling import Ruling
from .writing import digest


class Restoring:
    """Takes the parts of a restore.

    Args:
        store: where the graph is.
        ruling: the rules of each tenant.
        wake: tells the relay that there is news.
    """

    def __init__(self, store: ConstitutionRestores, ruling: Ruling, wake: Callable[[], None]) -> None:
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
            check_name(link.type)
        part = request.model_copy(update={"nodes": tuple(map(_checked, request.nodes))})

        def entry(done: GraphRestored) -> Audited:
            which = {"restore_id": request.restore_id, "last": request.last}
            return audited(call.who, RESTORE_GRAPH.subject, {**which, **done.model_dump()})

        order = Order(call, digest(RESTORE_GRAPH.subject, request))
        done = await self._store.restore(order, part, entry)
        self._ruling.drop(call.who.tenant)
        self._wake()
        return done


def _checked(node: ConstitutionNode) -> ConstitutionNode:
    kind, given = found_type(node.type), content_of(node)
    kept = {"provenance": given.pop("provenance", None)}
    content = merged(kind, {name: bag for name, bag in kept.items() if bag}, given)
    known = {"id": node.id, "type": kind.name, "layer": kind.layer, "version": node.version or 1}
    times = {"createdAt": node.created_at, "updatedAt": node.updated_at}
    return ConstitutionNode.model_validate({**content, **known, **times})
