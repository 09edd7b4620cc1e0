"""What a person sees while the stack starts and stops: a line for each part, and what is still awaited."""

from __future__ import annotations

import time

from rich.console import Console
from rich.status import Status

from .record import StackRecord, State

_WORDS: dict[State, str] = {"up": "up", "down": "DOWN", "stopped": "stopped", "outside": "another's, not started here"}


class _Console(Console):
    """One whose reader may go away: then nothing is printed any more, and the stack runs on."""

    def on_broken_pipe(self) -> None:
        """Print nothing from now on."""
        self.quiet = True


class Progress:
    """Prints what changed from one record to the next."""

    def __init__(self) -> None:
        console = self._console = _Console()
        self._seen: dict[str, tuple[State, int]] = {}
        self._began = time.monotonic()
        self._spinner: Status | None = console.status("starting") if console.is_terminal else None
        if self._spinner is not None:
            self._spinner.start()

    def show(self, record: StackRecord) -> None:
        """Print a line for each part whose state is another than before."""
        for name, part in record.parts.items():
            now = (part.state, part.restarts)
            if self._seen.get(name) == now or part.state not in _WORDS:
                continue
            self._seen[name] = now
            took = f"  {part.seconds:5.1f} s" if part.state == "up" and part.seconds is not None else ""
            why = f": {part.reason.splitlines()[0]}" if part.state == "down" and part.reason else ""
            again = f" (start {part.restarts + 1})" if part.restarts else ""
            self.line(f"  {name:<15}{_WORDS[part.state]}{again}{took}{why}")
        waiting = [name for name, part in record.parts.items() if part.state in ("waiting", "starting")]
        if self._spinner is not None:
            self._spinner.update(f"{record.state}: {', '.join(waiting) or 'the last checks'}")

    def line(self, text: str) -> None:
        """Print a line as it is."""
        try:
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)
        except OSError:  # the terminal is gone
            self._console.quiet = True

    def done(self) -> None:
        """Nothing is awaited any more."""
        if self._spinner is not None:
            self._spinner.stop()

    @property
    def seconds(self) -> float:
        """Seconds since this began."""
        return time.monotonic() - self._began
