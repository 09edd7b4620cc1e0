"""What searches and reasons over the constitutional graph, and what that is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from phronesis_bus import Bus, follow, serve
from phronesis_contracts.constitution import insight, retrieval, search
from phronesis_contracts.constitution.writes import CONSTITUTION_CHANGED
from phronesis_postgres import Database

from ..adapters.constitution_retrievals import PostgresRetrievals
from ..adapters.constitution_topics import PostgresTopics
from ..cache import QueryVectors
from ..ports import Embedder
from ..spans import traced
from .analogies import Analogies
from .answers import Answers
from .contradictions import Contradictions
from .drift import Drift
from .duplicates import Duplicates
from .evolution import Evolution
from .finding import Finding
from .log import RetrievalLog
from .meaning import Meaning
from .patterns import Patterns
from .ports import History, NodeVectors, Texts
from .proposing import Proposals
from .reasoning import Reasoning
from .searching import Searching
from .settings import RetrievalSettings
from .structure import Structure
from .topics import Topics

STORE = "constitution"
"""The store, as spans name it."""


@dataclass(frozen=True)
class Sources:
    """What the handlers stand on."""

    vectors: NodeVectors
    history: History
    texts: Texts
    queries: QueryVectors
    embedder: Embedder
    database: Database
    structure: Structure


def searching(sources: Sources, settings: RetrievalSettings, wake: Callable[[], None]) -> tuple[Searching, RetrievalLog]:
    """The handlers of searches, and the log that they write to.

    Args:
        sources: what they stand on.
        settings: how long, and how much, is logged.
        wake: called after a transaction that wrote news.
    """
    kept = PostgresRetrievals(sources.database, settings.log_words, wake)
    log = RetrievalLog(kept, settings.log_days)
    meaning = Meaning(sources.vectors, sources.structure, sources.queries)
    return Searching(Finding(meaning), kept, log, Answers()), log


def reasoning(sources: Sources) -> Reasoning:
    """The handlers that reason over the graph."""
    vectors, structure, history = sources.vectors, sources.structure, sources.history
    return Reasoning(
        Topics(vectors, sources.texts, structure, PostgresTopics(sources.database)),
        Evolution(history),
        Drift(history, vectors, structure, sources.embedder),
        Patterns(vectors, structure),
        Proposals(vectors, structure),
        Analogies(Meaning(vectors, structure, sources.queries)),
        Contradictions(vectors, structure),
        Duplicates(vectors, history, structure),
    )


async def serve_searches(bus: Bus, sources: Sources, settings: RetrievalSettings, wake: Callable[[], None]) -> None:
    """Serve the searches, and what reasons over the graph.

    Args:
        bus: the connected bus.
        sources: what the handlers stand on.
        settings: how long, and how much, is logged.
        wake: called after a transaction that wrote news.
    """
    found, log = searching(sources, settings, wake)
    span = partial(traced, bus.tracing, "search_memory", STORE)

    log.start()
    bus.on_stop(log.stop)
    await serve(bus, search.SEMANTIC_SEARCH_TOOL, span(found.semantic_search))
    await serve(bus, search.HYBRID_SEARCH_TOOL, span(found.hybrid_search))
    await serve(bus, search.INSIGHT_SEARCH_TOOL, span(found.insight_search))
    await serve(bus, search.PRECEDENT_SEARCH_TOOL, span(found.precedent_search))
    await serve(bus, search.GOAL_SEARCH_TOOL, span(found.goal_search))
    await serve(bus, search.RATE_RETRIEVAL_TOOL, found.rate_retrieval)
    await serve(bus, retrieval.TUNE_RETRIEVAL_TOOL, found.tune_retrieval)
    await serve(bus, retrieval.REPORT_RETRIEVAL_TOOL, found.report_retrieval)
    await follow(bus, CONSTITUTION_CHANGED, found.on_constitution_changed, every_copy=True)
    await _serve_reasoning(bus, reasoning(sources))


async def _serve_reasoning(bus: Bus, thought: Reasoning) -> None:
    span = partial(traced, bus.tracing, "search_memory", STORE)
    # What looks at many nodes at once: a few of them side by side, so that searches are not held up.
    await serve(bus, insight.TOPICS_TOOL, span(thought.list_topics), workers=2)
    await serve(bus, insight.TOPIC_NODES_TOOL, span(thought.topic_nodes))
    await serve(bus, insight.EVOLUTION_TOOL, span(thought.ask_evolution))
    await serve(bus, insight.DRIFT_TOOL, span(thought.report_drift), workers=4)
    await serve(bus, insight.PATTERNS_TOOL, span(thought.detect_patterns), workers=2)
    await serve(bus, insight.ANALOGIES_TOOL, span(thought.find_analogies), workers=4)
    await serve(bus, insight.CONTRADICTIONS_TOOL, span(thought.find_contradictions), workers=2)
    await serve(bus, insight.DUPLICATES_TOOL, span(thought.find_duplicates), workers=2)
