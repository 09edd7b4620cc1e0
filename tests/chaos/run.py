"""One chaos run: kill after kill, with turns in flight, and the promise held against the rows at the end."""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import httpx

from phronesis.bus import BusSettings, connect
from phronesis.bus.declare import USER as DECLARE
from phronesis.local.ports import free_port

from .gates import POINTS, Gates, Point
from .promise import Findings, findings
from .stack import SERVERS, SERVICES, ChaosStack
from .traffic import Traffic

VICTIMS = (*SERVICES, *SERVERS)
IN_FLIGHT = 2
"""Turns that are on their way while one process is killed."""
QUESTION = "What is project {tag} for?"


@dataclass(frozen=True)
class Kill:
    """One kill: whom, at which durable step, before or after its commit."""

    victim: str
    point: Point
    when: str


@dataclass
class Outcome:
    """What a run did and what it found."""

    kills: list[Kill] = field(default_factory=list)
    missed: int = 0
    """Kills whose gate nobody came to in time: the process was killed all the same."""
    recovery: list[float] = field(default_factory=list)
    """Seconds from a kill to the end of the last turn that was in flight."""
    found: Findings = field(default_factory=Findings)


def plan(kills: int, seed: int) -> list[Kill]:
    """Every victim at every point, before and after, in an order that the seed decides; repeated until there are enough."""
    every = [Kill(victim, point, when) for victim in VICTIMS for point in POINTS for when in ("before", "after")]
    shuffled: list[Kill] = []
    dice = random.Random(seed)
    while len(shuffled) < kills:
        dice.shuffle(every)
        shuffled += every
    return shuffled[:kills]


async def run(folder: Path, kills: int, seed: int, *, purge_at: int | None = None, say: bool = True) -> Outcome:
    """Start a stack in `folder`, make the planned kills, and hold the promise against the rows."""
    outcome = Outcome()
    async with scripted_model() as model:
        environment = {
            "GROQ_API_KEY": "scripted",
            "ORCHESTRATOR_MODEL_URL": model,
            "GATEWAY_RATE": "1000",
            "GATEWAY_BURST": "1000",
        }
        stack = ChaosStack(folder, environment)
        await stack.up()
        traffic, gates = Traffic(stack.url, stack.key), Gates(stack.dsn)
        try:
            assert await traffic.ready(60), "the stack did not become ready"
            await gates.install()
            for number, kill in enumerate(plan(kills, seed)):
                await _one(stack, gates, traffic, kill, outcome, number)
                if number == purge_at:
                    await _purge_jobs(stack, traffic)
                if say:
                    _say(number, kills, kill, outcome)
            outcome.found = await findings(stack.dsn, traffic.sent, await _calls(model))
        finally:
            await gates.close()
            await traffic.close()
            await stack.down()
    return outcome


async def _one(stack: ChaosStack, gates: Gates, traffic: Traffic, kill: Kill, outcome: Outcome, number: int) -> None:
    await gates.hold(kill.point)
    texts = [QUESTION.format(tag=f"Chaos-{number}-{i}") for i in range(IN_FLIGHT)]
    turns = [asyncio.create_task(_turn(traffic, text)) for text in texts]
    pids = await gates.waiting(kill.point, 10)
    outcome.missed += not pids
    if kill.when == "after" and kill.victim == "postgres":
        await gates.open()  # a server that is to be killed after a commit has to be alive for it
    start = monotonic()
    killed = stack.kill(kill.victim)
    if kill.when == "before" and kill.victim in ("orchestrator", "memory"):
        await gates.end_sessions(pids)
    await gates.open()
    outcome.kills.append(kill)
    ends = await asyncio.gather(*turns)
    if all(ends):
        outcome.recovery.append(monotonic() - start)
    assert await stack.again(kill.victim, killed, 60), f"{kill.victim} did not come back"
    assert await traffic.ready(60), f"the stack did not become ready after {kill.victim} was killed"


async def _turn(traffic: Traffic, text: str) -> bool:
    return await traffic.ended(await traffic.submit(text))


async def _purge_jobs(stack: ChaosStack, traffic: Traffic) -> None:
    """Empty the job stream with turns on their way: what was accepted is in Postgres and not in the stream."""
    turns = [asyncio.create_task(_turn(traffic, QUESTION.format(tag=f"Purge-{i}"))) for i in range(8)]
    settings = BusSettings(
        url=f"nats://127.0.0.1:{stack.port('nats')}",
        password_file=stack.data.secrets / f"{DECLARE}.password",
        trust_dir=stack.data.trust,
    )
    async with connect(DECLARE, settings) as bus:
        for _ in range(20):
            await bus.nats.request("$JS.API.STREAM.PURGE.JOB", b"", timeout=5)
            await asyncio.sleep(0.02)
    assert all(await asyncio.gather(*turns)), "a turn was lost with the job stream"


@asynccontextmanager
async def scripted_model() -> AsyncIterator[str]:
    """A process that speaks the model's HTTP and keeps count of its calls; its address."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.support.groq_server", "--port", str(port))
    url = f"http://127.0.0.1:{port}"
    try:
        async with asyncio.timeout(20), httpx.AsyncClient(trust_env=False) as http:
            while True:
                try:
                    await http.get(f"{url}/calls")
                    break
                except httpx.HTTPError:
                    await asyncio.sleep(0.05)
        yield url
    finally:
        process.terminate()
        await process.wait()


async def _calls(model: str) -> Counter[str]:
    async with httpx.AsyncClient(trust_env=False, timeout=30) as http:
        calls = (await http.get(f"{model}/calls")).json()
    return Counter(call["step"] for call in calls if call.get("step"))


def _say(number: int, kills: int, kill: Kill, outcome: Outcome) -> None:
    took = f"{outcome.recovery[-1]:.1f} s" if outcome.recovery else "-"
    print(f"{number + 1:4d}/{kills}  {kill.victim:<13} {kill.when:<6} {kill.point.name:<15} {took}", flush=True)
