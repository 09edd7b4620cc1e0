"""What one hostile file is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

TEXT = "text"
DAMAGED = "unsupported_media"
LARGE = "too_large"
LATE = "timed_out"


@dataclass(frozen=True)
class Lure:
    """What a hostile file tries to reach."""

    url: str
    """Where a canary listens; ends with a slash."""
    secret: Path
    """A file of this machine, whose words may stand in no answer."""


@dataclass(frozen=True)
class HostileFile:
    """One file, and how an attempt to read it ends."""

    id: str
    name: str
    """The file name that it comes with."""
    make: Callable[[Lure], bytes]
    ends: tuple[str, ...]
    """Codes of the errors that it may end with; `text` where it is read."""
    words: str = ""
    """What a text has to hold."""
    family: str = ""


def fixed(data: Callable[[], bytes]) -> Callable[[Lure], bytes]:
    """A file that reaches for nothing."""
    return lambda lure: data()


def ready(data: bytes) -> Callable[[Lure], bytes]:
    """A small file that is made already, and reaches for nothing."""
    return lambda lure: data
