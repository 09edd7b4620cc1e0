"""What is kept of searches: answers for identical questions, the log, and a tenant's own defaults."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeAlias, TypeVar

from phronesis_contracts import BadRequest, Message, Principal, ServiceError
from phronesis_contracts.constitution.search import (
    TUNABLE,
    HybridSearch,
    InsightSearch,
    PrecedentSearch,
    RetrievalTuned,
    SemanticSearch,
)
from phronesis_contracts.constitution.values import ConstitutionNode

ANSWER_SECONDS = 900.0
"""Seconds that an answer is kept at most: news may be lost while the broker is away."""
MAX_ANSWERS = 256
"""Answers that one process keeps; each has up to 15,000 tokens."""
SETTLE_SECONDS = 10.0
"""Seconds after news of a write in which no answer is kept: what was written is being embedded, and not found yet."""
_Key: TypeAlias = tuple[str, str, str, str]


@dataclass(frozen=True)
class AnswerSlot:
    """Where an answer will be kept, and what was known when its search began."""

    key: _Key
    tenant: str
    heard: int


class AnswerCache:
    """Keeps answers by tenant, rights, tool and arguments; the one unused for longest goes first."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[_Key, tuple[Message, float]] = OrderedDict()
        self._heard: OrderedDict[str, tuple[int, float]] = OrderedDict()
        """By tenant: how often a write was heard of, and when last."""

    def place(self, who: Principal, tool: str, arguments: str) -> AnswerSlot:
        """Where the answer to this question belongs. Callers of other rights have other places."""
        rights = f"{who.rights} {' '.join(sorted(who.scopes))}"
        return AnswerSlot((who.tenant, rights, tool, arguments), who.tenant, self._news(who.tenant)[0])

    def find(self, place: AnswerSlot) -> Any:
        """What is kept there, if it still holds."""
        kept = self._kept.get(place.key)
        if kept is None or kept[1] <= self._clock():
            return None
        self._kept.move_to_end(place.key)
        return kept[0]

    def keep(self, place: AnswerSlot, answer: Message) -> None:
        """Keep an answer, unless a write was heard of since its search began, or shortly before."""
        heard, last = self._news(place.tenant)
        if heard != place.heard or self._clock() - last < SETTLE_SECONDS:
            return
        self._kept[place.key] = (answer, self._clock() + ANSWER_SECONDS)
        self._kept.move_to_end(place.key)
        while len(self._kept) > MAX_ANSWERS:
            self._kept.popitem(last=False)

    def drop(self, tenant: str) -> None:
        """Forget the tenant's answers: something of its graph, or of how it is searched, has changed."""
        for key in [key for key in self._kept if key[0] == tenant]:
            del self._kept[key]
        self._heard[tenant] = (self._news(tenant)[0] + 1, self._clock())
        self._heard.move_to_end(tenant)
        while len(self._heard) > MAX_ANSWERS:
            # Whoever is forgotten here begins at 0 again; a search that began before has another count by then.
            self._heard.popitem(last=False)

    def _news(self, tenant: str) -> tuple[int, float]:
        return self._heard.get(tenant, (0, float("-inf")))


Request = TypeVar("Request", SemanticSearch, HybridSearch, InsightSearch, PrecedentSearch)
_NAMES: dict[type[object], Mapping[str, str]] = {
    SemanticSearch: {"min_similarity": "semantic.minSimilarity"},
    HybridSearch: {
        "min_similarity": "hybrid.minSimilarity",
        "structural_weight": "hybrid.structuralWeight",
        "semantic_weight": "hybrid.semanticWeight",
    },
    InsightSearch: {"min_similarity": "insight.minSimilarity", "min_confidence": "insight.minConfidence"},
    PrecedentSearch: {"min_similarity": "precedent.minSimilarity"},
}


def apply_defaults(request: Request, changed: Mapping[str, float]) -> Request:
    """The request with the defaults for what its caller left open."""
    names = _NAMES[type(request)]
    filled = {field: default_value(changed, name) for field, name in names.items() if getattr(request, field) is None}
    return request.model_copy(update=filled)


def is_default(request: Request, changed: Mapping[str, float]) -> bool:
    """Whether neither the caller nor the tenant has said which similarity is the least."""
    return request.min_similarity is None and _NAMES[type(request)]["min_similarity"] not in changed


