"""The section of streams: many turns watched at once, each by a user of its own, while the gateway's loop is probed."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median, quantiles

from tests.chaos.model import scripted_model
from tests.chaos.stack import ChaosStack
from tests.support.people import Person, town

from .processes import megabytes
from .progress import say
from .stacks import running
from .watching import Watched, most_open, watch

_LATENCY = 1.0
"""Seconds that the scripted model takes to answer, so that the turns run while they are watched."""
_IDLE = 2.0
"""Seconds for which the idle gateway is probed."""
Probed = list[tuple[float, float]]


@dataclass
class Round:
    """All streams at once."""

    streams: list[Watched]
    late: float
    """Most seconds by which the loop of this client was late meanwhile."""
    memory: dict[str, float]
    """While all were open."""


async def section(quick: bool) -> list[str]:
    """Its lines."""
    count, rounds = (4, 1) if quick else (64, 5)
    async with scripted_model() as model:
        await model.script(latency=_LATENCY)
        async with running(model.environment) as stack, town(stack.url, stack.key) as people:
            users = [await people.someone() for _ in range(count)]
            await _round(stack, users[: max(1, count // 4)])  # code and connections of a gateway that has run for a while
            idle, found = megabytes(stack), []
            async with _probing(stack.url) as probed:
                await asyncio.sleep(_IDLE)
                began = time.monotonic()
                for number in range(rounds):
                    say(f"streams: round {number + 1} of {rounds}")
                    found.append(await _round(stack, users))
    return _table(count, found, probed, began, idle)


@asynccontextmanager
async def _probing(url: str) -> AsyncIterator[Probed]:
    """A process that probes the gateway; what it found is there after the block."""
    command = [sys.executable, "-m", "bench.probe", url]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    found: Probed = []
    try:
        yield found
    finally:
        out, _ = await process.communicate(b"\n")
    found += [(when, took) for when, took in json.loads(out)]


async def _round(stack: ChaosStack, users: Sequence[Person]) -> Round:
    turns = await asyncio.gather(*(user.accepted("Which pumps drain the lower field?") for user in users))
    late = asyncio.create_task(_lateness())
    watching = [asyncio.create_task(watch(stack.url, user, turn["turn_id"])) for user, turn in zip(users, turns, strict=True)]
    await asyncio.sleep(_LATENCY / 2)
    memory = await asyncio.to_thread(megabytes, stack)
    async with asyncio.timeout(60 + len(users)):
        streams = await asyncio.gather(*watching)
    late.cancel()
    await asyncio.wait([late])
    return Round(streams, late.result(), memory)


async def _lateness() -> float:
    """Most seconds by which this loop was late, until it is cancelled."""
    most = 0.0
    try:
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.01)
            most = max(most, time.monotonic() - began - 0.01)
    except asyncio.CancelledError:
        return most


def _ms(seconds: Sequence[float]) -> str:
    """Median, 95th percentile and greatest, in milliseconds, as cells."""
    return (
        f"{1e3 * median(seconds):.1f} | {1e3 * quantiles(seconds, n=20, method='inclusive')[-1]:.1f} | {1e3 * max(seconds):.1f}"
    )


def _table(count: int, rounds: list[Round], probed: Probed, began: float, idle: dict[str, float]) -> list[str]:
    streams = [stream for each in rounds for stream in each.streams]
    spans = [(min(s.began for s in each.streams), max(s.ended for s in each.streams)) for each in rounds]
    before = [took for when, took in probed if when < began - 0.1]
    while_open = [took for when, took in probed if any(start <= when <= end for start, end in spans)]
    base, whole = median(before), sum(s.whole for s in streams)
    held = {name: max(each.memory[name] for each in rounds) for name in ("gateway", "orchestrator")}
    return [
        f"{count} users each hand a turn in, and then all open its events at the same moment, {len(rounds)} times. A scripted",
        f"model answers after {_LATENCY:.0f} s, so that the turns run while they are watched. The lag of the gateway's loop is",
        "how much longer `/health/live` takes than at the median of the idle gateway, asked every 10 ms by another process. It",
        "contains the waiting of both for a processor, since everything runs on the same cores.",
        "",
        "| | p50 ms | p95 ms | most ms |",
        "|---|---|---|---|",
        f"| first byte of a stream | {_ms([s.first_byte - s.began for s in streams])} |",
        f"| first event of a stream | {_ms([s.first_event - s.began for s in streams])} |",
        f"| lag of the gateway's loop, streams open | {_ms([max(0.0, took - base) for took in while_open])} |",
        f"| the same, idle | {_ms([max(0.0, took - base) for took in before])} |",
        "",
        "| | |",
        "|---|---|",
        f"| whole streams, from `accepted` to `done` with the reply's text | {whole} of {len(streams)} |",
        f"| most streams open at once | {max(most_open(each.streams) for each in rounds)} |",
        f"| most that the client's own loop was late, ms | {1e3 * max(each.late for each in rounds):.0f} |",
        f"| the gateway's memory before, and with the streams open, MB | {idle['gateway']:.0f}, {held['gateway']:.0f} |",
        f"| the orchestrator's | {idle['orchestrator']:.0f}, {held['orchestrator']:.0f} |",
    ]
