"""Stores that are gone for some seconds, again and again, with turns on their way: every accepted turn is completed."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from uuid import UUID

import asyncpg
import psutil

from tests.support.production import SERVERS, STORES

from .kills import EVERY
from .mix import Wish
from .promise import Findings, findings
from .stack import ChaosStack
from .traffic import Sent, Traffic

BY_RULES = {"GROQ_API_KEY": "", "ORCHESTRATOR_MODEL_URL": ""}
"""With this a stack has no model: rules answer, which read the stores for every question."""
ADVISERS = ("decisions", "execute", "mind", "discuss")
"""Agents of the constitutional graph."""
AGENTS = ("dialogue", *ADVISERS, "noor")
WANTED = 0.995
"""The share of accepted turns that has to be completed."""
_ENDED = 16 * 60.0
"""Seconds in which every turn has ended: it expires after 15 minutes."""
_READY = 300.0
_EVERY = "SELECT id::text, status, attempts, problem FROM orchestrator.turns WHERE id = ANY($1)"


@dataclass
class Weathered:
    """What a run of outages came to."""

    found: Findings = field(default_factory=Findings)
    outages: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    """Turns that did not end with a reply, by code, service waited for, and text."""
    retried: int = 0
    """Turns that were begun more than once."""
    seconds: float = 0.0
    longest: float = 0.0
    """Seconds from a turn's acceptance to its end, the longest of all."""

    @property
    def kept(self) -> bool:
        """Whether nothing was lost or doubled, and enough was completed."""
        found = self.found
        broken = (found.replies_lost, found.replies_doubled, found.not_ended, found.parked)
        whole = all(writes.twice == 0 for writes in found.writes.values())
        return not any(broken) and whole and not found.disorders and found.ended_with_reply >= WANTED * found.accepted


@asynccontextmanager
async def gone(stack: ChaosStack, name: str, seconds: float) -> AsyncIterator[None]:
    """Kill a server with -9 and have it stay away for `seconds`, in which the block runs; then wait until it is back.

    A paused supervisor starts nothing anew, and the services live on without it.
    """
    supervisor = psutil.Process(stack.supervisor)
    supervisor.suspend()
    try:
        killed, end = stack.kill(name), monotonic() + seconds
        yield
        await asyncio.sleep(max(0.0, end - monotonic()))
    finally:
        supervisor.resume()
    assert await stack.again(name, killed, _READY), f"{name} did not come back"


def any_question(number: int, dice: random.Random, agents: Sequence[str]) -> Wish:
    """A question to one of the agents, in words that no other turn has."""
    agent = dice.choice(agents)
    asked = f"What supports the goal Chaos{number}?" if agent in ADVISERS else f"What is project Chaos{number} for?"
    return Wish("question", asked, agent=agent)


