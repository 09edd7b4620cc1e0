"""Following the graph: the texts of its nodes are found by everyone in the tenant."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from phronesis_contracts import Internal, TooLarge
from phronesis_contracts.graph import ChangedNode, Node
from phronesis_contracts.memory import SHARED

from .domain.values import NodeState
from .drafting import Drafting, of_node
from .ports import Graph, Knowledge

BATCH = 20
"""Nodes of one question: their texts, with room to spare, fit the greatest message."""


class NodeTexts:
    """Makes the shared items of changed nodes what the graph says now. A repeat, in any order, changes nothing.

    Args:
        graph: the graph service.
        knowledge: the store of items.
        drafting: completes drafts.
    """

    def __init__(self, graph: Graph, knowledge: Knowledge, drafting: Drafting) -> None:
        self._graph = graph
        self._knowledge = knowledge
        self._drafting = drafting

    async def follow(self, tenant: str, changed: Sequence[ChangedNode]) -> None:
        """Bring the items of `changed` up to date.

        Raises:
            Unavailable: the graph, the embedder or the store does not answer; what is done stays done.
        """
        versions: dict[str, int] = {}
        for node in changed:
            versions[node.key] = max(node.version, versions.get(node.key, 0))
        passed = await self._knowledge.passed(tenant, versions)
        keys = [key for key in versions if key not in passed]
        for start in range(0, len(keys), BATCH):
            batch = keys[start : start + BATCH]
            await self._project(tenant, {key: versions[key] for key in batch}, await self._nodes(tenant, batch))

    async def _nodes(self, tenant: str, keys: list[str]) -> dict[str, Node]:
        try:
            return {node.key: node for node in await self._graph.nodes(tenant, keys)}
        except (Internal, TooLarge):
            # The texts of many nodes can be more than one message holds.
            if len(keys) == 1:
                raise
            half = len(keys) // 2
            return await self._nodes(tenant, keys[:half]) | await self._nodes(tenant, keys[half:])

    async def _project(self, tenant: str, versions: dict[str, int], nodes: dict[str, Node]) -> None:
        drafts = {key: of_node(nodes[key]) if key in nodes else [] for key in versions}
        known = await self._knowledge.digests(tenant, SHARED, list(versions))
        # All nodes' texts are embedded together, in full batches, and then each node is written by itself.
        flat = await self._drafting.complete([draft for of_key in drafts.values() for draft in of_key], known)
        start = 0
        for key, version in versions.items():
            ready = flat[start : start + len(drafts[key])]
            start += len(drafts[key])
            node = nodes.get(key)
            state = NodeState(key, version, gone=True) if node is None else NodeState(key, node.version)
            await self._drafting.store(ready, known, partial(self._knowledge.project, tenant, state))
