"""What the person at the terminal is told of an operation: what went wrong, and how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable

import typer


class Refused(Exception):
    """The operation was not begun, and nothing was changed; the text says why, and what to do."""


class Damaged(Refused):
    """The archive is not whole, or is none of ours."""


class Failed(Exception):
    """The operation was begun and did not come to its end; the text says what to do."""


class Progress:
    """Lines with what is being done and how far it is. `show`: prints a line; on stderr by default."""

    def __init__(self, show: Callable[[str], None] = lambda line: typer.echo(line, err=True)) -> None:
        self._show = show
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def say(self, text: str) -> None:
        self._show(text)

    def done(self, what: str, count: int) -> None:
        self._show(f"  {self.seconds:7.1f} s  {count:>10,}  {what}")
