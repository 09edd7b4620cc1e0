"""The section of faces: the same tools by the bus, HTTP and MCP, turn about in one run, with the bus as the measure."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any
from uuid import uuid4

from tests.chaos.stack import ChaosStack
from tests.support import mcp
from tests.support.faces import REFUSED, Face, callers
from tests.support.people import Person, town
from tests.support.personas import Persona

from .load import Connection, Timed, measure
from .progress import say
from .stacks import running
from .turns import TOPICS

_FACTS = 60
_BUS = "Bus, nats-py"
Given = Callable[[int], dict[str, Any]]
Measured = Callable[[int], Awaitable[Timed]]
"""Makes so many calls, one at a time."""


@dataclass(frozen=True)
class Row:
    """One tool by one face."""

    tool: str
    face: str
    rounds: list[Timed]

    @property
    def p50(self) -> float:
        """Median of the rounds' medians, in milliseconds."""
        return median(t.p50 for t in self.rounds)

    @property
    def p95(self) -> float:
        """Median of the rounds' 95th percentiles."""
        return median(t.p95 for t in self.rounds)


def _recall(number: int) -> dict[str, Any]:
    return {"query": f"What is case {number} of {TOPICS[number % len(TOPICS)]} about?", "limit": 10}


def _remember(number: int) -> dict[str, Any]:
    text = f"Case {number} of {TOPICS[number % len(TOPICS)]} was looked at, and nothing had to be changed in its plan."
    return {"items": [{"text": text, "external_id": f"case:{uuid4().hex}"}]}


def _nothing(number: int) -> dict[str, Any]:
    return {}


TOOLS: dict[str, Given] = {"profile.get": _nothing, "recall": _recall, "remember": _remember}


async def section(quick: bool) -> list[str]:
    """Its lines."""
    rounds, each = (1, 5) if quick else (5, 40)
    async with (
        running() as stack,
        town(stack.url, stack.key) as people,
        callers(people, stack.url, Persona.MAESTRO, one_user=True) as by,
    ):
        person = by["rest"].person
        for start in range(0, _FACTS, 20):
            body = {"items": [_remember(number)["items"][0] for number in range(start, start + 20)]}
            assert (await person.tool("remember", body)).status_code == 200
        official = {_BUS: by["bus"].face, "HTTP, the SDK": by["rest"].face, "MCP, the official client": by["mcp"].face}
        rows = []
        for tool, given in TOOLS.items():
            say(f"faces: {tool}")
            rows += await _tool(stack, person, official, tool, _fresh(given), rounds, each)
    return _table(rows)


def _fresh(given: Given) -> Given:
    """The same with a number of its own for each call, so that no face profits from what another asked."""
    called = iter(range(1_000, 10**9))
    return lambda _: given(next(called))


async def _tool(
    stack: ChaosStack, person: Person, official: dict[str, Face], tool: str, given: Given, rounds: int, each: int
) -> list[Row]:
    bare = {
        "HTTP, a bare client": _http(stack, person, tool, given),
        "MCP, a bare client": await _mcp(stack, person, tool, given),
    }
    ways = {name: _by(face, tool, given) for name, face in official.items()} | bare
    rows = [Row(tool, name, []) for name in sorted(ways)]
    for row in rows:
        await ways[row.face](max(2, each // 2))  # connections, statements and caches of what has run for a while
    for _ in range(rounds):
        for row in rows:
            row.rounds.append(await ways[row.face](each))
    return rows


def _by(face: Face, tool: str, given: Given) -> Measured:
    async def calls(count: int) -> Timed:
        seconds, start = [], perf_counter()
        for number in range(count):
            body = given(number)
            began = perf_counter()
            answer = await face.call(tool, body)
            seconds.append(perf_counter() - began)
            assert REFUSED not in answer, answer
        return Timed(tuple(seconds), perf_counter() - start)

    return calls


def _http(stack: ChaosStack, person: Person, tool: str, given: Given) -> Measured:
    headers = {"Authorization": f"Bearer {person.key}"}

    async def calls(count: int) -> Timed:
        path = f"/api/v1/tools/{tool}"
        return await measure(stack.url, headers, path, lambda number: json.dumps(given(number)).encode(), count, 1)

    return calls


async def _mcp(stack: ChaosStack, person: Person, tool: str, given: Given) -> Measured:
    def message(number: int) -> dict[str, Any]:
        return mcp.message("tools/call", {"name": tool.replace(".", "_"), "arguments": given(number)})

    headers = {"Authorization": f"Bearer {person.key}"} | mcp.headers_of(message(0))
    connection = Connection(stack.url, headers)
    answer = json.loads(await connection.post(mcp.PATH, json.dumps(message(0)).encode()))
    connection.close()
    assert not answer["result"].get("isError"), answer

    async def calls(count: int) -> Timed:
        return await measure(stack.url, headers, mcp.PATH, lambda number: json.dumps(message(number)).encode(), count, 1)

    return calls


def _table(rows: list[Row]) -> list[str]:
    bus = {row.tool: row.p50 for row in rows if row.face == _BUS}
    return [
        f"One user, a memory of {_FACTS} facts, one call at a time, the faces turn about. Each `recall` asks something new,",
        "each `remember` stores something new. The bare clients send bytes on an open connection, so what they take longer",
        "than the bus is the gateway's; the SDK and the official client are what people and agents use.",
        "",
        "| tool | face | p50 ms | p95 ms | ratio of medians to the bus |",
        "|---|---|---|---|---|",
        *(f"| `{r.tool}` | {r.face} | {r.p50:.1f} | {r.p95:.1f} | {r.p50 / bus[r.tool]:.2f} |" for r in rows),
    ]
