"""Graphiti on Neo4j, in process: each message the fact of an edge between its speaker and its conversation.

Graphiti forms facts with a language model. Without one its own bulk writer stores what is given, and its search is the same.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime

from graphiti_core import Graphiti
from graphiti_core.cross_encoder.client import CrossEncoderClient
from graphiti_core.edges import EntityEdge
from graphiti_core.embedder.client import EmbedderClient
from graphiti_core.nodes import EntityNode
from graphiti_core.utils.bulk_utils import add_nodes_and_edges_bulk
from worker import Embedder, serve


class Facts:
    """A graph of facts, a group for each user."""

    def __init__(self, graphiti: Graphiti, embedder: _Vectors) -> None:
        self._graphiti, self._embedder = graphiti, embedder
        self._nodes: dict[tuple[str, str], EntityNode] = {}

    async def add(self, user: str, messages: Sequence[dict[str, str]]) -> list[str]:
        """Store messages in one transaction, their vectors made in batches."""
        now, new, edges = datetime.now(UTC), list[EntityNode](), list[EntityEdge]()
        vectors = await self._embedder.create_batch([f"{one['speaker']}: {one['text']}" for one in messages])
        for one, vector in zip(messages, vectors, strict=True):
            ends = [self._node(user, name, now, new) for name in (one["speaker"], "conversation")]
            edges.append(
                EntityEdge(
                    source_node_uuid=ends[0].uuid,
                    target_node_uuid=ends[1].uuid,
                    name="SAID",
                    fact=f"{one['speaker']}: {one['text']}",
                    fact_embedding=vector,
                    group_id=user,
                    created_at=now,
                    valid_at=datetime.fromisoformat(one["at"]),
                )
            )
        await add_nodes_and_edges_bulk(self._graphiti.driver, [], [], new, edges, self._embedder)
        return [edge.uuid for edge in edges]

    def _node(self, user: str, name: str, now: datetime, new: list[EntityNode]) -> EntityNode:
        node = self._nodes.get((user, name))
        if node is None:
            self._nodes[user, name] = node = EntityNode(name=name, group_id=user, created_at=now)
            new.append(node)
        return node

    async def search(self, user: str, question: str, limit: int) -> list[str]:
        """Its search over facts: words and vectors, by reciprocal ranks."""
        return [edge.uuid for edge in await self._graphiti.search(question, group_ids=[user], num_results=limit)]


class _Vectors(EmbedderClient):
    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    async def create(self, input_data):  # type: ignore[no-untyped-def]
        texts = [input_data] if isinstance(input_data, str) else list(input_data)
        return (await self._embedder.embed(texts))[0]

    async def create_batch(self, input_data_list: list[str]) -> list[list[float]]:
        return await self._embedder.embed(input_data_list)


class _NoRanking(CrossEncoderClient):
    async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:
        raise NotImplementedError("no model is called")


async def _made(embedder: Embedder, servers: dict[str, str]) -> Facts:
    vectors = _Vectors(embedder)
    graphiti = Graphiti(
        servers["neo4j"], servers["neo4j_user"], servers["neo4j_password"], embedder=vectors, cross_encoder=_NoRanking()
    )
    await graphiti.build_indices_and_constraints()
    return Facts(graphiti, vectors)


logging.getLogger("neo4j").setLevel(logging.ERROR)  # its notes on each statement of Graphiti
serve(_made)
