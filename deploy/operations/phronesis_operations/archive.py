"""An archive: written to one side until it is whole, and checked whole before anything is done with it."""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import io
import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeVar, cast

from pydantic import BaseModel, ValidationError

from . import format
from .format import FORMAT, MOST_MEMBERS, PRODUCT, About, Frame, Manifest, Member, pack, unpack, version_numbers
from .reporting import Damaged, Failed, Refused

ABOUT = "about.json"
MANIFEST = "manifest.json"
_PART = 4 * 1024 * 1024
_LEVEL = 3
"""Of gzip: half the time of the default, for a few hundredths more space."""


class MemberWriter:
    """One member: records go in, parts of some megabytes go out."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self.name = name
        self._part = bytearray()
        self._digest = hashlib.sha256()
        self._parts = self._bytes = 0
        self.count = 0

    def add(self, header: dict[str, Any], body: bytes = b"") -> None:
        """Append a record; `rows` in its header says how many it stands for where that is not one."""
        self.append(pack(header, body), int(header.get("rows", 1)))

    def append(self, record: bytes, rows: int) -> None:
        """Append a record that is packed already."""
        if self._part and len(self._part) + len(record) > _PART:
            self._flush()
        self._part += record
        self.count += rows

    def closed(self) -> Member:
        """Write what is left, and say what was written. A member without a record is one empty part."""
        if self._part or not self._parts:
            self._flush()
        return Member(name=self.name, count=self.count, parts=self._parts, bytes=self._bytes, sha256=self._digest.hexdigest())

    def _flush(self) -> None:
        part = bytes(self._part)
        format.write_entry(self._file, f"{self.name}/{self._parts:06d}", part)
        self._digest.update(part)
        self._bytes += len(part)
        self._parts += 1
        self._part.clear()


class Writer:
    """An archive that is being written; `writing()` makes one."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.members: list[Member] = []

    def about(self, about: About) -> None:
        """Write the first entry."""
        format.write_entry(self._file, ABOUT, about.model_dump_json(indent=2).encode())

    @contextmanager
    def member(self, name: str) -> Iterator[MemberWriter]:
        """A member for the length of a block."""
        writer = MemberWriter(self._file, name)
        yield writer
        self.members.append(writer.closed())

    def manifest(self, manifest: Manifest) -> None:
        """Write the last entry."""
        format.write_entry(self._file, MANIFEST, manifest.model_dump_json(indent=2).encode())
        format.write_end(self._file)


@contextmanager
def write_archive(path: Path, *, force: bool) -> Iterator[Writer]:
    """An archive that stands at `path` when the block has ended well, and of which nothing is left otherwise.

    Raises:
        Refused: something stands at `path`, and `force` is not given; or there is no such folder.
        Failed: the disk is full, or does not take it.
    """
    if path.exists() and not force:
        raise Refused(f"{path} exists; name another file, or say --force")
    fresh = path.with_name(f"{path.name}.part")
    try:
        with _open_file(fresh) as raw:
            with gzip.GzipFile(filename="", mode="wb", compresslevel=_LEVEL, fileobj=raw, mtime=0) as packing:
                with io.BufferedWriter(cast(io.RawIOBase, packing), 1024 * 1024) as file:
                    yield Writer(cast(BinaryIO, file))
            raw.flush()
            os.fsync(raw.fileno())
        fresh.replace(path)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise Failed("the disk is full: nothing was written" if full else f"{path} cannot be written: {error}") from error
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)


def _open_file(path: Path) -> BinaryIO:
    path.unlink(missing_ok=True)  # what a killed run has left
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


