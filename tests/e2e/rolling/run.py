"""One run: a stack of two versions, its clients, restart after restart, and the truth at the end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from phronesis import AsyncClient
from phronesis_local.parts import GATEWAY, service_of
from tests.chaos.model import scripted_model
from tests.support.mixed import PARTS, MixedStack
from tests.support.previous import previous_tree
from tests.support.round_robin import round_robin

from .clients import Clients
from .kill import Killer
from .outsider import outsider
from .truth import Held, held

_LATENCY = 1.5
"""Seconds that the model takes to answer, so that turns run while processes end."""
FIRST = tuple(part for part in PARTS if part == service_of(part))
SECOND = tuple(part for part in PARTS if part not in FIRST)


@dataclass
class Rolled:
    """One rolling restart."""

    previous: tuple[str, ...]
    """Parts that ran the version before when it had ended."""
    seconds: float
    replaced: int
    """Processes that were stopped in order and started anew."""
    killed: tuple[str, ...]
    """Parts that were killed meanwhile, and how."""
    failures: tuple[str, ...]
    """Calls that the SDK gave up meanwhile, after its own repeats."""


@dataclass
class Outcome:
    """What a run did and what it found."""

    held: Held
    rolled: list[Rolled] = field(default_factory=list)
    connections: int = 0
    """Connections that the clients made to the gateways."""
    resumed: int = 0
    """Streams of events that the SDK opened again, behind the last event that had come."""
    seconds: float = 0.0

    @property
    def quiet(self) -> bool:
        """Whether, but for kills, no client had to repeat a call that the SDK had given up."""
        return not any(rolled.failures for rolled in self.rolled if not rolled.killed)


class Run:
    """A running stack with its clients.

    Args:
        stack: the stack.
        clients: its clients.
        seed: decides when exactly a process is killed.
    """

    def __init__(self, stack: MixedStack, clients: Clients, seed: int) -> None:
        self.stack = stack
        self.clients = clients
        self._dice = random.Random(seed)
        self.rolled: list[Rolled] = []

    async def roll(self, previous: Sequence[str], *names: str, kills: Sequence[str] = ()) -> Rolled:
        """Restart services so that `previous` run the version before, and kill the parts `kills` when it is their turn."""
        began, failed = monotonic(), len(self.clients.told.failures)
        self.stack.plan(previous)
        killer = Killer(self.stack, names, kills, self._dice)
        killing = asyncio.create_task(killer.run())
        try:
            lines = await self.stack.restart(*names)
        finally:
            killing.cancel()
            await asyncio.gather(killing, return_exceptions=True)
        replaced = sum(" is up again " in line for line in lines)
        failures = tuple(self.clients.told.failures[failed:])
        done = Rolled(tuple(previous), monotonic() - began, replaced, tuple(killer.killed), failures)
        self.rolled.append(done)
        return done

    async def turns(self, more: int, within: float = 60.0) -> None:
        """Wait until so many more turns have ended."""
        wanted = len(self.clients.told.read) + more
        async with asyncio.timeout(within):
            while len(self.clients.told.read) < wanted:  # noqa: ASYNC110  # no event tells of it
                await asyncio.sleep(0.1)


@asynccontextmanager
async def running(folder: Path, seed: int) -> AsyncIterator[tuple[Run, asyncio.Future[Outcome]]]:
    """A stack of which the first process of each service has the version before, and its clients; at the end, the outcome."""
    began, outcome = monotonic(), asyncio.get_running_loop().create_future()
    tree = await asyncio.to_thread(previous_tree, folder / "previous")
    async with scripted_model() as model:
        await model.script(latency=_LATENCY)
        stack = MixedStack(folder / "data", tree, model.environment)
        stack.plan(FIRST)
        try:
            await stack.up()
            ports = [stack.port(part) for part in PARTS if service_of(part) == GATEWAY]
            async with round_robin(ports) as proxy, AsyncClient(proxy.url, stack.key) as sdk, outsider(sdk) as system:
                clients = Clients(sdk, system, seed)
                run = Run(stack, clients, seed)
                work = asyncio.create_task(clients.run())
                try:
                    yield run, outcome
                finally:
                    clients.end()
                    async with asyncio.timeout(120):
                        await work
            found = await held(stack, clients.told, await model.calls())
            outcome.set_result(
                Outcome(found, run.rolled, sum(proxy.reached.values()), clients.told.resumed, monotonic() - began)
            )
        finally:
            await stack.down()


async def long_run(folder: Path, seed: int, minutes: float) -> Outcome:
    """Roll from one mixture of versions to another until the time is over; in every second restart processes are killed."""
    dice = random.Random(seed)
    async with running(folder, seed) as (run, outcome):
        end = monotonic() + 60 * minutes
        for number in range(1_000):
            if monotonic() > end:
                break
            mixtures = (SECOND, (), FIRST, PARTS, tuple(part for part in PARTS if dice.random() < 0.5))
            kills = dice.sample(PARTS, 3) if number % 2 else ()
            rolled = await run.roll(mixtures[number % len(mixtures)], kills=kills)
            print(f"{number + 1:3d}  {rolled}", flush=True)
            await run.turns(5)
    return outcome.result()
