"""What the orchestrator does for memory: it learns from ended turns, and removes copies of what is forgotten."""

from __future__ import annotations

from phronesis_bus import Bus, follow
from phronesis_contracts.forgetting import COPIES_PURGED, MEMORY_FORGOTTEN

from ..ledger.books import Books
from ..ports import Neighbours
from ..reasoner import Reasoner
from ..settings import LearningSettings
from .forgetting import Forgetting
from .learner import Learner
from .ports import Unlearnt


async def serve_learning(
    bus: Bus, turns: Unlearnt, forgetting: Forgetting, neighbours: Neighbours, reasoner: Reasoner, books: Books
) -> None:
    """Follow what is forgotten, and begin to learn.

    Args:
        bus: the connected bus.
        turns: the ended turns.
        forgetting: follows what memory forgets.
        neighbours: the services that are asked.
        reasoner: what may draw statements.
        books: the ledger, and the limits.
    """
    settings = LearningSettings()
    await follow(bus, MEMORY_FORGOTTEN, forgetting.on_memory_forgotten, workers=1)
    await follow(bus, COPIES_PURGED, forgetting.on_copies_purged, every_copy=True)
    connected, batch, after = lambda: bus.connected, settings.learn_batch, settings.learn_after
    learner = Learner(turns, neighbours, reasoner, books, connected, batch=batch, after=after)
    if settings.learn:
        learner.start()
        bus.on_stop(learner.stop)
