"""Graph expansion over many items: how long a walk of two hops takes, as a retrieval asks for it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

import numpy as np

from phronesis_contracts.memory import EntityType, KnowledgeLink, KnowledgeNode, KnowledgeStored
from phronesis_contracts.twin import Expand
from phronesis_graph.links.items import LinkStore

from .progress import say

_BATCH = 100
_LINKS = 3
"""Links of an item to earlier ones; the earlier an item, the more link to it, so that there are hubs."""
_SEEDS, _HOPS, _LIMIT = 5, 2, 100


@dataclass(frozen=True)
class ExpansionFigures:
    """What was measured for one size on one store."""

    items: int
    p50_ms: float
    p95_ms: float
    found: float
    """Items that a walk gives, on average: the same on every store."""
    fill_s: float


async def measure(store: LinkStore, count: int, *, questions: int = 200, seed: int = 1) -> ExpansionFigures:
    """Store `count` linked items of one owner, as the memory service announces them, and walk from random ones."""
    tenant, owner, rng = f"bench-{uuid4().hex[:8]}", "ann", np.random.default_rng(seed)
    began = time.perf_counter()
    for number, news in enumerate(_news(owner, count, rng)):
        await store.store(tenant, news)
        if number % 200 == 199:
            say(f"graph: {(number + 1) * _BATCH:,} of {count:,} items")
    filled = time.perf_counter() - began
    taken, found = [], []
    for start in rng.integers(count, size=(questions + 20, _SEEDS)).tolist():
        began = time.perf_counter()
        question = Expand(ids=tuple(dict.fromkeys(f"i{n}" for n in start)), hops=_HOPS, limit=_LIMIT)
        found.append(len(await store.expand(tenant, owner, question)))
        taken.append((time.perf_counter() - began) * 1000)
    warm = taken[20:]
    return ExpansionFigures(
        count,
        round(statistics.median(warm), 2),
        round(statistics.quantiles(warm, n=20)[18], 2),
        round(statistics.mean(found[20:]), 1),
        round(filled, 1),
    )


def _news(owner: str, count: int, rng: np.random.Generator) -> Iterator[KnowledgeStored]:
    for start in range(0, count, _BATCH):
        numbers = range(start, min(start + _BATCH, count))
        links = [
            KnowledgeLink(source=f"i{n}", target=f"i{target}", type="RELATED_TO")
            for n in numbers
            for target in sorted({int(n * share**2) for share in rng.random(_LINKS).tolist()})
            if target != n
        ]
        nodes = tuple(KnowledgeNode(id=f"i{n}", type=EntityType.MEMORY_UNIT if n % 5 else EntityType.CONCEPT) for n in numbers)
        yield KnowledgeStored(owner=owner, version=1, nodes=nodes, links=tuple(links))
