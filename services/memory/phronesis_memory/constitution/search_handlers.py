"""The handlers of searches, and of what reasons over the graph's vectors and their history, and their wiring."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from time import perf_counter
from typing import Any, TypeVar, get_args
from uuid import uuid4

from phronesis_bus import Bus, Call, News, follow, serve
from phronesis_contracts import BadRequest, Principal, ServiceError
from phronesis_contracts.constitution import insight, search
from phronesis_contracts.constitution.registry import node_type
from phronesis_contracts.constitution.writes import CONSTITUTION_CHANGED, ConstitutionChanged
from phronesis_postgres import Database

from ..embedding.queries import QueryVectors
from ..ports import Embedder
from ..settings import RetrievalSettings
from ..tracing import trace_handler
from ..values import check_storable
from .contradictions import Contradictions
from .evolution import Drift, Duplicates, Evolution
from .patterns import KINDS, Analogies, Kind, Pattern, Patterns, Proposals
from .ports import History, NodeVectors, Retrievals, Structure, Texts
from .retrievals import (
    AnswerCache,
    Retrieval,
    RetrievalLog,
    apply_defaults,
    check_defaults,
    count_by_layer,
    default_value,
    is_default,
)
from .search import NodeSearch
from .search_store import PostgresRetrievals, PostgresTopics
from .semantic import INDEX_FILLING, NoiseLevel, SemanticFinder, mention, normalize_time
from .topics import Topics

log = logging.getLogger(__name__)

Request = TypeVar(
    "Request", search.SemanticSearch, search.HybridSearch, search.InsightSearch, search.PrecedentSearch, search.GoalSearch
)
Found = TypeVar("Found", search.SemanticFound, search.HybridFound, search.SupportedFound, search.GoalFound)
_LATE = f"{INDEX_FILLING} with what was written just before: results may be missing"
_TRIES, _PAUSE = 4, 0.5
"""How often, and after how many seconds, a rated retrieval is looked for that another copy of the service has yet to log."""


class SearchHandlers:
    def __init__(self, finding: NodeSearch, retrievals: Retrievals, log: RetrievalLog, answers: AnswerCache) -> None:
        self._finding, self._retrievals = finding, retrievals
        self._log, self._answers = log, answers

    async def semantic_search(self, call: Call, request: search.SemanticSearch) -> search.SemanticFound:
        changed = await self._changed(call.who)
        shipped = is_default(request, changed)
        find = partial(self._finding.semantic, shipped=shipped)
        return await self._answered(call.who, "semantic.search.v1", apply_defaults(request, changed), find, shipped=shipped)

    async def hybrid_search(self, call: Call, request: search.HybridSearch) -> search.HybridFound:
        changed = await self._changed(call.who)
        shipped = is_default(request, changed)
        find = partial(self._finding.hybrid, shipped=shipped)
        return await self._answered(call.who, "hybrid.search.v1", apply_defaults(request, changed), find, shipped=shipped)

    async def insight_search(self, call: Call, request: search.InsightSearch) -> search.SupportedFound:
        changed = await self._changed(call.who)
        shipped = is_default(request, changed)
        find = partial(self._finding.insights, shipped=shipped)
        return await self._answered(call.who, "insight.search.v1", apply_defaults(request, changed), find, shipped=shipped)

    async def precedent_search(self, call: Call, request: search.PrecedentSearch) -> search.SupportedFound:
        changed = await self._changed(call.who)
        shipped = is_default(request, changed)
        find = partial(self._finding.precedents, shipped=shipped)
        return await self._answered(call.who, "decision.precedents.v1", apply_defaults(request, changed), find, shipped=shipped)

    async def goal_search(self, call: Call, request: search.GoalSearch) -> search.GoalFound:
        """A goal by its words, and what is around it."""
        changed = await self._changed(call.who)

        async def find(who: Principal, completed: search.GoalSearch) -> search.GoalFound:
            weights = apply_defaults(search.HybridSearch(query=completed.query), changed)
            least, shipped = default_value(changed, "goal.minSimilarity"), "goal.minSimilarity" not in changed
            return await self._finding.goal(who, completed, least, weights, shipped=shipped)

        return await self._answered(call.who, "goal.search.v1", request, find)

    async def rate_retrieval(self, call: Call, request: search.RateRetrieval) -> search.RetrievalRated:
        """Keep what the caller says of an answer, which may have been logged nowhere yet."""
        check_storable(request)
        for _ in range(_TRIES - 1):
            await self._log.flush()
            try:
                return await self._retrievals.rate(call, request)
            except search.NoSuchRetrieval:
                await asyncio.sleep(_PAUSE)
        return await self._retrievals.rate(call, request)

    async def tune_retrieval(self, call: Call, request: search.TuneRetrieval) -> search.RetrievalTuned:
        """Change defaults of the caller's tenant; the next search has them."""
        check_defaults(request.values)
        done = await self._retrievals.tune(call, request)
        self._answers.drop(call.who.tenant)
        return done

    async def report_retrieval(self, call: Call, request: search.ReportRetrieval) -> search.RetrievalReported:
        await self._log.flush()
        return await self._retrievals.report(call.who.tenant, request.days)

    async def on_constitution_changed(self, news: News, _: ConstitutionChanged) -> None:
        self._answers.drop(news.tenant)

    async def _changed(self, who: Principal) -> Mapping[str, float]:
        try:
            return await self._retrievals.changed(who.tenant)
        except ServiceError as error:
            log.warning("the tenant's own defaults are not known: %s", error.code)
            return {}

    async def _answered(
        self,
        who: Principal,
        tool: str,
        completed: Request,
        find: Callable[[Principal, Request], Awaitable[Found]],
        *,
        shipped: bool = False,
    ) -> Found:
        check_storable(completed)
        began, id, outcome = perf_counter(), str(uuid4()), "failed"
        answer: Found | None = None
        try:
            answer = _with_retrieval_id(await self._kept_or_found(who, tool, completed, find, shipped), id)
            outcome = "ok"
            return answer
        except ServiceError as error:
            outcome = error.code
            raise
        finally:
            arguments, milliseconds = completed.model_dump(mode="json", exclude={"query"}), 1_000 * (perf_counter() - began)
            row = Retrieval(id, who.tenant, tool, who.user, completed.query, arguments, milliseconds, outcome)
            self._log.add(row if answer is None else replace(row, **_log_figures(answer)))

    async def _kept_or_found(
        self,
        who: Principal,
        tool: str,
        completed: Request,
        find: Callable[[Principal, Request], Awaitable[Found]],
        shipped: bool,
    ) -> Found:
        if getattr(completed, "consistency", "") == "strong":
            return await find(who, completed)
        # What is kept holds until the next change, of which the news may still be on its way.
        number = await self._finding.caught_up(who.tenant)
        if number is None:
            anew: Found = await find(who, completed)
            return _with_fields(anew, warnings=(*_results_of(anew).warnings, _LATE))
        place = self._answers.place(who, tool, f"{number} {shipped} {completed.model_dump_json()}")
        kept: Found | None = self._answers.find(place)
        if kept is not None:
            return kept
        found = await find(who, completed)
        if not _is_incomplete(found):
            self._answers.keep(place, _with_fields(found, cached=True))
        return found


