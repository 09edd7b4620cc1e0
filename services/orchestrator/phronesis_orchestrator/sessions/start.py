"""The start of a session: foundation, vision and workload, trimmed to their budgets and held until news touches them."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar
from uuid import uuid4

import phronesis_tokens as tokens
from phronesis_bus import Call, Metrics, News
from phronesis_contracts import Nothing, Principal, ServiceError, Unavailable
from phronesis_contracts.constitution.lists import (
    LIST_FOUNDATION,
    LIST_FOUNDATION_TOOL,
    LIST_VISION,
    LIST_VISION_TOOL,
    LISTS,
    ListFoundation,
    ListLayer,
    ListVision,
    VisionNode,
)
from phronesis_contracts.constitution.maintenance import COUNT_CHANGES
from phronesis_contracts.constitution.registry import PARENTS, Layer, Lifecycle
from phronesis_contracts.constitution.session import (
    AssessWorkload,
    SessionStarted,
    SessionStats,
    StartSession,
    WorkloadAssessed,
)
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode
from phronesis_contracts.constitution.writes import ConstitutionChanged, LinkNews, NodeNews, Operation

from ..metrics import STARTS
from .calendar import Ask, Calendars, ask_twice
from .workload import Workload

Node = TypeVar("Node", bound=ConstitutionNode)
Body = dict[str, Any]

_STAYS = frozenset({"id", "type", "layer", "title", "status"})
_BAGS = frozenset({"metadata", "provenance", "properties"})
_TIMES = frozenset({"createdAt", "updatedAt", "version"})
_OWN = _STAYS | _BAGS | _TIMES | {"summary", "description", "parents"}
_RULES: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("free properties", _BAGS.__contains__),
    ("descriptions", "description".__eq__),
    ("typed texts", lambda name: name not in _OWN),
    ("times and versions", _TIMES.__contains__),
    ("relationships", "parents".__eq__),
    ("summaries", "summary".__eq__),
)


@dataclass(frozen=True)
class TrimmedPart(Generic[Node]):
    """What is told of a part."""

    nodes: tuple[Node, ...]
    links: tuple[ConstitutionLink, ...]
    tokens: int
    """Of the nodes and relationships as they are sent."""
    left_out: tuple[str, ...] = ()


def part_size(nodes: Sequence[ConstitutionNode], links: Sequence[ConstitutionLink]) -> int:
    """Tokens of nodes and relationships as they are sent."""
    return _size([_body(node) for node in nodes], [_body(link) for link in links])


def trim(nodes: Sequence[Node], links: Sequence[ConstitutionLink], budget: int) -> TrimmedPart[Node]:
    """As much of a part as its budget allows. `budget`: tokens that it may have."""
    bodies, joined = [_body(node) for node in nodes], [_body(link) for link in links]
    left = _size(bodies, joined)
    if left <= budget:
        return TrimmedPart(tuple(nodes), tuple(links), left)
    told = []
    for rule, concerns in _RULES:
        gone = 0
        for cost, drop in _candidates(rule, concerns, bodies, joined):
            drop()
            gone, left = gone + 1, left - cost
            if left <= budget:  # by the costs of single fields, which are near the truth and not it
                left = _size(bodies, joined)
            if left <= budget:
                break
        if gone:
            told.append(f"{rule} ({gone})")
        if left <= budget:
            break
    kept = tuple(type(node).model_validate(body) for node, body in zip(nodes, bodies, strict=True))
    return TrimmedPart(kept, tuple(links[: len(joined)]), _size(bodies, joined), tuple(told))


def _candidates(
    rule: str, concerns: Callable[[str], bool], bodies: list[Body], links: list[Body]
) -> Iterator[tuple[int, Callable[[], Any]]]:
    """What a rule leaves out, piece by piece: the tokens of each, and how to leave it out."""
    if rule == "relationships":
        for link in reversed(list(links)):
            yield _cost(link), links.pop
    fields = [
        (_cost({name: value}), place, name)
        for place, body in enumerate(bodies)
        for name, value in body.items()
        if concerns(name)
    ]
    for cost, place, name in sorted(fields, reverse=True):
        yield cost, partial(bodies[place].pop, name)


def _body(message: ConstitutionNode | ConstitutionLink) -> Body:
    return message.model_dump(mode="json")


def _size(bodies: list[Body], links: list[Body]) -> int:
    return tokens.count(tokens.clean(_json(bodies))) + tokens.count(tokens.clean(_json(links)))


def _cost(body: Body) -> int:
    return max(1, tokens.count(tokens.clean(_json(body))) - 1)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


FOUNDATION, VISION, WORK = 15_000, 8_000, 2_000
"""Tokens of each part."""
_PARTS_LIMIT = 3.0
"""Seconds that one list may take."""
_COUNT_LIMIT = 1.0
"""Seconds that the number of the last change may take."""
_PAGES = 20
"""Pages of a list of the first version."""
_HEAVY = ("properties", "metadata", "embedding", "provenance")


@dataclass(frozen=True)
class Part(TrimmedPart[Node]):
    warnings: tuple[str, ...] = ()
    makeshift: bool = False
    """Whether it came by the first version of its list, for want of the second, and so is not worth keeping."""

    @property
    def parents(self) -> frozenset[str]:
        """Ids of the parents that are told."""
        return frozenset(one.id for node in self.nodes for one in getattr(node, "parents", None) or ())


CountChanges = Callable[[Principal], Awaitable[int]]
"""How many changes the graph of the caller's tenant has had. Raises the `ServiceError` that the graph answers with."""


