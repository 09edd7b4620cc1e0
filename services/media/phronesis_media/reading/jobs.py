"""What a reading process is asked, what it answers, and the one way to say no."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

READY = b"ready\n"
"""What a process says once it has loaded what it needs."""


@dataclass(frozen=True)
class Job:
    """One medium to read, and its limits."""

    name: str
    """Which module of this package does it."""
    type: str
    """Media type found in the content."""
    seconds: float
    """Seconds of wall time."""
    cpu: float
    """Seconds of processor time."""
    characters: int
    """Characters of text that are wanted."""
    pages: int
    """Pages that a document may have; or pages and frames that OCR looks at."""
    pixels: int
    """Pixels of one picture."""
    length: float
    """Seconds of sound."""
    only: tuple[int, ...] = ()
    """Numbers of the pages to look at, from 1; all of them where there are none."""


@dataclass(frozen=True)
class Answer:
    """What was read."""

    body: bytes
    """The text in UTF-8, or a file made of the medium."""
    engine: str
    """Name and version of what read it."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Numbers beside it: `pages`, `seconds`, `bare` (numbers of pages without text)."""


class Refused(Exception):
    """A medium that is not read. Its one argument says why: `encrypted`, `unreadable`, `pages`, `pixels`, `length`,
    `memory` or `video`."""


def encode_text(words: str, job: Job) -> bytes:
    """The words as the body of an answer, one character more than is wanted at most."""
    return words[: job.characters + 1].encode("utf-8", "replace")
