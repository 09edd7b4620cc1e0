"""The events of a turn.

Its progress from the stream, then the reply's text and the end from its row. The id of an event is the sequence of the last
progress message that was sent, so that a reader that comes back with it gets all of the rest.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractContextManager, aclosing
from html import unescape

from pydantic import BaseModel, Field
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from phronesis_bus import Listener, Watch
from phronesis_contracts import BadRequest, NotFound, Principal, ServiceError
from phronesis_contracts.answers import GAPS_TITLE, Analysis
from phronesis_contracts.orchestrator import Reply, Turn, TurnProgress

from .submission import LOOK, TurnService

LIVE_KINDS = frozenset({"live", "restart"})
"""Kinds of progress that carry provisional text, or take it back."""
LONGEST = 400
"""Characters of the answer that a summary takes: whole sentences, as far as they fit."""
POINTS = 3
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_MARKUP = re.compile(r"<[^>]*>|[*_`#>|]+|\[([^\]]*)\]\([^)]*\)")


class LiveReader:
    """What one reader was shown of a turn's provisional text.

    Pieces of an earlier attempt, of a worker that lost its claim and goes on, are passed over; where a piece is missing,
    nothing more is passed on until the text begins anew.

    Args:
        whole: whether nothing is passed on of a text whose beginning was missed.
    """

    def __init__(self, *, whole: bool = False) -> None:
        self._whole = whole
        self._attempt = 0
        self._begin: int | None = None
        self._text = ""
        self._lost = False

    @property
    def shown(self) -> bool:
        """Whether something was passed on that stands."""
        return bool(self._text)

    def take(self, said: TurnProgress) -> Iterator[TurnProgress]:
        """What to pass on of a line of progress, a `restart` before a new attempt included."""
        attempt = said.attempt or 0
        if attempt < self._attempt:
            return
        if attempt > self._attempt or said.kind == "restart":
            if self._text:
                yield restart_line(said.turn_id, attempt)
            self._attempt, self._begin, self._text, self._lost = attempt, None, "", False
        if said.kind == "restart" or not said.text or self._lost:
            return
        offset = said.offset or 0
        if self._begin is None:
            self._begin = 0 if self._whole else offset
        if offset != self._begin + len(self._text):
            self._lost = True
            return
        self._text += said.text
        yield said

    def goes_on(self, reply: str) -> bool:
        """Whether a committed reply goes on from what was shown; also where nothing was."""
        begin = self._begin or 0
        return reply[begin : begin + len(self._text)] == self._text

    def rest(self, reply: str) -> str:
        """What a reader has not seen of a committed reply that goes on from what it saw; all of one that does not."""
        seen = len(self._text) if not self._begin and self.goes_on(reply) else 0
        return reply[seen:]


def restart_line(turn_id: str, attempt: int | None = None) -> TurnProgress:
    """The line that tells a reader to drop provisional text."""
    return TurnProgress(turn_id=turn_id, kind="restart", attempt=attempt)


class Analysed(Analysis):
    """An analyst's answer, with the turn that it belongs to."""

    conversation_id: str = Field(serialization_alias="conversationId")
    """The conversation; name it in the next message to go on with it."""
    turn_id: str = Field(serialization_alias="turnId")
    """The turn that this answer ended."""

    def sent(self) -> str:
        """The answer as it is sent: the text of a query stands there only where one was run."""
        left_out = {"cypher_executed"} if self.cypher_executed is None else None
        return self.model_dump_json(by_alias=True, exclude=left_out)


class ExecutiveSummary(BaseModel):
    """An answer in short: its first sentences, its first insights, and how sure it is."""

    summary: str
    points: tuple[str, ...]
    gaps: int
    """Rows of the table of what is missing; 0 where nothing was found missing."""
    confidence: float


def analysis_with_turn(reply: Reply, analysis: Analysis) -> Analysed:
    return Analysed(**dict(analysis), conversation_id=reply.conversation_id, turn_id=reply.turn_id)