class Spool:
    """Packed records in a file without a name, which is gone with the process."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.count = 0

    def append(self, record: bytes, rows: int = 1) -> None:
        """Take a record."""
        self._file.write(len(record).to_bytes(8, "big") + rows.to_bytes(8, "big") + record)
        self.count += rows

    def clear(self) -> None:
        """Forget all that was taken."""
        self._file.seek(0)
        self._file.truncate()
        self.count = 0

    def into(self, writer: MemberWriter) -> None:
        """Write all that was taken, in order."""
        self._file.seek(0)
        while lengths := self._file.read(16):
            writer.append(self._file.read(int.from_bytes(lengths[:8], "big")), int.from_bytes(lengths[8:], "big"))


@contextmanager
def open_spool(beside: Path) -> Iterator[Spool]:
    """A spool for the length of a block, on the disk that the archive is written to."""
    with tempfile.TemporaryFile(dir=beside.parent) as file:
        yield Spool(file)


M = TypeVar("M", bound=BaseModel)
Kind = Literal["backup", "tenant"]
_READERS = {"backup": "phronesis restore", "tenant": "phronesis import"}
_MOST_PARTS = 1_000_000
_LARGEST_MANIFEST = 16 * 1024 * 1024


class Archive:
    """A whole archive. `checked()` makes one."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self._path = path
        self.manifest = manifest

    @classmethod
    def checked(cls, path: Path, kind: Kind) -> Archive:
        """The archive at `path`, read from its first byte to its last.

        Raises:
            Damaged: it is not whole, or none of ours.
            Refused: it is of another kind or format, was written by a newer version, or cannot be read.
        """
        entries = _entries(path)
        about = _parse_about(*next(entries, ("", b"")), kind)
        members: list[Member] = []
        for name, data in _tally(entries, members):
            if name != MANIFEST or next(entries, None) is not None:
                raise Damaged("the archive holds a file that it should not")
            manifest = _parse(Manifest, data)
            if manifest.about != about or manifest.members != tuple(members):
                raise Damaged("the archive does not hold what its manifest says")
            return cls(path, manifest)
        raise Damaged("the archive is cut off")

    def members(self) -> Iterator[tuple[str, Iterator[Frame]]]:
        """Each member's name and records, in the order of the archive. The records end when the next member is asked for."""
        return group_by_member(_frames(self._path))


def group_by_member(frames: Iterator[tuple[str, Frame]]) -> Iterator[tuple[str, Iterator[Frame]]]:
    """Records with their member's name, as members with their records."""
    for name, of_member in groupby(frames, key=lambda pair: pair[0]):
        yield name, (frame for _, frame in of_member)


def _frames(path: Path) -> Iterator[tuple[str, Frame]]:
    for name, data in _entries(path):
        if name not in (ABOUT, MANIFEST):
            member = _member_and_number(name)[0]
            for frame in unpack(data):
                yield member, frame


def _entries(path: Path) -> Iterator[tuple[str, bytes]]:
    try:
        with gzip.open(path, "rb") as packed, io.BufferedReader(cast(io.RawIOBase, packed), 1024 * 1024) as file:
            yield from format.read_entries(cast(BinaryIO, file))
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise Damaged("the archive is damaged or cut off, or is none of Phronesis") from error
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}") from error


def _parse_about(name: str, data: bytes, kind: Kind) -> About:
    if name != ABOUT:
        raise Damaged("this is no archive of Phronesis")
    about = _parse(About, data)
    if about.format != FORMAT:
        raise Refused(f"the archive has format {about.format}, and this version reads format {FORMAT}")
    if version_numbers(about.product) > version_numbers(PRODUCT):
        raise Refused(f"the archive was written by version {about.product}, which is newer than this one, {PRODUCT}")
    if about.kind != kind:
        raise Refused(f"this is the archive of a {about.kind}: `{_READERS[about.kind]}` reads it")
    return about


def _tally(entries: Iterator[tuple[str, bytes]], members: list[Member]) -> Iterator[tuple[str, bytes]]:
    """The entries that belong to no member; those that do are counted into `members`."""
    for member, of_member in groupby(entries, key=lambda entry: _member_and_number(entry[0])[0]):
        if not member:
            yield from of_member
        elif len(members) >= MOST_MEMBERS or any(known.name == member for known in members):
            raise Damaged("the archive holds a file that it should not")
        else:
            members.append(_count_member(member, of_member))


def _count_member(member: str, parts: Iterator[tuple[str, bytes]]) -> Member:
    digest, number, size, count = hashlib.sha256(), 0, 0, 0
    for name, data in parts:
        if _member_and_number(name)[1] != number or number >= _MOST_PARTS:
            raise Damaged("the archive lacks a part, or holds one twice")
        digest.update(data)
        number += 1
        size += len(data)
        count += sum(frame.count for frame in unpack(data))
    try:
        return Member(name=member, count=count, parts=number, bytes=size, sha256=digest.hexdigest())
    except ValidationError as error:
        raise Damaged("the archive holds a file that it should not") from error


def _member_and_number(name: str) -> tuple[str, int]:
    """Of the name of a part: its member and its number; a name without a number is of no member."""
    member, _, number = name.rpartition("/")
    return (member, int(number)) if member and len(number) == 6 and number.isdecimal() else ("", 0)


def _parse(model: type[M], data: bytes) -> M:
    if len(data) > _LARGEST_MANIFEST:
        raise Damaged("the manifest of the archive is too large")
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        raise Damaged("the manifest of the archive cannot be read") from error
