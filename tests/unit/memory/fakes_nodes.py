"""A graph of dictionaries: nodes, relationships, and what is asked of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from phronesis_contracts import NotFound, Principal, Unavailable
from phronesis_contracts.constitution.paths import Near, Reached, Step
from phronesis_contracts.constitution.registry import TYPES, Lifecycle, lifecycle_of
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode, Mention

JANUARY = datetime(2026, 1, 1, tzinfo=UTC)


def node(id: str, type: str, **fields: Any) -> ConstitutionNode:
    """A node of a type."""
    kind = TYPES[type]
    given = {"title": id, "status": kind.statuses[0], "createdAt": JANUARY, "updatedAt": JANUARY, "version": 1} | fields
    return ConstitutionNode.model_validate({"id": id, "type": type, "layer": kind.layer, **given})


@dataclass
class ScriptedGraph:
    """Nodes and relationships, and what is asked of them."""

    nodes_by_id: dict[str, ConstitutionNode] = field(default_factory=dict)
    links: list[tuple[str, str, str]] = field(default_factory=list)
    """From, type, to."""
    down: bool = False
    near_down: bool = False
    requests: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def nodes(self, who: Principal, ids: Sequence[str]) -> dict[str, ConstitutionNode]:
        """Those that there are."""
        self._answer("nodes")
        return {id: self.nodes_by_id[id] for id in ids if id in self.nodes_by_id}

    async def linked_nodes(
        self, who: Principal, ids: Sequence[str]
    ) -> dict[str, tuple[ConstitutionNode, tuple[ConstitutionLink, ...]]]:
        """Those that there are, with their relationships."""
        found = await self.nodes(who, ids)
        return {
            id: (
                node,
                tuple(
                    ConstitutionLink(id=f"{a}-{name}-{b}", type=name, from_id=a, to_id=b)
                    for a, name, b in self.links
                    if id in (a, b)
                ),
            )
            for id, node in found.items()
        }

    async def near(self, who: Principal, near: Near) -> tuple[Reached, ...]:
        """Breadth first, over active nodes."""
        self._answer("near")
        if self.near_down:
            raise Unavailable("walks do not answer")
        if near.id not in self.nodes_by_id:
            raise NotFound("there is no such node")
        paths: dict[str, tuple[Step, ...]] = {near.id: (self._step(near.id),)}
        edge = [near.id]
        for _ in range(near.max_depth):
            following: list[str] = []
            for a, name, b in self.links:
                for here, there, way in ((a, b, "out"), (b, a, "in")):
                    if here in edge and there not in paths and self._active(there):
                        paths[there] = (*paths[here], self._step(there, name, way))
                        following.append(there)
            edge = following
        found = [
            Reached(node=_lean(self.nodes_by_id[id]), hops=len(path) - 1, path=path)
            for id, path in paths.items()
            if len(path) > 1
        ]
        wanted = [
            one
            for one in found
            if (not near.types or one.node.type in near.types) and (not near.layers or one.node.layer in near.layers)
        ]
        return tuple(sorted(wanted, key=lambda one: one.hops)[: near.limit])

    async def ends(
        self, who: Principal, ids: Sequence[str], relationship: str, types: Sequence[str] = (), statuses: Sequence[str] = ()
    ) -> dict[str, tuple[Mention, ...]]:
        """What a relationship leads to."""
        self._answer("ends")
        found: dict[str, list[Mention]] = {}
        for a, name, b in self.links:
            node = self.nodes_by_id.get(b)
            fits = node is not None and (not types or node.type in types) and (not statuses or node.status in statuses)
            if a in ids and name == relationship and node is not None and fits:
                found.setdefault(a, []).append(
                    Mention(id=b, type=node.type, title=node.title, status=node.status, relationship=name)
                )
        return {id: tuple(some) for id, some in found.items()}

    async def create(self, who: Principal, type: str, fields: Mapping[str, Any]) -> ConstitutionNode:
        """One node for one request."""
        self._answer("create")
        request = fields["requestId"]
        if request not in self.requests:
            made = node(
                f"{type}-{uuid4().hex[:8]}", type, **{name: value for name, value in fields.items() if name != "requestId"}
            )
            self.nodes_by_id[made.id] = made
            self.requests[request] = made.id
        if (id := self.requests[request]) not in self.nodes_by_id:
            raise NotFound("it was deleted")
        return self.nodes_by_id[id]

    async def relate(self, who: Principal, from_id: str, type: str, to_id: str) -> None:
        """One relationship."""
        self._answer("relate")
        if from_id not in self.nodes_by_id or to_id not in self.nodes_by_id:
            raise NotFound("there is no such node")
        if (from_id, type, to_id) not in self.links:
            self.links.append((from_id, type, to_id))

    def _answer(self, what: str) -> None:
        self.asked.append(what)
        if self.down:
            raise Unavailable("the graph is down")

    def _active(self, id: str) -> bool:
        found = self.nodes_by_id.get(id)
        return found is not None and lifecycle_of(found.status or "") is Lifecycle.ACTIVE

    def _step(self, id: str, name: str | None = None, way: Any = None) -> Step:
        found = self.nodes_by_id[id]
        return Step(node_id=id, type=found.type, title=found.title, relationship=name, direction=way)


def _lean(whole: ConstitutionNode) -> ConstitutionNode:
    """A node as walks tell it."""
    return whole.model_copy(update={"summary": None, "description": None, "metadata": None, "provenance": None})
