"""What a tenant still gets while another one floods the platform: recall and direct turns, idle and flooded, turn about.

python -m bench.fairness            about six minutes; writes the report
python -m bench.fairness --quick    one short round, to see that it runs; nothing is written
python -m bench.fairness --only http --quick
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter
from typing import Any
from uuid import uuid4

import asyncpg
import httpx
import nats

from phronesis_contracts import Principal
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.orchestrator import SubmitTurn
from phronesis_gateway.settings import GatewaySettings
from tests.chaos.stack import ChaosStack
from tests.support.people import MESSAGES, TURNS, Person, Town, town
from tests.support.personas import Persona

from . import report
from .load import Connection, Timed
from .media_files import KINDS
from .progress import say
from .stacks import running
from .turns import DIRECT, TOPICS

REPORT = Path(__file__).parents[1] / "docs" / "generated" / "fairness.md"
LIMITS = {
    f"GATEWAY_{name.upper()}": str(known.default)
    for name, known in GatewaySettings.model_fields.items()
    if "burst" in name or "requests" in name
}
"""The gateway's own defaults: what is measured here is what they are worth."""
QUEUED, UPLOADS, CONNECTIONS, PUBLISHED = 10_000, 500, 600, 256
"""Turns that are queued, files, connections, and questions on the bus that have no answer yet."""
USERS = 8
"""Users of the tenant that is measured, each with one request under way; at its default rate none of them is limited."""
_FACTS = 60
_SHARE, _TIMES, _MORE = 0.5, 3, 100
"""The least part of the idle rate; how many times the idle p95, and how many milliseconds more, the p95 may be."""
_QUEUE = """
WITH places AS (
    INSERT INTO orchestrator.conversations (id, tenant, user_id, agent, next_turn)
    SELECT gen_random_uuid(), $1, $2, 'noor', 2 FROM generate_series(1, $3) RETURNING id
)
INSERT INTO orchestrator.turns (id, tenant, user_id, conversation_id, sequence, agent, status, request, fingerprint, principal,
    expires_at)
SELECT gen_random_uuid(), $1, $2, id, 1, 'noor', 'queued', $4::jsonb, '', $5::jsonb, now() + interval '1 hour' FROM places
"""
_CLEAR = "UPDATE orchestrator.turns SET status = 'cancelled', ended_at = now() WHERE tenant = $1 AND status = 'queued'"


@dataclass
class Measured:
    """One kind of request, idle and under a flood, round by round."""

    idle: list[Timed] = field(default_factory=list)
    flooded: list[Timed] = field(default_factory=list)
    refused: int = 0

    @property
    def share(self) -> float:
        """The median rate under the flood, as a part of the idle one."""
        return median(t.rate for t in self.flooded) / median(t.rate for t in self.idle)

    @property
    def late(self) -> bool:
        """Whether the 95th percentile is over what it may be."""
        return _p95(self.flooded) > _TIMES * _p95(self.idle) + _MORE


@dataclass(frozen=True)
class Sizes:
    """How long is measured."""

    rounds: int
    seconds: float
    """Of each kind of request, idle and flooded, in each round."""


SIZES, QUICK = Sizes(2, 8.0), Sizes(1, 3.0)
Flood = Callable[[ChaosStack, Person, Town], Any]
"""What one tenant does, for the length of a block."""


def _p95(rounds: Sequence[Timed]) -> float:
    return median(t.p95 for t in rounds)


async def _measure(
    url: str, people: Sequence[Person], seconds: float, ask: Callable[[int], tuple[str, bytes]]
) -> tuple[Timed, int]:
    """What the people get in that time, each with one request after the other; and how many were refused."""
    end, found, refused = monotonic() + seconds, list[float](), 0
    began = perf_counter()

    async def client(number: int, person: Person) -> None:
        nonlocal refused
        connection = Connection(url, {"Authorization": f"Bearer {person.key}"})
        while monotonic() < end:
            start = perf_counter()
            try:
                await connection.post(*ask(number))
            except RuntimeError:
                refused += 1
                await asyncio.sleep(0.05)
            else:
                found.append(perf_counter() - start)
            number += USERS
        connection.close()

    await asyncio.gather(*(client(number, person) for number, person in enumerate(people)))
    wall = perf_counter() - began
    return Timed(tuple(found) if len(found) > 1 else (seconds, seconds), wall), refused


def _recall(number: int) -> tuple[str, bytes]:
    text = f"What is case {number} {uuid4().hex[:6]} of {TOPICS[number % len(TOPICS)]} about?"
    return "/api/v1/tools/recall", json.dumps({"query": text, "limit": 10}).encode()


def _turn(number: int) -> tuple[str, bytes]:
    return MESSAGES, json.dumps({"currentMessageText": DIRECT}).encode()


ASKED = {"recall": _recall, "direct turn": _turn}


