"""Event streams, read by hand, so that little is added to what is measured."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.support.people import Person


@dataclass(frozen=True)
class Watched:
    """One stream."""

    began: float
    first_byte: float
    first_event: float
    ended: float
    """All four by `time.monotonic`."""
    whole: bool
    """Whether it begins with `accepted`, ends with `done`, and has the reply of a completed turn."""


async def watch(url: str, user: Person, turn: str) -> Watched:
    """Read the events of a turn to their end."""
    parts = urlsplit(url)
    began = time.monotonic()
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    head = f"GET /api/v1/turns/{turn}/events HTTP/1.1\r\nHost: {parts.hostname}\r\nAuthorization: Bearer {user.key}\r\n"
    writer.write(f"{head}Connection: close\r\n\r\n".encode())
    status = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n", 1)[0]
    assert b" 200 " in status, status
    body, first, event = b"", 0.0, 0.0
    while piece := await reader.read(65_536):
        body += piece
        first = first or time.monotonic()
        if not event and b"event: " in body:
            event = time.monotonic()
    writer.close()
    return Watched(began, first, event, time.monotonic(), whole(body))


def whole(body: bytes) -> bool:
    """Whether nothing is missing in a body as HTTP sent it, in chunks."""
    text, rest = b"", body
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        text, rest = text + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    parts = text.decode().split("\n\n")
    events = [dict(line.split(": ", 1) for line in part.split("\n") if ": " in line) for part in parts[:-1]]
    named = [(event["event"], json.loads(event["data"])) for event in events if "event" in event]
    if not named or named[0][0] != "accepted" or named[-1][0] != "done":
        return False
    said, done = "".join(data["text"] for name, data in named if name == "text"), named[-1][1]
    return bool(done["status"] == "completed" and said == done["reply"]["user_response"])


def most_open(streams: Sequence[Watched]) -> int:
    """The most streams that were open at the same time."""
    changes = sorted([(s.first_byte, 1) for s in streams] + [(s.ended, -1) for s in streams])
    open = most = 0
    for _, change in changes:
        open += change
        most = max(most, open)
    return most
