"""How nodes changed over time, how far their meaning moved, and which say nearly the same."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from phronesis_contracts import NotFound, Principal, ServiceError
from phronesis_contracts.constitution import search
from phronesis_contracts.constitution.insight import Drifted, Duplicate, EvolutionTold, VersionSeen
from phronesis_contracts.constitution.registry import TYPES, Layer
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_contracts.constitution.writes import Operation

from ..embedding.chunks import pool
from ..ports import Embedder
from ..values import Vector
from .clusters import NodeMatrix, gather_vectors, pairs_above
from .nodes import split_text, text_of_node
from .ports import History, NodeFilter, NodeVectors, Structure, Version
from .semantic import mention

_LONGEST = 160
"""Characters of a value in a sentence."""
_HIDDEN_FIELDS = frozenset({"updatedAt", "version", "provenance"})
"""Fields that change with every write, or are the service's own."""


class Evolution:
    """Tells how nodes changed."""

    def __init__(self, history: History) -> None:
        self._history = history

    async def of(self, tenant: str, id: str, limit: int) -> EvolutionTold:
        """A node's latest versions, oldest first, and the same in sentences. Raises `NotFound`: nothing is known of it."""
        versions = await self._history.versions(tenant, id, limit)
        if not versions:
            raise NotFound("there is no node with this id", field="id")
        return EvolutionTold(
            versions=tuple(_to_version_seen(version) for version in versions),
            narrative=narrate(versions),
            drifted=any((version.drift or 0.0) > search.DRIFT_DISTANCE for version in versions),
        )


def narrate(versions: Sequence[Version]) -> str:
    """One sentence for each version, with its date and what it changed, and nothing else."""
    return "\n".join(_sentence(version) for version in versions)


def _to_version_seen(version: Version) -> VersionSeen:
    return VersionSeen(
        version=version.version,
        at=version.at,
        actor=version.actor,
        changed={name: _old_and_new(version.fields, name) for name in _visible_fields(version)},
        drift=version.drift,
    )


def _old_and_new(fields: Mapping[str, Mapping[str, object]], name: str) -> tuple[Any, Any]:
    seen = fields.get(name, {})
    return seen.get("old"), seen.get("new")


def _visible_fields(version: Version) -> list[str]:
    named = dict.fromkeys([*version.changed, *version.fields])
    return [name for name in named if name not in _HIDDEN_FIELDS]


def _sentence(version: Version) -> str:
    day = version.at.date().isoformat()
    if version.operation == Operation.DELETE:
        return f"{day}: removed for good."
    parts = [_describe_change(name, version.fields.get(name)) for name in _visible_fields(version)]
    if version.operation == Operation.CREATE:
        return f"{day}: made" + (f", with {'; '.join(parts)}." if parts else ".")
    return f"{day}: {'; '.join(parts) or 'written again, with nothing changed'}."


def _describe_change(name: str, values: Mapping[str, object] | None) -> str:
    if values is None:
        return f"{name} changed"
    old, new = values.get("old"), values.get("new")
    if old is None:
        return f"{name} {_quote(new)}"
    return f"{name} removed, which was {_quote(old)}" if new is None else f"{name} changed from {_quote(old)} to {_quote(new)}"


