"""What the orchestrator does for memory: it learns from ended turns, and removes copies of what is forgotten."""

from __future__ import annotations

from collections.abc import Callable

from phronesis.bus import Bus, News, follow
from phronesis.contracts.forgetting import MEMORY_FORGOTTEN, MemoryForgotten

from ..ports import Neighbours
from ..reasoner import Reasoner
from ..settings import LearningSettings
from .learner import Learner
from .ports import Copies, Unlearnt


async def serve_learning(
    bus: Bus, turns: Unlearnt, copies: Copies, neighbours: Neighbours, reasoner: Reasoner, wake: Callable[[], None]
) -> None:
    """Follow what is forgotten, and begin to learn.

    Args:
        bus: the connected bus.
        turns: the ended turns.
        copies: what turns hold of memories.
        neighbours: the services that are asked.
        reasoner: what may draw statements.
        wake: called after a transaction that wrote news.
    """
    settings = LearningSettings()

    async def on_memory_forgotten(news: News, event: MemoryForgotten) -> None:
        await copies.forget(news.tenant, event)
        wake()

    await follow(bus, MEMORY_FORGOTTEN, on_memory_forgotten, workers=1)
    learner = Learner(
        turns, neighbours, reasoner, lambda: bus.connected, batch=settings.learn_batch, after=settings.learn_after
    )
    if settings.learn:
        learner.start()
        bus.on_stop(learner.stop)
