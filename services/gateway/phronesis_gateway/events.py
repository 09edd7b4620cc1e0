"""The events of a turn: its progress from the stream, then the reply's text and the end from its row.

The id of an event is the sequence, in the broker's stream, of the last progress message that was sent. The events made
from the row (`ended`, `text`, `executive_summary`, `analysis`, `done`) have no message of their own and carry that same id,
so that a reader that comes back with it gets all of them again: `text` events say which of how many they are (`k` of `n`).
"""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import AsyncGenerator

from phronesis_bus import Ear, Watch
from phronesis_contracts import BadRequest, NotFound, Principal, ServiceError
from phronesis_contracts.orchestrator import Turn, TurnProgress

from .submission import LOOK, Turns
from .summaries import analysed, executive_summary

log = logging.getLogger(__name__)

HEARTBEAT = 15.0
"""Seconds of silence at most."""
CHUNK = 400
"""Characters of reply text in one event."""
_HIGHEST = 2**63 - 1
_NO_LINE_ENDS = str.maketrans({c: f"\\u{ord(c):04x}" for c in "\x85\u2028\u2029"})
"""JSON escapes every other character that any reader takes for a line's end; these stand in texts only."""


def last_seen(header: str | None) -> int:
    """The sequence in a `Last-Event-ID` header; 0 without one.

    Raises:
        BadRequest: it is no sequence.
    """
    if not header:
        return 0
    if not (header.isascii() and header.isdigit() and len(header) <= 19):
        raise BadRequest("this is the id of no event", field="Last-Event-ID")
    return min(int(header), _HIGHEST)


def event(name: str, data: str, id: int) -> bytes:
    """One server-sent event. `data` is JSON on one line, so that no text in it can begin another field."""
    head = f"id: {id}\n" if id else ""
    return f"{head}event: {name}\ndata: {data.translate(_NO_LINE_ENDS)}\n\n".encode()


def retry() -> bytes:
    """When to come back, spread so that not all come back at once."""
    return f"retry: {random.randint(1_000, 4_000)}\n\n".encode()


class Events:
    """The event stream of one turn, from where its reader left off.

    Args:
        turns: reads the turn's row.
        watch: hears and reads the turn's progress.
        who: the owner of the turn.
        turn_id: the turn.
        seen: sequence of the last event that the reader has.
    """

    def __init__(self, turns: Turns, watch: Watch[TurnProgress], who: Principal, turn_id: str, seen: int) -> None:
        self._turns = turns
        self._watch = watch
        self._who = who
        self._turn_id = turn_id
        self._seen = seen
        self._begun = seen > 0
        self._hinted = False
        self._looked = time.monotonic() - LOOK

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """The events, until the turn has ended or the process stops; a line comes at least every `HEARTBEAT` seconds."""
        yield retry()
        spoke = time.monotonic()
        with self._watch.turn(self._who, self._turn_id) as ear:
            while not ear.closed:
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
                    for line in ending(turn, self._seen):
                        yield line
                    return
                if time.monotonic() - spoke >= HEARTBEAT - LOOK:
                    spoke = time.monotonic()
                    yield b": still here\n\n"
                await _something(ear)
        yield retry()

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
                    yield event(shown.message.kind, shown.message.model_dump_json(exclude_none=True), self._seen)
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


def ending(turn: Turn, id: int) -> list[bytes]:
    """The last events of a turn, made from its row: `ended`, what its reply says, and `done` with the whole turn.

    A reply's text comes in chunks, `text`. An analyst's answer is never cut into pieces (NC-022): it comes as
    `executive_summary` and then, whole, as `analysis`.
    """
    said = TurnProgress(turn_id=turn.turn_id, kind="ended", conversation_id=turn.conversation_id)
    lines = [event("ended", said.model_dump_json(exclude_none=True), id)]
    if turn.reply and (analysis := turn.reply.analysis):
        lines.append(event("executive_summary", executive_summary(analysis).model_dump_json(), id))
        lines.append(event("analysis", analysed(turn.reply, analysis).sent(), id))
    else:
        text = turn.reply.user_response if turn.reply else ""
        parts = [text[at : at + CHUNK] for at in range(0, len(text), CHUNK)]
        for k, part in enumerate(parts, 1):
            lines.append(event("text", json.dumps({"k": k, "n": len(parts), "text": part}), id))
    lines.append(event("done", turn.model_dump_json(), id))
    return lines


async def _something(ear: Ear[TurnProgress]) -> None:
    """Wait until something is said of the turn, or it is time to look."""
    await ear.next(LOOK)
    while await ear.next(0):
        pass
