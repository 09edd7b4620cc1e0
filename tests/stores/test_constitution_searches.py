"""Searches of the constitutional graph on the real stores: the index, the log, ratings, the tenant's defaults, topics."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from phronesis_contracts import KeyReused, Principal
from phronesis_contracts.constitution.insight import AskEvolution, FindDuplicates, ListTopics, ReportDrift, TopicNodes
from phronesis_contracts.constitution.registry import Layer
from phronesis_contracts.constitution.search import (
    HybridSearch,
    NoSuchRetrieval,
    PrecedentSearch,
    RateRetrieval,
    ReportRetrieval,
    SemanticSearch,
    TuneRetrieval,
)
from phronesis_memory.constitution.retrievals import Retrieval, RetrievalLog
from phronesis_memory.constitution.search_handlers import (
    ReasoningHandlers,
    SearchHandlers,
    Sources,
    assemble_reasoning,
    assemble_searches,
)
from phronesis_memory.constitution.search_store import PostgresRetrievals
from phronesis_memory.settings import RetrievalSettings
from phronesis_postgres import EVERY_TENANT
from tests.support.constitution_memory import Constitution, open_constitution, unit
from tests.support.memory import calling
from tests.support.personas import Persona
from tests.support.servers import PostgresServer, VectorServer
from tests.unit.memory.fakes_constitution import ids, pair_ids
from tests.unit.memory.fakes_nodes import ScriptedGraph

QUESTION = "first axis"


@dataclass
class Searches:
    """The handlers on real stores, over a graph in memory."""

    held: Constitution
    graph: ScriptedGraph
    found: SearchHandlers
    log: RetrievalLog
    thought: ReasoningHandlers
    tenant: str = field(default_factory=lambda: f"t{uuid4().hex[:12]}")

    @property
    def who(self) -> Principal:
        """Somebody of the tenant."""
        return Principal(tenant=self.tenant, user="ann", **Persona.ADMIN.rights)

    async def add(self, type: str, id: str, cosine: float = 0.0, vector: Any = None, **fields: Any) -> None:
        """A node, embedded, whose vector has this cosine with the question's."""
        title = fields.pop("title", f"word-{id}.")
        self.held.embedder.set[title] = unit(p0=cosine) if vector is None else vector
        await self.held.hear(self.tenant, self.held.graph.put(self.tenant, type, id, title, **fields))
        self.graph.nodes_by_id[id] = self.held.graph.nodes[self.tenant, id]

    async def rows(self, columns: str, table: str = "retrievals") -> list[tuple[Any, ...]]:
        """What stands in a table of the tenant, oldest first."""
        await self.log.flush()
        async with self.held.database.connection(self.tenant) as connection:
            found = await connection.fetch(f"SELECT {columns} FROM constitution_{table} ORDER BY at")
        return [tuple(row.values()) for row in found]


def handlers(held: Constitution, **settings: Any) -> Searches:
    """The handlers as the service wires them."""
    graph, parts = ScriptedGraph(), held.parts
    sources = Sources(parts.vectors, parts.history, parts.texts, parts.queries, held.embedder, held.database, graph)
    found, log = assemble_searches(sources, RetrievalSettings(**settings), lambda: None)
    return Searches(held, graph, found, log, assemble_reasoning(sources))


@pytest.fixture
async def searches(postgres: PostgresServer, weaviate: VectorServer | None) -> AsyncIterator[Searches]:
    async with open_constitution(postgres, weaviate) as held:
        axis = unit(p0=1.0)
        held.embedder._vector = lambda text: axis if text == QUESTION else unit(p7=1.0)  # type: ignore[method-assign]
        yield handlers(held)


async def semantic(searches: Searches, **more: Any) -> list[str]:
    asked = SemanticSearch.model_validate({"query": QUESTION} | more)
    return ids((await searches.found.semantic_search(calling(searches.who), asked)).results)


@pytest.mark.req("O-156", "O-159", "O-160", "O-429", "O-377")
async def test_a_semantic_search_on_the_real_index(searches: Searches) -> None:
    await searches.add("value", "near", 0.9)
    await searches.add("insight", "at", 0.401)
    await searches.add("insight", "below", 0.38)
    await searches.add("goal", "old", 0.95, status="archived")
    assert await semantic(searches) == ["near", "at"]
    assert await semantic(searches, layers=["mind"]) == ["at"]
    assert await semantic(searches, types=["insight"], minSimilarity=0.3) == ["at", "below"]
    assert await semantic(searches, status="archived") == ["old"]