def summarise(analysis: Analysis) -> ExecutiveSummary:
    """An answer in short, made from answer and analysis by rule."""
    words = " ".join(unescape(_MARKUP.sub(lambda match: match[1] or " ", analysis.answer)).split())
    kept = ""
    for sentence in _SENTENCE.split(words):
        if kept and len(kept) + len(sentence) >= LONGEST:
            break
        kept = f"{kept} {sentence}".strip()
    missing = (chart.data for chart in analysis.visualizations if chart.title == GAPS_TITLE)
    gaps = sum(len(rows) for rows in missing if isinstance(rows, list))
    return ExecutiveSummary(
        summary=kept[:LONGEST], points=analysis.analysis[:POINTS], gaps=gaps, confidence=analysis.confidence
    )


log = logging.getLogger(__name__)

HEARTBEAT = 15.0
"""Seconds of silence at most."""
CHUNK = 400
"""Characters of reply text in one event."""
_HIGHEST = 2**63 - 1
_NO_LINE_ENDS = str.maketrans({c: f"\\u{ord(c):04x}" for c in "\x85\u2028\u2029"})
"""JSON escapes every other character that any reader takes for a line's end; these stand in texts only."""


def parse_last_event_id(header: str | None) -> int:
    """The sequence in a `Last-Event-ID` header; 0 without one. Raises `BadRequest`: it is no sequence."""
    if not header:
        return 0
    if not (header.isascii() and header.isdigit() and len(header) <= 19):
        raise BadRequest("this is the id of no event", field="Last-Event-ID")
    return min(int(header), _HIGHEST)


def format_event(name: str, data: str, id: int) -> bytes:
    """One server-sent event. `data` is JSON on one line, so that no text in it can begin another field."""
    head = f"id: {id}\n" if id else ""
    return f"{head}event: {name}\ndata: {data.translate(_NO_LINE_ENDS)}\n\n".encode()


def format_retry() -> bytes:
    """When to come back, spread so that not all come back at once."""
    return f"retry: {random.randint(1_000, 4_000)}\n\n".encode()


class Events:
    """The event stream of one turn, from where its reader left off. `seen`: sequence of the last event that the reader has."""

    def __init__(self, turns: TurnService, watch: Watch[TurnProgress], who: Principal, turn_id: str, seen: int) -> None:
        self._turns = turns
        self._watch = watch
        self._who = who
        self._turn_id = turn_id
        self._seen = seen
        self._begun = seen > 0
        self._hinted = False
        self._looked = time.monotonic() - LOOK
        self._live = LiveReader()

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """The events, until the turn has ended or the process stops; a line comes at least every `HEARTBEAT` seconds."""
        yield format_retry()
        spoke = time.monotonic()
        with self._watch.turn(self._who, self._turn_id) as listener:
            while not listener.closed:
                async for line in self._progress():
                    spoke = time.monotonic()
                    yield line
                try:
                    turn = await self._row()
                except NotFound:
                    return  # its conversation was deleted; whoever comes back is told so
                if turn is not None and turn.status.ended:
                    async for line in self._progress():  # what was shown between the last look and the end
                        yield line
                    for line in ending_events(turn, self._seen, self._live):
                        yield line
                    return
                if time.monotonic() - spoke >= HEARTBEAT - LOOK:
                    spoke = time.monotonic()
                    yield b": still here\n\n"
                await _wait_for_progress(listener)
        yield format_retry()

    async def _progress(self) -> AsyncGenerator[bytes, None]:
        while not self._hinted:
            try:
                shown = await self._watch.after(self._who, self._turn_id, self._seen)
            except ServiceError as error:
                log.warning("the progress of a turn could not be read: %s", error.code)
                return
            if shown is None:
                return
            self._seen = shown.sequence
            match shown.message.kind:
                case "ended":
                    self._hinted = True
                case "accepted" if self._begun:
                    continue  # a turn's first event; a repeated submission is told it again, even behind the end
                case "accepted" | "phase" | "waiting":
                    self._begun = True
                    yield format_event(shown.message.kind, shown.message.model_dump_json(exclude_none=True), self._seen)
                case "live" | "restart":
                    self._begun = True
                    for line in self._live.take(shown.message):
                        yield format_event(line.kind, line.model_dump_json(exclude_none=True), self._seen)
                case _:
                    # `refused` is said to another submission with this turn's key, never of a turn that has a row.
                    continue

    async def _row(self) -> Turn | None:
        """The turn's row, where its end was hinted at, or nobody has looked for a while."""
        now = time.monotonic()
        if not self._hinted and now - self._looked < LOOK:
            return None
        self._looked = now
        try:
            return await self._turns.state(self._who, self._turn_id)
        except NotFound:
            raise
        except ServiceError as error:
            log.warning("a turn that is watched could not be read: %s", error.code)
            return None


