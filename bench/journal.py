"""What the journal adds to a step: the same call made as a journalled step of a claimed turn, and made bare, turn about.

The journal is the orchestrator's on a Postgres of its own. The call does nothing, so that all of a step's time is overhead; a
step that was made before is one that whoever takes the turn over reads instead of making it.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from phronesis_bus.tracing import Tracing
from phronesis_contracts import Principal
from phronesis_contracts.orchestrator import SubmitTurn, turn_id
from phronesis_orchestrator.ledger.usage import AskedModel, CallUsage
from phronesis_orchestrator.models.reasoner import Answer, ComposedReply
from phronesis_orchestrator.turns.execution import Steps
from phronesis_orchestrator.turns.store import PostgresJournal, PostgresTurns
from phronesis_orchestrator.turns.turn import Claim, NewTurn
from phronesis_postgres import Database
from tests.support.servers import PostgresServer

from .pairs import started

AIM = 5
"""Milliseconds that a journalled step may take longer at the median than the call alone (the plan's own figure)."""
_LEASE = 3_600.0
_SHORT: dict[str, Any] = {"rows": ["r" * 400]}
_LONG: dict[str, Any] = {"rows": ["r" * 400] * 50}
_ANSWER = Answer(
    ComposedReply(user_response="y" * 600),
    spent=CallUsage(input_tokens=2_000, output_tokens=200, model_calls=1),
    asked=AskedModel("compose", "scripted"),
)
Step = Callable[[Steps, str], Awaitable[object]]


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    turns: int
    steps: int
    """Of one turn and one kind; a plan has at most 60."""


SIZES, QUICK = Sizes(20, 25), Sizes(2, 5)
WIDE = 16
"""Steps side by side, as many as a wave has at most."""


@dataclass(frozen=True)
class Taken:
    """Milliseconds of each step, and of each call alone."""

    steps: list[float]
    bare: list[float]

    @property
    def overhead(self) -> float:
        """At the median."""
        return statistics.median(self.steps) - statistics.median(self.bare)


def _tool(result: dict[str, Any], *, again: bool = True) -> Step:
    async def call() -> dict[str, Any]:
        return result

    return lambda steps, name: steps.called(name, "survey_twin", call, again=again)


async def _model(steps: Steps, name: str) -> object:
    async def call() -> Answer[ComposedReply]:
        return _ANSWER

    return await steps.made(name, ComposedReply, call)


_ONCE: Mapping[str, Step] = {
    "a tool's call, 400 characters": _tool(_SHORT),
    "a tool's call that is begun once at most": _tool(_SHORT, again=False),
    "a tool's call, 20,000 characters": _tool(_LONG),
    "a model's call, with its entry in the ledger": _model,
}


async def section(quick: bool) -> list[str]:
    """Its lines."""
    sizes = QUICK if quick else SIZES
    async with (
        started(PostgresServer) as postgres,
        postgres.fresh_schema("orchestrator") as settings,
        Database.open(settings, "orchestrator") as database,
    ):
        await measure(database, QUICK)  # connections and statements
        found = await measure(database, sizes)
    return [
        "The call itself does nothing: what a step takes longer than it is the journal: two commits for a step that is made.",
        f"Of steps side by side it is the whole wave's time, divided by {WIDE}. This disk keeps 8 KB in {_disk_ms():.2f} ms.",
        "",
        "| step | p50 ms | p95 ms | overhead at the median, ms | aim, ms |",
        "|---|---|---|---|---|",
        *(row(name, taken) for name, taken in found.items()),
    ]


def _disk_ms() -> float:
    """Milliseconds at the median in which the disk under the temporary folder keeps 8 KB: what a commit waits for."""
    taken = []
    with tempfile.TemporaryFile() as file:
        for _ in range(100):
            file.write(b"x" * 8_192)
            file.flush()
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            taken.append((time.perf_counter() - began) * 1_000)
    return statistics.median(taken)


def row(name: str, taken: Taken) -> str:
    """One line of the report."""
    p95 = statistics.quantiles(taken.steps, n=20)[18]
    return f"| {name} | {statistics.median(taken.steps):.2f} | {p95:.2f} | {taken.overhead:.2f} | under {AIM} |"


async def measure(database: Database, sizes: Sizes) -> dict[str, Taken]:
    """Make steps of every kind, turn about, in turns of their own.

    Args:
        database: the orchestrator's schema.
        sizes: how much is measured.
    """
    found = {name: Taken([], []) for name in (*_ONCE, _AGAIN, _ABREAST)}
    journal = PostgresJournal(database)
    for _ in range(sizes.turns):
        claim = await _claimed(database)
        steps = Steps(journal, claim, Tracing("orchestrator"))
        for number in range(sizes.steps):
            for name, make in _ONCE.items():
                await _one(found[name], make, steps, f"{name}.{number}")
            await _one(found[_AGAIN], _tool(_SHORT), steps, f"{next(iter(_ONCE))}.{number}")
        await _one(found[_ABREAST], _wave, steps, "wave", WIDE)
    return found


_AGAIN = "a tool's call that was made before"
_ABREAST = f"a tool's call, {WIDE} of a wave side by side"


async def _wave(steps: Steps, name: str) -> None:
    await asyncio.gather(*(_tool(_SHORT)(steps, f"{name}.{at}") for at in range(WIDE)))


async def _one(into: Taken, make: Step, steps: Steps, name: str, of: int = 1) -> None:
    """Make steps, and their call alone; `of` says how many they are."""
    into.steps.append(await _ms(lambda: make(steps, name)) / of)
    into.bare.append(await _ms(_nothing))


async def _nothing() -> dict[str, Any]:
    return _SHORT


async def _ms(work: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await work()
    return (time.perf_counter() - began) * 1_000


async def _claimed(database: Database) -> Claim:
    """A turn of somebody new, claimed for longer than this takes."""
    who = Principal(tenant=f"bench-{uuid4().hex[:8]}", user="ann")
    request = SubmitTurn(idempotency_key=uuid4().hex, text="Measure the journal.", agent="nova")
    turns = PostgresTurns(database)
    await turns.accept(
        NewTurn(turn_id(who.tenant, who.user, request.idempotency_key), who, request, "f", _LEASE, None, None), 1
    )
    [claim] = await turns.claim("bench", 1, _LEASE)
    return claim