@pytest.mark.req("O-178", "O-180", "O-378")
async def test_a_hybrid_search_on_the_real_index(searches: Searches) -> None:
    await searches.add("goal", "goal", 0.5)
    await searches.add("strategy", "one", 0.9)
    await searches.add("strategy", "far", 0.1)
    await searches.add("strategy", "apart", 0.9)
    await searches.add("strategy", "below", 0.2)
    searches.graph.links += [("one", "SERVES", "goal"), ("far", "SERVES", "goal")]
    asked = HybridSearch(query=QUESTION, anchor_node_id="goal")
    found = await searches.found.hybrid_search(calling(searches.who), asked)
    assert ids(found.results) == ["one", "far", "apart"]
    assert [one.final_score for one in found.results] == pytest.approx([0.96, 0.64, 0.36], abs=1e-3)


@pytest.mark.req("O-378")
async def test_a_hybrid_search_finds_a_node_by_its_words_on_the_real_store(searches: Searches) -> None:
    await searches.add("task", "lens", 0.1, title="Repair the lens of the lighthouse")
    await searches.add("task", "other", 0.1, title="Repair the lens of the camera")
    await searches.add("task", "old", 0.1, title="The lighthouse has its lens repaired", status="archived")
    for question, expected in (("lighthouse lens repairs", ["lens"]), ("the of and", []), ("a lens for the submarine", [])):
        found = await searches.found.hybrid_search(calling(searches.who), HybridSearch(query=question))
        assert ids(found.results) == expected


async def test_the_sample_of_a_tenant_is_of_its_active_nodes(searches: Searches) -> None:
    for place in range(5):
        await searches.add("value", f"v{place}", 0.1 * place)
    await searches.add("value", "old", 0.9, status="archived")
    vectors = searches.held.parts.vectors
    first, again = [await vectors.sample(searches.tenant, 3) for _ in range(2)]
    assert (len(first[0]), first[1]) == (3, 5)
    assert np.array_equal(first[0], again[0])


@pytest.mark.req("O-281")
async def test_precedents_on_the_real_index(searches: Searches) -> None:
    await searches.add("decision", "good", 0.3, roi={"total": 4})
    await searches.add("decision", "poor", 0.9, roi={"total": 1})
    asked = PrecedentSearch(query=QUESTION, min_roi=2)
    assert ids((await searches.found.precedent_search(calling(searches.who), asked)).results) == ["good"]


@pytest.mark.req("O-364", "O-352")
async def test_the_log_holds_a_row_for_each_call_and_no_words(searches: Searches) -> None:
    await searches.add("value", "near", 0.9)
    await semantic(searches)
    await semantic(searches)
    first, second = await searches.rows("tool, actor, question, length(question_hash), nodes, layers, cached, outcome")
    assert first == ("semantic.search.v1", "ann", None, 64, 1, {"foundation": 1}, False, "ok")
    assert second == (*first[:6], True, "ok")
    [(arguments,), _] = await searches.rows("arguments")
    assert (arguments["minSimilarity"], arguments["topK"], "query" in arguments) == (0.4, 10, False)


@pytest.mark.req("O-352")
async def test_the_log_holds_the_words_where_it_is_set_to(searches: Searches) -> None:
    chatty = handlers(searches.held, log_words=True)
    await semantic(chatty)
    assert await chatty.rows("question") == [(QUESTION,)]


async def test_the_log_of_a_tenant_is_its_own(searches: Searches) -> None:
    await semantic(searches)
    other = Searches(searches.held, searches.graph, searches.found, searches.log, searches.thought)
    assert (len(await searches.rows("id")), await other.rows("id")) == (1, [])


@pytest.mark.req("O-352")
async def test_rows_go_with_their_ratings_when_their_time_is_over(searches: Searches) -> None:
    kept = PostgresRetrievals(searches.held.database, False, lambda: None)
    now = datetime.now(UTC)
    for days in (40, 1):
        id = str(uuid4())
        await kept.append([Retrieval(id, searches.tenant, "t", "ann", "q", {}, 1.0, "ok", at=now - timedelta(days=days))])
        await kept.rate(calling(searches.who), RateRetrieval(retrieval_id=id, relevant=True))
    assert await kept.prune(now - timedelta(days=30)) == 1
    assert (len(await searches.rows("id")), len(await searches.rows("relevant", "ratings"))) == (1, 1)


@pytest.mark.req("O-365", "O-417")
async def test_ratings_are_linked_to_a_retrieval_of_the_tenant(searches: Searches) -> None:
    asked = SemanticSearch(query=QUESTION)
    id = (await searches.found.semantic_search(calling(searches.who), asked)).retrieval_id

    async def rate(relevant: bool, who: Principal, **more: Any) -> tuple[float, int]:
        rated = await searches.found.rate_retrieval(calling(who), RateRetrieval(retrieval_id=id, relevant=relevant, **more))
        return rated.satisfaction, rated.ratings

    assert await rate(True, searches.who) == (1.0, 1)
    assert await rate(False, searches.who, node_id="near") == (0.5, 2)
    assert await rate(True, searches.who, node_id="near") == (1.0, 2)
    with pytest.raises(NoSuchRetrieval):
        await rate(True, Principal(tenant="another", user="ann", **Persona.ADMIN.rights))
    with pytest.raises(NoSuchRetrieval):
        await searches.found.rate_retrieval(calling(searches.who), RateRetrieval(retrieval_id="x", relevant=True))