def _results_of(found: Found) -> search.SemanticFound | search.HybridFound | search.SupportedFound:
    return found.found if isinstance(found, search.GoalFound) else found


def _with_fields(found: Found, **fields: object) -> Found:
    if isinstance(found, search.GoalFound):
        return found.model_copy(update={"found": found.found.model_copy(update=fields)})
    return found.model_copy(update=fields)


def _with_retrieval_id(found: Found, id: str) -> Found:
    return _with_fields(found, retrieval_id=id)


def _is_incomplete(found: Found) -> bool:
    """Whether the answer would be another one as soon as something works again."""
    around = _results_of(found)
    degraded = isinstance(around, search.HybridFound) and bool(around.degraded)
    return degraded or any(said.startswith(INDEX_FILLING) for said in around.warnings)


def _log_figures(found: Found) -> dict[str, Any]:
    around = _results_of(found)
    nodes = [one.node for one in around.results]
    return {
        "tokens": around.stats.token_estimate,
        "nodes": len(nodes),
        "layers": count_by_layer(nodes),
        "cached": around.cached,
        "degraded": around.degraded if isinstance(around, search.HybridFound) else (),
    }


class ReasoningHandlers:
    def __init__(
        self,
        topics: Topics,
        evolution: Evolution,
        drift: Drift,
        patterns: Patterns,
        proposals: Proposals,
        analogies: Analogies,
        contradictions: Contradictions,
        duplicates: Duplicates,
    ) -> None:
        self._topics, self._evolution, self._drift = topics, evolution, drift
        self._patterns, self._proposals, self._analogies = patterns, proposals, analogies
        self._contradictions, self._duplicates = contradictions, duplicates

    async def list_topics(self, call: Call, request: insight.ListTopics) -> insight.TopicsListed:
        return await self._topics.list(call.who, frozenset(request.layers), request.refresh)

    async def topic_nodes(self, call: Call, request: insight.TopicNodes) -> insight.TopicNodesFound:
        return await self._topics.nodes(call.who, check_storable(request).topic_id, request.limit)

    async def ask_evolution(self, call: Call, request: insight.AskEvolution) -> insight.EvolutionTold:
        return await self._evolution.of(call.who.tenant, check_storable(request).id, request.limit)

    async def report_drift(self, call: Call, request: insight.ReportDrift) -> insight.DriftReported:
        since = _parse_time(request.since)
        found = await self._drift.report(call.who, since, frozenset(request.layers), request.threshold, request.limit)
        return insight.DriftReported(findings=tuple(found))

    async def detect_patterns(self, call: Call, request: insight.DetectPatterns) -> insight.PatternsDetected:
        """What repeats; proposed as drafts where that is asked for, each once."""
        who = call.who
        found = await self._patterns.detect(who, _pattern_kinds(request), request.min_roi)
        known = await self._proposals.known(who, found)
        proposed = 0
        told = []
        for pattern in found:
            id = known.get(pattern.digest)
            if id is None and request.propose:
                id = await self._proposals.propose(who, pattern)
                proposed += id is not None
            told.append(_to_pattern_found(pattern, id))
        return insight.PatternsDetected(patterns=tuple(told), proposed=proposed)

    async def find_analogies(self, call: Call, request: insight.FindAnalogies) -> insight.AnalogiesFound:
        found = await self._analogies.find(call.who, check_storable(request).id, request.limit)
        return insight.AnalogiesFound(analogies=tuple(found))

    async def find_contradictions(self, call: Call, request: insight.FindContradictions) -> insight.ContradictionsFound:
        types = frozenset(_check_type(given) for given in request.types)
        pairs, compared = await self._contradictions.find(call.who, types, request.limit)
        return insight.ContradictionsFound(pairs=tuple(pairs), compared=compared)

    async def find_duplicates(self, call: Call, request: insight.FindDuplicates) -> insight.DuplicatesFound:
        layers = frozenset(request.layers)
        return insight.DuplicatesFound(
            pairs=tuple(await self._duplicates.find(call.who, request.threshold, layers, request.limit))
        )