def default_value(changed: Mapping[str, float], name: str) -> float:
    return changed.get(name, TUNABLE[name])


def check_defaults(values: Mapping[str, float | None]) -> None:
    """See that these may become defaults. Raises `BadRequest`: there is no such default, or it cannot have this value."""
    for name, given in values.items():
        if name not in TUNABLE:
            raise BadRequest(f"there is no default {name!r}; there are {', '.join(TUNABLE)}", field="values")
        if given is not None and not 0 <= given <= 1:
            raise BadRequest(f"{name} is 0 to 1", field="values")


def describe_defaults(changed: Mapping[str, float]) -> RetrievalTuned:
    """All defaults as they are now. Raises `BadRequest`: both weights are 0, so that nothing would be ranked."""
    values = {name: default_value(changed, name) for name in TUNABLE}
    if values["hybrid.structuralWeight"] + values["hybrid.semanticWeight"] <= 0:
        raise BadRequest("one of the weights has to be above 0", field="values")
    return RetrievalTuned(values=values, changed=tuple(name for name in TUNABLE if values[name] != TUNABLE[name]))


log = logging.getLogger(__name__)

BATCH = 500
"""Rows of one batch."""
MAX_WAITING = 10_000
"""Rows that wait at most, for a store that is away; then the oldest go."""
_EVERY, _PRUNED = 1.0, 3_600.0
"""Seconds between two batches, and between two looks for rows whose time is over."""


@dataclass(frozen=True)
class Retrieval:
    """One search, as the log keeps it."""

    id: str
    tenant: str
    tool: str
    actor: str
    question: str
    arguments: Mapping[str, Any]
    """What it was asked with, the defaults filled in, without the question."""
    milliseconds: float
    outcome: str
    """`ok`, or the code of the error."""
    tokens: int = 0
    nodes: int = 0
    layers: Mapping[str, int] = field(default_factory=dict)
    """Nodes found, by layer."""
    cached: bool = False
    degraded: tuple[str, ...] = ()
    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def question_hash(self) -> str:
        """SHA-256 of the question: equal questions are seen to be equal where their words are not kept."""
        return hashlib.sha256(self.question.encode("utf-8", "replace")).hexdigest()


class RetrievalRows(Protocol):
    """Where the log is kept."""

    async def append(self, rows: Sequence[Retrieval]) -> None:
        """Keep rows of several tenants; one that is there is left as it is. Raises `Unavailable`."""

    async def prune(self, before: datetime) -> int:
        """Remove rows and ratings of all tenants from before a time, and how many they were. Raises `Unavailable`."""


class RetrievalLog:
    """Takes rows at once, and writes them later."""

    def __init__(self, rows: RetrievalRows, days: float) -> None:
        self._rows, self._days = rows, days
        self._waiting: deque[Retrieval] = deque(maxlen=MAX_WAITING)
        self._writing = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def add(self, row: Retrieval) -> None:
        """Take a row; nobody waits for it to be written."""
        if len(self._waiting) == MAX_WAITING:
            log.warning("the log of retrievals is full: its oldest row goes")
        self._waiting.append(row)

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Write what waits, and end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self.flush()

    async def flush(self) -> None:
        """Write what waits now. What the store does not take waits on."""
        async with self._writing:
            while self._waiting:
                batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
                try:
                    await self._rows.append(batch)
                except ServiceError as error:
                    self._waiting.extendleft(reversed(batch))
                    log.warning("%d retrievals wait to be logged: %s", len(self._waiting), error.code)
                    return
                except asyncio.CancelledError:
                    self._waiting.extendleft(reversed(batch))
                    raise
                except Exception:
                    # A row that the store can never take would hold up all others.
                    log.exception("%d retrievals could not be logged", len(batch))

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            try:
                await self.flush()
                if loop.time() >= due:
                    await self._rows.prune(datetime.now(UTC) - timedelta(days=self._days))
                    due = loop.time() + _PRUNED
            except ServiceError as error:
                log.warning("the log of retrievals could not be pruned: %s", error.code)
            except Exception:
                log.exception("the log of retrievals failed")
            await asyncio.sleep(_EVERY)


def count_by_layer(nodes: Sequence[ConstitutionNode]) -> dict[str, int]:
    """How many of the nodes are of each layer."""
    return dict(Counter(node.layer.value for node in nodes))
