"""How well the constitutional graph is searched: labelled questions, pairs that say the same or nothing alike, topics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import mean
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import silhouette_score

from phronesis_contracts.constitution.registry import TYPES
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_memory.constitution.nodes import text_of_node
from phronesis_samples.institute import make_families
from phronesis_samples.institute.generator import Query
from phronesis_samples.institute.plan import PlannedNode

from .constitution_graph import SEED, Graph, at
from .constitution_seed import (
    DUPLICATES,
    FALSE_POSITIVES,
    PRECISION_HYBRID,
    PRECISION_SEMANTIC,
    SILHOUETTE,
    UNRELATED,
    verdict,
)

_PAIRS = 60
_RESULTS = 10
Vector = npt.NDArray[np.float64]
Row = tuple[str, str, str, bool]
"""A figure's name, its threshold, what was measured, and whether it kept to it."""


@dataclass(frozen=True)
class Quality:
    """What was measured on one graph."""

    size: int
    questions: int
    anchored: int
    semantic: float
    """Precision@10 over all questions."""
    hybrid: float
    semantic_anchored: float
    hybrid_anchored: float
    false_positives: float
    same: tuple[float, ...]
    """Cosines of pairs that say the same."""
    apart: tuple[float, ...]
    """Cosines of pairs that speak of different topics."""
    silhouette: float
    model: str
    wrong: float = 0.0
    """Share of what was returned that is irrelevant, over all questions."""


async def judged(graph: Graph, questions: int, pairs: int = _PAIRS) -> Quality:
    """Ask the labelled questions by meaning and by both, and look at the vectors of planted texts."""
    asked = _spread(graph.made.queries(), questions)
    active = sum(spot.active for spot in graph.made.spots)
    by_meaning, by_both, wrong = [], [], []
    returned = irrelevant = 0
    for query in asked:
        found = await _found(graph, query, "semantic.search.v1")
        by_meaning.append(_precision(found, query))
        wrong.append(sum(id not in query.relevant for id in found) / max(1, active - len(query.relevant)))
        returned, irrelevant = returned + len(found), irrelevant + sum(id not in query.relevant for id in found)
        both = found if query.anchor is None else await _found(graph, query, "hybrid.search.v1")
        by_both.append(_precision(both, query))
    near = [number for number, query in enumerate(asked) if query.anchor is not None]
    return Quality(
        graph.size,
        len(asked),
        len(near),
        mean(by_meaning),
        mean(by_both),
        mean([by_meaning[number] for number in near] or [0.0]),
        mean([by_both[number] for number in near] or [0.0]),
        mean(wrong),
        await _cosines(graph, graph.made.duplicates()[:pairs]),
        await _cosines(graph, graph.made.unrelated(pairs)),
        await _silhouette(graph),
        await _model(graph),
        irrelevant / max(1, returned),
    )


def _spread(queries: list[Query], count: int) -> list[Query]:
    return queries[:: max(1, len(queries) // count)][:count]


async def _found(graph: Graph, query: Query, tool: str) -> list[str]:
    body: dict[str, Any] = {"query": query.text, "topK": _RESULTS}  # and no floor: what is shipped is measured
    if tool.startswith("hybrid"):
        body["anchorNodeId"] = query.anchor
    return [hit["node"]["id"] for hit in (await graph.call(tool, body))["results"]]


def _precision(found: list[str], query: Query) -> float:
    return sum(id in query.relevant for id in found) / _RESULTS


async def _cosines(graph: Graph, pairs: list[tuple[str, str]]) -> tuple[float, ...]:
    spots = {spot.id: spot for spot in graph.made.spots}
    found = []
    for one, other in pairs:
        a, b = [await _vector(graph, text(graph, spots[id])) for id in (one, other)]
        found.append(float(a @ b))
    return tuple(found)


def text(graph: Graph, spot: PlannedNode) -> str:
    """A node's text as memory embeds it."""
    kind = TYPES[spot.type]
    told = graph.made.node(spot).model_dump(by_alias=True, exclude_none=True)
    return text_of_node(ConstitutionNode.model_validate(told | {"layer": kind.layer}), kind)


async def _silhouette(graph: Graph) -> float:
    """Of planted topics, by cosine distance: texts of one family say the same thing in other words."""
    planted = make_families(SEED)
    vectors = [await _vector(graph, said) for texts in planted for said in texts]
    labels = [number for number, texts in enumerate(planted) for _ in texts]
    return float(silhouette_score(np.array(vectors), labels, metric="cosine"))


async def _vector(graph: Graph, said: str) -> Vector:
    """The vector of a text, by the embedder that the stack uses."""
    body = {"query": said[:4_000], "topK": 1, "includeQueryEmbedding": True}
    vector = np.array((await graph.call("semantic.search.v1", body))["queryEmbedding"])
    unit: Vector = vector / np.linalg.norm(vector)
    return unit


async def _model(graph: Graph) -> str:
    ids = [spot.id for spot in graph.made.spots if spot.type == "principle"][:1]
    records = (await graph.call("embeddings.status.v1", {"ids": ids}))["records"]
    return next((f"{each['model']}, {each['dimension']} dimensions" for each in records if each.get("model")), "unknown")


def table(found: Quality) -> list[str]:
    """The thresholds beside what was measured."""
    head = f"{found.questions} labelled questions on {found.size:,} nodes; embedder {found.model}."
    lines = [head, "", "| quality | threshold | measured | kept |", "|---|---|---|---|"]
    rows = [*_of_questions(found), *_of_vectors(found)]
    return [*lines, *(f"| {name} | {wanted} | {got} | {verdict(kept)} |" for name, wanted, got, kept in rows)]


def _of_questions(found: Quality) -> Iterator[Row]:
    anchored = f"{found.semantic_anchored:.3f} and {found.hybrid_anchored:.3f}"
    wrong = found.false_positives
    yield "precision@10, semantic", f"above {PRECISION_SEMANTIC}", f"{found.semantic:.3f}", found.semantic > PRECISION_SEMANTIC
    yield "precision@10, hybrid", f"above {PRECISION_HYBRID}", f"{found.hybrid:.3f}", found.hybrid > PRECISION_HYBRID
    yield "hybrid over semantic", "above 0", f"{found.hybrid - found.semantic:+.3f}", found.hybrid > found.semantic
    near = f"both, on the {found.anchored} questions around a node"
    yield near, "hybrid above", anchored, found.hybrid_anchored > found.semantic_anchored
    yield "false positives, of all irrelevant nodes", f"below {FALSE_POSITIVES}", f"{wrong:.5f}", wrong < FALSE_POSITIVES
    yield "irrelevant, of what was returned", f"below {FALSE_POSITIVES}", f"{found.wrong:.3f}", found.wrong < FALSE_POSITIVES


def _of_vectors(found: Quality) -> Iterator[Row]:
    if found.same:  # a small graph says nothing twice
        shown = f"{mean(found.same):.3f}, {at(found.same, 5):.3f}"
        name = f"cosine of {len(found.same)} pairs that say the same: mean, 5th percentile"
        yield name, f"above {DUPLICATES}", shown, mean(found.same) > DUPLICATES
    if found.apart:
        shown = f"{mean(found.apart):.3f}, {at(found.apart, 95):.3f}"
        name = f"cosine of {len(found.apart)} unrelated pairs: mean, 95th percentile"
        yield name, f"below {UNRELATED}", shown, mean(found.apart) < UNRELATED
    yield "silhouette of planted topics", f"above {SILHOUETTE}", f"{found.silhouette:.3f}", found.silhouette > SILHOUETTE