def _pattern_kinds(request: insight.DetectPatterns) -> tuple[Kind, ...]:
    return tuple(kind for kind in get_args(Kind) if kind in request.kinds) if request.kinds else KINDS


def _to_pattern_found(pattern: Pattern, id: str | None) -> insight.PatternFound:
    nodes = tuple(mention(node) for node in pattern.nodes)
    return insight.PatternFound(kind=pattern.kind, title=pattern.title, confidence=pattern.confidence, nodes=nodes, node_id=id)


def _check_type(given: str) -> str:
    kind = node_type(given)
    if kind is None:
        raise BadRequest(f"there is no type {given!r}; schema.inventory.v1 lists them", field="types")
    return kind.name


def _parse_time(given: str | None) -> datetime | None:
    said = normalize_time(given, "since")
    if said is None:
        return None
    when = datetime.fromisoformat(said)
    return when if when.tzinfo else when.replace(tzinfo=UTC)


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
    noise: NoiseLevel | None = None
    """Without it, the floors are the stated ones."""


def assemble_searches(
    sources: Sources, settings: RetrievalSettings, wake: Callable[[], None]
) -> tuple[SearchHandlers, RetrievalLog]:
    """The handlers of searches, and the log that they write to."""
    kept = PostgresRetrievals(sources.database, settings.log_words, wake)
    log = RetrievalLog(kept, settings.log_days)
    meaning = SemanticFinder(sources.vectors, sources.structure, sources.queries, noise=sources.noise)
    return SearchHandlers(NodeSearch(meaning), kept, log, AnswerCache()), log


