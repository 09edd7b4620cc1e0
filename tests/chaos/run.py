"""One chaos run: kill after kill, with turns in flight, and the promise held against the rows at the end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from phronesis_bus import BusSettings, connect
from phronesis_bus.declare import USER as DECLARE

from .gates import CLAIM, RETRIEVAL, Gates
from .kills import READING, Kill
from .mix import Wish, any_wish, wish
from .model import scripted_model
from .promise import Findings, findings
from .stack import ChaosStack
from .traffic import Sent, Traffic

COME = 10.0
"""Seconds in which somebody should come to a gate."""
READY = 150.0
"""Seconds in which a killed part is back and the stack is ready: on two cores that four stacks share, Neo4j takes its time."""


@dataclass
class Outcome:
    """What a run did and what it found."""

    kills: list[Kill] = field(default_factory=list)
    missed: int = 0
    """Kills whose moment did not come in time: the process was killed all the same."""
    recovery: list[tuple[Kill, float]] = field(default_factory=list)
    """Seconds from a kill to the end of the last turn that was in flight."""
    seconds: float = 0.0
    found: Findings = field(default_factory=Findings)

    def plus(self, other: Outcome) -> Outcome:
        """This run, and another one beside it."""
        return Outcome(
            self.kills + other.kills,
            self.missed + other.missed,
            self.recovery + other.recovery,
            max(self.seconds, other.seconds),
            self.found.plus(other.found),
        )


async def run(folder: Path, kills: Sequence[Kill], seed: int, *, purge_at: int | None = None, name: str = "") -> Outcome:
    """Start a stack in `folder`, make the kills, and hold the promise against the rows.

    Args:
        kills: what to kill, and when.
        seed: decides what the clients say.
        purge_at: the kill after which the job stream is emptied.
        name: stands before each line that is printed.
    """
    start = monotonic()
    async with scripted_model() as model:
        stack = ChaosStack(folder, model.environment)
        await stack.up()
        traffic, gates = Traffic(stack.url, stack.key), Gates(stack.dsn)
        try:
            assert await traffic.ready(READY), "the stack did not become ready"
            await gates.install()
            killing = Killing(stack, gates, traffic, seed)
            for number, kill in enumerate(kills):
                await killing.one(number, kill)
                if number == purge_at:
                    await killing.purge_jobs()
                print(f"{name}{number + 1:4d}/{len(kills)}  {killing.last}", flush=True)
            outcome = killing.outcome
            outcome.found = await findings(stack, traffic.sent, traffic.notes, await model.calls())
        finally:
            await gates.close()
            await traffic.close()
            await stack.down()
    outcome.seconds = monotonic() - start
    return outcome


class Killing:
    """Makes the kills of one run."""

    def __init__(self, stack: ChaosStack, gates: Gates, traffic: Traffic, seed: int) -> None:
        self._stack = stack
        self._gates = gates
        self._traffic = traffic
        self._dice = random.Random(seed)
        self._next = 0
        self._conversations: list[str] = []
        self.outcome = Outcome()
        self.last = ""
        """The last kill, for a reader."""

    async def one(self, number: int, kill: Kill) -> None:
        """Bring turns and an item on their way, kill at the moment planned, and wait until all is well again."""
        if kill.point != READING:
            await self._gates.hold(kill.point)
        turns = asyncio.create_task(self._turns(kill))
        noting = asyncio.create_task(self._traffic.remember(number))
        start, killed = await self._kill(kill)
        self.outcome.kills.append(kill)
        ended = await turns
        took = monotonic() - start
        if ended:
            self.outcome.recovery.append((kill, took))
        assert (await noting).id, "an item was not taken"
        assert await self._stack.again(kill.victim, killed, READY), f"{kill.victim} did not come back"
        assert await self._traffic.ready(READY), f"the stack did not become ready after {kill.victim} was killed"
        self.last = f"{kill.victim:<13} {kill.when:<6} {kill.point.name:<16} {took:5.1f} s{'' if ended else '  NOT ENDED'}"

    async def _kill(self, kill: Kill) -> tuple[float, int]:
        """When it was, and the process id."""
        if kill.point == READING:
            self.outcome.missed += not await self._stack.reading(COME)
            return monotonic(), self._stack.kill(kill.victim)
        pids = await self._gates.waiting(kill.point, COME)
        self.outcome.missed += not pids
        if kill.when == "after" and kill.victim == "postgres":
            await self._gates.open()  # a server that is to be killed after a commit has to be alive for it
        start, killed = monotonic(), self._stack.kill(kill.victim)
        if kill.when == "before" and kill.victim in ("orchestrator", "memory"):
            await self._gates.end_sessions(pids)
        await self._gates.open()
        return start, killed

    async def _turns(self, kill: Kill) -> bool:
        """Two turns: in two new conversations, one behind the other in one, or one of them in an older conversation."""
        first, second = self._first(kill), any_wish(self._number(), self._dice)
        order = self._dice.choice(("apart", "behind", "older")) if self._conversations else "apart"
        if order == "behind" or kill.point == CLAIM:
            sent = await self._traffic.submit(first)
            both = (sent, await self._traffic.submit(second, sent.conversation_id))
        else:
            older = self._dice.choice(self._conversations) if order == "older" else None
            both = await asyncio.gather(self._traffic.submit(first), self._traffic.submit(second, older))
        self._conversations += [one.conversation_id for one in both if one.conversation_id]
        return all(await asyncio.gather(*map(self._traffic.ended, both)))

    def _first(self, kill: Kill) -> Wish:
        """A turn that comes to the moment of the kill."""
        if kill.point == READING:
            return wish(self._dice.choices(("picture", "recording"), (3, 1))[0], self._number(), self._dice)
        if kill.point == RETRIEVAL:
            return wish("question", self._number(), self._dice)
        return any_wish(self._number(), self._dice)

    def _number(self) -> int:
        self._next += 1
        return self._next

    async def purge_jobs(self) -> None:
        """Empty the job stream with turns on their way: what was accepted is in Postgres and not in the stream."""
        turns = [asyncio.create_task(self._question()) for _ in range(8)]
        settings = BusSettings(
            url=f"nats://127.0.0.1:{self._stack.port('nats')}",
            password_file=self._stack.data.secrets / f"{DECLARE}.password",
            trust_dir=self._stack.data.trust,
        )
        async with connect(DECLARE, settings) as bus:
            for _ in range(20):
                await bus.nats.request("$JS.API.STREAM.PURGE.JOB", b"", timeout=5)
                await asyncio.sleep(0.02)
        assert all(await asyncio.gather(*turns)), "a turn was lost with the job stream"

    async def _question(self) -> bool:
        sent: Sent = await self._traffic.submit(wish("question", self._number(), self._dice))
        return await self._traffic.ended(sent)
