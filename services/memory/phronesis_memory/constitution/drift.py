"""Nodes whose meaning moved, at once or over several changes (O-388)."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import numpy as np

from phronesis_contracts import Principal, ServiceError
from phronesis_contracts.constitution.insight import Drifted
from phronesis_contracts.constitution.kinds import Layer
from phronesis_contracts.constitution.registry import TYPES
from phronesis_contracts.constitution.values import ConstitutionNode

from ..domain.chunks import pooled
from ..domain.values import Vector
from ..ports import Embedder
from .mentions import mention
from .ports import Chosen, History, NodeVectors, Version
from .structure import Structure
from .texts import parts_of, text_of

log = logging.getLogger(__name__)

_COMPARED = 50
"""Nodes that changed several times whose first text is embedded again, in one report."""
_BEFORE = 200
"""Versions of a node that are undone to come to its first text."""


class Drift:
    """Reports drift.

    Args:
        history: versions, each with how far it moved from the one before.
        vectors: where nodes are now.
        structure: the nodes.
        embedder: the model, for texts that nodes had.
    """

    def __init__(self, history: History, vectors: NodeVectors, structure: Structure, embedder: Embedder) -> None:
        self._history = history
        self._vectors = vectors
        self._structure = structure
        self._embedder = embedder

    async def report(
        self, who: Principal, since: datetime | None, layers: frozenset[Layer], threshold: float, limit: int
    ) -> list[Drifted]:
        """The nodes that moved by more than `threshold` (1 - cosine), the farthest first, each once.

        A node that changed once has moved as far as that change says. For one that changed several times what it said at
        first is embedded again, and held against where it is now: steps do not add up.
        """
        moves: defaultdict[str, list[Version]] = defaultdict(list)
        for version in await self._history.drifted(who.tenant, since, layers, 0.0):
            moves[version.node_id].append(version)
        nodes = await self._structure.nodes(who, sorted(moves)) if moves else {}
        far = {id: max(version.drift or 0.0 for version in versions) for id, versions in moves.items() if id in nodes}
        several = [id for id in far if len(moves[id]) > 1][:_COMPARED]
        for id, whole in (await self._whole(who.tenant, [nodes[id] for id in several], since)).items():
            far[id] = max(far[id], whole)
        found = [_drifted(nodes[id], drift, moves[id]) for id, drift in far.items() if drift > threshold]
        return sorted(found, key=lambda one: (-one.drift, one.node.id))[:limit]

    async def _whole(self, tenant: str, nodes: Sequence[ConstitutionNode], since: datetime | None) -> dict[str, float]:
        """How far nodes are from what they were at first, of those of which that is known."""
        texts = {node.id: text for node in nodes if (text := await self._first(tenant, node, since))}
        if not texts:
            return {}
        now = {one.id: one.vector async for one in self._vectors.scan(tenant, Chosen(lifecycle=None, ids=frozenset(texts)))}
        try:
            then = {id: await self._embedded(text) for id, text in texts.items() if id in now}
        except ServiceError as error:
            log.warning("the drift over several changes is not known: %s", error.code)
            return {}
        return {id: round(max(0.0, 1 - _cosine(vector, now[id])), 6) for id, vector in then.items()}

    async def _embedded(self, text: str) -> Vector:
        parts = await self._embedder.embed_texts(parts_of(text))
        return parts[0] if len(parts) == 1 else pooled(parts)

    async def _first(self, tenant: str, node: ConstitutionNode, since: datetime | None) -> str:
        """The text of a node before its first change of the time that is asked for; empty where that is not known."""
        versions = await self._history.versions(tenant, node.id, _BEFORE)
        undone = [version for version in versions if (since is None or version.at >= since) and version.operation == "update"]
        fields = dict(_undone(undone))
        told = node.model_dump(mode="json")
        known = {name: value for name, value in (told | fields).items() if value is not None}
        return text_of(ConstitutionNode.model_validate(known), TYPES[node.type]) if fields and known.get("title") else ""


def _undone(versions: Sequence[Version]) -> Iterator[tuple[str, object]]:
    """By field the oldest value that the versions say it had."""
    seen: set[str] = set()
    for version in versions:
        for name, values in version.fields.items():
            if name not in seen:
                seen.add(name)
                yield name, _old(values)


def _old(values: Mapping[str, object]) -> object:
    return values.get("old")


def _drifted(node: ConstitutionNode, drift: float, versions: Sequence[Version]) -> Drifted:
    return Drifted(
        node=mention(node), drift=round(drift, 6), versions=len(versions), at=max(version.at for version in versions)
    )


def _cosine(a: Vector, b: Vector) -> float:
    return float(np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b) or 1.0))
