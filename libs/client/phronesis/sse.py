"""Server-sent events: the parser, and following a stream over broken connections."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import httpx

from phronesis_contracts import Internal, ServiceError, TooManyRequests, Unavailable

from .models import TurnEvent
from .request import parse_problem, pause_before, translate_error

MAX_EVENT = 4 * 1024 * 1024
"""Bytes of one event; a longer one is no stream of ours."""
FRUITLESS = 16
"""Connections in a row that bring nothing new before `events()` gives up: well over half a minute, in which a gateway that was
killed is back."""
SILENCE = 60.0
"""Seconds without a byte after which a connection counts as broken; the gateway sends a sign of life more often."""
_END = frozenset({"ended", "text", "executive_summary", "analysis", "done"})
"""Kinds of the events that are made from a turn's row, when it has ended."""
_LINE_END = re.compile(rb"\r\n|\n|\r(?!\Z)")


class Parser:
    """Turns bytes into events. Lines end as the standard says, not as `str.splitlines` does: texts hold U+2028."""

    def __init__(self) -> None:
        self._buffer = b""
        self._kind = ""
        self._data: list[str] = []
        self._id: str | None = None
        self.last_id = ""
        """Id of the last whole event: one whose end did not come was not seen."""
        self.retry: float | None = None
        """Seconds that the server asks for before a reconnection."""

    def feed(self, chunk: bytes) -> Iterator[TurnEvent]:
        """The events that `chunk` completes."""
        *lines, self._buffer = _LINE_END.split(self._buffer + chunk)
        if len(self._buffer) + sum(map(len, self._data)) > MAX_EVENT:
            raise Internal("an event of the stream is too long")
        for line in lines:
            event = self._line(line.decode("utf-8", "replace"))
            if event is not None:
                yield event

    def forget_partial(self) -> None:
        """Drop what a broken connection left unfinished."""
        self._buffer, self._kind, self._data, self._id = b"", "", [], None

    def _line(self, line: str) -> TurnEvent | None:
        if not line:
            return self._complete()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._kind = value
        elif name == "data":
            self._data.append(value)
        elif name == "id" and value.isascii() and value.isprintable():
            self._id = value
        elif name == "retry" and value.isdecimal():
            self.retry = min(int(value[:9]) / 1000, SILENCE)
        return None

    def _complete(self) -> TurnEvent | None:
        kind, text = self._kind or "message", "\n".join(self._data)
        had_data = bool(self._data)
        self._kind, self._data = "", []
        self.last_id, self._id = self._id if self._id is not None else self.last_id, None
        if not had_data:
            return None
        try:
            data = json.loads(text)
        except ValueError as exc:
            raise Internal("an event of the stream does not parse") from exc
        return TurnEvent(id=self.last_id, kind=kind, data=data if isinstance(data, dict) else {"value": data})


class Following:
    """Where a reader of a turn's events stands: what it has seen, and whether and when to connect again."""

    def __init__(self, turn_id: str, after: str | None, url: str) -> None:
        self.path = f"/api/v1/turns/{turn_id}/events"
        self.timeout = httpx.Timeout(SILENCE, connect=5.0, pool=5.0)
        self.done = False
        self._url = url
        self._parser = Parser()
        self._parser.last_id = after or ""
        self._fruitless = 0
        self._at = ""
        self._told: set[tuple[str, str]] = set()

    def headers(self) -> dict[str, str]:
        """Headers of the next connection."""
        last = {"Last-Event-ID": self._parser.last_id} if self._parser.last_id else {}
        return {"Accept": "text/event-stream", **last}

    def opened(self, response: httpx.Response) -> bool:
        """Whether the response carries events; a body that states a problem must have been read."""
        if response.status_code == httpx.codes.NO_CONTENT:
            self.done = True
        elif not response.is_success:
            raise parse_problem(response)
        return not self.done

    def feed(self, chunk: bytes) -> Iterator[TurnEvent]:
        """The events that `chunk` completes, up to the turn's last."""
        for event in self._parser.feed(chunk):
            if self._is_new(event):
                self._fruitless = 0
                self.done = event.last
                yield event
            if self.done:
                return

    def _is_new(self, event: TurnEvent) -> bool:
        """Whether it was not told before: the events of a turn's end share one id, and come again all together.

        They may come again with a later id, where they were sent before the hint of the end had reached the broker.
        """
        if event.id != self._at and event.kind not in _END:
            self._at, self._told = event.id, set()
        this = (event.kind, str(event.data.get("k", "")))
        if event.id and this in self._told:
            return False
        self._told.add(this)
        return True

    def broken(self, exc: ServiceError | httpx.TransportError | None) -> float:
        """Seconds to wait before connecting again after `exc`, or after an end without the last event (`None`).

        Raises:
            ServiceError: it is no passing failure, or has gone on for `FRUITLESS` connections.
        """
        self._parser.forget_partial()
        self._fruitless += 1
        closed = Unavailable("the stream of events was closed before the turn's end")
        error = translate_error(exc, self._url) if isinstance(exc, httpx.TransportError) else exc or closed
        passing = isinstance(error, Unavailable | TooManyRequests) or isinstance(exc, httpx.TransportError)
        if not passing or self._fruitless >= FRUITLESS:
            raise error from (None if error is exc else exc)
        return max(pause_before(self._fruitless), self._parser.retry or 0.0, min(error.retry_after or 0.0, SILENCE))
