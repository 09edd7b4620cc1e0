"""The log of retrievals, the ratings and the defaults, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from phronesis_bus import Call
from phronesis_contracts import Unavailable
from phronesis_contracts.constitution.search import (
    NoSuchRetrieval,
    RateRetrieval,
    RetrievalRated,
    RetrievalReported,
    RetrievalTuned,
    TuneRetrieval,
)
from phronesis_memory.constitution.retrievals import Retrieval, describe_defaults


@dataclass
class KeptRetrievals:
    """The log, the ratings and the defaults, in memory."""

    rows: dict[str, Retrieval] = field(default_factory=dict)
    ratings: dict[tuple[str, str, str], bool] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    down: bool = False
    appended: int = 0

    async def append(self, rows: Sequence[Retrieval]) -> None:
        """Keep rows."""
        if self.down:
            raise Unavailable("the store is down")
        self.appended += 1
        self.rows |= {row.id: row for row in rows}

    async def prune(self, before: datetime) -> int:
        """Remove the old ones."""
        old = [id for id, row in self.rows.items() if row.at < before]
        for id in old:
            del self.rows[id]
        return len(old)

    async def changed(self, tenant: str) -> dict[str, float]:
        """The tenant's own defaults."""
        if self.down:
            raise Unavailable("the store is down")
        return dict(self.values)

    async def tune(self, call: Call, request: TuneRetrieval) -> RetrievalTuned:
        """Change them."""
        self.values |= {name: value for name, value in request.values.items() if value is not None}
        return describe_defaults(self.values)

    async def rate(self, call: Call, request: RateRetrieval) -> RetrievalRated:
        """Keep a rating."""
        if request.retrieval_id not in self.rows:
            raise NoSuchRetrieval("there is none")
        self.ratings[request.retrieval_id, request.node_id or "", call.who.user] = request.relevant
        good = sum(self.ratings.values())
        return RetrievalRated(satisfaction=good / len(self.ratings), ratings=len(self.ratings))

    async def report(self, tenant: str, days: int) -> RetrievalReported:
        """Nothing."""
        return RetrievalReported(tools=(), layers={})
