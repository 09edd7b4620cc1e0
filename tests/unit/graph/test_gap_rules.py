"""The rules of gaps, held against a second reading of the ontology's definitions over small random graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_bus import Call
from phronesis_contracts import Principal
from phronesis_contracts.twin import ChainRun, DiagnoseGaps, GapQuestion, Level, NodeRef, RunChain, Survey, Surveyed
from phronesis_graph.twin.chains import Walk, build_walks
from phronesis_graph.twin.entities import NamedNode
from phronesis_graph.twin.gaps import ChainReach, Direction, FoundTie, GapCase, NodeId, Tie, TieQuestion
from phronesis_graph.twin.handlers import ReasoningHandlers
from phronesis_graph.twin.ontology_file import load

ONTOLOGY = load()
WALKS = build_walks(ONTOLOGY)
YEARS = (2022, 2023)
LEVELS = (Level.L2, Level.L3)
TYPES = ("EntityCapability", "EntityRisk", "SectorPolicyTool")
STEPS = {("EntityCapability", "EntityRisk"): "MONITORED_BY", ("EntityRisk", "SectorPolicyTool"): "INFORMS"}
CHAIN = "Risk_Build_Mode"


@dataclass(frozen=True)
class Graph:
    """Nodes by (type, id, year) with their level, and edges between them inside a year, whatever their levels."""

    nodes: Mapping[tuple[str, str, int], Level]
    edges: frozenset[tuple[tuple[str, str, int], tuple[str, str, int]]]

    def next(self, key: tuple[str, str, int], type: str) -> list[tuple[str, str, int]]:
        return sorted(b for a, b in self.edges if a == key and b[0] == type)


class Memory:
    """The port over a graph in memory, node by node and edge by edge."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    async def survey(self, tenant: str, question: Survey) -> Surveyed:
        raise NotImplementedError

    async def paths(self, tenant: str, walk: Walk, question: RunChain) -> ChainRun:
        raise NotImplementedError

    async def named(self, tenant: str, types: Sequence[str], text: str, year: int | None) -> list[NamedNode]:
        raise NotImplementedError

    async def standing(self, tenant: str, things: Iterable[NodeId]) -> Mapping[NodeId, Mapping[int, Level]]:
        return {
            (type, id): {year: level for (t, i, year), level in self.graph.nodes.items() if (t, i) == (type, id)}
            for type, id in things
        }

    async def reached(self, tenant: str, cases: Mapping[Walk, Sequence[GapCase]]) -> Mapping[str, ChainReach]:
        return {case.id: self._reached(walk, case) for walk, of in cases.items() for case in of}

    def _reached(self, walk: Walk, case: GapCase) -> ChainReach:
        node = case.question.node
        here, hops = [(node.type, node.id, node.year)], 0
        for hop in walk.hops:
            there = sorted({b for a in here for b in self.graph.next(a, hop.targets[0]) if self.graph.nodes[b] is case.level})
            if not there:
                break
            here, hops = there, hops + 1
        return ChainReach(hops, tuple(f"{type}/{id}/{year}" for type, id, year in here))

    async def ties(self, tenant: str, asked: Mapping[Tie, Sequence[TieQuestion]]) -> Sequence[FoundTie]:
        found = []
        for tie, of in asked.items():
            for one in of:
                for a, b in self.graph.edges:
                    for x, y, way in ((a, b, Direction.OUT), (b, a, Direction.IN)):
                        fits = (x[0], x[1]) == (tie.source, one.id) and y[0] in tie.targets and one.other in (None, y[1])
                        if fits and tie.direction in (way, Direction.EITHER) and STEPS[a[0], b[0]] in tie.names:
                            levels = self.graph.nodes[x], self.graph.nodes[y]
                            found.append(FoundTie(one.question, x[0], x[1], x[2], *levels))
        return found


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    keys = [(type, id, year) for type in TYPES for id in ("a", "b") for year in YEARS]
    nodes = {key: level for key in keys if (level := draw(st.sampled_from((None, *LEVELS)))) is not None}
    possible = [(a, b) for a in nodes for b in nodes if (a[0], b[0]) in STEPS and a[2] == b[2]]
    edges = draw(st.sets(st.sampled_from(possible))) if possible else set()
    return Graph(nodes, frozenset(edges))


