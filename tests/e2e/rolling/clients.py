"""The clients of a rolling restart: turns with files, their events, items, nodes by HTTP and by the bus; all by the SDK."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import uuid4

import httpx

from phronesis import AsyncClient
from phronesis_contracts import ServiceError
from phronesis_contracts.memory import RememberItem
from tests.chaos.mix import Wish, wish
from tests.chaos.reading import Event, Reading
from tests.chaos.traffic import Note, Sent

from .outsider import Outsider

T = TypeVar("T")
_LANES = 6
"""Conversations side by side."""
_KINDS, _SHARES = ("plain", "question", "document"), (2, 4, 1)
_PAUSE = 0.3
_PATIENCE = 90.0


@dataclass
class Told:
    """What the clients sent, what they were told, and what they had to repeat themselves."""

    sent: list[Sent] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    read: dict[str, Reading] = field(default_factory=dict)
    """The events of each turn, as the SDK gave them."""
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Ids of nodes, and the answers to their batches."""
    failures: list[str] = field(default_factory=list)
    """Calls that the SDK gave up, after its own repeats."""
    unlike: list[str] = field(default_factory=list)
    """Repeats that were answered otherwise than the first call."""
    resumed: int = 0
    """Streams of events that were opened again, behind the last event that had come."""


class Clients:
    """Keeps a stack busy until told to end.

    Args:
        sdk: a client of the stack's owner.
        outsider: an outside system that acts for the owner.
        seed: decides what is said.
    """

    def __init__(self, sdk: AsyncClient, outsider: Outsider, seed: int) -> None:
        self._sdk = sdk
        self._outsider = outsider
        self._dice = random.Random(seed)
        self._number = 0
        self._ending = asyncio.Event()
        self.told = Told()
        sdk._connection.http.event_hooks["request"].append(self._asking)

    async def _asking(self, request: httpx.Request) -> None:
        self.told.resumed += "Last-Event-ID" in request.headers

    def end(self) -> None:
        """Begin nothing more."""
        self._ending.set()

    async def run(self) -> None:
        """Send until the end, and wait for what was begun."""
        async with asyncio.TaskGroup() as lanes:
            for _ in range(_LANES):
                lanes.create_task(self._again(self._conversation()))
            lanes.create_task(self._again(self._note))
            lanes.create_task(self._again(lambda: self._node(self._by_tool)))
            lanes.create_task(self._again(lambda: self._node(self._outsider.upsert)))

    async def _again(self, work: Callable[[], Awaitable[None]]) -> None:
        while not self._ending.is_set():
            await work()
            await asyncio.sleep(_PAUSE)

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _conversation(self) -> Callable[[], Awaitable[None]]:
        """Turns, some of them in the conversation of the one before."""
        last: str | None = None

        async def turn() -> None:
            nonlocal last
            said = wish(self._dice.choices(_KINDS, _SHARES)[0], self._next(), self._dice)
            sent = await self._submitted(said, last if self._dice.random() < 0.5 else None)
            last = sent.conversation_id
            await self._read(sent)

        return turn

    async def _submitted(self, said: Wish, conversation: str | None) -> Sent:
        sent = Sent(said, conversation)
        self.told.sent.append(sent)
        media: list[str] = []
        if said.file is not None:
            content, name = await asyncio.to_thread(said.file.make), said.file.name
            media.append((await self._sure("upload", lambda: self._sdk.media.upload(content, name))).id)

        async def submit() -> tuple[str, str]:
            got = await self._sdk.turns.submit(said.text, conversation, media, idempotency_key=sent.key)
            return got.turn_id, got.conversation_id

        first = await self._sure("submit", submit)
        sent.turn_id, sent.conversation_id = first
        if self._dice.random() < 0.3 and await self._sure("submit again", submit) != first:
            self.told.unlike.append(f"turn {sent.turn_id} was accepted as another one when it was sent again")
        return sent

    async def _read(self, sent: Sent) -> None:
        """Follow a turn to its end."""

        async def read() -> Reading:
            found = Reading()
            found.begin(anew=True)
            async for event in self._sdk.turns.events(str(sent.turn_id)):
                found.take(Event(int(event.id or 0), event.kind, event.data))
            return found

        found = self.told.read[str(sent.turn_id)] = await self._sure("events", read)
        assert found.done is not None
        sent.status, sent.reply = found.done.data["status"], found.done.data.get("reply")

    async def _note(self) -> None:
        stored = [note.external_id for note in self.told.notes if note.id]
        number = self._next()
        note = Note(f"note:{number}", stored[-1] if stored else None)
        self.told.notes.append(note)
        text = f"Chaos{number} is a programme that drains the lower field."
        item = RememberItem(text=text, external_id=note.external_id, links=(note.link,) if note.link else ())
        answer = await self._sure("remember", lambda: self._sdk.memory.remember([item], idempotency_key=note.key))
        note.id, note.status = answer.items[0].id, str(answer.items[0].status)

    async def _node(self, write: Callable[[dict[str, Any], str], Awaitable[dict[str, Any]]]) -> None:
        id, key = f"ROLL_{uuid4().hex[:12]}", uuid4().hex
        node = {"type": "EntityProject", "id": id, "year": 2024, "name": f"Project {id}", "level": "L3"}
        self.told.nodes[id] = await self._sure("upsert", lambda: write({"nodes": [node]}, key))

    async def _by_tool(self, batch: dict[str, Any], key: str) -> dict[str, Any]:
        return await self._sdk.tools.call("graph_upsert", batch, idempotency_key=key)

    async def _sure(self, what: str, call: Callable[[], Awaitable[T]]) -> T:
        """What a call answers; one that fails is noted, and made again with the same key."""
        async with asyncio.timeout(_PATIENCE):
            while True:
                try:
                    return await call()
                except ServiceError as error:
                    self.told.failures.append(f"{what}: {error.code} {error.detail}")
                    await asyncio.sleep(0.5)
