"""A reader of a turn's events over a connection that breaks, and comes back with the id of the last whole event."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import struct
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

import h11

from .reading import Event, Reading

Way = Literal["reset", "close", "half-close", "stall"]
WAYS: tuple[Way, ...] = ("reset", "close", "half-close", "stall")
_RESET = struct.pack("ii", 1, 0)
_BROKEN = (OSError, asyncio.IncompleteReadError, h11.RemoteProtocolError)
_SILENCE = 30.0
"""Seconds without a byte that a reader bears; the gateway is silent for half of that at most."""
_READ = 512


@dataclass(frozen=True)
class Cut:
    """How a connection ends: after so many bytes of the answer's body."""

    way: Way
    after: int


class Reader:
    """Reads the events of one turn to the end.

    Args:
        url: the gateway.
        key: a key of the turn's owner.
        turn_id: the turn.
        cuts: how the first connections end; the ones after them are left alone.
        dice: decides how long to stay away, and when to begin from the start.
    """

    def __init__(self, url: str, key: str, turn_id: str, cuts: list[Cut], dice: random.Random) -> None:
        self._host, self._port = urlsplit(url).hostname, urlsplit(url).port
        self._path = f"/api/v1/turns/{turn_id}/events"
        self._key = key
        self._cuts = list(cuts)
        self._dice = dice
        self.found = Reading()

    async def read(self) -> Reading:
        """Connect, again and again, until the end has come."""
        while self.found.done is None:
            anew = not self.found.last_id or self._dice.random() < 0.1
            self.found.begin(anew=anew)
            left = len(self._cuts)
            try:
                await self._connection(self._cuts[0] if self._cuts else None, 0 if anew else self.found.last_id)
            except _BROKEN:
                pass  # also by a gateway that leaves whoever has half-closed
            self.found.lost += len(self._cuts) == left and self.found.done is None
            await asyncio.sleep(self._dice.uniform(0, 0.2))
        return self.found

    async def _connection(self, cut: Cut | None, last_id: int) -> None:
        """Read until the cut, which is then made, or until the other side ends."""
        source, sink = await asyncio.open_connection(self._host, self._port, limit=_READ)
        try:
            http = h11.Connection(h11.CLIENT)
            headers = [("Host", f"{self._host}:{self._port}"), ("Authorization", f"Bearer {self._key}")]
            headers += [("Last-Event-ID", str(last_id))] if last_id else []
            sink.write(http.send(h11.Request(method="GET", target=self._path, headers=headers)) or b"")
            sink.write(http.send(h11.EndOfMessage()) or b"")
            body = _Body(cut.after if cut else None)
            while True:
                if cut and body.full:
                    self._count(cut, body)
                    if not await self._goes_on(cut, body, sink):
                        return
                async with asyncio.timeout(_SILENCE):
                    data = await source.read(self._dice.randint(1, _READ))
                http.receive_data(data)
                if not self._taken(http, body) or not data:
                    return
        finally:
            sink.close()

    def _taken(self, http: h11.Connection, body: _Body) -> bool:
        """Take what has come; whether more may come."""
        while (event := http.next_event()) is not h11.NEED_DATA:
            match event:
                case h11.Response(status_code=status):
                    if status != 200:
                        raise ConnectionError(f"answered {status}")
                case h11.Data(data=data):
                    for one in body.feed(bytes(data)):
                        self.found.take(one)
                        if self.found.done is not None:
                            return False
                case _:
                    return False
        return True

    def _count(self, cut: Cut, body: _Body) -> None:
        self._cuts.remove(cut)
        self.found.cuts.append(cut.way)
        self.found.inside += bool(body.part)

    async def _goes_on(self, cut: Cut, body: _Body, sink: asyncio.StreamWriter) -> bool:
        """Make the cut; whether there is still something to read."""
        match cut.way:
            case "reset":
                sink.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                sink.transport.abort()
            case "stall":  # nothing is read for a while, and then given up: what is under way is lost
                await asyncio.sleep(self._dice.uniform(0.2, 1.0))
                sink.transport.abort()
            case "half-close":  # nothing more will be said, and what the other side still says counts
                sink.write_eof()
                for event in body.rest():
                    self.found.take(event)
                return self.found.done is None
            case "close":
                pass
        return False


class _Body:
    """The body of one answer, cut into events.

    Args:
        most: bytes that count; what comes after them is never seen.
    """

    def __init__(self, most: int | None) -> None:
        self._left = most
        self._rest = b""
        self.part = b""
        """The beginning of an event whose end has not come."""

    @property
    def full(self) -> bool:
        """Whether all that counts has come."""
        return self._left == 0

    def rest(self) -> list[Event]:
        """The events in what came behind; from now on all that comes counts."""
        self._left = None
        return self.feed(self._rest)

    def feed(self, data: bytes) -> list[Event]:
        """The events that the bytes complete."""
        if self._left is not None:
            data, behind = data[: self._left], data[self._left :]
            self._left -= len(data)
            self._rest += behind
        *blocks, self.part = (self.part + data).split(b"\n\n")
        return [event for block in blocks if (event := _event(block)) is not None]


def _event(block: bytes) -> Event | None:
    """The event of a block of lines; `None` for a comment or a pause to keep."""
    fields = dict(line.split(": ", 1) for line in block.decode().split("\n") if not line.startswith(":"))
    return Event(int(fields.get("id", 0)), fields["event"], json.loads(fields["data"])) if "data" in fields else None
