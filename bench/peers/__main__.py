"""Retrieval without extraction: this memory beside mem0, LangGraph's Postgres store and Graphiti, turn about in one run.

    python -m bench.peers                    conversations from this repository; writes docs/generated/peers.md
    python -m bench.peers --locomo FILE      those of a file of the LoCoMo benchmark; prints only
    python -m bench.peers --quick            tiny sizes, to see that it runs; prints only

No language model is called on any side: messages are stored as they are. Every side has the same embedder with the same
threads, and servers of its own. The peers run in process, in environments that are made in `.venv-peers`; this
memory is asked by HTTP.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean, median, quantiles
from time import perf_counter
from typing import Any, Protocol

import asyncpg

from phronesis import AsyncClient
from phronesis_embedding.local import LocalEmbedder
from phronesis_local.layout import inherited_environment
from tests.chaos.stack import ChaosStack
from tests.support.people import Town, town
from tests.support.production_servers import Neo4jServer
from tests.support.servers import PostgresServer

from .. import conversations, report
from ..conversations import Conversation
from ..processes import megabytes, megabytes_of
from ..progress import say
from ..stacks import running

ROOT = Path(__file__).parents[2]
REPORT = ROOT / "docs" / "generated" / "peers.md"
HERE = Path(__file__).parent
PEERS = {
    "mem0": ("mem0 on pgvector", ("mem0ai==2.2.1", "psycopg[binary,pool]==3.3.2")),
    "langgraph": ("LangGraph's store on pgvector", ("langgraph-checkpoint-postgres==3.2.0", "psycopg[binary,pool]==3.3.2")),
    "graphiti": ("Graphiti on Neo4j", ("graphiti-core==0.31.2", "httpx==0.28.1")),
}
_ENVIRONMENT = {
    "EMBEDDING_DIM": "384",
    "GRAPHITI_TELEMETRY_ENABLED": "false",
    "MEM0_TELEMETRY": "False",
    "OPENAI_API_KEY": "none",
    "PYTHONWARNINGS": "ignore",
}
"""What the workers run with: nothing is reported to anybody, and clients of models that are never called can be made."""
DEPTH, ROUNDS, BATCH = 10, 5, 100
_SETTLED_WITHIN = 600.0
OURS = "Phronesis by HTTP"


class Side(Protocol):
    """A memory that is measured."""

    name: str

    async def add(self, user: str, messages: Sequence[dict[str, Any]]) -> tuple[list[str], float]:
        """Store messages of a user: their ids, and the seconds it took."""
        ...

    async def settled(self) -> None:
        """Return when a search finds by its vector whatever was stored."""
        ...

    async def search(self, user: str, question: str) -> tuple[list[str], float]:
        """The ids of the first that are found, and the seconds it took."""
        ...

    def megabytes(self) -> tuple[float, float]:
        """Memory of its Python processes, and of its servers."""
        ...


@dataclass
class Figures:
    """What was measured of one side."""

    shares: list[float] = field(default_factory=list)
    """For each question, the share of its messages among the first ten."""
    rates: list[float] = field(default_factory=list)
    """Messages stored a second, of each round."""
    times: list[float] = field(default_factory=list)
    """Seconds of each search over all messages."""
    one: list[float] = field(default_factory=list)
    """Seconds in which one message is stored."""
    megabytes: tuple[float, float] = (0, 0)

    def cells(self) -> list[str]:
        """A row of the table."""
        cut, single = quantiles(self.times, n=20), quantiles(self.one, n=20)
        numbers = (100 * mean(self.shares), median(self.rates), *(1_000 * s for s in (cut[9], cut[18], single[9], single[18])))
        return [f"{number:.1f}" for number in numbers] + [f"{size:.0f}" for size in self.megabytes]


class Ours:
    """This memory: a user for each of the others' users, by the Python client."""

    name = OURS

    def __init__(self, stack: ChaosStack, people: Town, open_until_the_end: AsyncExitStack) -> None:
        self._stack, self._people, self._open = stack, people, open_until_the_end
        self._clients: dict[str, AsyncClient] = {}

    async def add(self, user: str, messages: Sequence[dict[str, Any]]) -> tuple[list[str], float]:
        """Store messages as those of a conversation."""
        client = await self._client(user)
        said = [{"speaker": one["speaker"], "text": one["text"], "occurred_at": one["at"]} for one in messages]
        began = perf_counter()
        added = await client.memory.add(said, conversation_id=user)
        return [one.id for one in added.memories], perf_counter() - began

    async def settled(self) -> None:
        """Wait for the vectors, which are made after messages are stored."""
        connection = await asyncpg.connect(self._stack.dsn)
        try:
            async with asyncio.timeout(_SETTLED_WITHIN):
                while await connection.fetchval("SELECT EXISTS (SELECT FROM memory.unembedded)"):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
        finally:
            await connection.close()

    async def search(self, user: str, question: str) -> tuple[list[str], float]:
        """`memory.search`."""
        client = await self._client(user)
        began = perf_counter()
        found = await client.memory.search(question, limit=DEPTH)
        return [one.id for one in found.memories], perf_counter() - began

    async def _client(self, user: str) -> AsyncClient:
        if user not in self._clients:
            key = (await self._people.someone()).key
            self._clients[user] = await self._open.enter_async_context(AsyncClient(self._stack.url, key))
        return self._clients[user]

    def megabytes(self) -> tuple[float, float]:
        """Of the services that it takes to store and to search, and of their servers."""
        sizes = megabytes(self._stack)
        return sum(sizes[name] for name in ("gateway", "memory", "nursery")), sum(sizes[name] for name in ("nats", "postgres"))