async def answer(graph: Graph, question: GapQuestion) -> str | None:
    """The gap that is found, `unknown` where nothing can be said."""
    handlers = ReasoningHandlers(ONTOLOGY, WALKS, Memory(graph))
    call = Call(Principal(tenant="acme", user="ann"), "orchestrator")
    result = await handlers.diagnose_gaps(call, DiagnoseGaps(questions=(question,)))
    if result.unknown:
        return "unknown"
    return result.gaps[0].type.value if result.gaps else None


def oracle_node(graph: Graph, type: str, id: str, year: int, level: Level) -> str | None:
    found = [(y, graph.nodes[t, i, y]) for t, i, y in graph.nodes if (t, i) == (type, id)]
    if not found:
        return "unknown"
    if year not in [y for y, _ in found]:
        return "TemporalGap"
    return None if (year, level) in found else "LevelMismatch"


def oracle_pair(graph: Graph, one: tuple[str, str], other: tuple[str, str], year: int, level: Level) -> str | None:
    """Each definition in its own words, in the order in which they count."""
    singles = [oracle_node(graph, *thing, year, level) for thing in (one, other)]
    if "unknown" in singles:
        return "unknown"
    joined = {
        y
        for y in YEARS
        if ((*one, y), (*other, y)) in graph.edges and graph.nodes[*one, y] is level and graph.nodes[*other, y] is level
    }
    if year in joined:
        return None
    if "TemporalGap" in singles or joined:
        return "TemporalGap"
    return "LevelMismatch" if "LevelMismatch" in singles else "DirectRelationshipMissing"


def oracle_chain(graph: Graph, id: str, year: int, level: Level) -> str | None:
    start = ("EntityCapability", id, year)
    if (single := oracle_node(graph, *start, level)) is not None:
        return single
    risks = [b for b in graph.next(start, "EntityRisk") if graph.nodes[b] is level]
    tools = [c for b in risks for c in graph.next(b, "SectorPolicyTool") if graph.nodes[c] is level]
    if tools:
        return None
    stops, follows = (risks, "SectorPolicyTool") if risks else ([start], "EntityRisk")
    for type, its, _ in stops:
        for y in YEARS:
            past = (type, its, y)
            if y != year and graph.nodes.get(past) is level:
                if any(graph.nodes[x] is level for x in graph.next(past, follows)):
                    return "TemporalGap"
    return "LevelMismatch" if any(graph.next(stop, follows) for stop in stops) else "ChainBreak"


@pytest.mark.req("N-160", "N-163", "N-164", "NC-078")
@given(graphs(), st.sampled_from(YEARS), st.sampled_from(LEVELS))
async def test_a_node_has_the_gap_that_the_definitions_give(graph: Graph, year: int, level: Level) -> None:
    question = GapQuestion(id="q", node=NodeRef(type="EntityRisk", id="a", year=year), level=level)
    assert await answer(graph, question) == oracle_node(graph, "EntityRisk", "a", year, level)


@pytest.mark.req("N-160", "N-162", "N-163", "N-164")
@given(graphs(), st.sampled_from(YEARS), st.sampled_from(LEVELS), st.sampled_from(tuple(STEPS)))
async def test_a_pair_has_the_gap_that_the_definitions_give(
    graph: Graph, year: int, level: Level, pair: tuple[str, str]
) -> None:
    nodes = [NodeRef(type=type, id="a", year=year) for type in pair]
    question = GapQuestion(id="q", node=nodes[0], other=nodes[1], level=level)
    assert await answer(graph, question) == oracle_pair(graph, (pair[0], "a"), (pair[1], "a"), year, level)


@pytest.mark.req("N-160", "N-163", "N-164", "N-165", "NC-078")
@given(graphs(), st.sampled_from(YEARS), st.sampled_from(LEVELS))
async def test_a_chain_has_the_gap_that_the_definitions_give(graph: Graph, year: int, level: Level) -> None:
    question = GapQuestion(id="q", node=NodeRef(type="EntityCapability", id="a", year=year), level=level, chain=CHAIN)
    assert await answer(graph, question) == oracle_chain(graph, "a", year, level)
