"""What the folders share.

Media and their texts as they are kept, what addresses give, the rules for names and texts, and what handlers need from
outside.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from phronesis_contracts import Message, Principal
from phronesis_contracts.media import MAX_UPLOAD, FilePurpose, Media, MediaKind, TextPart

tenant: ContextVar[str] = ContextVar("tenant", default="")
"""Whose medium is read."""
LONGEST_REPLY = 400_000
"""Characters of a text that one reply carries."""
LARGEST_REPLY = 900_000
"""Bytes of that text as JSON, so that the reply stays below its contract's greatest size."""
_LONGEST_NAME = 255
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")
_BLANKS = re.compile(r"\n{4,}")


class Stored(Message):
    """The record of an accepted medium."""

    id: str
    tenant: str
    user: str
    name: str
    type: str
    kind: MediaKind
    size: int
    sha256: str
    created: datetime
    purpose: FilePurpose | None = None
    """What it is for, where it is listed as a file."""

    def media(self) -> Media:
        return Media(
            id=self.id,
            name=self.name,
            type=self.type,
            kind=self.kind,
            size=self.size,
            sha256=self.sha256,
            created_at=self.created,
            purpose=self.purpose,
        )


class Reading(Message):
    """The text of a medium, as it is kept; or why it has none."""

    text: str = ""
    engine: str = ""
    """Name and version of what read it."""
    pages: int | None = None
    seconds: float | None = None
    """Length of a recording."""
    refusal: dict[str, Any] | None = None
    """The error that is the content's fault, so that it comes again and the content is not read again."""
    parts: tuple[TextPart, ...] = ()
    """Pages, sheets or sections, by their places in the text."""
    limits: tuple[str, ...] = ()
    """Limits that were reached, so that the text is not all there is."""
    makeshift: bool = False
    """Whether a better engine could not be asked at the time; such a reading is not kept."""


@dataclass(frozen=True)
class Fetched:
    """What an address gave."""

    data: bytes
    name: str
    claimed_type: str | None


@dataclass(frozen=True)
class WebRequest:
    """What to ask an address for."""

    url: str
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    login: str | None = field(default=None, repr=False)
    """The header `Authorization`, for the host that the address names."""
    body: bytes = b""
    most: int = MAX_UPLOAD
    """Bytes that the content may have."""
    seconds: float | None = None
    """How long it may take, where that is less than the usual time."""

    def elsewhere(self) -> WebRequest:
        """The same for another host."""
        return replace(self, login=None)


@dataclass(frozen=True)
class WebPage:
    """What an address answered; it has content with the statuses 200 and 207 alone."""

    status: int
    data: bytes
    url: str
    claimed_type: str | None


@dataclass(frozen=True)
class Destination:
    """Where an address leads."""

    url: str
    """As it was parsed."""
    addresses: tuple[str, ...]
    """IP addresses that may be connected to."""
    trusted: bool = False
    """Whether an operator named this very host and port."""


def clean_name(name: str, instead: str) -> str:
    """A file name without folders, control characters and marks that change the direction of writing.

    Args:
        instead: what to call a file whose name has nothing left.
    """
    last = name.replace("\\", "/").rpartition("/")[2]
    kept = "".join(c for c in unicodedata.normalize("NFC", last) if unicodedata.category(c)[0] != "C")
    stem, dot, extension = " ".join(kept.split()).rpartition(".")
    if dot and len(extension) < _LONGEST_NAME // 2:
        return (stem[: _LONGEST_NAME - len(extension) - 1] + dot + extension).lstrip(".") or instead
    return extension[:_LONGEST_NAME] or instead


def clean_text(text: str) -> str:
    """The text without control characters and lone surrogates, with plain line ends and no long runs of blank lines."""
    text = text.encode("utf-8", "replace").decode().replace("\r\n", "\n").replace("\r", "\n")
    return _BLANKS.sub("\n\n\n", _CONTROL.sub("", text).replace("\f", "\n\n")).strip()


MAX_PARTS = 1_000
"""Pages, sheets or sections that one reply tells of."""
_PART_BYTES = 120
"""Bytes of one of them beside the letters of its name."""


def cut_to_reply(text: str, offset: int = 0, room: int = LARGEST_REPLY) -> tuple[str, bool]:
    """As much of the text from `offset` on as one reply carries, and whether something is left behind it.

    It ends at the end of a line, or of a word, where one is near. `room`: bytes that the text may take as JSON.
    """
    short = text[offset : offset + LONGEST_REPLY]
    size = len(json.dumps(short, ensure_ascii=False).encode())
    while size > room:
        short = short[: int(len(short) * room / size) - 1]
        size = len(json.dumps(short, ensure_ascii=False).encode())
    if offset + len(short) >= len(text):
        return short, False
    near = max(0, len(short) - 2_000)
    at = max(short.rfind("\n", near), -1)
    at = at if at >= 0 else short.rfind(" ", near)
    return (short[: at + 1] if at > 0 else short), True


def parts_between(parts: Sequence[TextPart], start: int, end: int) -> tuple[TextPart, ...]:
    """The parts that stand between two places of a text, of which one reply tells."""
    return tuple(part for part in parts if part.start < end and part.end > start)[:MAX_PARTS]


def size_of_parts(parts: Sequence[TextPart]) -> int:
    """Bytes that these may take in a reply."""
    return sum(_PART_BYTES + len((part.sheet or "").encode()) + len((part.heading or "").encode()) for part in parts)


Audit = Callable[[Principal, str, dict[str, Any]], Awaitable[None]]
"""Announce that the principal did a thing with these arguments."""


class Bucket(Protocol):
    """Objects by name."""

    async def put(self, name: str, data: bytes) -> None:
        """Store `data` under `name`, in place of what was there."""

    async def get(self, name: str) -> bytes:
        """The bytes under `name`; `NotFound` where there are none."""

    async def delete(self, name: str) -> None:
        """Remove `name`; it is no error when it is not there."""

    async def names(self) -> list[str]:
        """The names of all objects."""


class Reader(Protocol):
    """Reads media."""

    async def read(self, data: bytes, type: str) -> Reading:
        """The text of the medium in `data`.

        Raises:
            TooLarge: over a limit of pages, pixels, length, memory or processor time.
            UnsupportedMedia: damaged, protected, or without text.
            Unavailable: no process or no engine to read it; not the content's fault, as is
            TimedOut: not read in time.
        """


class Web(Protocol):
    """Fetches public addresses."""

    async def fetch(self, url: str) -> Fetched:
        """What `url` gives.

        Raises:
            BadRequest: the address is refused; `field` is `url`.
            TooLarge: more than an upload may have.
            Unavailable: it could not be fetched.
            TimedOut: it took too long.
        """

    async def read(self, order: WebRequest) -> WebPage:
        """What an address answers to `order`, whatever its status; raises what `fetch` does but for a status."""


class HostResolver(Protocol):
    """Looks names of hosts up."""

    async def addresses(self, host: str) -> tuple[str, ...]:
        """Every address of `host`; none for a name that does not exist. Raises `Unavailable`: no answer at this time."""