class Theirs:
    """A peer in a process of its own."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, servers: Sequence[int | None]) -> None:
        self.name = name
        self._process, self._servers = process, servers

    async def add(self, user: str, messages: Sequence[dict[str, Any]]) -> tuple[list[str], float]:
        """Store messages by one call."""
        return await self._do({"user": user, "messages": list(messages)})

    async def settled(self) -> None:
        """Nothing: peers make vectors before they answer."""

    async def search(self, user: str, question: str) -> tuple[list[str], float]:
        """Its own search."""
        return await self._do({"user": user, "question": question, "limit": DEPTH})

    async def _do(self, told: dict[str, Any]) -> tuple[list[str], float]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(told).encode() + b"\n")
        await self._process.stdin.drain()
        answer = await self.answered()
        return answer["ids"], answer["seconds"]

    async def answered(self) -> dict[str, Any]:
        """The next line it says. Raises `SystemExit` when it has ended."""
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} ended; what it said stands above")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def megabytes(self) -> tuple[float, float]:
        """Of its process and of its server."""
        return megabytes_of(self._process.pid), sum(map(megabytes_of, self._servers))


def environment(peer: str) -> Path:
    """The Python of a peer's own environment, made where it is missing."""
    folder = ROOT / ".venv-peers" / peer
    python = folder / "bin" / "python"
    # Ours as they are: a change of them is no reason to install anew.
    ours = [argument for name in ("contracts", "embedding") for argument in ("-e", str(ROOT / "libs" / name))]
    wanted = [*PEERS[peer][1], *ours]
    stamp = folder / "installed"
    if not stamp.exists() or stamp.read_text("utf-8") != "\n".join(wanted):
        say(f"{peer}: installing {PEERS[peer][1][0]}")
        uv = [sys.executable, "-m", "uv"]
        subprocess.run([*uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)], check=True)
        subprocess.run([*uv, "pip", "install", "--quiet", "--python", str(python), *wanted], check=True)
        stamp.write_text("\n".join(wanted), "utf-8")
    return python


@asynccontextmanager
async def peer_running(peer: str) -> AsyncIterator[Theirs]:
    """A peer with a server of its own, for the length of a block."""
    python = environment(peer)
    with tempfile.TemporaryDirectory(prefix="phronesis-peers-") as folder:
        async with AsyncExitStack() as stack:
            servers = {"folder": folder}
            if peer == "graphiti":
                neo4j = Neo4jServer(Path(folder) / "neo4j")
                await neo4j.start()
                stack.push_async_callback(neo4j.stop)
                servers |= {"neo4j": neo4j.url, "neo4j_user": neo4j.root.user, "neo4j_password": neo4j.root.password}
                pid = neo4j.pid
            else:
                postgres = PostgresServer(Path(folder) / "postgres")
                await postgres.start()
                stack.push_async_callback(postgres.stop)
                servers["postgres"] = postgres.dsn
                pid = postgres.pid
            process = await asyncio.create_subprocess_exec(
                str(python),
                str(HERE / f"{peer}_worker.py"),
                json.dumps(servers),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=2**24,
                env=inherited_environment() | _ENVIRONMENT,
            )
            stack.push_async_callback(_ended, process)
            side = Theirs(PEERS[peer][0], process, [pid])
            await side.answered()
            yield side