def ending_events(turn: Turn, id: int, live: LiveReader | None = None) -> list[bytes]:
    """The last events of a turn, made from its row: `ended`, what its reply says, and `done` with the whole turn.

    A reply's text comes in chunks, `text`, and stands in the place of what came by `live`: where that was another text, or
    there is no reply, `restart` says so before. An analyst's answer is never cut into pieces: it comes as
    `executive_summary` and then, whole, as `analysis`.
    """
    said = TurnProgress(turn_id=turn.turn_id, kind="ended", conversation_id=turn.conversation_id)
    lines = [format_event("ended", said.model_dump_json(exclude_none=True), id)]
    if live is not None and live.shown and not (turn.reply and live.goes_on(turn.reply.user_response)):
        lines.append(format_event("restart", restart_line(turn.turn_id).model_dump_json(exclude_none=True), id))
    if turn.reply and (analysis := turn.reply.analysis):
        lines.append(format_event("executive_summary", summarise(analysis).model_dump_json(), id))
        lines.append(format_event("analysis", analysis_with_turn(turn.reply, analysis).sent(), id))
    else:
        text = turn.reply.user_response if turn.reply else ""
        parts = [text[at : at + CHUNK] for at in range(0, len(text), CHUNK)]
        for k, part in enumerate(parts, 1):
            lines.append(format_event("text", json.dumps({"k": k, "n": len(parts), "text": part}), id))
    lines.append(format_event("done", turn.model_dump_json(), id))
    return lines


async def _wait_for_progress(listener: Listener[TurnProgress]) -> None:
    await listener.next(LOOK)
    while await listener.next(0):
        pass


SLOWEST = 20.0
"""Seconds that a client may take to read what was sent before it is left."""


class EventStream(Response):
    """Sends lines as they come. It ends when the lines do, the client leaves or reads too slowly, or the time is over.

    Args:
        lines: what to send; closed in every case.
        seconds: how long the stream may be open.
        opened: entered for as long as it is.
    """

    media_type = "text/event-stream"

    def __init__(
        self, lines: AsyncGenerator[bytes, None], seconds: float, opened: Callable[[], AbstractContextManager[None]]
    ) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._lines = lines
        self._seconds = seconds
        self._opened = opened

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._opened():
            sending = asyncio.create_task(self._send(send))
            leaving = asyncio.create_task(_wait_for_disconnect(receive))
            try:
                await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (sending, leaving):
                    task.cancel()
                results = await asyncio.gather(sending, leaving, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _send(self, send: Send) -> None:
        try:
            await _send_in_time(send, {"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            try:
                async with asyncio.timeout(self._seconds), aclosing(self._lines) as lines:
                    async for line in lines:
                        await _send_in_time(send, _body_message(line))
            except TimeoutError:
                await _send_in_time(send, _body_message(format_retry()))
            await _send_in_time(send, _body_message(b"", more=False))
        except _TooSlow:
            log.info("left a reader of events that was too slow")


class _TooSlow(Exception):
    """The client does not read."""


def _body_message(body: bytes, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": more}


async def _send_in_time(send: Send, message: Message) -> None:
    try:
        async with asyncio.timeout(SLOWEST):
            await send(message)
    except TimeoutError as error:
        raise _TooSlow from error


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
