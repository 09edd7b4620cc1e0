"""The start of a session: foundation, vision and workload, each held until news touches it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import uuid4

from phronesis_bus import Call, Metrics, News
from phronesis_contracts import Principal, ServiceError, Unavailable
from phronesis_contracts.constitution.lists import VisionNode
from phronesis_contracts.constitution.registry import PARENTS, Layer
from phronesis_contracts.constitution.session import (
    AssessWorkload,
    SessionStarted,
    SessionStats,
    StartSession,
    WorkloadAssessed,
)
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_contracts.constitution.writes import ConstitutionChanged, LinkNews, NodeNews, Operation

from ..metrics import STARTS
from .calendar import Calendars
from .parts import WORK, Node, Part, Parts
from .workload import Workload

_WORK = frozenset({"status", "duedate", "efforthours"})
"""Fields of a task that change a workload's figures."""
_SHOWN = frozenset({"title", "status"})
"""Fields of a parent that are told with its child."""


def touches_foundation(news: ConstitutionChanged) -> bool:
    """Whether the foundation changed: one of its nodes, or a relationship between two of them."""
    return any(node.layer is Layer.FOUNDATION for node in news.nodes) or any(
        set(link.layers) == {Layer.FOUNDATION} for link in news.relationships
    )


def touches_vision(news: ConstitutionChanged, parents: frozenset[str]) -> bool:
    """Whether the vision changed: one of its nodes, what it rests on, or how a parent in another layer is shown."""
    return any(_vision_node(node, parents) for node in news.nodes) or any(_parentage(link) for link in news.relationships)


def touches_work(news: ConstitutionChanged) -> bool:
    """Whether the figures of what is due changed."""
    return any(node.type == "task" and _changed(node, _WORK) for node in news.nodes)


def _vision_node(node: NodeNews, parents: frozenset[str]) -> bool:
    if node.layer is Layer.VISION:
        return True
    if node.operation is Operation.CREATE or not _changed(node, _SHOWN):
        return False
    # one that came back into force is told as a parent again, and was not among them until now
    return node.id in parents or (node.layer is Layer.FOUNDATION and _changed(node, frozenset({"status"})))


def _parentage(link: LinkNews) -> bool:
    return link.type in PARENTS and link.layers[:1] == (Layer.VISION,)


def _changed(node: NodeNews, fields: frozenset[str]) -> bool:
    if node.operation is not Operation.UPDATE or not node.changed:
        return True
    return any(name.replace("_", "").lower() in fields for name in node.changed)


Value = TypeVar("Value")
Key = tuple[str, ...]
"""The tenant, and whatever else tells two values apart."""


@dataclass
class Load(Generic[Value]):
    """A value on its way. It is kept at the end, unless news came in between that it may not have seen."""

    stale: bool = False
    value: Value | None = None


class PartCache(Generic[Value]):
    """Values by key: dropped by news, after a while in case news was lost, and the oldest one for one too many.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, most: int, seconds: float, clock: Callable[[], float]) -> None:
        self._most, self._seconds, self._clock = most, seconds, clock
        self._values: dict[Key, tuple[Value, float]] = {}
        self._loads: dict[str, list[Load[Value]]] = {}

    def get(self, key: Key) -> Value | None:
        """The value of a key, if it is at hand and no older than the safety time."""
        found = self._values.get(key)
        if found is None or self._clock() - found[1] >= self._seconds:
            return None
        return found[0]

    @contextmanager
    def loading(self, key: Key) -> Iterator[Load[Value]]:
        """Load the value of a key in a block, which puts it into what it is given where it is worth keeping."""
        load = Load[Value]()
        loads = self._loads.setdefault(key[0], [])
        loads.append(load)
        try:
            yield load
            if load.value is not None and not load.stale:
                self._values.pop(key, None)
                self._values[key] = (load.value, self._clock())
                if len(self._values) > self._most:
                    del self._values[next(iter(self._values))]
        finally:
            loads.remove(load)
            if not loads:
                self._loads.pop(key[0], None)

    def drop(self, tenant: str, touched: Callable[[Value], bool] = lambda value: True) -> None:
        """Forget a tenant's values that are touched, and keep none that is being loaded."""
        for key in [key for key, (value, _) in self._values.items() if key[0] == tenant and touched(value)]:
            del self._values[key]
        for load in self._loads.get(tenant, ()):
            load.stale = True

    def clear(self) -> None:
        self._values.clear()
        for loads in self._loads.values():
            for load in loads:
                load.stale = True


log = logging.getLogger(__name__)


SAFETY = 600.0
"""Seconds after which a part is loaded anew, in case news of a write was lost."""
_PARTS, _WORKLOADS, _SESSIONS = 200, 2_000, 5_000
"""Parts, workloads and sessions that are kept at most."""
_LIMIT = 7.0
"""Seconds that a part may take, with its second try and the first version of its list."""
_NO_FOUNDATION: Part[ConstitutionNode] = Part((), (), 0)
_NO_VISION: Part[VisionNode] = Part((), (), 0)


@dataclass(frozen=True)
class _LoadedPart(Generic[Value]):
    value: Value | None = None
    cached: bool = False
    problem: tuple[str, ...] = ()