async def _ended(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        async with asyncio.timeout(20):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


async def compare(sides: Sequence[Side], asked: Sequence[Conversation], many: int, questions: int) -> dict[str, Figures]:
    """Let every side do the same, in turn.

    Args:
        sides: what is compared.
        asked: conversations with questions, each stored for a user of its own.
        many: messages of one further user, for the times.
        questions: how many of the questions are asked over those.
    """
    figures = {side.name: Figures() for side in sides}
    for one in asked:
        for side in sides:
            ids = await _stored(side, one.name, one.messages)
            await side.settled()
            places = {id: place for place, id in enumerate(ids)}
            for text, wanted in one.questions:
                found, _ = await side.search(one.name, text)
                got = {places[id] for id in found if id in places}
                figures[side.name].shares.append(len(got & set(wanted)) / len(set(wanted)))
        say(f"{one.name}: {len(one.messages)} messages, {len(one.questions)} questions")
    said = [_numbered(asked, number) for number in range(many)]
    texts = [f"{text} ({number})" for number, text in enumerate(t for one in asked for t, _ in one.questions)][:questions]
    for number in range(ROUNDS):
        part, some = said[number::ROUNDS], texts[number::ROUNDS]
        for side in _turned(sides, number):
            began = perf_counter()
            await _stored(side, "many", part)
            await side.settled()
            figures[side.name].rates.append(len(part) / (perf_counter() - began))
        say(f"round {number + 1} of {ROUNDS}: {len(part)} more messages each")
        for side in _turned(sides, number):
            for text in some:
                figures[side.name].times.append((await side.search("many", text))[1])
            for place in range(20):
                one = dict(_numbered(asked, place), text=f"One more, {number}.{place}: {asked[0].messages[place]['text']}")
                figures[side.name].one.append((await side.add("single", [one]))[1])
            await side.settled()
    for side in sides:
        figures[side.name].megabytes = side.megabytes()
    return figures


async def _stored(side: Side, user: str, messages: Sequence[dict[str, Any]]) -> list[str]:
    ids: list[str] = []
    given = [{"speaker": one["speaker"], "text": one["text"], "at": one["occurred_at"]} for one in messages]
    for start in range(0, len(given), BATCH):
        ids += (await side.add(user, given[start : start + BATCH]))[0]
    return ids


def _numbered(asked: Sequence[Conversation], number: int) -> dict[str, Any]:
    one = asked[number % len(asked)]
    message = one.messages[number // len(asked) % len(one.messages)]
    return dict(message, text=f"{message['text']} ({number})", at=message["occurred_at"])


def _turned(sides: Sequence[Side], number: int) -> list[Side]:
    first = number % len(sides)
    return [*sides[first:], *sides[:first]]


async def bare_rate(messages: Sequence[str]) -> float:
    """Texts a second that the embedder alone makes vectors of."""
    async with LocalEmbedder.open(2) as embedder:
        await embedder.embed_texts(messages[:50])
        began = perf_counter()
        for start in range(0, len(messages), BATCH):
            await embedder.embed_texts(messages[start : start + BATCH])
        return len(messages) / (perf_counter() - began)


def lines(figures: dict[str, Figures], asked: Sequence[Conversation], many: int, bare: float) -> list[str]:
    """The report of a run."""
    count = sum(len(one.questions) for one in asked)
    best = max(mean(figures[name].shares) for name in figures if name != OURS)
    ours = figures[OURS]
    rate = median(ours.rates)
    misses = (1 - mean(ours.shares)) / max(1 - best, 1e-9)
    rates = {name: median(each.rates) for name, each in figures.items() if name != OURS}
    cut = {name: quantiles(each.times, n=20)[18] for name, each in figures.items()}
    return [
        "# Beside other memories: retrieval without extraction",
        "",
        f"Made by `make bench-peers` on {datetime.now(UTC):%Y-%m-%d} at `{report.commit()}`, on {os.cpu_count()} cores,",
        f"{platform.system()}, Python {platform.python_version()}. {', '.join(each[1][0] for each in PEERS.values())}.",
        "",
        "No language model is called on any side: messages are stored as they are, so that what is compared is storing and",
        "finding, and not what a model makes of a conversation. All use the embedder of this product with the same threads.",
        "The peers run in process, as libraries; Phronesis is asked by HTTP, through its gateway. Everything is stored with a",
        "server's default durability, and everyone has a server of its own. Each does the same in turn in one run. The rate of",
        "storing counts until every message is found by its vector; one message is stored when the call returns, which at a",
        "peer means with its vector, and at Phronesis durably, with its vector made right after. mem0 runs without spaCy,",
        "whose models are in no package registry.",
        "",
        f"recall@10 is over {count} questions to {len(asked)} conversations; times are over {many} messages of one user.",
        "",
        "| | recall@10, % | messages stored a second, by 100 | search p50, ms | p95, ms | one message stored, p50, ms "
        "| p95, ms | its Python, MB | its servers, MB |",
        "|---|---|---|---|---|---|---|---|---|",
        *(f"| {name} | {' | '.join(each.cells())} |" for name, each in figures.items()),
        "",
        f"The embedder alone makes {bare:.1f} vectors of such messages a second.",
        "",
        "| | | aim |",
        "|---|---|---|",
        f"| misses at 10, of those of the best peer | {misses:.2f} | at most 0.75 |",
        f"| p95 of a search by HTTP, of that of mem0 in process | {cut[OURS] / cut[PEERS['mem0'][0]]:.2f} | at most 1.5 |",
        f"| messages stored a second, of those of the best peer | {rate / max(rates.values()):.2f} | at least 1.5 |",
        f"| messages stored a second, of the embedder's alone | {rate / bare:.2f} | |",
        "",
        *_better(figures),
        "",
    ]


_KINDS: dict[str, tuple[Callable[[Figures], float], bool]] = {
    "finds more": (lambda each: mean(each.shares), True),
    "stores faster by hundreds": (lambda each: median(each.rates), True),
    "searches faster at p95": (lambda each: quantiles(each.times, n=20)[18], False),
    "stores one message faster at p95": (lambda each: quantiles(each.one, n=20)[18], False),
    "takes less memory in Python": (lambda each: each.megabytes[0], False),
    "takes less memory in its servers": (lambda each: each.megabytes[1], False),
}


def _better(figures: dict[str, Figures]) -> list[str]:
    found = ["Where a peer is better:", ""]
    for name, each in figures.items():
        wins = [
            what
            for what, (value, more) in _KINDS.items()
            if name != OURS and (value(each) > value(figures[OURS])) == more and value(each) != value(figures[OURS])
        ]
        if wins:
            found.append(f"- {name} {', '.join(wins)}.")
    return found if len(found) > 2 else ["No peer was better in any of these figures."]


async def run(asked: Sequence[Conversation], many: int, questions: int, only: Sequence[str]) -> list[str]:
    """Compare, on servers that are started for it."""
    async with AsyncExitStack() as stack:
        ours = await stack.enter_async_context(running())
        people = await stack.enter_async_context(town(ours.url, ours.key))
        sides: list[Side] = [Ours(ours, people, stack)]
        for peer in only:
            sides.append(await stack.enter_async_context(peer_running(peer)))
        figures = await compare(sides, asked, many, questions)
    bare = await bare_rate(
        [f"{one['speaker']}: {one['text']}" for one in (_numbered(asked, n) for n in range(min(many, 1_000)))]
    )
    return lines(figures, asked, many, bare)


def main() -> int:
    """See the module; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--locomo", type=Path, metavar="FILE")
    parser.add_argument("--half", choices=("tune", "held"), default="held", help="which of this repository's conversations")
    parser.add_argument("--messages", type=int, default=3_000, help="of one user, for the times (3000)")
    parser.add_argument("--only", nargs="+", choices=PEERS, default=list(PEERS), help="some peers; mem0 has to be one")
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    if "mem0" not in chosen.only:
        parser.error("--only: mem0 has to be one of them, since the times are compared with its times")
    asked = conversations.read_locomo(chosen.locomo) if chosen.locomo else conversations.read(chosen.half)
    sizes = (asked[:1], 100, 20) if chosen.quick else (asked, chosen.messages, 200)
    made = "\n".join(asyncio.run(run(*sizes, chosen.only)))
    print(made)
    whole = set(chosen.only) == set(PEERS) and chosen.half == "held" and not chosen.quick and not chosen.locomo
    if whole:
        REPORT.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
