"""A good call of each tool of the constitutional graph, and the few nodes that it is about."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.constitution import writes
from phronesis_contracts.constitution.registry import Layer
from scripts.samples import example
from tests.support.people import Person

Given = dict[str, Any]
Made = Callable[[Person], Awaitable[Given]]

_WHEN = {"startDate": "2026-01-01", "endDate": "2026-12-31"}
_ASKED = {"query": "Open data by default", "consistency": "strong"}
_ALGORITHMS = ("graph.pagerank", "graph.communities", "graph.betweenness", "discuss_graph_")
_SEARCHES = ("semantic.search.v1", "hybrid.search.v1", "semantic_search", "hybrid_search")
_NODES: tuple[tuple[str, Given], ...] = (
    ("value", {"id": "honesty", "title": "Honest results", "statement": "We report what we found, whatever it is."}),
    ("principle", {"id": "early", "title": "Publish early", "statement": "Results leave the house within a year."}),
    ("goal", {"id": "open", "title": "Open data by default", "summary": "Each data set is public when its paper is."}),
    ("strategy", {"id": "repository", "title": "One repository for all groups", "summary": "Data of all groups in one place."}),
    ("decision", {"id": "shared", "title": "Share the mass spectrometer", "roi": {"total": 2.5}, "decidedAt": "2026-02-03"}),
    ("task", {"id": "catalogue", "title": "Write the catalogue", "status": "todo", "dueDate": "2026-02-04", "effortHours": 8}),
    ("metric", {"id": "sets", "title": "Public data sets", "unit": "sets"}),
    ("insight", {"id": "asked", "title": "Shared data is asked for", "confidence": 0.8}),
)
_LINKS = (
    ("open", "SERVES", "honesty"),
    ("honesty", "ENFORCED_BY", "early"),
    ("repository", "SERVES", "open"),
    ("shared", "SERVES", "repository"),
    ("shared", "LEADS_TO", "catalogue"),
)


async def _said(person: Person, tool: str, given: Given) -> Any:
    answer = await person.tool(tool, given)
    assert answer.status_code == 200, answer.text
    return answer.json()


_HAVE_IT = set[str]()
"""The keys of those whose nodes are made."""


async def graph(person: Person) -> None:
    """Make the nodes, once for each person, and have them found by meaning."""
    if person.key in _HAVE_IT:
        return
    for type, fields in _NODES:
        await _said(person, f"{type}.create.v1", fields)
    for source, type, target in _LINKS:
        await _said(person, "relationship.create.v1", {"fromId": source, "type": type, "toId": target})
    await _said(person, "semantic.search.v1", _ASKED)
    _HAVE_IT.add(person.key)


def _about(given: Given) -> Made:
    async def made(person: Person) -> Given:
        await graph(person)
        return given

    return made


def _titled(type: str) -> Made:
    async def made(person: Person) -> Given:
        return {"id": str(uuid4()), "title": f"A {type}", "summary": "One of its kind."}

    return made


def _created(type: str) -> Made:
    async def made(person: Person) -> Given:
        id = str(uuid4())
        await _said(person, f"{type}.create.v1", {"id": id, "title": f"A first {type}"})
        return {"id": id, "title": f"A second {type}"}

    return made


async def _nothing(person: Person) -> Given:
    return {}


async def _joined(person: Person) -> Given:
    await graph(person)
    link = {"fromId": "catalogue", "type": "SERVES", "toId": "open"}
    return {"id": (await _said(person, "relationship.create.v1", link))["relationship"]["id"]}


async def _found(person: Person) -> Given:
    await graph(person)
    return {"retrievalId": (await _said(person, "semantic.search.v1", _ASKED))["retrievalId"], "relevant": True}


async def _topic(person: Person) -> Given:
    await graph(person)
    topics = (await _said(person, "topics.list.v1", {"refresh": True}))["topics"]
    return {"topicId": topics[0]["id"] if topics else "none"}


def _plain(tool: str) -> Made:
    """An input that the example maker fills: for tools that need nothing made ready."""

    async def made(person: Person) -> Given:
        model = TOOLS[tool].rpc.input
        schema = model.model_json_schema()
        filled: Given = model.model_validate(example(schema, schema.get("$defs", {}))).model_dump(mode="json", by_alias=True)
        return filled

    return made


_OF_GRAPH: dict[str, Given] = {
    "node.update.v1": {"id": "catalogue", "fields": {"effortHours": 9}},
    "node.delete.v1": {"id": "catalogue"},
    "relationship.create.v1": {"fromId": "catalogue", "type": "SERVES", "toId": "open"},
    **{f"{layer}.list.v1": {} for layer in Layer},
    "foundation.list.v2": {},
    "vision.list.v2": {},
    "graph.getAll.v1": {},
    "schema.inventory.v1": {},
    "node.get.v1": {"id": "open", "includeRelationships": True},
    "discuss_goal_ladder": {"id": "open"},
    "discuss_expand_path": {"id": "open", "depth": 2},
    "discuss_subgraph_nodes": {"ids": ["open"]},
    "discuss_concept_bridge": {"fromId": "shared", "toId": "honesty"},
    "goal.strategies.v1": {"id": "open"},
    "tasks.due.v1": _WHEN,
    "track.aggregate.v1": _WHEN,
    "decisions.list.v1": {},
    **{name: {"refresh": True} for name in TOOLS if name.startswith(_ALGORITHMS)},
    "graph.shortest_path.v1": {"fromId": "shared", "toId": "honesty", "refresh": True},
    **{name: _ASKED for name in TOOLS if name.endswith(_SEARCHES)},
    "insight.search.v1": {"query": "Shared data is asked for"},
    "decision.precedents.v1": {"query": "Share an instrument"},
    "goal.search.v1": {"query": "Open data by default"},
    "graph.why.v1": {"fromId": "shared"},
    "graph.without.v1": {"id": "honesty"},
    "policy.check.v1": {"text": "Keep the data to ourselves", "type": "decision"},
    "topics.list.v1": {"refresh": True},
    "node.evolution.v1": {"id": "open"},
    "drift.report.v1": {},
    "patterns.detect.v1": {},
    "goal.analogies.v1": {"id": "open"},
    "contradictions.find.v1": {},
    "duplicates.find.v1": {},
    "embeddings.status.v1": {},
    "embeddings.regenerate.v1": {"ids": ["open"]},
    "backup.restore.v1": {"operation": "list"},
    "workload.assess.v1": {**_WHEN, "includeTaskDetails": True},
    "discuss_workload_assess": _WHEN,
    "session.start.v1": {},
    "context.usage.v1": {},
    "calendar.set.v1": {"source": "none", "hours": [6, 6, 6, 6, 6, 0, 0], "timeZone": "Europe/London"},
    "calendar.get.v1": {},
    "foundation.relationships.v1": {},
    "constitution.load.v1": {"nodes": [{"type": "value", "id": "kept", "title": "What is kept"}]},
    "retrieval.tuning.v1": {},
}
OF_TYPES = frozenset(tool.name for table in (writes.CREATE, writes.UPDATE) for tool in table.values())
"""The tools of one node type each."""
CALLS: dict[str, Made] = {
    **{tool.name: _titled(type) for type, tool in writes.CREATE.items()},
    **{tool.name: _created(type) for type, tool in writes.UPDATE.items()},
    **{name: _about(given) for name, given in _OF_GRAPH.items() if name in TOOLS},
    "relationship.delete.v1": _joined,
    "retrieval.feedback.v1": _found,
    "topics.nodes.v1": _topic,
    "retrieval.report.v1": _nothing,
}
"""For each tool, what makes ready for a caller what its call is about, and gives its input."""


def call(tool: str) -> Made:
    """The good call of a tool; one of its example where nothing has to be made ready."""
    return CALLS.get(tool) or _plain(tool)
