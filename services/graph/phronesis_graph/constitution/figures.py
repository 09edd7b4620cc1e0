"""Figures in a window of time: due work, measurements, decisions and strategies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Protocol

from phronesis_bus import Call
from phronesis_contracts import BadRequest
from phronesis_contracts.constitution import paths
from phronesis_contracts.constitution.registry import TYPES, Kind, Property
from phronesis_contracts.constitution.values import ConstitutionNode, Mention

from .budgets import count_tokens, shorten_texts, take_fitting
from .records import format_time, normalize_value
from .traversal import (
    EdgeFilter,
    WalkNode,
    WalkReader,
    WalkStore,
    check_relationship_types,
    check_type_names,
    require_nodes,
    sort_newest_first,
    walk,
)
from .walks import count_types

_DAY = len("2026-11-22")
_ENDLESS = "9999-12-31T23:59:59.999999Z"


@dataclass(frozen=True)
class Window:
    """What lies in it has a date `d` with `first <= d <= last`, or the day `day` that it begins in.

    A day is less than every time in it, so a window that ends with a day goes to that day's last moment, and what is only
    known to be of the day that the window begins in counts as inside.
    """

    first: str
    day: str
    last: str


def parse_window(start: str, end: str) -> Window:
    """The time from one date to another.

    Args:
        start: ISO 8601, a day or a time; a time without a zone is taken for UTC.
        end: the same; a day is meant to its end.

    Raises:
        BadRequest: one of them is no date, or they are the wrong way round.
    """
    first, last = _normalize(start, "startDate"), _normalize(end, "endDate")
    day, last = first[:_DAY], _end_of_day(last)
    if last < first:
        raise BadRequest("the end lies before the start", field="endDate")
    return Window(first, day, last)


def parse_open_window(start: str | None, end: str | None) -> Window:
    """The same where either end may be open. Raises `BadRequest`: one of them is no date, or they are the wrong way round."""
    return parse_window(start or "0001-01-01", end or _ENDLESS)


def parse_time(text: str) -> datetime:
    """A date of the store as a time; a day begins at midnight, UTC."""
    return datetime.fromisoformat(text if len(text) > _DAY else f"{text}T00:00:00Z")


def _normalize(text: str, field: str) -> str:
    return str(normalize_value(Property(field, Kind.DATE), text))


def _end_of_day(text: str) -> str:
    if len(text) > _DAY:
        return text
    day = date.fromisoformat(text)
    return format_time(datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1, microseconds=-1))


@dataclass(frozen=True)
class DueTasks:
    """Open tasks of a window, and the figures of all of them."""

    tasks: Sequence[ConstitutionNode]
    by_status: dict[str, int]
    hours: float
    unestimated: int
    overdue: int


@dataclass(frozen=True)
class MetricSeries:
    """A metric with its observations of a window, in the order of time: when and how much."""

    id: str
    title: str
    unit: str | None
    observations: Sequence[tuple[str, float]]


class FigureStore(Protocol):
    """One read for each question. All raise `Unavailable` where the store is down, and `TimedOut` where it is too slow."""

    async def due(self, tenant: str, window: Window, limit: int) -> DueTasks:
        """Open tasks that are due in a window: `limit` of them by date, then the highest priority, and figures of all."""

    async def measured(self, tenant: str, window: Window, metrics: Sequence[str]) -> list[MetricSeries]:
        """Metrics with what was observed, by title; the active ones where none is named. Raises `NotFound`, `TooLarge`."""

    async def decisions(self, tenant: str, min_roi: float | None, window: Window | None, limit: int) -> list[ConstitutionNode]:
        """Active decisions, the best return first and those without one last."""

    async def outcomes(self, tenant: str, request: paths.Outcomes) -> dict[str, list[WalkNode]]:
        """By node that there is, those that a relationship leads to."""

    async def foundation(self, tenant: str, limit: int) -> list[tuple[ConstitutionNode, Sequence[tuple[str, str]]]]:
        """Active nodes of the foundation layer, each with type and target of its relationships to others of them."""


_POINTS = 24
"""Points of a series where nothing is said."""
_TRACK_ROOM = 4_900
"""Tokens of the metrics then."""
_RESULT_ROOM = 14_500
"""Tokens of strategies or decisions: an answer of them has 15,000 at most."""
_FOUNDATION = 2_000
"""Nodes of the foundation that are looked at."""


class FigureHandlers:
    def __init__(self, store: FigureStore, walks: WalkStore) -> None:
        self._store, self._walks = store, walks

    async def due(self, call: Call, request: paths.DueWork) -> paths.DueFound:
        """Open tasks that are due between two dates. Raises `BadRequest`: the dates are none."""
        found = await self._store.due(call.who.tenant, parse_window(request.start_date, request.end_date), request.limit)
        return paths.DueFound(
            items=tuple(found.tasks),
            total=sum(found.by_status.values()),
            by_status=found.by_status,
            total_effort_hours=found.hours,
            unestimated=found.unestimated,
            overdue=found.overdue,
        )

    async def aggregate(self, call: Call, request: paths.AggregateTrack) -> paths.TrackAggregated:
        """Each metric's observations over a time. Raises `BadRequest` (no dates), `NotFound` (a metric), `TooLarge`."""
        over = parse_window(request.start_date, request.end_date)
        found = await self._store.measured(call.who.tenant, over, tuple(dict.fromkeys(request.metric_ids)))
        points = _POINTS if request.points is None else request.points
        every = [summarize_metric(one, points) for one in found]
        while request.points is None and points > 0 and (size := count_tokens(every)) > _TRACK_ROOM:
            points = min(points - 1, points * _TRACK_ROOM // size)
            every = [summarize_metric(one, points) for one in found]
        fitting, used = take_fitting(every)
        return paths.TrackAggregated(metrics=tuple(fitting), token_estimate=used, truncated=len(fitting) < len(every))

    async def decisions(self, call: Call, request: paths.DecisionsSince) -> paths.DecisionsFound:
        """Decisions by what they paid off, each with its done tasks. Raises `BadRequest`: the dates are none."""
        dated = request.start_date is not None or request.end_date is not None
        over = parse_open_window(request.start_date, request.end_date) if dated else None
        found = await self._store.decisions(call.who.tenant, request.min_roi, over, request.limit)
        outcomes: Mapping[str, Sequence[WalkNode]] = {}
        if found:
            query = paths.Outcomes(
                ids=tuple(one.id for one in found), relationship="LEADS_TO", types=("task",), statuses=("done",)
            )
            outcomes = await self._store.outcomes(call.who.tenant, query)
        mentions = {one.id: tuple(met.mention() for met in outcomes.get(one.id, ())) for one in found}
        listed, used = take_fitting(map(shorten_texts, found), _RESULT_ROOM)
        while listed and (used := count_tokens((*listed, *(m for one in listed for m in mentions[one.id])))) > _RESULT_ROOM:
            listed.pop()
        return paths.DecisionsFound(
            decisions=tuple(listed),
            outcomes={one.id: mentions[one.id] for one in listed},
            stats=count_types(listed, used),
            truncated=len(listed) < len(found),
        )

    async def outcomes(self, call: Call, request: paths.Outcomes) -> paths.OutcomesFound:
        """What relationships of one type lead to, for many nodes at once. Raises `BadRequest`: a type that cannot be."""
        check_relationship_types((request.relationship,))
        query = request.model_copy(update={"types": tuple(sorted(check_type_names(request.types)))})
        found = await self._store.outcomes(call.who.tenant, query)
        return paths.OutcomesFound(found={id: tuple(one.mention() for one in of) for id, of in found.items()})

    async def strategies(self, call: Call, request: paths.StrategiesForGoal) -> paths.StrategiesFound:
        """Strategies for a goal, each with its initiatives. Raises `NotFound`: there is no such goal."""
        return await self._walks.read(call.who.tenant, lambda reader: _find_strategies(reader, request))

    async def foundation(self, call: Call, request: paths.RelateFoundation) -> paths.FoundationRelated:
        found = await self._store.foundation(call.who.tenant, _FOUNDATION)
        rank = {name: place for place, name in enumerate(TYPES)}
        every = [
            paths.FoundationNode(
                id=node.id,
                type=node.type,
                title=node.title,
                summary=node.summary,
                description=node.description,
                links=tuple(paths.LeadsTo(target_id=target, type=name) for name, target in sorted(links)),
            )
            for node, links in sorted(found, key=lambda one: (rank[one[0].type], one[0].title, one[0].id))
        ]
        fitting, used = take_fitting(every)
        return paths.FoundationRelated(items=tuple(fitting), token_estimate=used, truncated=len(fitting) < len(every))


def summarize_metric(metric: MetricSeries, points: int) -> paths.MetricSummary:
    """The figures of a metric, and its series in so many points."""
    values = [value for _, value in metric.observations]
    return paths.MetricSummary(
        id=metric.id,
        title=metric.title,
        unit=metric.unit,
        count=len(values),
        average=sum(values) / len(values) if values else None,
        minimum=min(values, default=None),
        maximum=max(values, default=None),
        series=tuple((parse_time(at), value) for at, value in thin_series(metric.observations, points)),
    )


def thin_series(series: Sequence[tuple[str, float]], points: int) -> list[tuple[str, float]]:
    """At most so many points of a series, evenly spread over its places, the first and the last among them."""
    if len(series) <= points:
        return list(series)
    if points < 2:
        return list(series[-points:]) if points else []
    step = (len(series) - 1) / (points - 1)
    return [series[round(place * step)] for place in range(points)]


async def _find_strategies(reader: WalkReader, request: paths.StrategiesForGoal) -> paths.StrategiesFound:
    await require_nodes(reader, request.id)
    walked = await walk(reader, (request.id,), request.max_hops, EdgeFilter(("ALIGNS_WITH", "SERVES"), "in"))
    ways = [way for way in walked.found if way.node.type == "strategy"]
    ways = sorted(sorted(ways, key=lambda way: way.node.id), key=lambda way: way.node.updated_at, reverse=True)
    chosen = ways[: request.limit]
    hops = {way.node.id: way.hops for way in chosen}
    edges = await reader.around(list(hops), EdgeFilter(("SUPPORTED_BY",), "out")) if hops else []
    initiatives: dict[str, list[Mention]] = {id: [] for id in hops}
    for edge in sort_newest_first(edges):
        if edge.node.type == "initiative":
            initiatives[edge.source].append(edge.node.mention())
    every = [
        paths.StrategyFound(strategy=shorten_texts(node), hops=hops[node.id], initiatives=tuple(initiatives[node.id]))
        for node in await reader.nodes(list(hops), full=True)
    ]
    fitting, used = take_fitting(every, _RESULT_ROOM)
    return paths.StrategiesFound(
        strategies=tuple(fitting),
        stats=count_types((one.strategy for one in fitting), used),
        truncated=walked.cut or len(fitting) < len(chosen),
    )