async def compare(stack: ChaosStack, people: Sequence[Person], flood: Any, sizes: Sizes) -> dict[str, Measured]:
    """Each kind of request, idle and beside the flood, turn about."""
    found = {name: Measured() for name in ASKED}
    for _ in range(sizes.rounds):
        for name, ask in ASKED.items():
            timed, refused = await _measure(stack.url, people, sizes.seconds, ask)
            found[name].idle.append(timed)
            assert refused == 0, f"{refused} of an idle stack were refused"
        async with flood():
            for name, ask in ASKED.items():
                timed, refused = await _measure(stack.url, people, sizes.seconds, ask)
                found[name].flooded.append(timed)
                found[name].refused += refused
        await _settled(stack, people)
    return found


async def _settled(stack: ChaosStack, people: Sequence[Person]) -> None:
    """Return when all is answered as on an idle stack, or after a minute."""
    end = monotonic() + 60
    while monotonic() < end:
        if max([(await _measure(stack.url, people[:1], 0.5, ask))[0].p95 for ask in ASKED.values()]) < _MORE:
            return


# Floods. Each runs in a process of its own, so that it shares the machine with what is measured and not its loop.


@asynccontextmanager
async def _process(flood: str, warm: float, **given: Any) -> AsyncIterator[None]:
    command = [sys.executable, "-m", "bench.fairness", "--flood", flood]
    process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(given).encode() + b"\n")
    await process.stdin.drain()
    try:
        assert await process.stdout.readline() == b"ready\n", "a flood did not begin"
        await asyncio.sleep(warm)
        assert process.returncode is None, "a flood ended by itself"
        yield
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


@asynccontextmanager
async def bus(stack: ChaosStack, loud: Person, people: Town) -> AsyncIterator[None]:
    """One key of the bus publishes questions to memory, and waits for the answer of none."""
    stated = {"tenant": loud.tenant, "user": loud.user, **Persona.MAESTRO.stated, "days": 1}
    made = (await people.owner.http.post("/api/v1/keys/bus", json=stated)).json()
    async with _process("bus", 1.0, tenant=loud.tenant, made=made):
        yield


@asynccontextmanager
async def http(stack: ChaosStack, loud: Person, people: Town) -> AsyncIterator[None]:
    """One key asks by many connections, each again as soon as it is answered."""
    async with _process("http", 2.0, url=stack.url, key=loud.key):
        yield


@asynccontextmanager
async def uploads(stack: ChaosStack, loud: Person, people: Town) -> AsyncIterator[None]:
    """Users of one tenant upload documents, and hand in a turn about each."""
    keys = [(await people.someone(loud.tenant)).key for _ in range(20)]
    async with _process("uploads", 1.0, url=stack.url, keys=keys):
        yield
    await _clear(stack, loud)


@asynccontextmanager
async def turns(stack: ChaosStack, loud: Person, people: Town) -> AsyncIterator[None]:
    """Turns of one tenant wait, as they were accepted."""
    who = Principal(tenant=loud.tenant, user=loud.user, **Persona.NOOR.rights)
    request = SubmitTurn(idempotency_key="flood", text=DIRECT, agent="noor")
    session = await asyncpg.connect(stack.dsn)
    try:
        await session.execute(_QUEUE, loud.tenant, loud.user, QUEUED, request.model_dump_json(), who.model_dump_json())
    finally:
        await session.close()
    await asyncio.sleep(2)
    yield
    await _clear(stack, loud)


async def _clear(stack: ChaosStack, loud: Person) -> None:
    session = await asyncpg.connect(stack.dsn)
    try:
        await session.execute(_CLEAR, loud.tenant)
    finally:
        await session.close()


FLOODS: dict[str, tuple[str, Flood]] = {
    "bus": (f"one bus key publishes questions, {PUBLISHED} of them open", bus),
    "http": (f"one HTTP key with {CONNECTIONS} connections", http),
    "uploads": (f"{UPLOADS} uploads, and a turn about each", uploads),
    "turns": (f"{QUEUED:,} queued turns", turns),
}


async def _flood_bus(given: dict[str, Any]) -> None:
    made, open = given["made"], asyncio.Semaphore(PUBLISHED)
    broker = await nats.connect(
        made["servers"], user=made["nats_user"], password=made["nats_password"], inbox_prefix=made["inbox"]
    )
    rpc = TOOLS["recall"].rpc
    headers = {"Phronesis-Principal": made["token"]}

    async def ask(number: int) -> None:
        try:
            with suppress(nats.errors.Error, TimeoutError):
                body = _recall(number)[1]
                await broker.request(f"rpc.{given['tenant']}.{rpc.subject}", body, timeout=20, headers=headers)
        finally:
            open.release()

    _ready()
    asked, number = set[asyncio.Task[None]](), 0
    while True:
        await open.acquire()
        number += 1
        asked.add(task := asyncio.create_task(ask(number)))
        task.add_done_callback(asked.discard)


