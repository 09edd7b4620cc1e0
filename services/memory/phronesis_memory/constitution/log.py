"""The log of retrievals: written behind the answers, in batches (O-364)."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from phronesis_contracts import ServiceError
from phronesis_contracts.constitution.values import ConstitutionNode

log = logging.getLogger(__name__)

BATCH = 500
"""Rows of one batch."""
WAITING = 10_000
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
        """SHA-256 of the question: equal questions are seen to be equal where their words are not kept (O-352)."""
        return hashlib.sha256(self.question.encode("utf-8", "replace")).hexdigest()


class Rows(Protocol):
    """Where the log is kept."""

    async def append(self, rows: Sequence[Retrieval]) -> None:
        """Keep rows of several tenants; one that is there is left as it is. Raises `Unavailable`."""
        ...

    async def prune(self, before: datetime) -> int:
        """Remove rows and ratings of all tenants from before a time, and how many they were. Raises `Unavailable`."""
        ...


class RetrievalLog:
    """Takes rows at once, and writes them later.

    Args:
        rows: where they are kept.
        days: how long.
    """

    def __init__(self, rows: Rows, days: float) -> None:
        self._rows = rows
        self._days = days
        self._waiting: deque[Retrieval] = deque(maxlen=WAITING)
        self._writing = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def add(self, row: Retrieval) -> None:
        """Take a row; nobody waits for it to be written."""
        if len(self._waiting) == WAITING:
            log.warning("the log of retrievals is full: its oldest row goes")
        self._waiting.append(row)

    def start(self) -> None:
        """Begin to write."""
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


def by_layer(nodes: Sequence[ConstitutionNode]) -> dict[str, int]:
    """How many of the nodes are of each layer."""
    return dict(Counter(node.layer.value for node in nodes))
