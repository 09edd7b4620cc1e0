"""Which process is killed, and at which moment: the plan of a chaos run."""

from __future__ import annotations

import random
from dataclasses import dataclass

from phronesis_local import weaviate
from tests.support.production import GRAPH, SERVERS

from .gates import POINTS, RETRIEVAL, Point
from .stack import READERS, SERVICES

READING = Point("reading a medium", "", "")
"""A process of media works on an attachment. It is no gate: nothing waits, the kill comes in the middle of the work."""
_VECTORS = tuple(name for name in SERVERS if name == weaviate.NAME)
_OF_RETRIEVAL = ("memory", "graph", "orchestrator", "postgres", GRAPH, *_VECTORS, "nats", "gateway")
_OF_READING = ("media", READERS, READERS, "orchestrator", "nats", "gateway")


@dataclass(frozen=True)
class Kill:
    """One kill: whom, at which durable step or in the middle of which work, before its commit, after it, or during it."""

    victim: str
    point: Point
    when: str


EVERY = (
    *(Kill(victim, point, when) for victim in (*SERVICES, *SERVERS) for point in POINTS for when in ("before", "after")),
    *(Kill(victim, RETRIEVAL, "during") for victim in _OF_RETRIEVAL for _ in range(2)),
    *(Kill(victim, READING, "during") for victim in _OF_READING for _ in range(2)),
)


def plan(kills: int, seed: int) -> list[Kill]:
    """Every kill there is, in an order that the seed decides; repeated in another one until there are enough."""
    every, shuffled = list(EVERY), list[Kill]()
    dice = random.Random(seed)
    while len(shuffled) < kills:
        dice.shuffle(every)
        shuffled += every
    return shuffled[:kills]
