"""The handlers of what reasons over the graph's vectors and their history: it proposes, and changes nothing else."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import get_args

from phronesis_bus import Call
from phronesis_contracts import BadRequest
from phronesis_contracts.constitution.insight import (
    AnalogiesFound,
    AskEvolution,
    ContradictionsFound,
    DetectPatterns,
    DriftReported,
    DuplicatesFound,
    EvolutionTold,
    FindAnalogies,
    FindContradictions,
    FindDuplicates,
    ListTopics,
    PatternFound,
    PatternsDetected,
    ReportDrift,
    TopicNodes,
    TopicNodesFound,
    TopicsListed,
)
from phronesis_contracts.constitution.registry import node_type

from .analogies import Analogies
from .contradictions import Contradictions
from .drift import Drift
from .duplicates import Duplicates
from .evolution import Evolution
from .mentions import mention
from .patterns import KINDS, Kind, Pattern, Patterns
from .proposing import Proposals
from .storable import storable
from .supported import day_or_time
from .topics import Topics


class Reasoning:
    """The handlers."""

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
        self._topics = topics
        self._evolution = evolution
        self._drift = drift
        self._patterns = patterns
        self._proposals = proposals
        self._analogies = analogies
        self._contradictions = contradictions
        self._duplicates = duplicates

    async def list_topics(self, call: Call, request: ListTopics) -> TopicsListed:
        """Topics of the graph."""
        return await self._topics.list(call.who, frozenset(request.layers), request.refresh)

    async def topic_nodes(self, call: Call, request: TopicNodes) -> TopicNodesFound:
        """The nodes of a topic."""
        return await self._topics.nodes(call.who, storable(request).topic_id, request.limit)

    async def ask_evolution(self, call: Call, request: AskEvolution) -> EvolutionTold:
        """How a node changed."""
        return await self._evolution.of(call.who.tenant, storable(request).id, request.limit)

    async def report_drift(self, call: Call, request: ReportDrift) -> DriftReported:
        """Nodes whose meaning moved."""
        since = _time(request.since)
        found = await self._drift.report(call.who, since, frozenset(request.layers), request.threshold, request.limit)
        return DriftReported(findings=tuple(found))

    async def detect_patterns(self, call: Call, request: DetectPatterns) -> PatternsDetected:
        """What repeats; proposed as drafts where that is asked for, each once."""
        who = call.who
        found = await self._patterns.detect(who, _kinds(request), request.min_roi)
        known = await self._proposals.known(who, found)
        proposed = 0
        told = []
        for pattern in found:
            id = known.get(pattern.digest)
            if id is None and request.propose:
                id = await self._proposals.propose(who, pattern)
                proposed += id is not None
            told.append(_told(pattern, id))
        return PatternsDetected(patterns=tuple(told), proposed=proposed)

    async def find_analogies(self, call: Call, request: FindAnalogies) -> AnalogiesFound:
        """Past successes like a goal."""
        found = await self._analogies.find(call.who, storable(request).id, request.limit)
        return AnalogiesFound(analogies=tuple(found))

    async def find_contradictions(self, call: Call, request: FindContradictions) -> ContradictionsFound:
        """Nodes that cannot both be followed."""
        types = frozenset(_type(given) for given in request.types)
        pairs, compared = await self._contradictions.find(call.who, types, request.limit)
        return ContradictionsFound(pairs=tuple(pairs), compared=compared)

    async def find_duplicates(self, call: Call, request: FindDuplicates) -> DuplicatesFound:
        """Nodes that say nearly the same."""
        layers = frozenset(request.layers)
        return DuplicatesFound(pairs=tuple(await self._duplicates.find(call.who, request.threshold, layers, request.limit)))


def _kinds(request: DetectPatterns) -> tuple[Kind, ...]:
    return tuple(kind for kind in get_args(Kind) if kind in request.kinds) if request.kinds else KINDS


def _told(pattern: Pattern, id: str | None) -> PatternFound:
    nodes = tuple(mention(node) for node in pattern.nodes)
    return PatternFound(kind=pattern.kind, title=pattern.title, confidence=pattern.confidence, nodes=nodes, node_id=id)


def _type(given: str) -> str:
    kind = node_type(given)
    if kind is None:
        raise BadRequest(f"there is no type {given!r}; schema.inventory.v1 lists them", field="types")
    return kind.name


def _time(given: str | None) -> datetime | None:
    said = day_or_time(given, "since")
    if said is None:
        return None
    when = datetime.fromisoformat(said)
    return when if when.tzinfo else when.replace(tzinfo=UTC)
