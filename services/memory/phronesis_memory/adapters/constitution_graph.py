"""`ConstitutionGraph` by asking the graph service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from phronesis_bus import Bus, ask
from phronesis_contracts import Internal, Principal, Role, TooLarge
from phronesis_contracts.constitution.keeping import (
    CHANGED_SINCE,
    RESTORE_GRAPH,
    WALK_LINKS,
    ChangedSince,
    RestoreGraph,
    WalkLinks,
)
from phronesis_contracts.constitution.lists import READ_NODES, WALK_NODES, ReadNodes, WalkNodes
from phronesis_contracts.constitution.registry import TYPES
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode

_AT_ONCE = tuple(name for name, kind in TYPES.items() if kind.tier is not None and kind.tier.at_once)


class BusConstitution:
    """The graph service, on the bus."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def read(self, tenant: str, ids: Sequence[str]) -> dict[str, ConstitutionNode]:
        """See `ConstitutionGraph`."""
        if not ids:
            return {}
        try:
            found = (await ask(self._bus, _itself(tenant), READ_NODES, ReadNodes(ids=tuple(ids)))).nodes
        except (Internal, TooLarge):
            # Many nodes can be more than one message holds.
            if len(ids) == 1:
                raise
            half = len(ids) // 2
            return await self.read(tenant, ids[:half]) | await self.read(tenant, ids[half:])
        return {node.id: node for node in found}

    async def walk(self, tenant: str, after: str, limit: int) -> tuple[ConstitutionNode, ...]:
        """See `ConstitutionGraph`."""
        while True:
            try:
                return (await ask(self._bus, _itself(tenant), WALK_NODES, WalkNodes(after=after, limit=limit))).nodes
            except (Internal, TooLarge):  # as above
                if limit == 1:
                    raise
                limit = max(1, limit // 4)

    async def walk_links(self, tenant: str, after: ConstitutionLink | None, limit: int) -> tuple[ConstitutionLink, ...]:
        """See `ConstitutionGraph`."""
        asked = WalkLinks(limit=limit) if after is None else WalkLinks(after_from=after.from_id, after=after.id, limit=limit)
        return (await ask(self._bus, _itself(tenant), WALK_LINKS, asked)).relationships

    async def changed_since(self, tenant: str, at: datetime) -> Mapping[str, int]:
        """See `ConstitutionGraph`."""
        asked = ChangedSince(at=at, types=_AT_ONCE)
        return (await ask(self._bus, _itself(tenant), CHANGED_SINCE, asked)).versions

    async def restore(
        self,
        who: Principal,
        restore_id: str,
        nodes: Sequence[ConstitutionNode],
        links: Sequence[ConstitutionLink],
        *,
        last: bool,
    ) -> tuple[int, int, int]:
        """See `ConstitutionGraph`."""
        part = RestoreGraph(restore_id=restore_id, nodes=tuple(nodes), relationships=tuple(links), last=last)
        done = await ask(self._bus, who, RESTORE_GRAPH, part)
        return done.nodes, done.relationships, done.removed_nodes


def _itself(tenant: str) -> Principal:
    return Principal(tenant=tenant, user="memory", role=Role.MAESTRO)