@pytest.mark.req("O-366")
async def test_defaults_are_changed_for_the_tenant_from_the_next_search_on_and_put_back(searches: Searches) -> None:
    await searches.add("value", "near", 0.5)
    admin = calling(searches.who)
    assert await semantic(searches) == ["near"]
    tuned = await searches.found.tune_retrieval(admin, TuneRetrieval(values={"semantic.minSimilarity": 0.6}))
    assert (tuned.values["semantic.minSimilarity"], tuned.changed) == (0.6, ("semantic.minSimilarity",))
    assert await semantic(searches) == []
    # Another copy of the service, with nothing kept of its own.
    copy = handlers(searches.held)
    copy.tenant = searches.tenant
    copy.graph.nodes_by_id = searches.graph.nodes_by_id
    assert await semantic(copy) == []
    back = await searches.found.tune_retrieval(admin, TuneRetrieval(values={"semantic.minSimilarity": None}))
    assert back.changed == ()
    assert await semantic(searches) == ["near"]


async def test_a_change_of_defaults_is_done_once_for_its_key_and_audited(searches: Searches) -> None:
    call = calling(searches.who, key=uuid4().hex)
    request = TuneRetrieval(values={"goal.minSimilarity": 0.5})
    for _ in range(2):
        assert (await searches.found.tune_retrieval(call, request)).changed == ("goal.minSimilarity",)
    with pytest.raises(KeyReused):
        await searches.found.tune_retrieval(call, TuneRetrieval(values={"goal.minSimilarity": 0.7}))
    async with searches.held.database.connection(EVERY_TENANT) as connection:
        told = await connection.fetch("SELECT body FROM outbox WHERE tenant = $1", searches.tenant)
    assert [b"retrieval.tuning.v1" in row["body"] for row in told] == [True]


@pytest.mark.req("O-365", "O-406", "C-92")
async def test_the_report_tells_how_the_searches_went(searches: Searches) -> None:
    await searches.add("value", "near", 0.9)
    await searches.add("insight", "also", 0.8)
    await semantic(searches)
    await semantic(searches)
    await semantic(searches, query="nothing like it")
    told = await searches.found.report_retrieval(calling(searches.who), ReportRetrieval())
    [use] = told.tools
    assert (use.tool, use.calls, use.failed, use.cached, use.empty) == ("semantic.search.v1", 3, 0, 1, 1)
    assert 0 < use.p50_milliseconds <= use.p95_milliseconds
    assert told.layers == {Layer.FOUNDATION: 0.5, Layer.MIND: 0.5}
    assert (told.satisfaction, told.ratings) == (None, 0)


@pytest.mark.req("O-024")
async def test_the_report_holds_the_share_of_sessions_of_each_layer_against_what_is_planned_for(searches: Searches) -> None:
    day = datetime.now(UTC) - timedelta(days=2)
    # Ann comes on two days and Bob on one; a second search of the same day is the same session.
    for actor, at, layers in (
        ("ann", day, {"foundation": 2}),
        ("ann", day, {"foundation": 1, "mind": 3}),
        ("ann", day + timedelta(days=1), {"foundation": 1, "strategy": 1}),
        ("bob", day, {}),
    ):
        searches.log.add(
            Retrieval(str(uuid4()), searches.tenant, "t", actor, "q", {}, 1.0, "ok", nodes=len(layers), layers=layers, at=at)
        )
    await searches.log.flush()
    told = await searches.found.report_retrieval(calling(searches.who), ReportRetrieval())
    assert (told.sessions, [(one.layer, one.expected_least, one.expected_most, one.measured) for one in told.access]) == (
        3,
        [
            (Layer.FOUNDATION, 0.8, 1.0, 0.6667),
            (Layer.STRATEGY, 0.3, 0.4, 0.3333),
            (Layer.TACTICS, 0.2, 0.3, 0.0),
            (Layer.MIND, 0.15, 0.2, 0.3333),
        ],
    )
    nobody = calling(Principal(tenant=f"t{uuid4().hex}", user="ann", **Persona.ADMIN.rights))
    none = await searches.found.report_retrieval(nobody, ReportRetrieval())
    assert (none.sessions, {one.measured for one in none.access}) == (0, {None})