async def count_changes(ask: Ask, who: Principal) -> int:
    """`CountChanges` by asking the graph."""
    return (await ask(who, COUNT_CHANGES, Nothing(), _COUNT_LIMIT)).number


class Parts:
    """Reads them from the graph."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def foundation(self, who: Principal) -> Part[ConstitutionNode]:
        """The foundation within its budget. Raises the `ServiceError` of the last try."""
        request = ListFoundation(exclude_fields=_HEAVY, include_relationships=True, status=Lifecycle.ACTIVE)
        try:
            found = await ask_twice(self._ask, who, LIST_FOUNDATION, request, _PARTS_LIMIT)
        except ServiceError as error:
            return await self._first_version(who, Layer.FOUNDATION, ConstitutionNode, FOUNDATION, error)
        told = _by_list(Layer.FOUNDATION, found.truncated, found.next_cursor)
        return _trimmed_part(LIST_FOUNDATION_TOOL.name, Layer.FOUNDATION, found.items, found.relationships, FOUNDATION, told)

    async def vision(self, who: Principal) -> Part[VisionNode]:
        """The vision with its parents within its budget. Raises the `ServiceError` of the last try."""
        request = ListVision(exclude_fields=(*_HEAVY, "description"), include_hierarchy=True, status=Lifecycle.ACTIVE)
        try:
            found = await ask_twice(self._ask, who, LIST_VISION, request, _PARTS_LIMIT)
        except ServiceError as error:
            return await self._first_version(who, Layer.VISION, VisionNode, VISION, error)
        told = _by_list(Layer.VISION, found.truncated, found.next_cursor)
        return _trimmed_part(LIST_VISION_TOOL.name, Layer.VISION, found.items, (), VISION, told)

    async def _first_version(
        self, who: Principal, layer: Layer, kind: type[Node], budget: int, error: ServiceError
    ) -> Part[Node]:
        """The nodes of a layer by the first version of its list, which tells no relationships."""
        log.warning("%s.list.v2 failed (%s); version 1 is asked", layer, error.code)
        tool, nodes, cursor = LISTS[layer], list[Node](), None
        for _ in range(_PAGES):
            page = await self._ask(who, tool.rpc, ListLayer(status=Lifecycle.ACTIVE, cursor=cursor), _PARTS_LIMIT)
            nodes += [kind.model_validate(node.model_dump()) for node in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        else:
            raise Unavailable(f"the {layer} layer is more than {_PAGES} pages")
        whole = part_size(nodes, ())
        said = f"{layer}: version 1 of its list, without relationships, {whole} tokens before anything was left out"
        return replace(_trimmed_part(tool.name, layer, nodes, (), budget, (), (said,)), makeshift=True)


def _by_list(layer: Layer, truncated: bool, cursor: str | None) -> tuple[str, ...]:
    fields = (f"{layer}: fields, by its list",) if truncated else ()
    return (*fields, f"{layer}: nodes beyond one answer of its list") if cursor else fields


def _trimmed_part(
    tool: str,
    layer: Layer,
    nodes: tuple[Node, ...] | list[Node],
    links: tuple[ConstitutionLink, ...],
    budget: int,
    told: tuple[str, ...],
    warnings: tuple[str, ...] = (),
) -> Part[Node]:
    cut = trim(nodes, links, budget)
    log.info("%s: %d nodes, %d tokens", tool, len(cut.nodes), cut.tokens)
    if cut.tokens > budget:
        warnings = (*warnings, f"{layer}: over its budget of {budget} tokens with what names its nodes alone")
    return Part(cut.nodes, cut.links, cut.tokens, (*told, *(f"{layer}: {one}" for one in cut.left_out)), warnings)


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


@dataclass
class _Heard:
    """Of one tenant: every change up to `upto` was heard, and those of `ahead`, whose news overtook others."""

    upto: int
    ahead: set[int] = field(default_factory=set)
    more: asyncio.Event = field(default_factory=asyncio.Event)


class HeardChanges:
    """Which changes of tenants' graphs this process has had the news of, for tenants of which it keeps something."""

    def __init__(self) -> None:
        self._tenants: dict[str, _Heard] = {}

    def add(self, tenant: str, number: int) -> None:
        """The news of a change was dealt with."""
        heard = self._tenants.get(tenant)
        if heard is None or number <= heard.upto:
            return
        heard.ahead.add(number)
        while heard.upto + 1 in heard.ahead:
            heard.upto += 1
            heard.ahead.remove(heard.upto)
        heard.more.set()
        heard.more = asyncio.Event()

    async def reach(self, tenant: str, number: int, seconds: float) -> bool:
        """Wait until the news of all changes up to `number` was dealt with.

        Returns:
            Whether it was. Where it was not, what is kept of the tenant has to go: the changes count as heard from now on.
        """
        heard = self._tenants.setdefault(tenant, _Heard(number))
        try:
            async with asyncio.timeout(seconds):
                while heard.upto < number:
                    await heard.more.wait()
        except TimeoutError:
            heard.upto = max(heard.upto, number)
            heard.ahead = {one for one in heard.ahead if one > heard.upto}
            return False
        return True

    def clear(self) -> None:
        """Nothing is kept of any tenant any more."""
        self._tenants.clear()