class Weather:
    """Turns at a steady pace, with outages and kills among them."""

    def __init__(self, stack: ChaosStack, traffic: Traffic, seed: int, agents: Sequence[str], early: float) -> None:
        self._stack, self._traffic, self._dice, self._agents = stack, traffic, random.Random(seed), agents
        self._early = early
        self._number = 0
        self._waiting: list[asyncio.Task[tuple[Sent, float]]] = []
        self.result = Weathered()

    def say(self) -> None:
        """Hand a turn in and watch it to its end, in the background."""
        self._number += 1
        asked = any_question(self._number, self._dice, self._agents)
        self._waiting.append(asyncio.create_task(self._said(asked)))

    async def _said(self, asked: Wish) -> tuple[Sent, float]:
        sent = await self._traffic.submit(asked, limit=_READY)
        began = monotonic()
        await self._traffic.ended(sent, limit=_ENDED, pause=1.0)
        return sent, monotonic() - began

    async def steadily(self, turns: int, seconds: float) -> None:
        """Hand in so many turns, evenly over so many seconds."""
        for _ in range(turns):
            self.say()
            await asyncio.sleep(seconds / max(1, turns))

    async def outage(self, name: str, seconds: float, turns: int) -> None:
        """Take a store away, with turns from a second before it goes, where there are some, to the end of its absence."""
        early = round(turns * self._early)
        await self.steadily(early, 1.0)
        async with gone(self._stack, name, seconds):
            await self.steadily(turns - early, seconds * 0.9)
        self.result.outages[name] += 1
        assert await self._traffic.ready(_READY), f"the stack did not become ready after {name} was away"

    async def kill(self, name: str, turns: int) -> None:
        """Kill a process that is started anew at once, with turns around it."""
        await self.steadily(max(1, turns // 2), 1.0)
        killed = self._stack.kill(name)
        self.result.kills[name] += 1
        await self.steadily(turns - turns // 2, 1.0)
        assert await self._stack.again(name, killed, _READY), f"{name} did not come back"
        assert await self._traffic.ready(_READY), f"the stack did not become ready after {name} was killed"

    async def ended(self) -> None:
        """Wait for the end of all turns, and hold the promise against the rows."""
        watched = await asyncio.gather(*self._waiting)
        self.result.longest = max((took for sent, took in watched if sent.turn_id), default=0.0)
        self.result.found = await findings(self._stack, self._traffic.sent, self._traffic.notes, Counter())
        await self._look(self._traffic.sent)

    async def _look(self, sent: Sequence[Sent]) -> None:
        connection = await asyncpg.connect(self._stack.dsn)
        try:
            rows = await connection.fetch(_EVERY, [UUID(one.turn_id) for one in sent if one.turn_id])
        finally:
            await connection.close()
        for row in rows:
            self.result.retried += row["attempts"] > 1
            if row["status"] != "completed":
                problem = json.loads(row["problem"] or "{}")
                self.result.failed[f"{row['status']}: {problem.get('code')}, {problem.get('detail')}"] += 1


async def weather(
    folder: Path,
    outages: Sequence[str],
    kills: Sequence[str],
    turns: int,
    away: float,
    seed: int,
    agents: Sequence[str] = AGENTS,
    minutes: float | None = None,
    early: float = 0.25,
) -> Weathered:
    """Start a stack in `folder`, take stores away and kill processes in an order that the seed decides.

    Args:
        outages: the store that each outage takes away.
        kills: the process of each kill.
        turns: that are handed in, all in all.
        away: seconds of an outage.
        agents: whom the turns are said to.
        minutes: after which nothing more is begun; the result says what was.
        early: share of an outage's turns that are handed in before it. An agent that has read the words of an empty graph needs
            nothing more of it until the graph changes.
    """
    start = monotonic()
    stack = ChaosStack(folder, BY_RULES)
    await stack.up()
    traffic = Traffic(stack.url, stack.key)
    try:
        assert await traffic.ready(_READY), "the stack did not become ready"
        weathering, dice = Weather(stack, traffic, seed, agents, early), random.Random(seed)
        events = [("outage", name) for name in outages] + [("kill", name) for name in kills]
        dice.shuffle(events)
        for at, (what, name) in enumerate(events):
            if minutes is not None and monotonic() - start > 60 * minutes:
                break
            share = turns * (at + 1) // len(events) - turns * at // len(events)
            began = monotonic()
            await (weathering.outage(name, away, share) if what == "outage" else weathering.kill(name, share))
            print(f"{at + 1:4d}/{len(events)}  {what:<7} {name:<13} {share:3d} turns  {monotonic() - began:5.1f} s", flush=True)
        await weathering.ended()
        weathering.result.seconds = monotonic() - start
        return weathering.result
    finally:
        with suppress(psutil.NoSuchProcess):
            psutil.Process(stack.supervisor).resume()
        await traffic.close()
        await stack.down()


STORES_OF_STACK = tuple(SERVERS)
"""The servers that hold something: each is taken away."""
VICTIMS = tuple(sorted({kill.victim for kill in EVERY}))


def planned(kills: int, outages: int, seed: int) -> tuple[list[str], list[str]]:
    """The stores of the outages, each as often as the others, and the victims of the kills."""
    dice, victims = random.Random(seed), list[str]()
    while len(victims) < kills:
        victims += dice.sample(VICTIMS, len(VICTIMS))
    return [name for name in STORES_OF_STACK for _ in range(outages)], victims[:kills]


def weather_report(of: Weathered, seed: int, away: float, planned_turns: int, events: int) -> str:
    """What was done, and what was found, as Markdown.

    Args:
        away: seconds of an outage.
        planned_turns: turns that were to be handed in.
        events: outages and kills that were to be made.
    """
    made = of.outages.total() + of.kills.total()
    short = "" if made == events else f" Its time ended it early: {planned_turns} turns and {events} events were planned."
    found = of.found
    share = 100 * found.ended_with_reply / max(1, found.accepted)
    rows: list[tuple[str, object]] = [
        ("turns accepted", found.accepted),
        ("ended with a reply", f"{found.ended_with_reply} ({share:.1f} %)"),
        ("of these, marked as made without a part (`degraded`)", found.degraded),
        ("begun more than once", of.retried),
        ("failed or cancelled", found.failed),
        ("parked", found.parked),
        ("not ended", found.not_ended),
        ("replies lost", found.replies_lost),
        ("replies doubled", found.replies_doubled),
        ("writes twice", sum(writes.twice for writes in found.writes.values())),
        ("writes missing", sum(writes.missing for writes in found.writes.values())),
        ("conversations out of order", len(found.disorders)),
        ("longest time from acceptance to the end", f"{of.longest:.1f} s"),
        ("duration in minutes", f"{of.seconds / 60:.1f}"),
    ]
    lines = [
        "# Outages report",
        "",
        f"Made by `python -m tests.chaos --weather` on the {STORES} stores (seed {seed}): turns to six agents at a steady",
        f"pace, answered by rules, while processes are killed with -9 ({of.kills.total()} times) and stores stay away for",
        f"{away:.0f} s each time ({of.outages.total()} outages).{short}",
        "",
        "| what | figure |",
        "|---|---|",
        *(f"| {what} | {figure} |" for what, figure in rows),
        "",
        "| process | outages | kills |",
        "|---|---|---|",
        *(f"| {name} | {of.outages[name]} | {of.kills[name]} |" for name in sorted({*of.outages, *of.kills})),
        "",
        *(f"- {times} × {why}" for why, times in of.failed.most_common()),
    ]
    return "\n".join(lines).rstrip() + "\n"