def assemble_reasoning(sources: Sources) -> ReasoningHandlers:
    """The handlers that reason over the graph."""
    vectors, structure, history = sources.vectors, sources.structure, sources.history
    return ReasoningHandlers(
        Topics(vectors, sources.texts, structure, PostgresTopics(sources.database)),
        Evolution(history),
        Drift(history, vectors, structure, sources.embedder),
        Patterns(vectors, structure),
        Proposals(vectors, structure),
        Analogies(SemanticFinder(vectors, structure, sources.queries)),
        Contradictions(vectors, structure),
        Duplicates(vectors, history, structure),
    )


async def serve_searches(bus: Bus, sources: Sources, settings: RetrievalSettings, wake: Callable[[], None]) -> None:
    found, log = assemble_searches(sources, settings, wake)
    span = partial(trace_handler, bus.tracing, "search_memory", STORE)

    log.start()
    bus.on_stop(log.stop)
    await serve(bus, search.SEMANTIC_SEARCH_TOOL, span(found.semantic_search))
    await serve(bus, search.HYBRID_SEARCH_TOOL, span(found.hybrid_search))
    await serve(bus, search.INSIGHT_SEARCH_TOOL, span(found.insight_search))
    await serve(bus, search.PRECEDENT_SEARCH_TOOL, span(found.precedent_search))
    await serve(bus, search.GOAL_SEARCH_TOOL, span(found.goal_search))
    await serve(bus, search.RATE_RETRIEVAL_TOOL, found.rate_retrieval)
    await serve(bus, search.TUNE_RETRIEVAL_TOOL, found.tune_retrieval)
    await serve(bus, search.REPORT_RETRIEVAL_TOOL, found.report_retrieval)
    await follow(bus, CONSTITUTION_CHANGED, found.on_constitution_changed, every_copy=True)
    await _serve_reasoning(bus, assemble_reasoning(sources))


async def _serve_reasoning(bus: Bus, thought: ReasoningHandlers) -> None:
    span = partial(trace_handler, bus.tracing, "search_memory", STORE)
    # What looks at many nodes at once: a few of them side by side, so that searches are not held up.
    await serve(bus, insight.TOPICS_TOOL, span(thought.list_topics), workers=2)
    await serve(bus, insight.TOPIC_NODES_TOOL, span(thought.topic_nodes))
    await serve(bus, insight.EVOLUTION_TOOL, span(thought.ask_evolution))
    await serve(bus, insight.DRIFT_TOOL, span(thought.report_drift), workers=4)
    await serve(bus, insight.PATTERNS_TOOL, span(thought.detect_patterns), workers=2)
    await serve(bus, insight.ANALOGIES_TOOL, span(thought.find_analogies), workers=4)
    await serve(bus, insight.CONTRADICTIONS_TOOL, span(thought.find_contradictions), workers=2)
    await serve(bus, insight.DUPLICATES_TOOL, span(thought.find_duplicates), workers=2)