def _quote(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    text = " ".join(text.split())
    return f"“{text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'}”"


log = logging.getLogger(__name__)

_COMPARED = 50
"""Nodes that changed several times whose first text is embedded again, in one report."""
_BEFORE = 200
"""Versions of a node that are undone to come to its first text."""


class Drift:
    """Reports drift."""

    def __init__(self, history: History, vectors: NodeVectors, structure: Structure, embedder: Embedder) -> None:
        self._history, self._vectors = history, vectors
        self._structure, self._embedder = structure, embedder

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
        found = [_to_drifted(nodes[id], drift, moves[id]) for id, drift in far.items() if drift > threshold]
        return sorted(found, key=lambda one: (-one.drift, one.node.id))[:limit]

    async def _whole(self, tenant: str, nodes: Sequence[ConstitutionNode], since: datetime | None) -> dict[str, float]:
        """How far nodes are from what they were at first, of those of which that is known."""
        texts = {node.id: text for node in nodes if (text := await self._first(tenant, node, since))}
        if not texts:
            return {}
        now = {one.id: one.vector async for one in self._vectors.scan(tenant, NodeFilter(lifecycle=None, ids=frozenset(texts)))}
        try:
            then = {id: await self._embedded(text) for id, text in texts.items() if id in now}
        except ServiceError as error:
            log.warning("the drift over several changes is not known: %s", error.code)
            return {}
        return {id: round(max(0.0, 1 - _cosine(vector, now[id])), 6) for id, vector in then.items()}

    async def _embedded(self, text: str) -> Vector:
        parts = await self._embedder.embed_texts(split_text(text))
        return parts[0] if len(parts) == 1 else pool(parts)

    async def _first(self, tenant: str, node: ConstitutionNode, since: datetime | None) -> str:
        """The text of a node before its first change of the time that is asked for; empty where that is not known."""
        versions = await self._history.versions(tenant, node.id, _BEFORE)
        undone = [version for version in versions if (since is None or version.at >= since) and version.operation == "update"]
        fields = dict(_oldest_values(undone))
        told = node.model_dump(mode="json")
        known = {name: value for name, value in (told | fields).items() if value is not None}
        return text_of_node(ConstitutionNode.model_validate(known), TYPES[node.type]) if fields and known.get("title") else ""


def _oldest_values(versions: Sequence[Version]) -> Iterator[tuple[str, object]]:
    seen: set[str] = set()
    for version in versions:
        for name, values in version.fields.items():
            if name not in seen:
                seen.add(name)
                yield name, _old_value(values)


def _old_value(values: Mapping[str, object]) -> object:
    return values.get("old")


def _to_drifted(node: ConstitutionNode, drift: float, versions: Sequence[Version]) -> Drifted:
    return Drifted(
        node=mention(node), drift=round(drift, 6), versions=len(versions), at=max(version.at for version in versions)
    )


def _cosine(a: Vector, b: Vector) -> float:
    return float(np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b) or 1.0))


_Pair = tuple[str, str, float]


class Duplicates:
    """Finds near-duplicates, and merges none."""

    def __init__(self, vectors: NodeVectors, history: History, structure: Structure) -> None:
        self._vectors, self._history, self._structure = vectors, history, structure

    async def find(self, who: Principal, threshold: float, layers: frozenset[Layer], limit: int) -> list[Duplicate]:
        """Pairs of active nodes of one type with a cosine of `threshold` or more, the most alike first."""
        if threshold >= search.DUPLICATE_COSINE:
            noted = await self._history.pairs(who.tenant, threshold, layers, limit)
            pairs = [(pair.one, pair.other, pair.cosine) for pair in noted]
        else:
            found = await gather_vectors(self._vectors, who.tenant, NodeFilter(layers=layers))
            pairs = await asyncio.to_thread(pairs_within_types, found, threshold, limit)
        nodes = await self._structure.nodes(who, sorted({id for *both, _ in pairs for id in both})) if pairs else {}
        return [
            Duplicate(one=mention(nodes[one]), other=mention(nodes[other]), score=round(cosine, 6))
            for one, other, cosine in pairs
            if one in nodes and other in nodes
        ]


def pairs_within_types(found: NodeMatrix, threshold: float, limit: int) -> list[_Pair]:
    """Pairs of one type above a cosine, the most alike first."""
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for row, type in enumerate(found.types):
        rows[type].append(row)
    pairs = [
        (found.ids[of_type[a]], found.ids[of_type[b]], cosine)
        for of_type in rows.values()
        for a, b, cosine in pairs_above(found.points[of_type], threshold, limit)
    ]
    return sorted(pairs, key=lambda pair: (-pair[2], pair[:2]))[:limit]
