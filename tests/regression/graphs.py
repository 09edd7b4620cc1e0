"""Steps 3 to 7, on made-up graphs in one running stack: latency, tokens, vectors, sessions, relevance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from random import Random
from typing import Any

from bench import constitution_quality as quality
from bench import constitution_times as times
from bench import constitution_tokens as tokens
from bench.constitution_graph import Graph
from bench.constitution_seed import NO
from phronesis_contracts.constitution.registry import TYPES, Layer
from tests.support.people import Town

from .steps import Found

AGENTS = ("discuss", "decisions", "execute", "mind")
CHECKED = 10
"""Nodes whose vectors are looked at."""


@dataclass(frozen=True)
class Checked:
    """One node's vector."""

    id: str
    dimension: int
    norm: float
    rank: int
    """Of the node among what its own text finds, 0 where it is not found."""


@dataclass(frozen=True)
class Begun:
    """One agent's session."""

    agent: str
    missing: tuple[str, ...]
    """Nodes of foundation and vision that it lacks."""
    workload: bool
    warnings: tuple[str, ...]


class Steps:
    """The steps, over graphs that are filled already.

    Args:
        graphs: one for each size, the smallest first.
        people: the users of the stack.
        calls: calls of each operation.
        questions: labelled questions that are asked.
    """

    def __init__(self, graphs: Sequence[Graph], people: Town, calls: int, questions: int) -> None:
        self._graphs = graphs
        self._people = people
        self._calls = calls
        self._questions = questions

    async def latency(self) -> Found:
        """Step 3."""
        found = [await times.measured(graph, self._calls) for graph in self._graphs]
        return kept([*times.operations(found[min(1, len(found) - 1)]), "", *times.by_size(found)])

    async def tokens(self) -> Found:
        """Step 4."""
        found = [await tokens.counted(graph) for graph in self._graphs]
        return kept([*tokens.by_size(found), "", *tokens.searches(found)])

    async def vectors(self) -> Found:
        """Step 5."""
        graph = self._graphs[-1]
        twice = {id for pair in graph.made.duplicates() for id in pair}
        there = [
            s for s in graph.made.spots if s.active and not s.oblique and TYPES[s.type].tier is not None and s.id not in twice
        ]
        chosen = Random().sample(there, min(CHECKED, len(there)))
        return sound([await self._checked(graph, spot.id, quality.text(graph, spot)) for spot in chosen])

    async def sessions(self) -> Found:
        """Step 6."""
        graph = self._graphs[-1]
        return complete([await self._begun(graph, agent) for agent in AGENTS])

    async def relevance(self) -> Found:
        """Step 7."""
        return kept(quality.table(await quality.judged(self._graphs[-1], self._questions)))

    async def _checked(self, graph: Graph, id: str, text: str) -> Checked:
        (record,) = (await graph.call("embeddings.status.v1", {"ids": [id]}))["records"] or [{}]
        body: dict[str, Any] = {"query": text[:4_000], "topK": 10, "minSimilarity": 0.0, "includeQueryEmbedding": True}
        found = await graph.call("semantic.search.v1", body)
        ids = [hit["node"]["id"] for hit in found["results"]]
        # What is stored is nearest to the vector of its own text only where it is that vector, so its length is this one's.
        norm = sqrt(sum(number * number for number in found["queryEmbedding"]))
        return Checked(id, record.get("dimension") or 0, norm, ids.index(id) + 1 if id in ids else 0)

    async def _begun(self, graph: Graph, agent: str) -> Begun:
        person = await self._people.someone(tenant=graph.tenant, role=agent)
        answer = await person.tool("session.start.v1", {})
        if answer.status_code != 200:
            return Begun(agent, (), False, (answer.text[:300],))
        body = answer.json()
        there = {node["id"] for node in (*body["foundation"], *body["vision"])}
        loaded = (Layer.FOUNDATION, Layer.VISION)
        wanted = {spot.id for spot in graph.made.spots if spot.active and TYPES[spot.type].layer in loaded}
        return Begun(agent, tuple(sorted(wanted - there)), body["workload"] is not None, tuple(body["warnings"]))


def kept(lines: Sequence[str]) -> Found:
    """A report whose rows say themselves whether they kept to their numbers."""
    return Found(tuple(lines), tuple(line for line in lines if NO in line))


def sound(vectors: Sequence[Checked]) -> Found:
    """Every vector has a dimension and a length, and is found first by its own text."""
    lines = tuple(f"{each.id}: dimension {each.dimension}, norm {each.norm:.3f}, rank {each.rank}" for each in vectors)
    bad = [each.id for each in vectors if each.dimension < 2 or not each.norm > 0 or each.rank != 1]
    breaches = [f"the vector of {id} is not sound" for id in bad]
    return Found(lines, tuple(breaches if vectors else ("there are no vectors",)))


def complete(sessions: Sequence[Begun]) -> Found:
    """Every agent's session holds foundation, vision and workload."""
    lines, breaches = [], []
    for each in sessions:
        lines.append(f"{each.agent}: {len(each.missing)} nodes missing, workload {'there' if each.workload else 'missing'}")
        if each.missing or not each.workload:
            breaches.append(f"the session of {each.agent} lacks {', '.join(each.missing[:5]) or 'its workload'}{_said(each)}")
    return Found(tuple(lines), tuple(breaches))


def _said(each: Begun) -> str:
    return f" ({'; '.join(each.warnings)})" if each.warnings else ""
