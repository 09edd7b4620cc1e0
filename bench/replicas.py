"""The section of copies: what more processes of every service add when turns wait for a model, and whether they share them.

The model is a scripted one that takes 300 ms and no processor to speak of, and an orchestrator has four slots, so that what
limits a stack of one copy is the waiting. Two calls make a turn.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import asyncpg

from tests.chaos.model import Model, scripted_model

from . import load, stacks
from .progress import say

COPIES, QUICK = (1, 2, 4), (1, 2)
_LATENCY, _SLOTS, _FLIGHT = 0.3, 4, 32
_PATH = "/api/v1/conversations/messages"
_TURNS = """
    SELECT count(*) AS turns, count(*) FILTER (WHERE status = 'completed') AS completed FROM orchestrator.turns"""


@dataclass(frozen=True)
class Ran:
    """A run with some copies."""

    copies: int
    rate: float
    """Turns a second."""
    p50_ms: float
    asked: int
    """Turns that were handed in."""
    completed: int
    again: int
    """Steps for which the model was asked more than once."""


async def section(quick: bool) -> list[str]:
    """Its lines."""
    ran = []
    for copies in QUICK if quick else COPIES:
        say(f"replicas: {copies} of each service")
        async with scripted_model() as model:
            ran.append(await _run(copies, model, 16 if quick else 60 * copies))
    return [
        f"A turn makes two calls of a scripted model that takes {_LATENCY * 1000:.0f} ms. An orchestrator has {_SLOTS} slots.",
        f"There are {_FLIGHT} requests under way. All copies share the two cores with the servers and the client.",
        "",
        "| copies of each service | turns/s | of one copy's | p50 ms | turns handed in | completed | steps asked twice |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| {one.copies} | {one.rate:.1f} | {one.rate / ran[0].rate:.2f} | {one.p50_ms:.0f} | {one.asked} "
            f"| {one.completed} | {one.again} |"
            for one in ran
        ),
    ]


async def _run(copies: int, model: Model, turns: int) -> Ran:
    environment = model.environment | {"PHRONESIS_REPLICAS": str(copies), "ORCHESTRATOR_SLOTS": str(_SLOTS)}
    async with stacks.running(environment | {"ORCHESTRATOR_MODEL_OPTIONAL_CALLS": "[]"}) as stack:
        await model.script(latency=_LATENCY)

        def body(number: int) -> bytes:
            return json.dumps({"currentMessageText": f"What is written about case {number} of memory?"}).encode()

        headers = {"Authorization": f"Bearer {stack.key}"}
        await load.measure(stack.url, headers, _PATH, body, 8 * copies, 8)
        before = await _counted(stack.dsn)
        timed = await load.measure(stack.url, headers, _PATH, body, turns, _FLIGHT)
        after = await _counted(stack.dsn)
        calls = await model.calls()
    return Ran(
        copies,
        timed.rate,
        timed.p50,
        after[0] - before[0],
        after[1] - before[1],
        sum(1 for asked in calls.values() if len(asked) > 1),
    )


async def _counted(dsn: str) -> tuple[int, int]:
    connection = await asyncpg.connect(dsn)
    try:
        row = await connection.fetchrow(_TURNS)
    finally:
        await connection.close()
    return row["turns"], row["completed"]
