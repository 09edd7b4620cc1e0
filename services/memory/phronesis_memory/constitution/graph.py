"""`ConstitutionGraph` and `Structure` by asking the graph service."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from phronesis_bus import Bus, ask
from phronesis_contracts import Agent, Internal, NotFound, Nothing, Principal, TooLarge
from phronesis_contracts.constitution.lists import GET_NODE, READ_NODES, WALK_NODES, GetConstitutionNode, ReadNodes, WalkNodes
from phronesis_contracts.constitution.maintenance import (
    CHANGED_SINCE,
    COUNT_CHANGES,
    RESTORE_GRAPH,
    WALK_LINKS,
    ChangedSince,
    RestoreGraph,
    WalkLinks,
)
from phronesis_contracts.constitution.paths import NEAR, OUTCOMES, Near, Outcomes, Reached
from phronesis_contracts.constitution.registry import TYPES
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode, Mention
from phronesis_contracts.constitution.writes import CREATE, RELATE, Relate

_URGENT_TYPES = tuple(name for name, kind in TYPES.items() if kind.tier is not None and kind.tier.at_once)


class BusConstitutionGraph:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def read(self, tenant: str, ids: Sequence[str]) -> dict[str, ConstitutionNode]:
        if not ids:
            return {}
        return {node.id: node for node in await _read_nodes(self._bus, _service_principal(tenant), ids)}

    async def walk(self, tenant: str, after: str, limit: int) -> tuple[ConstitutionNode, ...]:
        while True:
            try:
                return (await ask(self._bus, _service_principal(tenant), WALK_NODES, WalkNodes(after=after, limit=limit))).nodes
            except (Internal, TooLarge):  # many nodes can be more than one message holds
                if limit == 1:
                    raise
                limit = max(1, limit // 4)

    async def walk_links(self, tenant: str, after: ConstitutionLink | None, limit: int) -> tuple[ConstitutionLink, ...]:
        request = WalkLinks(limit=limit) if after is None else WalkLinks(after_from=after.from_id, after=after.id, limit=limit)
        return (await ask(self._bus, _service_principal(tenant), WALK_LINKS, request)).relationships

    async def changed_since(self, tenant: str, at: datetime) -> Mapping[str, int]:
        request = ChangedSince(at=at, types=_URGENT_TYPES)
        return (await ask(self._bus, _service_principal(tenant), CHANGED_SINCE, request)).versions

    async def count_changes(self, tenant: str) -> int:
        return (await ask(self._bus, _service_principal(tenant), COUNT_CHANGES, Nothing())).number

    async def restore(
        self,
        who: Principal,
        restore_id: str,
        nodes: Sequence[ConstitutionNode],
        links: Sequence[ConstitutionLink],
        *,
        last: bool,
    ) -> tuple[int, int, int]:
        part = RestoreGraph(restore_id=restore_id, nodes=tuple(nodes), relationships=tuple(links), last=last)
        done = await ask(self._bus, who, RESTORE_GRAPH, part)
        return done.nodes, done.relationships, done.removed_nodes


async def _read_nodes(bus: Bus, who: Principal, ids: Sequence[str]) -> tuple[ConstitutionNode, ...]:
    try:
        return (await ask(bus, who, READ_NODES, ReadNodes(ids=tuple(ids)))).nodes
    except (Internal, TooLarge):
        # Many nodes, or long ones, can be more than one message holds.
        if len(ids) == 1:
            raise
        half = len(ids) // 2
        return await _read_nodes(bus, who, ids[:half]) + await _read_nodes(bus, who, ids[half:])


def _service_principal(tenant: str) -> Principal:
    return Principal(tenant=tenant, user="memory", agents=(Agent.MAESTRO,))


_NODES_AT_ONCE = 200
"""Nodes that are read with one question."""
_ENDS = 100
"""Nodes whose relationships are asked for at once."""
_SIDE_BY_SIDE = 8


class BusStructure:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def nodes(self, who: Principal, ids: Sequence[str]) -> dict[str, ConstitutionNode]:
        found: dict[str, ConstitutionNode] = {}
        for at in range(0, len(ids), _NODES_AT_ONCE):
            found |= {node.id: node for node in await _read_nodes(self._bus, who, ids[at : at + _NODES_AT_ONCE])}
        return found

    async def linked_nodes(
        self, who: Principal, ids: Sequence[str]
    ) -> dict[str, tuple[ConstitutionNode, tuple[ConstitutionLink, ...]]]:
        slots = asyncio.Semaphore(_SIDE_BY_SIDE)

        async def one(id: str) -> tuple[ConstitutionNode, tuple[ConstitutionLink, ...]] | None:
            async with slots:
                try:
                    found = await ask(self._bus, who, GET_NODE, GetConstitutionNode(id=id, include_relationships=True))
                except NotFound:
                    return None
            return found.node, found.relationships

        read = await asyncio.gather(*(one(id) for id in ids))
        return {id: found for id, found in zip(ids, read, strict=True) if found is not None}

    async def near(self, who: Principal, near: Near) -> tuple[Reached, ...]:
        return (await ask(self._bus, who, NEAR, near)).reached

    async def ends(
        self, who: Principal, ids: Sequence[str], relationship: str, types: Sequence[str] = (), statuses: Sequence[str] = ()
    ) -> dict[str, tuple[Mention, ...]]:
        found: dict[str, tuple[Mention, ...]] = {}
        for at in range(0, len(ids), _ENDS):
            some = tuple(ids[at : at + _ENDS])
            request = Outcomes(ids=some, relationship=relationship, types=tuple(types), statuses=tuple(statuses))
            found |= (await ask(self._bus, who, OUTCOMES, request)).found
        return found

    async def create(self, who: Principal, type: str, fields: Mapping[str, Any]) -> ConstitutionNode:
        tool = CREATE[type]
        request = tool.rpc.input.model_validate(fields)
        return (await ask(self._bus, who, tool.rpc, request, key=fields.get("requestId"))).node

    async def relate(self, who: Principal, from_id: str, type: str, to_id: str) -> None:
        await ask(self._bus, who, RELATE, Relate(from_id=from_id, type=type, to_id=to_id))
