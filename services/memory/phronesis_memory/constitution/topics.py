"""Topics: clusters of the graph's vectors, with keywords, kept until they are found anew."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt

from phronesis_contracts import NotFound, Principal
from phronesis_contracts.constitution.insight import Topic, TopicNodesFound, TopicsListed
from phronesis_contracts.constitution.registry import TYPES, Layer
from phronesis_contracts.constitution.values import Mention

from .clusters import (
    UNASSIGNED,
    Clustering,
    Matrix,
    NodeMatrix,
    cluster,
    find_keywords,
    gather_vectors,
    load_libraries,
    without_types,
)
from .ports import FoundTopic, NodeFilter, NodeVectors, Structure, Texts, TopicMember, TopicRun, TopicStore
from .semantic import mention

NEAREST = 5
"""Nodes that stand for a topic in the list."""
_FRESH = timedelta(days=1)
"""Age at which topics are found anew by whoever asks for them."""
_SAME = 0.3
"""Share of nodes that a topic has in common with a former one (of all that either has) where it keeps its id."""
_TEXTS = 500


class Topics:
    """Finds topics, and tells those that were found. `vectors`: the index, which also knows the topic of each node."""

    def __init__(self, vectors: NodeVectors, texts: Texts, structure: Structure, store: TopicStore) -> None:
        self._vectors, self._texts = vectors, texts
        self._structure, self._store = structure, store
        self._finding = asyncio.Lock()

    async def list(self, who: Principal, layers: frozenset[Layer], refresh: bool) -> TopicsListed:
        """The topics, the largest first; found anew where that is asked for, or where they are a day old."""
        run = await self._store.run(who.tenant)
        if refresh or run is None or datetime.now(UTC) - run.computed_at > _FRESH:
            run = await self._found(who.tenant)
        listed = await self._store.listed(who.tenant, layers, NEAREST)
        wanted = sorted({id for one in listed for id in one.nearest})
        nodes = await self._structure.nodes(who, wanted) if wanted else {}
        topics = tuple(
            Topic(
                id=one.id,
                keywords=one.keywords,
                size=one.size,
                nodes=tuple(mention(nodes[id]) for id in one.nearest if id in nodes),
            )
            for one in listed
        )
        return TopicsListed(topics=topics, silhouette=run.silhouette, unassigned=run.unassigned, computed_at=run.computed_at)

    async def nodes(self, who: Principal, topic_id: str, limit: int) -> TopicNodesFound:
        """The nodes of a topic, those nearest to its middle first. Raises `NotFound`: there is no such topic."""
        found = await self._store.members(who.tenant, topic_id, limit)
        if found is None:
            raise NotFound("there is no such topic; topics.list.v1 lists them", field="topicId")
        ids, total = found
        nodes = await self._structure.nodes(who, ids) if ids else {}
        mentions: tuple[Mention, ...] = tuple(mention(nodes[id]) for id in ids if id in nodes)
        return TopicNodesFound(nodes=mentions, total=total)

    async def _found(self, tenant: str) -> TopicRun:
        async with self._finding:  # one at a time: each takes a whole core
            those = await gather_vectors(self._vectors, tenant, NodeFilter())
            await load_libraries()
            clusters = await asyncio.to_thread(lambda: cluster(without_types(those)))
            texts: dict[str, str] = {}
            for at in range(0, len(those.ids), _TEXTS):
                texts |= await self._texts.texts(tenant, those.ids[at : at + _TEXTS])
            before = await self._store.all(tenant)
            run = await asyncio.to_thread(build_topics, those, clusters, texts, before)
            await self._store.replace(tenant, run)
            of_node: dict[str, str | None] = {id: None for id in those.ids}
            of_node |= {id: None for members in before.values() for id in members}
            of_node |= {member.id: topic.id for topic in run.topics for member in topic.members}
            await self._vectors.assign(tenant, of_node)
            return run


def build_topics(
    those: NodeMatrix, clusters: Clustering, texts: Mapping[str, str], before: Mapping[str, frozenset[str]]
) -> TopicRun:
    """Clusters as topics: with keywords, and with the ids that they had before where they are still the same."""
    groups = [np.flatnonzero(clusters.labels == label) for label in np.unique(clusters.labels) if label != UNASSIGNED]
    members = [_members(those, group) for group in groups]
    names = _topic_ids([frozenset(member.id for member in some) for some in members], [some[0].id for some in members], before)
    said = find_keywords(
        {
            name: [_prose(texts.get(member.id, ""), member.type) for member in some]
            for name, some in zip(names, members, strict=True)
        }
    )
    found = [FoundTopic(name, said[name], tuple(some)) for name, some in zip(names, members, strict=True)]
    return TopicRun(
        datetime.now(UTC),
        round(clusters.silhouette, 6),
        int(np.count_nonzero(clusters.labels == UNASSIGNED)),
        tuple(sorted(found, key=lambda one: (-len(one.members), one.id))),
    )


def _members(those: NodeMatrix, group: npt.NDArray[np.intp]) -> list[TopicMember]:
    points: Matrix = those.points[group]
    middle = points.sum(axis=0)
    closeness = points @ (middle / np.float32(np.linalg.norm(middle) or 1.0))
    found = [
        TopicMember(those.ids[row], those.types[row], those.layers[row], round(float(close), 6))
        for row, close in zip(group, closeness, strict=True)
    ]
    return sorted(found, key=lambda member: (-member.closeness, member.id))


def _topic_ids(groups: Sequence[frozenset[str]], nearest: Sequence[str], before: Mapping[str, frozenset[str]]) -> list[str]:
    """An id for each group: that of the former topic that it shares most nodes with, or one made of its nearest node."""
    shared = sorted(
        (-len(group & members) / len(group | members), place, id)
        for place, group in enumerate(groups)
        for id, members in before.items()
        if group & members
    )
    names: dict[int, str] = {}
    for share, place, id in shared:
        if -share >= _SAME and place not in names and id not in names.values():
            names[place] = id
    taken = {*names.values(), *before}
    for place, id in enumerate(nearest):
        salt = 0
        while place not in names:
            name = f"topic-{hashlib.sha256(f'{id} {salt}'.encode()).hexdigest()[:10]}"
            if name not in taken:
                names[place] = name
                taken.add(name)
            salt += 1
    return [names[place] for place in range(len(groups))]


_PLAIN_FIELDS = frozenset({"title", "summary", "description"})
_TOLD = frozenset({"statement", "response", "narrative", "target", "reasoning", "rationale", "content"})
"""Further fields that are told in sentences; the others hold figures, dates and kinds."""


def _prose(text: str, type: str) -> str:
    """What a node's text says in sentences, the title first: without its type, and without fields' names."""
    kept = []
    others = [name for name in TYPES[type].text if name not in _PLAIN_FIELDS] if type in TYPES else []
    for line in text.split("\n")[1:]:
        name = next((one for one in others if line.startswith(f"{one}: ")), None)
        if name is None:
            kept.append(line)
        elif name in _TOLD and not line.startswith((f"{name}: {{", f"{name}: [")):
            kept.append(line[len(name) + 2 :])
    return "\n".join(kept)
