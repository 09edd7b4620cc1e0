"""What the graph service answers to figures: due work, measurements, decisions, strategies and their like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from phronesis_bus import Call
from phronesis_contracts.constitution.paths import (
    AggregateTrack,
    DecisionsFound,
    DecisionsSince,
    DueFound,
    DueWork,
    FoundationNode,
    FoundationRelated,
    LeadsTo,
    MetricSummary,
    Outcomes,
    OutcomesFound,
    RelateFoundation,
    StrategiesForGoal,
    StrategiesFound,
    StrategyFound,
    TrackAggregated,
)
from phronesis_contracts.constitution.registry import TYPES
from phronesis_contracts.constitution.values import Mention

from .budgets import fitting, measured, shortened
from .figured import FigureStore, Measured
from .meeting import must_meet
from .naming import relationship_names, type_names
from .walkable import Follow, Met, Reader, WalkStore
from .walking import newest_first, walk
from .walks import stats
from .windows import instant, since, window

_POINTS = 24
"""Points of a series where nothing is said (C-64)."""
_TRACK_ROOM = 4_900
"""Tokens of the metrics then (O-268)."""
_RESULT_ROOM = 14_500
"""Tokens of strategies or decisions: an answer of them has 15,000 at most (O-256, O-283)."""
_FOUNDATION = 2_000
"""Nodes of the foundation that are looked at."""


class Figures:
    """One method for each message."""

    def __init__(self, store: FigureStore, walks: WalkStore) -> None:
        self._store = store
        self._walks = walks

    async def due(self, call: Call, request: DueWork) -> DueFound:
        """Open tasks that are due between two dates.

        Raises:
            BadRequest: the dates are none.
        """
        found = await self._store.due(call.who.tenant, window(request.start_date, request.end_date), request.limit)
        return DueFound(
            items=tuple(found.tasks),
            total=sum(found.by_status.values()),
            by_status=found.by_status,
            total_effort_hours=found.hours,
            unestimated=found.unestimated,
            overdue=found.overdue,
        )

    async def aggregate(self, call: Call, request: AggregateTrack) -> TrackAggregated:
        """Each metric's observations over a time.

        Raises:
            BadRequest: the dates are none.
            NotFound: a metric that is named is not there.
            TooLarge: more was observed than one answer is made from.
        """
        over = window(request.start_date, request.end_date)
        found = await self._store.measured(call.who.tenant, over, tuple(dict.fromkeys(request.metric_ids)))
        points = _POINTS if request.points is None else request.points
        every = [summary(one, points) for one in found]
        while request.points is None and points > 0 and (size := measured(every)) > _TRACK_ROOM:
            points = min(points - 1, points * _TRACK_ROOM // size)
            every = [summary(one, points) for one in found]
        told, used = fitting(every)
        return TrackAggregated(metrics=tuple(told), token_estimate=used, truncated=len(told) < len(every))

    async def decisions(self, call: Call, request: DecisionsSince) -> DecisionsFound:
        """Decisions by what they paid off, each with its done tasks.

        Raises:
            BadRequest: the dates are none.
        """
        dated = request.start_date is not None or request.end_date is not None
        over = since(request.start_date, request.end_date) if dated else None
        found = await self._store.decisions(call.who.tenant, request.min_roi, over, request.limit)
        outcomes: Mapping[str, Sequence[Met]] = {}
        if found:
            asked = Outcomes(ids=tuple(one.id for one in found), relationship="LEADS_TO", types=("task",), statuses=("done",))
            outcomes = await self._store.outcomes(call.who.tenant, asked)
        mentions = {one.id: tuple(met.mention() for met in outcomes.get(one.id, ())) for one in found}
        listed, used = fitting(map(shortened, found), _RESULT_ROOM)
        while listed and (used := measured((*listed, *(m for one in listed for m in mentions[one.id])))) > _RESULT_ROOM:
            listed.pop()
        return DecisionsFound(
            decisions=tuple(listed),
            outcomes={one.id: mentions[one.id] for one in listed},
            stats=stats(listed, used),
            truncated=len(listed) < len(found),
        )

    async def outcomes(self, call: Call, request: Outcomes) -> OutcomesFound:
        """What relationships of one type lead to, for many nodes at once.

        Raises:
            BadRequest: a type or a relationship type that cannot be.
        """
        relationship_names((request.relationship,))
        asked = request.model_copy(update={"types": tuple(sorted(type_names(request.types)))})
        found = await self._store.outcomes(call.who.tenant, asked)
        return OutcomesFound(found={id: tuple(one.mention() for one in of) for id, of in found.items()})

    async def strategies(self, call: Call, request: StrategiesForGoal) -> StrategiesFound:
        """Strategies for a goal, each with its initiatives.

        Raises:
            NotFound: there is no such goal.
        """
        return await self._walks.read(call.who.tenant, lambda reader: _strategies(reader, request))

    async def foundation(self, call: Call, request: RelateFoundation) -> FoundationRelated:
        """The foundation's nodes, each with its relationships to others of it."""
        found = await self._store.foundation(call.who.tenant, _FOUNDATION)
        rank = {name: place for place, name in enumerate(TYPES)}
        every = [
            FoundationNode(
                id=node.id,
                type=node.type,
                title=node.title,
                summary=node.summary,
                description=node.description,
                links=tuple(LeadsTo(target_id=target, type=name) for name, target in sorted(links)),
            )
            for node, links in sorted(found, key=lambda one: (rank[one[0].type], one[0].title, one[0].id))
        ]
        told, used = fitting(every)
        return FoundationRelated(items=tuple(told), token_estimate=used, truncated=len(told) < len(every))


