"""One cell of the table: break one thing, send one message, mend it, and see how long a whole reply takes to come back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx

from tests.support.groq_server import GroqServer
from tests.support.people import Person, Town

QUESTION = "What is the Kvitfjell observatory?"
TITLE = "Kvitfjell observatory"
FACT = "The Kvitfjell observatory watches meteors above the Dovre plateau."
PATIENCE = 60.0
"""Seconds after which what has not come back is given up."""
BEFORE = "supportive_companion"
"""The directive of a new conversation (D-119); a whole turn changes it."""


@dataclass(frozen=True)
class Row:
    """What the table says of one cell."""

    fault: str
    where: str
    status: int
    said: str
    degraded: tuple[str, ...]
    directive: str
    """`new`, `kept`, or nothing where there is no reply."""
    calls: int
    seconds: float
    back: float | None
    """Seconds from the mending until a reply is whole again; `None` where that never came."""
    wanted: str = ""
    """What the lists want, where the cell is otherwise."""

    @property
    def bad(self) -> bool:
        """Whether a promise is broken: no reply and no typed refusal, a directive changed for nothing, or no return."""
        return bool(self.wanted) or self.back is None


@dataclass(frozen=True)
class Answer:
    """What the client saw."""

    status: int
    body: dict[str, Any]
    seconds: float
    retry_after: str | None

    @property
    def whole(self) -> bool:
        """Whether it is a reply in which nothing lacks."""
        return self.status == 200 and not self.body["degraded"]


async def someone_who_knows(people: Town) -> Person:
    """A user whose memory holds the fact."""
    person = await people.someone()
    await person.remember(TITLE, FACT)
    return person


async def ask(person: Person, mark: str = "", media: tuple[str, ...] = ()) -> Answer:
    """Ask the question in a conversation of its own."""
    began = time.monotonic()
    try:
        response = await person.say(f"{QUESTION} {mark}".strip(), media=media)
    except httpx.HTTPError as error:
        return Answer(0, {"code": type(error).__name__}, time.monotonic() - began, None)
    body = response.json() if "json" in response.headers.get("content-type", "") else {"code": "no_json"}
    return Answer(response.status_code, body, time.monotonic() - began, response.headers.get("retry-after"))


async def cell(
    person: Person,
    model: GroqServer,
    fault: str,
    where: str,
    broken: Callable[[str], Awaitable[None]],
    mend: Callable[[str], Awaitable[None]],
    judge: Callable[[Answer, int], str],
    media: tuple[str, ...] = (),
) -> Row:
    """Measure one cell.

    Args:
        person: who asks.
        model: the scripted model, which knows how often it was asked.
        fault: as the table names it.
        where: the call, or the connection.
        broken: breaks it for the messages with the mark that it is given.
        mend: mends it.
        judge: what is wrong with the answer and its count of model calls, if anything is.
        media: attachments of the message.
    """
    mark = f"(ref {uuid4().hex[:10]})"
    await broken(mark)
    try:
        answer = await ask(person, mark, media)
    finally:
        await mend(mark)
    calls = model.about(mark)
    return Row(
        fault,
        where,
        answer.status,
        str(answer.body.get("code", "")) if answer.status != 200 else "a reply",
        tuple(answer.body.get("degraded", ())),
        _directive(answer),
        calls,
        answer.seconds,
        await _back(person, media),
        judge(answer, calls),
    )


def _directive(answer: Answer) -> str:
    if answer.status != 200:
        return ""
    return "kept" if answer.body["next_agent_directive"] == BEFORE else "new"


async def _back(person: Person, media: tuple[str, ...]) -> float | None:
    began = time.monotonic()
    while time.monotonic() - began < PATIENCE:
        if (await ask(person, media=media)).whole:
            return time.monotonic() - began
        await asyncio.sleep(0.2)
    return None
