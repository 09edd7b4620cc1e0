"""What the memory service does for the constitutional graph, and what that is made of."""

from __future__ import annotations

from dataclasses import dataclass

from phronesis.bus import Bus

from ..cache import QueryVectors
from .ports import History, NodeVectors, Texts


@dataclass(frozen=True)
class Parts:
    """What the handlers stand on."""

    vectors: NodeVectors
    history: History
    texts: Texts
    queries: QueryVectors


async def serve_constitution(bus: Bus, parts: Parts) -> None:
    """Serve the questions about the constitutional graph, and follow its news."""
