"""What is kept of retrievals, beside the log itself."""

from __future__ import annotations

from typing import Protocol

from phronesis_bus import Call
from phronesis_contracts.constitution.retrieval import RetrievalReported, RetrievalTuned, TuneRetrieval
from phronesis_contracts.constitution.search import RateRetrieval, RetrievalRated


class Retrievals(Protocol):
    """What is kept of retrievals."""

    async def changed(self, tenant: str) -> dict[str, float]:
        """Defaults that the tenant changed, by name."""
        ...

    async def tune(self, call: Call, request: TuneRetrieval) -> RetrievalTuned:
        """Change defaults, once for the call's key."""
        ...

    async def rate(self, call: Call, request: RateRetrieval) -> RetrievalRated:
        """Keep what the caller said of a retrieval.

        Raises:
            NoSuchRetrieval: there is none.
        """
        ...

    async def report(self, tenant: str, days: int) -> RetrievalReported:
        """How the searches of the last days went."""
        ...
