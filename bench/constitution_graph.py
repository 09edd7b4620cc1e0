"""A made-up constitution in a running stack: loaded into a tenant of its own, embedded, and asked."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any
from uuid import uuid4

import httpx

from phronesis.constitution.files import parts
from phronesis_contracts.constitution.maintenance import REGENERATE_TOOL
from phronesis_contracts.constitution.writes import LOAD_TOOL
from phronesis_samples.institute.generator import GeneratedConstitution, generate
from tests.support.people import Person, Town

from .load import Connection, Timed
from .progress import say

SEED = 1
_EMBEDDED_AT_ONCE = 500
_PATIENCE = 310.0
"""Seconds that one call may take."""
Given = Callable[[int], dict[str, Any]]


class Graph:
    """One size.

    Args:
        url: the gateway.
        person: an admin of the graph's own tenant.
        made: what is in it.
    """

    def __init__(self, url: str, person: Person, made: GeneratedConstitution) -> None:
        self.made = made
        self.size = len(made.spots)
        self.tenant = person.tenant
        self.load_s = self.embed_s = 0.0
        self.embedded = 0
        self._url = url
        self._headers = {"Authorization": f"Bearer {person.key}"}
        self._http = httpx.AsyncClient(base_url=url, headers=self._headers, timeout=_PATIENCE, trust_env=False)

    async def call(self, tool: str, body: dict[str, Any]) -> dict[str, Any]:
        """What a tool answers; anything but an answer fails."""
        answer = await self._http.post(f"/api/v1/tools/{tool}", json=body, headers={"Idempotency-Key": uuid4().hex})
        assert answer.status_code == 200, f"{tool}: {answer.text[:300]}"
        found: dict[str, Any] = answer.json()
        return found

    async def fill(self) -> None:
        """Load it, and have all of it embedded."""
        began = time.perf_counter()
        for part in parts(self.made.nodes(), self.made.relationships()):
            await self.call(
                LOAD_TOOL.name, part.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
            )
        self.load_s = time.perf_counter() - began
        say(f"constitution: {self.size:,} nodes loaded")
        began = time.perf_counter()
        ids = (spot.id for spot in self.made.spots)
        while some := list(islice(ids, _EMBEDDED_AT_ONCE)):
            self.embedded += (await self.call(REGENERATE_TOOL.name, {"ids": some}))["embedded"]
        self.embed_s = time.perf_counter() - began
        say(f"constitution: {self.embedded:,} of them embedded")

    async def timed(self, tool: str, given: Given, calls: int, before: Callable[[int], Any] | None = None) -> Timed:
        """Call a tool one time after the other on an open connection; the first three do not count.

        Args:
            tool: its name.
            given: its input, by the number of the call.
            calls: how many count.
            before: what is done before each call, and takes no part in its time.
        """
        connection, seconds = Connection(self._url, self._headers), []
        for number in range(-3, calls):
            if before is not None:
                await before(number)
            body = json.dumps(given(number)).encode()
            began = time.perf_counter()
            await connection.post(f"/api/v1/tools/{tool}", body)
            if number >= 0:
                seconds.append(time.perf_counter() - began)
        connection.close()
        return Timed(tuple(seconds), sum(seconds))

    async def touch(self, number: int) -> None:
        """Write to each of the layers that a session's start holds, so that none of it is cached any more."""
        for type in ("value", "goal", "task"):
            there = [spot.id for spot in self.made.spots if spot.type == type and spot.active]
            if there:
                body = {"id": there[number % len(there)], "summary": f"Looked at once more, for the {number + 4}th time."}
                await self.call("node.update.v1", body | {"acknowledge": self._rules()})

    def question(self, number: int) -> dict[str, Any]:
        """A search for something new: no question is asked twice, so none is answered from the cache of questions."""
        queries = self.made.queries()
        return {"query": f"{queries[number % len(queries)].text} (case {number})", "topK": 10, "minSimilarity": 0.2}

    def around(self, number: int) -> dict[str, Any]:
        """The same around a node."""
        anchors = [query.anchor for query in self.made.queries() if query.anchor] or [self.made.spots[0].id]
        return self.question(number) | {"anchorNodeId": anchors[number % len(anchors)]}

    def _rules(self) -> list[str]:
        return [spot.id for spot in self.made.spots if spot.type == "guardrail"][:20]

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()


async def filled(url: str, people: Town, size: int) -> Graph:
    """A graph of so many nodes in a tenant of its own."""
    person = await people.someone(role="admin")
    graph = Graph(url, person, generate(size, SEED))
    await graph.fill()
    return graph


def nothing(number: int) -> dict[str, Any]:
    """No input."""
    return {}


def at(values: Sequence[float], percent: int) -> float:
    """A percentile by the nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-len(ordered) * percent // 100) - 1))]
