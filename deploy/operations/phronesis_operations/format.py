"""The format of an archive: records with their lengths, entries of a tar file, and what an archive says of itself."""

from __future__ import annotations

import json
import re
import struct
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from typing import Any, BinaryIO, Literal

from pydantic import BaseModel, ConfigDict, Field

from .reporting import Damaged

LARGEST_PART = 96 * 1024 * 1024
"""Bytes of one part, and so of one record: an object of the Object Store, or the text of one, is far below."""
LARGEST_HEADER = 1024 * 1024
_LENGTHS = struct.Struct(">II")


@dataclass(frozen=True)
class Frame:
    header: dict[str, Any]
    body: bytes

    @property
    def count(self) -> int:
        return int(self.header.get("rows", 1))


def pack(header: dict[str, Any], body: bytes = b"") -> bytes:
    """The bytes of a record. Raises `ValueError`: it is larger than a part may be."""
    head = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    if len(head) > LARGEST_HEADER or _LENGTHS.size + len(head) + len(body) > LARGEST_PART:
        raise ValueError("a record is larger than an archive takes")
    return _LENGTHS.pack(len(head), len(body)) + head + body


def unpack(part: bytes) -> Iterator[Frame]:
    """The records of a part. Raises `Damaged`: these are no records."""
    place = 0
    while place < len(part):
        if len(part) - place < _LENGTHS.size:
            raise Damaged("a record is cut off")
        head, body = _LENGTHS.unpack_from(part, place)
        place += _LENGTHS.size
        if head > LARGEST_HEADER or head + body > len(part) - place:
            raise Damaged("a record is cut off")
        yield Frame(_parse_header(part[place : place + head]), part[place + head : place + head + body])
        place += head + body


def _parse_header(data: bytes) -> dict[str, Any]:
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


_BLOCK = 512
_ENTRY_NAME = re.compile(rb"[a-z][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*){0,4}")
_REGULAR = b"0"


def write_entry(file: BinaryIO, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), 0o600
    file.write(entry.tobuf(tarfile.USTAR_FORMAT))
    file.write(data)
    file.write(bytes(-len(data) % _BLOCK))


def write_end(file: BinaryIO) -> None:
    file.write(bytes(2 * _BLOCK))


def read_entries(file: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file, in order.

    Raises:
        Damaged: it is none of ours, cut off, or has something behind its end.
    """
    while (block := _read_exactly(file, _BLOCK)) != bytes(_BLOCK):
        name, size = _parse_tar_header(block)
        data = _read_exactly(file, size)
        if any(_read_exactly(file, -size % _BLOCK)):
            raise Damaged("there is something between two files of the archive")
        yield name, data
    if any(_read_exactly(file, _BLOCK)) or file.read(1):
        raise Damaged("there is something behind the end of the archive")


def _parse_tar_header(block: bytes) -> tuple[str, int]:
    name = block[:100].rstrip(b"\0")
    spaced = block[:148] + b" " * 8 + block[156:]
    plain = block[257:263] == b"ustar\0" and block[156:157] == _REGULAR and not any(block[157:257]) and not any(block[345:])
    if not plain or not _ENTRY_NAME.fullmatch(name) or _parse_octal(block[148:156]) != sum(spaced):
        raise Damaged("this is no archive of Phronesis")
    size = _parse_octal(block[124:136])
    if size > LARGEST_PART:
        raise Damaged("a file of the archive is larger than any that was written")
    return name.decode(), size


def _parse_octal(field: bytes) -> int:
    digits = field.rstrip(b" \0")
    if not digits or not all(48 <= digit <= 55 for digit in digits):
        raise Damaged("this is no archive of Phronesis")
    return int(digits, 8)


def _read_exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise Damaged("the archive is cut off")
    return data


FORMAT = 1
"""Of the archive; a reader refuses any other."""
PRODUCT = version("phronesis-operations")
MOST_MEMBERS = 10_000
_MEMBER_NAME = r"^[a-z][a-z0-9_-]*(/[a-z][a-z0-9_]*){0,2}$"


class About(BaseModel):
    """The first entry: enough to tell whether the rest is worth reading."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int
    product: str = Field(pattern=r"^\d{1,6}\.\d{1,6}\.\d{1,6}$")
    kind: Literal["backup", "tenant"]
    tenant: str | None = None
    """Whose it is, where it holds one tenant."""


class Member(BaseModel):
    """One store's table, or what stands for one: cut into parts, which are files of the archive."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=_MEMBER_NAME, max_length=200)
    count: int = Field(ge=0)
    parts: int = Field(ge=0)
    bytes: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Of all parts, one after another."""


class Manifest(BaseModel):
    """The last entry."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    about: About
    point: datetime
    """The moment whose state the archive holds, by the clock of Postgres."""
    migrations: dict[str, tuple[str, ...]]
    """Applied migrations of each schema."""
    sequences: dict[str, int]
    """The last value of each sequence that was used, by `schema.name`."""
    model: str | None
    """Whose vectors these are; `None` where there are none."""
    dimension: int | None
    """Numbers in a vector."""
    members: tuple[Member, ...] = Field(max_length=MOST_MEMBERS)

    def member(self, name: str) -> Member | None:
        return next((member for member in self.members if member.name == name), None)


def version_numbers(version: str) -> tuple[int, ...]:
    """A version that can be compared."""
    return tuple(int(part) for part in version.split("."))