log = logging.getLogger(__name__)


SAFETY = 600.0
"""Seconds after which a part is loaded anew, in case news of a write was lost."""
_PARTS, _WORKLOADS, _SESSIONS = 200, 2_000, 5_000
"""Parts, workloads and sessions that are kept at most."""
_NEWS_WAIT = 0.5
"""Seconds that the news of a write may take until everything that is kept of its tenant is dropped instead."""
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

    What is kept of foundation and vision belongs to a tenant and to certain rights, what is kept of a workload to a user
    as well, so that nobody is served what was loaded with another's rights.

    Args:
        changes: what is kept is compared with, so that a session begins with all that was written before it.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        parts: Parts,
        workload: Workload,
        calendars: Calendars,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
        changes: CountChanges | None = None,
    ) -> None:
        self._parts, self._workload, self._calendars, self._metrics, self._clock = parts, workload, calendars, metrics, clock
        self._changes = changes
        self._foundations: PartCache[Part[ConstitutionNode]] = PartCache(_PARTS, SAFETY, clock)
        self._visions: PartCache[Part[VisionNode]] = PartCache(_PARTS, SAFETY, clock)
        self._workloads: PartCache[WorkloadAssessed] = PartCache(_WORKLOADS, SAFETY, clock)
        self._started: PartCache[SessionStats] = PartCache(_SESSIONS, float("inf"), clock)
        self._heard = HeardChanges()

    async def start(self, call: Call, request: StartSession) -> SessionStarted:
        """What a session begins with, every write that was answered before included.

        A part that cannot be had is absent, and named in the warnings.

        Raises:
            Unavailable: none of the parts could be had.
        """
        began = self._clock()
        await self._hear_writes(call.who)
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
        self._heard.add(news.tenant, change.number)

    def forget(self) -> None:
        """Forget all parts: news may have been lost while the broker was away."""
        for kept in (self._foundations, self._visions, self._workloads):
            kept.clear()
        self._heard.clear()

    async def _hear_writes(self, who: Principal) -> None:
        """See that nothing is kept of the caller's tenant that is older than a write of its graph."""
        if self._changes is None:
            return
        try:
            number = await self._changes(who)
        except ServiceError as error:
            log.warning("what is kept of a tenant may be older than its last write: %s", error.code)
            return
        if not await self._heard.reach(who.tenant, number, _NEWS_WAIT):
            log.warning("the news of a write is late: what is kept of its tenant is loaded anew")
            for kept in (self._foundations, self._visions, self._workloads):
                kept.drop(who.tenant)

    async def _work(self, who: Principal) -> _LoadedPart[WorkloadAssessed]:
        calendar, request = await self._calendars.of(who), AssessWorkload()
        window = self._workload.window(calendar, request)
        key = (who.tenant, who.user, who.rights, str(calendar.version), window.first.isoformat())
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
    key = (who.tenant, who.rights)
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