@pytest.mark.req("O-384", "O-386")
async def test_topics_are_kept_and_filter_a_search(searches: Searches) -> None:
    random = np.random.default_rng(5)
    for turn, name in enumerate(("tea", "rain", "debt")):
        for place in range(4):
            vector = unit(p0=0.3)
            vector[turn + 1], vector[-1] = 0.9, 0.3
            vector = vector + random.normal(size=vector.shape).astype(np.float32) * 0.01
            vector /= np.linalg.norm(vector)
            await searches.add("insight", f"{name}{place}", vector=vector, title=f"About {name}, {place}.")
    call = calling(searches.who)
    listed = await searches.thought.list_topics(call, ListTopics())
    assert [(one.size, one.keywords[0]) for one in sorted(listed.topics, key=lambda one: one.keywords[0])] == [
        (4, "debt"),
        (4, "rain"),
        (4, "tea"),
    ]
    [tea] = [one.id for one in listed.topics if one.keywords[0] == "tea"]
    nodes = await searches.thought.topic_nodes(call, TopicNodes(topic_id=tea))
    assert {mention.id for mention in nodes.nodes} == {f"tea{place}" for place in range(4)}
    assert set(await semantic(searches, topic=tea, minSimilarity=0.1)) == {f"tea{place}" for place in range(4)}
    again = await searches.thought.list_topics(call, ListTopics())
    assert again == listed
    assert (await searches.thought.list_topics(call, ListTopics(layers=(Layer.VISION,)))).topics == ()
    stranger = calling(Principal(tenant="nobody-else", user="ann", **Persona.ADMIN.rights))
    assert (await searches.thought.list_topics(stranger, ListTopics())).topics == ()


@pytest.mark.req("O-413")
async def test_duplicates_are_told_from_the_pairs_that_were_noted(searches: Searches) -> None:
    await searches.add("value", "a", 0.9)
    await searches.add("value", "b", 0.91)
    await searches.add("goal", "c", 0.9)
    found = await searches.thought.find_duplicates(calling(searches.who), FindDuplicates())
    assert pair_ids(found.pairs) == [("a", "b")]
    lower = await searches.thought.find_duplicates(calling(searches.who), FindDuplicates(threshold=0.5))
    assert pair_ids(lower.pairs) == [("a", "b")]


@pytest.mark.req("O-387", "O-388", "O-389")
async def test_three_edits_are_told_with_their_drift_on_the_real_history(searches: Searches) -> None:
    await searches.add("value", "v", 1.0, title="Honesty")
    for title, cosine in (("Candour", 0.95), ("Openness", 0.9), ("Speed", 0.5)):
        searches.held.clock.forward(days=1)
        await searches.add("value", "v", cosine, title=title)
    call = calling(searches.who)
    told = await searches.thought.ask_evolution(call, AskEvolution(id="v"))
    assert [one.version for one in told.versions] == [1, 2, 3, 4]
    assert told.versions[3].changed["title"] == ("Openness", "Speed")
    assert told.drifted
    assert told.narrative.split("\n")[3] == "2026-01-10: title changed from “Openness” to “Speed”."
    [finding] = (await searches.thought.report_drift(call, ReportDrift())).findings
    assert (finding.node.id, finding.versions) == ("v", 3)
    assert finding.drift == pytest.approx(0.5, abs=0.01)


@pytest.mark.verify
@pytest.mark.timeout(180)
@pytest.mark.req("O-167", "O-187")
async def test_searches_of_500_nodes_are_quick(searches: Searches) -> None:
    nodes = [(f"n{place:03}", "strategy" if place % 2 else "insight") for place in range(500)]
    put = searches.held.graph.put
    await searches.held.hear(searches.tenant, *(put(searches.tenant, type, id, f"Plan {id} of many") for id, type in nodes))
    searches.graph.nodes_by_id = {id: searches.held.graph.nodes[searches.tenant, id] for id, _ in nodes}
    searches.graph.links = [(id, "SERVES", "n000") for id, _ in nodes[1:100]]
    call = calling(searches.who)
    took: dict[str, list[float]] = {"semantic": [], "hybrid": []}
    for place in range(100):
        for name in took:
            began = perf_counter()
            if name == "semantic":
                asked = SemanticSearch(query=f"what of {place}", min_similarity=0)
                found = len((await searches.found.semantic_search(call, asked)).results)
            else:
                around = HybridSearch(query=f"what of {place}", anchor_node_id="n000")
                found = len((await searches.found.hybrid_search(call, around)).results)
            took[name].append(perf_counter() - began)
            assert found == 10
    for name, median, worst in (("semantic", 1.5, 3.0), ("hybrid", 2.5, 4.0)):
        assert np.median(took[name]) < median
        assert np.percentile(took[name], 99) < worst
