"""Replies by HTTP beside the bare chain, turn about in one run: medians and their ratio, rates and theirs."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from phronesis_local import layout
from phronesis_local.loopback import free_port
from tests.chaos.stack import ChaosStack
from tests.support.servers import PostgresServer

from .chain import prepare
from .load import Timed, measure
from .plain import PlainNats, listening
from .processes import cpu_seconds
from .progress import say


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rounds: int
    each: int
    """Requests of one round, one at a time."""
    many: int
    """Requests of the measured rate."""
    flight: int
    """Of them under way at any time."""


SIZES, QUICK = Sizes(5, 60, 400, 32), Sizes(1, 10, 32, 8)
DIRECT = "Hello there!"
TOPICS = ("Crossrail", "the Emergency Services Network", "HS2", "the Dreadnought submarines", "Universal Credit", "broadband")


@dataclass
class Compared:
    """One kind of reply beside the chain."""

    name: str
    ours: list[Timed] = field(default_factory=list)
    chain: list[Timed] = field(default_factory=list)
    ours_rate: float = 0.0
    chain_rate: float = 0.0
    processor_ms: dict[str, float] = field(default_factory=dict)
    """By part of the stack the milliseconds of a processor that a request took, with many in flight."""

    @property
    def ratio(self) -> float:
        """Median of our medians over the median of the chain's."""
        return median(t.p50 for t in self.ours) / median(t.p50 for t in self.chain)


def _direct(number: int) -> str:
    return DIRECT


def _query(number: int) -> str:
    return f"What is {TOPICS[number % len(TOPICS)]} for, and what are its risks? Case {number} of memory."


async def compare(stack: ChaosStack, sizes: Sizes) -> list[Compared]:
    """Measure direct and query_memory replies of a running stack beside the chain."""
    headers = {"Authorization": f"Bearer {stack.key}"}
    found = []
    async with chain() as url:
        for name, text in (("direct reply", _direct), ("query_memory reply", _query)):
            say(f"replies: {name}")
            compared = Compared(name)

            def body(number: int, text=text) -> bytes:  # type: ignore[no-untyped-def]
                return json.dumps({"currentMessageText": text(number)}).encode()

            path = "/api/v1/conversations/messages"
            await measure(stack.url, headers, path, body, sizes.each // 2, 1)
            await measure(url, headers, path, body, sizes.each // 2, 1)
            for _ in range(sizes.rounds):
                compared.chain.append(await measure(url, headers, path, body, sizes.each, 1))
                compared.ours.append(await measure(stack.url, headers, path, body, sizes.each, 1))
            compared.chain_rate = (await measure(url, headers, path, body, sizes.many, sizes.flight)).rate
            before = cpu_seconds(stack)
            compared.ours_rate = (await measure(stack.url, headers, path, body, sizes.many, sizes.flight)).rate
            used = cpu_seconds(stack)
            compared.processor_ms = {name: 1000 * (used[name] - before[name]) / sizes.many for name in used if name in before}
            found.append(compared)
    return found


@asynccontextmanager
async def chain() -> AsyncIterator[str]:
    """The bare chain on servers of its own; its address."""
    with tempfile.TemporaryDirectory(prefix="phronesis-bench-") as folder:
        broker, database = PlainNats(Path(folder) / "nats"), PostgresServer(Path(folder) / "postgres")
        await asyncio.gather(broker.start(), database.start())
        await prepare(broker.url, database.dsn)
        port = free_port()
        processes = [
            await asyncio.create_subprocess_exec(sys.executable, "-m", "bench.chain", role, broker.url, database.dsn, str(port))
            for role in ("owner", "worker", "front")
        ]
        try:
            await listening(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            for process in processes:
                process.terminate()
            await asyncio.gather(*(process.wait() for process in processes))
            await asyncio.gather(broker.stop(), database.stop())


def ready_seconds(stack: ChaosStack) -> float:
    """What the last start of a stack took until everything was ready."""
    found = layout.read_record(stack.data)
    assert found is not None
    assert found.ready_seconds is not None
    return found.ready_seconds
