"""The provisional text of a reply as its reader sees it: what to pass on, and whether the committed reply goes on from it."""

from __future__ import annotations

from collections.abc import Iterator

from phronesis_contracts.orchestrator import TurnProgress

KINDS = frozenset({"live", "restart"})


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
