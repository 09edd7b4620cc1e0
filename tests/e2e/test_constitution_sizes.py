"""The tools of the constitutional graph on a small and on a large graph: the same contract, and no answer over its size."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from phronesis.constitution.files import parts
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.constitution.registry import TYPES, Layer
from phronesis_contracts.constitution.values import MAX_TOKENS
from phronesis_contracts.constitution.writes import LOAD_TOOL
from phronesis_local.settings import Stores
from phronesis_samples.institute.generator import GeneratedConstitution, generate
from phronesis_tokens import count
from tests.support.bus import eventually
from tests.support.people import Person, Town
from tests.support.production import STORES

pytestmark = [pytest.mark.verify, pytest.mark.timeout(600)]


_REGENERATE = "/api/v1/tools/embeddings.regenerate.v1"
_PATIENCE = 300.0
"""Seconds that embedding may take on a busy machine."""
_EMBEDDED = 30
"""Nodes of each type that have to be embedded before anything is asked."""
_SEARCHED = ("value", "principle", "strategy", "objective", "project", "process", "decision", "task", "insight")


@dataclass(frozen=True)
class Loaded:
    """A graph in a tenant of its own."""

    person: Person
    made: GeneratedConstitution

    async def ask(self, tool: str, body: dict[str, Any]) -> dict[str, Any]:
        """What a tool answers, once its contract has taken it."""
        answer = await self.person.tool(tool, body)
        assert answer.status_code == 200, f"{tool}: {answer.text[:500]}"
        TOOLS[tool].rpc.output.model_validate(answer.json())
        found: dict[str, Any] = answer.json()
        return found

    async def embedded(self, ids: list[str]) -> None:
        """Have nodes embedded, and return when they are; they stand behind what was written before them."""
        if not ids:
            return
        await self.person.http.post(_REGENERATE, json={"ids": ids}, timeout=_PATIENCE)

        async def done() -> bool:
            records = (await self.ask("embeddings.status.v1", {"ids": ids}))["records"]
            return len(records) == len(ids) and all(one["state"] != "pending" for one in records)

        await eventually(done, within=_PATIENCE)

    def of(self, *types: str) -> str:
        """The id of an active node of one of some types, the first type that there is."""
        return next(spot.id for type in types for spot in self.made.spots if spot.active and spot.type == type)


_LARGE = int(os.environ.get("PHRONESIS_TEST_NODES", 5_000 if STORES is Stores.EMBEDDED else 1_000))
"""Nodes of the large graph; to load 5,000 once more into the production stores takes minutes."""


@pytest.fixture(scope="module", params=[45, _LARGE])
async def graph(request: pytest.FixtureRequest, everybody: Town) -> Loaded:
    """A small graph, and a large one."""
    person = await everybody.someone(role="admin")
    made = generate(request.param, 1, datetime.now(UTC).date())
    for part in parts(made.nodes(), made.relationships()):
        answer = await person.tool(LOAD_TOOL.name, part.model_dump(mode="json", by_alias=True, exclude_defaults=True))
        assert answer.status_code == 200, answer.text
    loaded = Loaded(person, made)
    # Projects and tasks wait for the night otherwise, and the others stand in a queue.
    of_type = {type: [spot.id for spot in made.spots if spot.type == type][:_EMBEDDED] for type in _SEARCHED}
    await loaded.embedded([id for ids in of_type.values() for id in ids])
    return loaded


def largest(graph: Loaded) -> list[tuple[str, dict[str, Any]]]:
    """Every tool that lists or searches, with the largest arguments that it takes."""
    top, day = graph.of("goal", "value"), datetime.now(UTC)
    days = {"startDate": (day - timedelta(days=400)).isoformat(), "endDate": (day + timedelta(days=400)).isoformat()}
    search = {"query": graph.made.themes[0].asked[0], "topK": 50, "minSimilarity": 0.0}
    return [
        *((f"{layer}.list.v1", {"limit": 2_000}) for layer in Layer),
        ("foundation.list.v2", {"excludeFields": [], "descriptionTypes": ["policy", "value", "principle", "guardrail"]}),
        ("vision.list.v2", {"excludeFields": []}),
        ("graph.getAll.v1", {"limit": 2_000, "excludeFields": []}),
        ("semantic.search.v1", search | {"includeRelationships": True}),
        ("hybrid.search.v1", search | {"anchorNodeId": top, "maxDepth": 5}),
        ("insight.search.v1", search | {"minConfidence": 0.0}),
        ("decision.precedents.v1", {"query": search["query"], "limit": 50, "minSimilarity": 0.0}),
        ("discuss_expand_path", {"id": top, "depth": 5, "limit": 500}),
        ("discuss_subgraph_nodes", {"ids": [top], "depth": 5, "limit": 500}),
        ("tasks.due.v1", days | {"limit": 50}),
        ("track.aggregate.v1", days | {"points": 1_000}),
        ("decisions.list.v1", {"limit": 50}),
        ("graph.pagerank.v1", {"limit": 500}),
        ("graph.communities.v1", {"limit": 500}),
        ("graph.betweenness.v1", {"limit": 500}),
        ("graph.without.v1", {"id": graph.of("principle"), "limit": 500}),
        ("graph.why.v1", {"fromId": graph.of("task", "guardrail"), "limit": 20}),
        ("workload.assess.v1", {"includeTaskDetails": True}),
        ("session.start.v1", {}),
        ("schema.inventory.v1", {}),
    ]


@pytest.mark.req("O-001", "O-012")
async def test_every_tool_that_lists_or_searches_keeps_its_contract_and_its_greatest_answer(graph: Loaded) -> None:
    over = {}
    for tool, body in largest(graph):
        tokens = count(json.dumps(await graph.ask(tool, body), separators=(",", ":"), ensure_ascii=False))
        if tokens > MAX_TOKENS:
            over[tool] = tokens
    assert over == {}


@pytest.mark.req("O-012")
@pytest.mark.parametrize("layer", Layer)
async def test_a_list_that_is_cut_goes_on_at_its_cursor_until_every_node_was_told_once(graph: Loaded, layer: Layer) -> None:
    told, cursor = [], None
    while True:
        page = await graph.ask(f"{layer}.list.v1", {"limit": 2_000, "cursor": cursor})
        told += [item["id"] for item in page["items"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    inventory = await graph.ask("schema.inventory.v1", {})
    there = sum(one["count"] for one in inventory["types"] if one["layer"] == layer)
    assert len(told) == len(set(told)) == there


@pytest.mark.req("O-342")
async def test_algorithms_are_there_at_every_size(graph: Loaded) -> None:
    ranked = await graph.ask("graph.pagerank.v1", {"limit": 10, "refresh": True})
    grouped = await graph.ask("graph.communities.v1", {"limit": 10, "refresh": True})
    assert len(ranked["rows"]) == 10
    assert ranked["stats"]["nodeCount"] == sum(spot.active for spot in graph.made.spots)
    assert grouped["rows"][0]["size"] >= grouped["rows"][-1]["size"] > 0


@pytest.mark.req("O-018", "O-019", "O-022")
@pytest.mark.parametrize("layer", [Layer.STRATEGY, Layer.TACTICS, Layer.MIND])
async def test_a_search_of_one_layer_finds_that_layer_alone_best_first(graph: Loaded, layer: Layer) -> None:
    question = {"query": graph.made.themes[0].asked[0], "layers": [layer.value], "topK": 20, "minSimilarity": 0.0}
    found = (await graph.ask("semantic.search.v1", question))["results"]
    there = any(TYPES[spot.type].layer is layer for spot in graph.made.spots)
    assert len(found) == (20 if there else 0)
    assert {hit["node"]["layer"] for hit in found} <= {layer.value}
    assert [hit["score"] for hit in found] == sorted((hit["score"] for hit in found), reverse=True)


@pytest.mark.req("O-020")
async def test_the_execution_layer_is_found_by_its_days_and_by_meaning(graph: Loaded) -> None:
    begin, end = datetime.now(UTC).date(), datetime.now(UTC).date() + timedelta(days=7)
    due = await graph.ask("tasks.due.v1", {"startDate": begin.isoformat(), "endDate": end.isoformat(), "limit": 50})
    wanted = sorted(
        (str(said["dueDate"]), spot.id)
        for spot in graph.made.spots
        if spot.type == "task" and spot.status in ("todo", "in_progress")
        for said in [graph.made.node(spot).model_extra or {}]
        if begin.isoformat() <= str(said["dueDate"]) <= end.isoformat()
    )
    assert due["total"] == len(wanted)
    assert {node["id"] for node in due["items"]} == {id for _, id in wanted[:50]}
    question = {"query": graph.made.themes[0].asked[0], "layers": ["execution"], "minSimilarity": 0.0}
    found = (await graph.ask("semantic.search.v1", question))["results"]
    assert {hit["node"]["layer"] for hit in found} == ({"execution"} if wanted else set())


@pytest.mark.req("O-021")
async def test_the_track_layer_is_told_as_figures_of_its_metrics_alone(graph: Loaded) -> None:
    day = datetime.now(UTC)
    days = {"startDate": (day - timedelta(days=400)).isoformat(), "endDate": day.isoformat()}
    told = await graph.ask("track.aggregate.v1", days | {"points": 0})
    metrics = {spot.id for spot in graph.made.spots if spot.type == "metric" and spot.active}
    assert {one["id"] for one in told["metrics"]} == metrics
    assert all(one["series"] == [] for one in told["metrics"])
