"""What a person sees while an operation runs: a line on stderr for each thing that is done."""

from __future__ import annotations

import time
from collections.abc import Callable

import typer


class Progress:
    """Lines with what is being done and how far it is.

    Args:
        show: prints a line; on stderr by default.
    """

    def __init__(self, show: Callable[[str], None] = lambda line: typer.echo(line, err=True)) -> None:
        self._show = show
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the operation began."""
        return time.monotonic() - self._began

    def say(self, text: str) -> None:
        """Print a line."""
        self._show(text)

    def done(self, what: str, count: int) -> None:
        """Print that something is done."""
        self._show(f"  {self.seconds:7.1f} s  {count:>10,}  {what}")
