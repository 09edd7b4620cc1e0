"""One question, asked of a running platform again and again: what its users see while a part of it is killed or replaced."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import uuid4

from phronesis import Client
from phronesis_contracts import ServiceError
from phronesis_contracts.orchestrator import Turn

NOTE = "The blue mug on the third floor belongs to Ada."
QUESTION = "Who does the blue mug on the third floor belong to?"
ANSWER = "belongs to Ada"
_PAUSE = 0.2


class Harmed(Exception):
    """A turn was lost, or did not answer what it should."""


@dataclass
class Asked:
    """What came of the turns of a block."""

    turns: list[Turn] = field(default_factory=list)
    """Every turn, in the order of their ends."""

    @property
    def again(self) -> int:
        """How many were begun more than once, since who worked on them was lost."""
        return sum(turn.attempts > 1 for turn in self.turns)


def note(client: Client) -> None:
    """Store what the question asks about, and return once it is found."""
    client.memory.add(NOTE, wait=True, idempotency_key="the-blue-mug")


def ask(client: Client, within: float = 180.0) -> Turn:
    """Ask once, through refusals and broken connections, as a patient program does.

    Args:
        client: the platform.
        within: seconds until the turn has to have ended.

    Raises:
        Harmed: it has not ended in time, or its reply is another.
    """
    key, limit, turn, last = uuid4().hex, time.monotonic() + within, None, "nothing"
    while time.monotonic() < limit:
        try:
            if turn is None:
                turn = client.turns.submit(QUESTION, idempotency_key=key).turn_id
            found = client.turns.get(turn)
            if found.status.ended:
                return _answered(found)
            last = found.status
        except ServiceError as error:
            last = str(error)
        time.sleep(_PAUSE)
    raise Harmed(f"turn {turn} has not ended after {within:.0f} s: {last}")


def _answered(turn: Turn) -> Turn:
    if turn.reply is None or ANSWER not in turn.reply.user_response:
        said = turn.reply.user_response if turn.reply else turn.problem
        raise Harmed(f"turn {turn.turn_id} is {turn.status} and says {said!r}")
    return turn


@contextmanager
def asking(client: Client, users: int = 8) -> Iterator[Asked]:
    """Let several users ask without a pause while a block runs, and once more after it.

    Args:
        client: the platform.
        users: how many ask at the same time.

    Raises:
        Harmed: a turn was lost, or answered something else.
    """
    asked, over = Asked(), threading.Event()

    def user() -> None:
        while not over.is_set():
            asked.turns.append(ask(client))
        asked.turns.append(ask(client))

    with ThreadPoolExecutor(users) as pool:
        running = [pool.submit(user) for _ in range(users)]
        try:
            yield asked
        finally:
            over.set()
        for each in running:
            each.result()