def summary(metric: Measured, points: int) -> MetricSummary:
    """The figures of a metric, and its series in so many points."""
    values = [value for _, value in metric.observations]
    return MetricSummary(
        id=metric.id,
        title=metric.title,
        unit=metric.unit,
        count=len(values),
        average=sum(values) / len(values) if values else None,
        minimum=min(values, default=None),
        maximum=max(values, default=None),
        series=tuple((instant(at), value) for at, value in thinned(metric.observations, points)),
    )


def thinned(series: Sequence[tuple[str, float]], points: int) -> list[tuple[str, float]]:
    """At most so many points of a series, evenly spread over its places, the first and the last among them."""
    if len(series) <= points:
        return list(series)
    if points < 2:
        return list(series[-points:]) if points else []
    step = (len(series) - 1) / (points - 1)
    return [series[round(place * step)] for place in range(points)]


async def _strategies(reader: Reader, request: StrategiesForGoal) -> StrategiesFound:
    await must_meet(reader, request.id)
    walked = await walk(reader, (request.id,), request.max_hops, Follow(("ALIGNS_WITH", "SERVES"), "in"))
    ways = [way for way in walked.found if way.node.type == "strategy"]
    ways = sorted(sorted(ways, key=lambda way: way.node.id), key=lambda way: way.node.updated_at, reverse=True)
    chosen = ways[: request.limit]
    hops = {way.node.id: way.hops for way in chosen}
    edges = await reader.around(list(hops), Follow(("SUPPORTED_BY",), "out")) if hops else []
    initiatives: dict[str, list[Mention]] = {id: [] for id in hops}
    for edge in newest_first(edges):
        if edge.node.type == "initiative":
            initiatives[edge.source].append(edge.node.mention())
    every = [
        StrategyFound(strategy=shortened(node), hops=hops[node.id], initiatives=tuple(initiatives[node.id]))
        for node in await reader.nodes(list(hops), full=True)
    ]
    told, used = fitting(every, _RESULT_ROOM)
    return StrategiesFound(
        strategies=tuple(told),
        stats=stats((one.strategy for one in told), used),
        truncated=walked.cut or len(told) < len(chosen),
    )