async def _flood_http(given: dict[str, Any]) -> None:
    async def client(number: int) -> None:
        connection = Connection(given["url"], {"Authorization": f"Bearer {given['key']}"})
        while True:
            try:
                await connection.post(*(_recall if number % 2 else _turn)(number))
            except RuntimeError:
                continue
            except (OSError, EOFError):
                connection = Connection(given["url"], {"Authorization": f"Bearer {given['key']}"})
                await asyncio.sleep(0.1)

    clients = [asyncio.create_task(client(number)) for number in range(CONNECTIONS)]
    _ready()
    await asyncio.gather(*clients)


async def _flood_uploads(given: dict[str, Any]) -> None:
    kind = next(kind for kind in KINDS if kind.name == "PDF")
    numbers = iter(range(int(datetime.now(UTC).timestamp()), 2**40))
    _ready()

    async def client(key: str) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        async with httpx.AsyncClient(base_url=given["url"], headers=headers, timeout=60, trust_env=False) as http:
            for _ in range(UPLOADS // len(given["keys"])):
                data = await asyncio.to_thread(kind.make, next(numbers))
                made = await http.post("/api/v1/media", files={"file": (kind.file, data, kind.type)})
                if made.is_success:
                    text = {"currentMessageText": "What is in it?", "currentMessageMedia": [{"mediaId": made.json()["id"]}]}
                    await http.post(TURNS, json=text)
                else:
                    await asyncio.sleep(0.2)

    await asyncio.gather(*(client(key) for key in given["keys"]))
    await asyncio.Event().wait()  # whoever measures ends this


def _ready() -> None:
    print("ready", flush=True)


_FLOODING: dict[str, Callable[[dict[str, Any]], Coroutine[Any, Any, None]]] = {
    "bus": _flood_bus,
    "http": _flood_http,
    "uploads": _flood_uploads,
}


async def section(sizes: Sizes, names: Sequence[str]) -> list[str]:
    """The lines of the report."""
    found: dict[str, dict[str, Measured]] = {}
    async with running(LIMITS | {"ORCHESTRATOR_OPEN_TURNS": str(2 * QUEUED)}) as stack, town(stack.url, stack.key) as all:
        first = await all.someone()
        people = [first, *[await all.someone(first.tenant) for _ in range(USERS - 1)]]
        for start in range(0, _FACTS, 20):
            items = [{"text": f"Case {n} of {TOPICS[n % len(TOPICS)]} was looked at."} for n in range(start, start + 20)]
            assert (await first.tool("remember", {"items": items})).status_code == 200
        for ask in ASKED.values():
            await _measure(stack.url, people, 2.0, ask)
        for name in names:
            say(f"fairness: {name}")
            loud = await all.someone(role=Persona.MAESTRO)
            flood = FLOODS[name][1]
            found[name] = await compare(stack, people, lambda flood=flood, loud=loud: flood(stack, loud, all), sizes)
    return _table(found)


def _table(found: dict[str, dict[str, Measured]]) -> list[str]:
    lines = [
        "| flood | measured | idle a second | under it | share | idle p95, ms | under it | refused | fair |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, by in found.items():
        for what, one in by.items():
            rates = [f"{median(t.rate for t in rounds):.1f}" for rounds in (one.idle, one.flooded)]
            late = [f"{_p95(rounds):.0f}" for rounds in (one.idle, one.flooded)]
            fair = "yes" if one.share >= _SHARE and not one.late else "**no**"
            cells = (FLOODS[name][0], what, *rates, f"{one.share:.2f}", *late, str(one.refused), fair)
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def _head() -> list[str]:
    return [
        "# Fairness between tenants",
        "",
        f"Made by `python -m bench.fairness` at `{report.commit()}` on {os.cpu_count()} cores, shared by flood and client.",
        f"{USERS} users of one tenant recall, and have direct turns, one request after the other, with nobody beside them and",
        "while another tenant floods the platform, turn about; medians of the rounds. The gateway's limits are its defaults.",
        f"It is fair where at least {_SHARE:.0%} of the idle rate is left, and the p95 is at most {_TIMES} times the idle",
        f"one and {_MORE} ms.",
        "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.fairness", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round; nothing is written")
    parser.add_argument("--only", nargs="+", choices=FLOODS, default=list(FLOODS), help="some floods; nothing is written")
    parser.add_argument("--flood", choices=_FLOODING, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.flood is not None:
        asyncio.run(_FLOODING[given.flood](json.loads(sys.stdin.readline())))
        return
    lines = asyncio.run(section(QUICK if given.quick else SIZES, given.only))
    print("\n".join(lines))
    if not given.quick and given.only == list(FLOODS):
        REPORT.write_text("\n".join([*_head(), *lines, ""]))


if __name__ == "__main__":
    main()
