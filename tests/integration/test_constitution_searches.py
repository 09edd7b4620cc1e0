"""Graph and memory together on a broker: what is written is searched, proposed patterns are nodes, and rights are kept."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from phronesis_bus import Bus, ask
from phronesis_contracts import Forbidden, NotFound, Principal
from phronesis_contracts.constitution import insight, search, writes
from phronesis_contracts.constitution.lists import GET_NODE, GetConstitutionNode
from phronesis_contracts.constitution.registry import Layer
from phronesis_contracts.constitution.search import SEARCH_TOKENS
from phronesis_graph.app import build as build_graph
from phronesis_graph.bolt.driver import Bolt
from phronesis_memory.app import build
from phronesis_memory.indexes import make_pgvector_index
from phronesis_memory.settings import MemorySettings
from phronesis_postgres import Database
from tests.support.bus import connected, eventually, somebody
from tests.support.graph import settings
from tests.support.memory import WordEmbedder, open_index
from tests.support.personas import Persona
from tests.support.servers import GraphServer, NatsServer, PostgresServer, VectorServer


@dataclass
class World:
    """Who asks, and what they wrote."""

    gateway: Bus
    database: Database
    embedder: WordEmbedder

    async def create(self, who: Principal, type: str, id: str, title: str, seconds: float = 20.0, **more: Any) -> None:
        """Write a node."""
        tool = writes.CREATE[type]
        request = tool.rpc.input.model_validate({"id": id, "title": title} | more)
        await ask(self.gateway, who, tool.rpc, request, timeout=seconds)

    async def link(self, who: Principal, *links: tuple[str, str, str]) -> None:
        """Join nodes: from, type, to."""
        for from_id, type, to_id in links:
            asked = writes.Relate(from_id=from_id, type=type, to_id=to_id)
            await ask(self.gateway, who, writes.RELATE, asked, timeout=20)

    async def semantic(self, who: Principal, query: str, **more: Any) -> search.SemanticFound:
        """Ask by meaning, after all that was written."""
        asked = {"query": query, "consistency": "strong", "minSimilarity": 0.2} | more
        return await ask(self.gateway, who, search.SEMANTIC_SEARCH, search.SemanticSearch.model_validate(asked))


@pytest.fixture(scope="module")
async def world(
    nats_server: NatsServer,
    postgres: PostgresServer,
    weaviate: VectorServer | None,
    graph_server: GraphServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[World]:
    how = settings(graph_server, Path(tmp_path_factory.mktemp("graph")))
    embedder, chosen = WordEmbedder(), MemorySettings()
    async with (
        connected(nats_server, "graph", "gateway", "memory") as (graph, gateway, memory),
        Bolt.open(how) as bolt,
        postgres.fresh_schema("memory") as where,
        Database.open(where, "memory") as database,
        open_index(weaviate, database, embedder) as index,
    ):
        await build_graph(graph, bolt, how.dialect)
        used = index or make_pgvector_index(database, embedder.model, embedder.dimension, chosen)
        await build(memory, database, embedder, chosen, used)
        world = World(gateway, database, embedder)
        # The schema of the graph is declared in the background: the first write waits for it.
        await world.create(admin(), "note", "first", "the first", seconds=60.0)
        yield world
        await memory.stop()
        await graph.stop()


def admin() -> Principal:
    """Somebody who may do everything, in a tenant of their own."""
    return somebody(**Persona.ADMIN.rights)


def told(found: Any) -> list[str]:
    """The ids of what was found."""
    return [one.node.id for one in found.results]


@pytest.mark.req("O-377", "O-155", "O-166", "O-308")
async def test_what_is_written_is_found_with_its_relationships_until_it_is_deleted(world: World) -> None:
    who = admin()
    await world.create(who, "goal", "harvest", "a kind harvest")
    await world.create(who, "value", "kindness", "kindness above all")
    await world.link(who, ("harvest", "SERVES", "kindness"))
    found = await world.semantic(who, "kind harvest", includeRelationships=True)
    assert told(found)[0] == "harvest"
    assert [(one.type, one.from_id, one.to_id) for one in found.results[0].relationships or ()] == [
        ("SERVES", "harvest", "kindness")
    ]
    await ask(world.gateway, who, writes.DELETE_NODE, writes.DeleteConstitutionNode(id="harvest"))
    assert "harvest" not in told(await world.semantic(who, "kind harvest"))


@pytest.mark.req("O-378", "O-177", "O-183", "O-437", "O-445", "O-440")
async def test_a_goal_is_found_by_its_words_with_the_strategies_around_it(world: World) -> None:
    who = admin()
    await world.create(who, "goal", "revenue", "double revenue in spring")
    await world.create(who, "strategy", "partners", "win partners abroad")
    await world.create(who, "strategy", "pilots", "pilots for partners")
    await world.create(who, "strategy", "old", "old revenue", status="archived")
    await world.create(who, "strategy", "apart", "double revenue by advertising tea abroad in spring")
    await world.link(who, ("partners", "SERVES", "revenue"), ("pilots", "SERVES", "partners"), ("old", "SERVES", "revenue"))
    await world.semantic(who, "anything")
    found = await ask(world.gateway, who, search.GOAL_SEARCH, search.GoalSearch(query="goal double revenue in spring"))
    results = {one.node.id: one for one in found.found.results}
    assert found.goal.id == "revenue"
    assert [one.node.id for one in found.found.results] == ["partners", "pilots", "apart"]
    assert [(step.node_id, step.relationship) for step in results["pilots"].path or ()] == [
        ("partners", "SERVES"),
        ("pilots", "SERVES"),
    ]
    assert (results["partners"].structural_score, results["pilots"].structural_score) == (1.0, 0.5)
    assert found.found.stats.token_estimate < SEARCH_TOKENS
    with pytest.raises(search.NoSuchGoal):
        await ask(world.gateway, who, search.GOAL_SEARCH, search.GoalSearch(query="completely unlike"))


@pytest.mark.req("O-170")
async def test_an_anchor_that_there_is_not_is_an_error(world: World) -> None:
    with pytest.raises(NotFound):
        await ask(world.gateway, admin(), search.HYBRID_SEARCH, search.HybridSearch(query="x", anchor_node_id="nobody"))


@pytest.mark.req("O-438", "O-439", "O-446", "O-282", "O-273")
async def test_precedents_have_their_outcomes_and_insights_their_evidence(world: World) -> None:
    who = admin()
    await world.create(who, "decision", "hire", "hire a second editor", roi={"total": 5})
    await world.create(who, "decision", "rent", "hire a room for an editor", roi={"total": 1})
    await world.create(who, "task", "done", "the editor began", status="done")
    await world.create(who, "task", "open", "the editor plans")
    await world.create(who, "insight", "learnt", "editor pays", confidence=0.8)
    await world.create(who, "evidence", "figures", "the figures of spring")
    await world.link(who, ("hire", "LEADS_TO", "done"), ("hire", "LEADS_TO", "open"), ("learnt", "SUPPORTED_BY", "figures"))
    await world.semantic(who, "anything")
    precedents = search.PrecedentSearch(query="hire an editor", min_roi=2)
    [decision] = (await ask(world.gateway, who, search.PRECEDENT_SEARCH, precedents)).results
    assert (decision.node.id, [one.id for one in decision.linked]) == ("hire", ["done"])
    [found] = (await ask(world.gateway, who, search.INSIGHT_SEARCH, search.InsightSearch(query="insight editor pays"))).results
    assert (found.node.id, [one.id for one in found.linked]) == ("learnt", ["figures"])


@pytest.mark.verify
@pytest.mark.req("O-326", "O-364")
async def test_a_kept_answer_ends_with_a_write_of_anybody(world: World) -> None:
    who = admin()
    await world.create(who, "value", "tea", "tea and calm")
    await world.semantic(who, "tea")
    asked = search.SemanticSearch(query="tea", min_similarity=0.2)

    async def kept() -> bool:
        return (await ask(world.gateway, who, search.SEMANTIC_SEARCH, asked)).cached

    await eventually(kept)
    other = who.model_copy(update={"user": "somebody-else", **Persona.MAESTRO.rights})
    await world.create(other, "value", "more", "more tea")

    async def both() -> bool:
        return len((await ask(world.gateway, who, search.SEMANTIC_SEARCH, asked)).results) == 2

    await eventually(both)


@pytest.mark.req("O-394", "O-391")
async def test_a_pattern_is_proposed_once_as_a_draft_of_the_mind_layer(world: World) -> None:
    who = admin()
    for place in ("spring", "summer", "autumn"):
        await world.create(who, "goal", f"g-{place}", f"launch the newsletter in {place}", status="archived")
    await world.semantic(who, "anything")
    asked = insight.DetectPatterns(kinds=("recurring_failure",), propose=True)
    mind = who.model_copy(update=Persona.MIND.rights)
    first = await ask(world.gateway, mind, insight.PATTERNS, asked)
    [pattern] = first.patterns
    assert (first.proposed, sorted(one.id for one in pattern.nodes)) == (1, ["g-autumn", "g-spring", "g-summer"])
    found = await ask(world.gateway, who, GET_NODE, GetConstitutionNode(id=pattern.node_id or "", include_relationships=True))
    assert (found.node.layer, (found.node.metadata or {})["draft"]) == (Layer.MIND, True)
    [link] = found.relationships
    cited = await ask(world.gateway, who, GET_NODE, GetConstitutionNode(id=link.to_id, include_relationships=True))
    assert {one.to_id for one in cited.relationships if one.type == "CITES"} == {"g-spring", "g-summer", "g-autumn"}
    again = await ask(world.gateway, mind, insight.PATTERNS, asked)
    assert [one.node_id for one in again.patterns] == [pattern.node_id]
    await world.semantic(who, "anything")
    third = await ask(world.gateway, mind, insight.PATTERNS, asked)
    assert (third.proposed, [one.node_id for one in third.patterns]) == (0, [pattern.node_id])


@pytest.mark.req("O-397", "O-398")
async def test_analogies_and_contradictions_over_the_bus(world: World) -> None:
    who = admin()
    await world.create(who, "goal", "new", "win ten partners abroad")
    await world.create(who, "goal", "won", "win five partners abroad", outcome="Achieved in May", status="archived")
    await world.create(who, "strategy", "visits", "visit them")
    await world.create(who, "principle", "open", "Always publish our data openly")
    await world.create(who, "principle", "shut", "Never publish our data openly")
    await world.create(who, "principle", "stated", "Rest well")
    await world.create(who, "value", "against", "Tireless work")
    await world.link(who, ("visits", "SERVES", "won"), ("stated", "CONTRADICTS", "against"))
    await world.semantic(who, "anything")
    [analogy] = (await ask(world.gateway, who, insight.ANALOGIES, insight.FindAnalogies(id="new"))).analogies
    assert (analogy.node.id, [one.id for one in analogy.strategies]) == ("won", ["visits"])
    found = await ask(world.gateway, who, insight.CONTRADICTIONS, insight.FindContradictions())
    assert [(pair.one.id, pair.other.id) for pair in found.pairs] == [("against", "stated"), ("open", "shut")]


@pytest.mark.req("O-346", "O-347")
async def test_roles_that_may_not_are_refused(world: World) -> None:
    who = somebody(**Persona.NOOR.rights)
    with pytest.raises(Forbidden):
        await ask(world.gateway, who, search.SEMANTIC_SEARCH, search.SemanticSearch(query="x"))
    reader = somebody(**Persona.DISCUSS.rights)
    with pytest.raises(Forbidden):
        await ask(world.gateway, reader, search.TUNE_RETRIEVAL, search.TuneRetrieval())
    with pytest.raises(Forbidden):
        await ask(world.gateway, reader, insight.PATTERNS, insight.DetectPatterns())


@pytest.mark.req("O-365")
async def test_a_search_is_rated_and_reported_over_the_bus(world: World) -> None:
    who = admin()
    await world.create(who, "value", "calm", "calm water")
    found = await world.semantic(who, "calm water")
    rated = await ask(
        world.gateway, who, search.RATE_RETRIEVAL, search.RateRetrieval(retrieval_id=found.retrieval_id, relevant=True)
    )
    assert (rated.satisfaction, rated.ratings) == (1.0, 1)
    report = await ask(world.gateway, who, search.REPORT_RETRIEVAL, search.ReportRetrieval())
    assert ([use.tool for use in report.tools], report.satisfaction) == (["semantic.search.v1"], 1.0)
