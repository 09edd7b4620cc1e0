"""What a reader of a turn's events has put together over all its connections, and what was sent against the rule.

The rule: an event's id is the place of the last message that was read for it from the broker's stream. A reader that comes
back with it gets what follows, and never the same progress twice. `ended`, `text` and `done` share one id: who comes back
before `done` gets them all again. `live` text is provisional: what it said, `text` says again. A `restart` before it shares its
id.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_PROGRESS = ("accepted", "phase")
LIVE = ("live", "restart")


@dataclass(frozen=True)
class Event:
    """One whole event."""

    id: int
    kind: str
    data: dict[str, Any]


@dataclass
class Reading:
    """What one reader has put together, over all its connections."""

    progress: list[Event] = field(default_factory=list)
    text: list[Event] = field(default_factory=list)
    done: Event | None = None
    wrong: list[str] = field(default_factory=list)
    """What was sent against the rule."""
    cuts: list[str] = field(default_factory=list)
    inside: int = 0
    """Cuts in the middle of an event."""
    lost: int = 0
    """Connections that the other side ended."""
    last_id: int = 0
    """Id of the last whole event."""
    _ended: bool = False
    _restarted: bool = False

    def begin(self, *, anew: bool) -> None:
        """A new connection: with the last id, or from the start."""
        self.text, self._ended, self._restarted = [], False, False
        if anew:
            self.progress, self.last_id = [], 0

    def take(self, event: Event) -> None:
        """Add an event."""
        if event.kind in _PROGRESS:
            if event.id <= self.last_id:
                self.wrong.append(f"progress {event.id} came after {self.last_id}")
            if self._ended:
                self.wrong.append("progress came after the end")
            self.progress.append(event)
        elif event.kind in LIVE:
            self._take_live(event)
        else:
            self._take_end(event)
        self._restarted, self.last_id = event.kind == "restart", event.id

    def _take_live(self, event: Event) -> None:
        if self._ended and (event.kind == "live" or self.text):
            self.wrong.append(f"{event.kind} came after the end")
        if event.id <= self.last_id and not ((self._restarted or self._ended) and event.id == self.last_id):
            self.wrong.append(f"{event.kind} {event.id} came after {self.last_id}")

    def _take_end(self, event: Event) -> None:
        # The end's first event may be a step ahead of the progress: the hint of the end is a message too.
        if event.id < self.last_id or (self._ended and event.id != self.last_id):
            self.wrong.append(f"{event.kind} has the id {event.id} after {self.last_id}")
        match event.kind:
            case "ended":
                if self._ended:
                    self.wrong.append("the end came twice in one connection")
                self._ended = True
            case "text":
                if not self._ended or event.data["k"] != len(self.text) + 1:
                    self.wrong.append(f"text {event.data['k']} came after {len(self.text)} others")
                self.text.append(event)
            case "done":
                if not self._ended or (self.text and len(self.text) != self.text[-1].data["n"]):
                    self.wrong.append("done came before the whole end")
                self.done = event
            case other:
                self.wrong.append(f"there is no event {other}")
