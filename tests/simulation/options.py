"""What a run is made of, and how much of each thing goes wrong in it."""

from __future__ import annotations

from dataclasses import dataclass, fields

from .loop import SimulatedLoop

LEASE = 3.0
IDLE_CLAIMS = 3
EXPIRY = 60.0
APPROVAL = 12.0
"""Seconds that an approval waits for its answer."""
CALM = 20.0
"""Seconds at the end of which nothing goes wrong any more."""
AT_LATEST = 400.0
"""Seconds at which everything has to have ended."""
STEPS = 150_000


@dataclass
class Options:
    """What the seed decides ahead of a run. Each kind of fault is left out of most runs, so that the others are seen by
    themselves, and is frequent in the ones that have it.
    """

    orchestrators: int = 2
    users: int = 2
    conversations: int = 3
    turns: int = 3
    """Turns of a conversation at most."""
    slots: int = 2
    lost: float = 0.0
    doubled: float = 0.0
    slow: float = 0.0
    database_breaks: float = 0.0
    """How likely the connection to the database breaks at a statement, before it or behind it."""
    owner_fails: float = 0.0
    """How likely a question to a neighbour is lost, or its answer."""
    kills: int = 0
    stops: int = 0
    """Processes that are stopped in order, and begun again."""
    pauses: int = 0
    jumps: int = 0
    """Jumps of clocks: the database's, or a process's."""
    outages: int = 0
    """Outages of a database or the broker."""
    cuts: int = 0
    """Times that one process cannot reach the broker."""
    cancels: float = 0.0
    repeats: float = 0.0
    """How likely a client sends its turn twice at once, or the same key again with another text."""

    def __str__(self) -> str:
        told = {of.name: getattr(self, of.name) for of in fields(self)}
        return ", ".join(f"{name} {value:.3g}" for name, value in told.items() if value)


def draw_options(loop: SimulatedLoop) -> Options:
    chance = loop.random

    def some(most: float) -> float:
        return chance.random() * most if chance.random() < 0.5 else 0.0

    def few(most: int) -> int:
        return chance.randint(1, most) if chance.random() < 0.5 else 0

    return Options(
        orchestrators=chance.choice((1, 2, 2, 3)),
        users=chance.randint(1, 2),
        conversations=chance.randint(1, 3),
        turns=chance.randint(1, 3),
        slots=chance.choice((1, 2, 4)),
        lost=some(0.1),
        doubled=some(0.2),
        slow=some(0.1),
        database_breaks=some(0.08),
        owner_fails=some(0.2),
        kills=few(4),
        stops=few(2),
        pauses=few(6),
        jumps=few(3),
        outages=few(2),
        cuts=few(2),
        cancels=some(0.4),
        repeats=some(0.6),
    )
