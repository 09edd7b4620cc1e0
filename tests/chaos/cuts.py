"""Readers of running turns whose connections are cut, and the truth about what they should have read."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from phronesis import AsyncClient
from phronesis_bus import Bus, BusSettings, connect
from phronesis_bus.declare import USER as DECLARE
from tests.support.tcp_proxy import TcpProxy, tcp_proxy

from .mix import Wish
from .model import Model, scripted_model
from .reader import WAYS, Cut, Reader
from .reading import Event, Reading
from .stack import ChaosStack
from .traffic import Traffic
from .truth import compared, progress_of

_READERS = 12
"""Turns that are read side by side."""
_SDK = 8
"""Of so many turns one is read by the SDK, through a proxy that cuts."""
_PER_KILL = 60
"""Cuts after which the gateway is killed."""
_LATENCY = 0.25
"""Seconds that the model takes to answer, so that turns run while they are read."""
_REPLY = "Zwölf Pumpen drain the lower field.\u2028Line two, \u0085 and a \U0001f30a wave; data: event: id: 7 " * 60
"""A reply of many parts, with all that a reader may take for a line's end."""
_EARLY, _WHOLE = 1_500, 9_000
"""Bytes of the progress, and of all that a reader gets, roughly."""


@dataclass
class Watched:
    """What became of the cut connections."""

    turns: int = 0
    cuts: Counter[str] = field(default_factory=Counter)
    """Cuts that were made, by their way."""
    inside: int = 0
    """Of the reader's own cuts, those in the middle of an event."""
    lost: int = 0
    """Connections that ended with a killed gateway, or that none answered."""
    gateway_kills: int = 0
    events: int = 0
    """Events of which the truth knows."""
    missing: int = 0
    repeated: int = 0
    """Events that came twice beyond the rule, or that the truth does not know."""
    unlike: int = 0
    """Texts or ends that are not what the turn's row says."""
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def made(self) -> int:
        """Cuts in all."""
        return self.cuts.total()

    @property
    def kept(self) -> bool:
        """Whether every reader has read the truth."""
        return not (self.missing or self.repeated or self.unlike or self.wrong)


async def cut_streams(folder: Path, cuts: int, seed: int) -> Watched:
    """Start a stack, have turns read until so many connections were cut, and compare what was read with the truth."""
    start = monotonic()
    async with scripted_model() as model:
        stack = ChaosStack(folder, model.environment)
        await stack.up()
        traffic = Traffic(stack.url, stack.key)
        try:
            assert await traffic.ready(60), "the stack did not become ready"
            await _prepare(model)
            async with connect(DECLARE, _settings(stack)) as bus:
                watched = await _Watching(stack, traffic, bus, cuts, seed).run()
        finally:
            await traffic.close()
            await stack.down()
    watched.seconds = monotonic() - start
    return watched


async def _prepare(model: Model) -> None:
    said = {"user_response": _REPLY, "next_agent_directive": "focused_analyst", "directive_reasoning": "scripted"}
    await model.script(latency=_LATENCY)
    await model.script(purpose="final", fault={"content": json.dumps(said)}, times=1_000_000)


def _settings(stack: ChaosStack) -> BusSettings:
    return BusSettings(
        url=f"nats://127.0.0.1:{stack.port('nats')}",
        password_file=stack.data.secrets / f"{DECLARE}.password",
        trust_dir=stack.data.trust,
    )


class _Watching:
    """Readers, one after the other in a few lanes, and a killer of the gateway."""

    def __init__(self, stack: ChaosStack, traffic: Traffic, bus: Bus, cuts: int, seed: int) -> None:
        self._stack = stack
        self._traffic = traffic
        self._bus = bus
        self._wanted = cuts
        self._dice = random.Random(seed)
        self._found = Watched()

    async def run(self) -> Watched:
        """Read until there were enough cuts."""
        killer = asyncio.create_task(self._killer())
        try:
            async with asyncio.TaskGroup() as lanes:
                for _ in range(min(_READERS, self._wanted)):
                    lanes.create_task(self._lane())
        finally:
            killer.cancel()
            await asyncio.gather(killer, return_exceptions=True)
        return self._found

    async def _lane(self) -> None:
        while self._found.made < self._wanted:
            self._found.turns += 1
            number = self._found.turns
            sent = await self._traffic.submit(Wish("question", f"What is project Cut{number} for?"))
            assert sent.turn_id is not None, "a turn was not accepted"
            async with asyncio.timeout(60):
                await (self._by_sdk(sent.turn_id) if number % _SDK == 0 else self._by_hand(sent.turn_id))

    async def _by_hand(self, turn: str) -> None:
        dice = self._dice
        spans = [_EARLY if dice.random() < 0.5 else _WHOLE for _ in range(dice.randint(1, 4))]
        cuts = [Cut(dice.choice(WAYS), dice.randint(1, span)) for span in spans]
        found = await Reader(self._stack.url, self._stack.key, turn, cuts, dice).read()
        self._found.cuts.update(found.cuts)
        self._found.inside += found.inside
        self._found.lost += found.lost
        await self._compare(turn, found)

    async def _by_sdk(self, turn: str) -> None:
        """Read with the SDK, which hides every cut: it has to tell each event once, and in order."""
        found, cuts = Reading(), self._dice.randint(1, 2)
        found.begin(anew=True)
        async with tcp_proxy(("127.0.0.1", int(self._stack.url.rpartition(":")[2]))) as proxy:
            proxy.mode, proxy.after = "cut", self._dice.randint(200, _EARLY)
            mended = asyncio.create_task(_mended(proxy, cuts))
            async with AsyncClient(f"http://127.0.0.1:{proxy.port}", self._stack.key) as client:
                async for event in client.turns.events(turn):
                    found.take(Event(int(event.id or 0), event.kind, event.data))
            mended.cancel()
        self._found.cuts["by a proxy, before the SDK"] += min(cuts, proxy.accepted - 1)
        await self._compare(turn, found)

    async def _compare(self, turn: str, read: Reading) -> None:
        row = None
        async with asyncio.timeout(60):
            while row is None:
                row = await self._traffic.turn(turn)
        found = compared(read, await progress_of(self._bus, turn), row)
        self._found.events += found.events
        self._found.missing += found.missing
        self._found.repeated += found.repeated
        self._found.unlike += found.unlike
        self._found.wrong += [f"turn {turn}: {fault}" for fault in read.wrong]

    async def _killer(self) -> None:
        """Kill the gateway after every so many cuts."""
        while True:
            if self._found.made >= _PER_KILL * (self._found.gateway_kills + 1):
                self._found.gateway_kills += 1
                killed = self._stack.kill("gateway")
                assert await self._stack.again("gateway", killed, 60), "the gateway did not come back"
            await asyncio.sleep(0.05)


async def _mended(proxy: TcpProxy, cuts: int) -> None:
    """Let a proxy be as soon as it has cut so many connections."""
    while True:
        if proxy.accepted > cuts:
            await proxy.be("pass")
            return
        await asyncio.sleep(0.005)
