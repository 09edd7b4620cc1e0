"""Records inside a member: a header in JSON and a body of bytes, each with its length before it."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .errors import Damaged

LARGEST_PART = 96 * 1024 * 1024
"""Bytes of one part, and so of one record: an object of the Object Store, or the text of one, is far below."""
LARGEST_HEADER = 1024 * 1024
_LENGTHS = struct.Struct(">II")


@dataclass(frozen=True)
class Frame:
    """One record."""

    header: dict[str, Any]
    body: bytes

    @property
    def count(self) -> int:
        """How many rows it stands for."""
        return int(self.header.get("rows", 1))


def packed(header: dict[str, Any], body: bytes = b"") -> bytes:
    """The bytes of a record.

    Raises:
        ValueError: it is larger than a part may be.
    """
    head = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    if len(head) > LARGEST_HEADER or _LENGTHS.size + len(head) + len(body) > LARGEST_PART:
        raise ValueError("a record is larger than an archive takes")
    return _LENGTHS.pack(len(head), len(body)) + head + body


def unpacked(part: bytes) -> Iterator[Frame]:
    """The records of a part.

    Raises:
        Damaged: these are no records.
    """
    place = 0
    while place < len(part):
        if len(part) - place < _LENGTHS.size:
            raise Damaged("a record is cut off")
        head, body = _LENGTHS.unpack_from(part, place)
        place += _LENGTHS.size
        if head > LARGEST_HEADER or head + body > len(part) - place:
            raise Damaged("a record is cut off")
        yield Frame(_header(part[place : place + head]), part[place + head : place + head + body])
        place += head + body


def _header(data: bytes) -> dict[str, Any]:
    try:
        header = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Damaged("a record has no header") from error
    if not isinstance(header, dict):
        raise Damaged("a record has no header")
    rows = header.get("rows", 1)
    if type(rows) is not int or not 0 <= rows <= LARGEST_PART:
        raise Damaged("a record has no header")
    return header
