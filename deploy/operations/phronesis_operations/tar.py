"""Entries of a tar file, as narrow as our own archives are: plain files with short names, in the `ustar` layout.

A reader of all that tar can be would follow links and paths, and take the lengths in extended headers at their word.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from typing import BinaryIO

from .errors import Damaged
from .frames import LARGEST_PART

_BLOCK = 512
_NAME = re.compile(rb"[a-z][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*){0,4}")
_REGULAR = b"0"


def write(file: BinaryIO, name: str, data: bytes) -> None:
    """Append one file."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), 0o600
    file.write(entry.tobuf(tarfile.USTAR_FORMAT))
    file.write(data)
    file.write(bytes(-len(data) % _BLOCK))


def end(file: BinaryIO) -> None:
    """Write the end of the archive."""
    file.write(bytes(2 * _BLOCK))


def entries(file: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file, in order.

    Raises:
        Damaged: it is none of ours, cut off, or has something behind its end.
    """
    while (block := _exactly(file, _BLOCK)) != bytes(_BLOCK):
        name, size = _header(block)
        data = _exactly(file, size)
        if any(_exactly(file, -size % _BLOCK)):
            raise Damaged("there is something between two files of the archive")
        yield name, data
    if any(_exactly(file, _BLOCK)) or file.read(1):
        raise Damaged("there is something behind the end of the archive")


def _header(block: bytes) -> tuple[str, int]:
    name = block[:100].rstrip(b"\0")
    spaced = block[:148] + b" " * 8 + block[156:]
    plain = block[257:263] == b"ustar\0" and block[156:157] == _REGULAR and not any(block[157:257]) and not any(block[345:])
    if not plain or not _NAME.fullmatch(name) or _octal(block[148:156]) != sum(spaced):
        raise Damaged("this is no archive of Phronesis")
    size = _octal(block[124:136])
    if size > LARGEST_PART:
        raise Damaged("a file of the archive is larger than any that was written")
    return name.decode(), size


def _octal(field: bytes) -> int:
    digits = field.rstrip(b" \0")
    if not digits or not all(48 <= digit <= 55 for digit in digits):
        raise Damaged("this is no archive of Phronesis")
    return int(digits, 8)


def _exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise Damaged("the archive is cut off")
    return data
