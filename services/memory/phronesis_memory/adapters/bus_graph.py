"""`Graph` by asking the graph service."""

from __future__ import annotations

from collections.abc import Sequence

from phronesis_bus import Bus, ask
from phronesis_contracts import Principal, Role
from phronesis_contracts.graph import EXPAND, NODES, Expand, Neighbour, Node, NodeKeys


class BusGraph:
    """The graph service, on the bus."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def expand(self, who: Principal, ids: Sequence[str], hops: int, limit: int) -> tuple[Neighbour, ...]:
        """See `Graph`."""
        return (await ask(self._bus, who, EXPAND, Expand(ids=tuple(ids), hops=hops, limit=limit))).items

    async def nodes(self, tenant: str, keys: Sequence[str]) -> tuple[Node, ...]:
        """See `Graph`. An event acts for nobody, so memory asks for itself."""
        who = Principal(tenant=tenant, user="memory", role=Role.MAESTRO)
        return (await ask(self._bus, who, NODES, NodeKeys(keys=tuple(keys)))).nodes
