"""A hundred background tasks of twenty steps at once: steps a second, the orchestrator's memory, fairness between tenants.

The orchestrator is a process of its own on a real broker and a real Postgres, with a planner that is ready with every answer
(`bench/planned.py`); its neighbours answer at once from this process. So the figures are those of the queue, the journal, the
policy gate and the bus, and the tools' own time comes on top.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from uuid import uuid4

import asyncpg

from phronesis_bus import Bus, connect, tell
from phronesis_contracts import Principal
from phronesis_contracts.orchestrator import TURN, SubmitTurn, TaskOrder
from tests.support.personas import Persona
from tests.support.servers import NatsServer, PostgresServer

from .pairs import started
from .planned import PLAN
from .progress import say
from .task_stack import Orchestrator, neighbours, orchestrator

SHARES, QUICK = {"loud": 70, "second": 10, "third": 10, "fourth": 10}, {"loud": 7, "second": 1, "third": 1, "fourth": 1}
"""Tasks of each tenant. The loud one's are handed in first."""
FAIR = 1.5
"""How much later than with equal shares a tenant's last task may end."""
_LIMIT = 900.0
"""Seconds in which all have to end."""
_ENDED = """
    SELECT tenant, status, extract(epoch FROM created_at)::float8 AS accepted, extract(epoch FROM ended_at)::float8 AS ended
    FROM turns WHERE background AND tenant = ANY($1::text[])"""


@dataclass(frozen=True)
class Ran:
    """Tasks that were handed in together and have ended."""

    seconds: float
    """From the first one's acceptance to the last one's end."""
    waited: Mapping[str, Sequence[float]]
    """By tenant the seconds from acceptance to the end of each of its tasks, ascending."""
    memory: float
    """The most that the orchestrator held meanwhile, in megabytes."""

    @property
    def tasks(self) -> int:
        """How many they were."""
        return sum(len(some) for some in self.waited.values())


async def section(quick: bool) -> list[str]:
    """Its lines."""
    shares = QUICK if quick else SHARES
    async with AsyncExitStack() as used:
        nats, postgres = (
            await used.enter_async_context(started(NatsServer)),
            await used.enter_async_context(started(PostgresServer)),
        )
        settings = await used.enter_async_context(postgres.fresh_schema("orchestrator"))
        session = await used.enter_async_context(postgres.session(settings, "orchestrator"))
        await used.enter_async_context(neighbours(nats))
        front = await used.enter_async_context(connect("gateway", nats.settings("gateway")))
        process = await used.enter_async_context(orchestrator(nats, settings))
        say("tasks: one tenant alone")
        await ran(front, session, process, {"warm": 2})
        idle = process.megabytes
        alone = await ran(front, session, process, {"alone": shares["second"]})
        say(f"tasks: {sum(shares.values())} at once")
        all = await ran(front, session, process, shares)
    return table(alone, all, idle)


async def ran(front: Bus, session: asyncpg.Connection, process: Orchestrator, shares: Mapping[str, int]) -> Ran:
    """Hand tasks in, the first tenant's first, and wait for all of them.

    Raises:
        AssertionError: one did not end well.
    """
    names = {name: f"{name}-{uuid4().hex[:8]}" for name in shares}
    for name, count in shares.items():
        who = Principal(tenant=names[name], user="ann", **Persona.MAESTRO.rights)
        for number in range(count):
            order = SubmitTurn(idempotency_key=uuid4().hex, text=f"Look at part {number}", agent="nova", task=TaskOrder())
            await tell(front, who, TURN, order)
    memory = await _ended(session, process, list(names.values()), sum(shares.values()))
    rows = await session.fetch(_ENDED, list(names.values()))
    assert {row["status"] for row in rows} == {"completed"}, {row["status"] for row in rows}
    waited = {
        name: sorted(row["ended"] - row["accepted"] for row in rows if row["tenant"] == tenant)
        for name, tenant in names.items()
    }
    return Ran(max(row["ended"] for row in rows) - min(row["accepted"] for row in rows), waited, memory)


async def _ended(session: asyncpg.Connection, process: Orchestrator, tenants: list[str], count: int) -> float:
    """Return when so many tasks have ended: the most memory that the orchestrator held until then, in megabytes."""
    most, until = process.megabytes, time.monotonic() + _LIMIT
    while True:
        rows = await session.fetch(_ENDED, tenants)
        if sum(row["ended"] is not None for row in rows) == count:
            return most
        assert time.monotonic() < until, f"{count} tasks, of which {len(rows)} were accepted, do not all end"
        await asyncio.sleep(0.25)
        most = max(most, process.megabytes)


def table(alone: Ran, all: Ran, idle: float) -> list[str]:
    """The lines of the report.

    Args:
        alone: a small tenant's tasks with nobody beside them.
        all: everybody's at once.
        idle: the orchestrator's memory before, in megabytes.
    """
    size, steps = len(PLAN.steps), all.tasks * len(PLAN.steps)
    fair = with_equal_shares(all)
    return [
        f"{all.tasks} tasks of {size} steps, handed in at once, the largest tenant's first, to one orchestrator with its usual",
        "slots for tasks; planner, tools and memory answer at once. It is fair where the last task of a tenant ends about when",
        f"equal shares of the slots would let it: at most {FAIR} times as late.",
        "",
        "| | |",
        "|---|---|",
        f"| steps a second, all tenants at once | {steps / all.seconds:.0f} |",
        f"| steps a second, {alone.tasks} tasks of one tenant alone | {alone.tasks * size / alone.seconds:.0f} |",
        f"| the orchestrator's memory before, and the most meanwhile, MB | {idle:.0f}, {all.memory:.0f} |",
        f"| {alone.tasks} tasks of one tenant alone, the last one's end, s | {alone.seconds:.1f} |",
        "",
        "| tenant | tasks | median end, s | last end, s | its last end with equal shares, s | ratio | fair |",
        "|---|---|---|---|---|---|---|",
        *(_row(name, waited, fair[name]) for name, waited in all.waited.items()),
    ]


def _row(name: str, waited: Sequence[float], fair: float) -> str:
    last = waited[-1]
    told = f"| {name} | {len(waited)} | {statistics.median(waited):.1f} | {last:.1f} | {fair:.1f} | {last / fair:.2f}"
    return f"{told} | {'yes' if last <= FAIR * fair else '**no**'} |"


def with_equal_shares(ran: Ran) -> dict[str, float]:
    """By tenant when its last task would end if all that have work left had the same share of what was done a second."""
    rate, left, now = ran.tasks / ran.seconds, {name: float(len(some)) for name, some in ran.waited.items()}, 0.0
    ends: dict[str, float] = {}
    while left:
        least, share = min(left.values()), rate / len(left)
        now += least / share
        left = {name: tasks - least for name, tasks in left.items()}
        ends |= {name: now for name, tasks in left.items() if tasks <= 0}
        left = {name: tasks for name, tasks in left.items() if tasks > 0}
    return ends
