"""What takes minutes: a broker that is gone for long, and an orchestrator that is paused past its lease."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from time import monotonic

import asyncpg
import psutil

from .gates import POINTS, Gates
from .mix import Wish
from .model import scripted_model
from .outages import gone
from .stack import SERVICES, ChaosStack
from .traffic import Traffic


async def broker_away(folder: Path, seconds: float) -> float:
    """Take the broker away for `seconds`; how long after its return a turn was ended, with no service started anew."""
    stack = ChaosStack(folder, {})
    await stack.up()
    traffic = Traffic(stack.url, stack.key)
    try:
        before = {name: stack.pid(name) for name in SERVICES}
        async with gone(stack, "nats", seconds):
            pass
        start = monotonic()
        sent = await traffic.submit(Wish("plain", "Hello there"), limit=120)
        assert await traffic.ended(sent), "no turn ended after the broker came back"
        took = monotonic() - start
        assert {name: stack.pid(name) for name in before} == before, "a service was started anew"
        return took
    finally:
        await traffic.close()
        await stack.down()


async def paused_orchestrator(folder: Path, seconds: float) -> bool:
    """Pause the orchestrator in the middle of a turn that another one then ends: it may commit nothing when it wakes.

    Returns:
        Whether the turn has one end and one reply, made under the other's fence.
    """
    async with scripted_model() as model:
        stack = ChaosStack(folder, model.environment)
        await stack.up()
        traffic, gates = Traffic(stack.url, stack.key), Gates(stack.dsn)
        point = next(p for p in POINTS if p.name == "compose")
        try:
            await gates.install()
            await gates.hold(point)
            sent = await traffic.submit(Wish("question", "What is project Paused for?"))
            sessions = await gates.waiting(point, 20)
            first = psutil.Process(stack.pid("orchestrator"))
            environment = first.environ()
            first.suspend()
            await gates.end_sessions(sessions)
            await gates.open()
            second = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "phronesis_orchestrator", env=environment, stderr=asyncio.subprocess.DEVNULL
            )
            try:
                ended = await traffic.ended(sent, limit=seconds + 60)
                await asyncio.sleep(max(0.0, seconds - 20))
                if first.is_running():
                    os.kill(first.pid, signal.SIGCONT)
                await asyncio.sleep(3)
                return ended and await _one_reply(stack.dsn, str(sent.turn_id))
            finally:
                second.terminate()
                await second.wait()
        finally:
            await gates.close()
            await traffic.close()
            await stack.down()


async def _one_reply(dsn: str, turn: str) -> bool:
    connection = await asyncpg.connect(dsn)
    try:
        row = await connection.fetchrow(
            "SELECT status, fence, (SELECT count(*) FROM orchestrator.messages m WHERE m.turn_id = t.id AND role = 'assistant')"
            " AS n FROM orchestrator.turns t WHERE id = $1::uuid",
            turn,
        )
    finally:
        await connection.close()
    return row is not None and row["status"] == "completed" and row["n"] == 1 and row["fence"] >= 2