class Sessions:
    """Starts sessions.

    What is kept of foundation and vision belongs to a tenant and a role, what is kept of a workload to a user and a role as
    well, so that nobody is served what was loaded with another's rights.
    """

    def __init__(
        self,
        parts: Parts,
        workload: Workload,
        calendars: Calendars,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._parts, self._workload, self._calendars, self._metrics, self._clock = parts, workload, calendars, metrics, clock
        self._foundations: PartCache[Part[ConstitutionNode]] = PartCache(_PARTS, SAFETY, clock)
        self._visions: PartCache[Part[VisionNode]] = PartCache(_PARTS, SAFETY, clock)
        self._workloads: PartCache[WorkloadAssessed] = PartCache(_WORKLOADS, SAFETY, clock)
        self._started: PartCache[SessionStats] = PartCache(_SESSIONS, float("inf"), clock)

    async def start(self, call: Call, request: StartSession) -> SessionStarted:
        """What a session begins with. A part that cannot be had is absent, and named in the warnings.

        Raises:
            Unavailable: none of the parts could be had.
        """
        began = self._clock()
        foundation, vision, work = await asyncio.gather(
            _within("foundation", _part(self._foundations, call.who, self._parts.foundation)),
            _within("vision", _part(self._visions, call.who, self._parts.vision)),
            _within("workload", self._work(call.who)),
        )
        self._count((foundation.value, vision.value, work.value))
        low, high = foundation.value or _NO_FOUNDATION, vision.value or _NO_VISION
        degraded = ("workload: the calendar could not be read",) if work.value and work.value.degraded else ()
        ways = {"foundation": foundation.cached, "vision": vision.cached, "workload": work.cached}
        load = work.value.token_estimate if work.value else 0
        started = SessionStarted(
            session_id=request.session_id or str(uuid4()),
            foundation=low.nodes,
            foundation_relationships=low.links,
            vision=high.nodes,
            workload=work.value,
            stats=_stats(low, high, load, 1000 * (self._clock() - began), ways),
            warnings=(*foundation.problem, *vision.problem, *work.problem, *low.warnings, *high.warnings, *degraded),
            left_out=(*low.left_out, *high.left_out),
        )
        self._remember(call.who, started)
        return started

    def of(self, who: Principal, session_id: str | None) -> SessionStats | None:
        """What the caller's session of that id came to, or the last one; `None` where this process started none such."""
        return self._started.get((who.tenant, who.user, session_id or ""))

    async def on_constitution_changed(self, news: News, change: ConstitutionChanged) -> None:
        """Forget what a write touched: by whichever agent, on whichever path."""
        if touches_foundation(change):
            self._foundations.drop(news.tenant)
        if touches_vision(change, frozenset(node.id for node in change.nodes)):  # were they all parents
            self._visions.drop(news.tenant, lambda part: touches_vision(change, part.parents))
        if touches_work(change):
            self._workloads.drop(news.tenant)

    def forget(self) -> None:
        """Forget all parts: news may have been lost while the broker was away."""
        for kept in (self._foundations, self._visions, self._workloads):
            kept.clear()

    async def _work(self, who: Principal) -> _LoadedPart[WorkloadAssessed]:
        calendar, request = await self._calendars.of(who), AssessWorkload()
        window = self._workload.window(calendar, request)
        key = (who.tenant, who.user, who.role.value, str(calendar.version), window.first.isoformat())
        if (found := self._workloads.get(key)) is not None:
            return _LoadedPart(found, cached=True)
        with self._workloads.loading(key) as load:
            work = await self._workload.of(who, calendar, window, request)
            load.value = None if work.degraded else work
        return _LoadedPart(work)

    def _remember(self, who: Principal, started: SessionStarted) -> None:
        for name in (started.session_id, ""):
            with self._started.loading((who.tenant, who.user, name)) as load:
                load.value = started.stats

    def _count(self, parts: tuple[object | None, ...]) -> None:
        missing = sum(part is None for part in parts)
        self._metrics.count(STARTS, "full" if not missing else "failed" if missing == len(parts) else "partial")
        if missing == len(parts):
            raise Unavailable("nothing of the context can be loaded", retry_after=1)


def _stats(
    foundation: Part[ConstitutionNode], vision: Part[VisionNode], load: int, milliseconds: float, cached: dict[str, bool]
) -> SessionStats:
    work = max(WORK, load)
    return SessionStats(
        total_nodes=len(foundation.nodes) + len(vision.nodes),
        total_tokens=foundation.tokens + vision.tokens + work,
        foundation_tokens=foundation.tokens,
        vision_tokens=vision.tokens,
        workload_tokens=work,
        load_time=round(milliseconds, 3),
        cached=tuple(name for name, kept in cached.items() if kept),
    )


async def _part(
    kept: PartCache[Part[Node]], who: Principal, load: Callable[[Principal], Awaitable[Part[Node]]]
) -> _LoadedPart[Part[Node]]:
    key = (who.tenant, who.role.value)
    if (found := kept.get(key)) is not None:
        return _LoadedPart(found, cached=True)
    with kept.loading(key) as loading:
        part = await load(who)
        loading.value = None if part.makeshift else part
    return _LoadedPart(part)


async def _within(name: str, loading: Awaitable[_LoadedPart[Value]]) -> _LoadedPart[Value]:
    try:
        async with asyncio.timeout(_LIMIT):
            return await loading
    except (ServiceError, TimeoutError) as error:
        code = error.code if isinstance(error, ServiceError) else "timed_out"
        log.warning("a session begins without its %s: %s", name, code)
        return _LoadedPart(problem=(f"{name}: it could not be loaded ({code})",))
