"""Reading an archive: the whole of it is checked before anything is done with it."""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, Literal, TypeVar, cast

from pydantic import BaseModel, ValidationError

from . import tar
from .errors import Damaged, Refused
from .frames import Frame, unpacked
from .manifest import FORMAT, MOST_MEMBERS, PRODUCT, About, Manifest, Member, of
from .writing import ABOUT, MANIFEST

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
        about = _about(*next(entries, ("", b"")), kind)
        members: list[Member] = []
        for name, data in _tallied(entries, members):
            if name != MANIFEST or next(entries, None) is not None:
                raise Damaged("the archive holds a file that it should not")
            manifest = _parsed(Manifest, data)
            if manifest.about != about or manifest.members != tuple(members):
                raise Damaged("the archive does not hold what its manifest says")
            return cls(path, manifest)
        raise Damaged("the archive is cut off")

    def members(self) -> Iterator[tuple[str, Iterator[Frame]]]:
        """Each member's name and records, in the order of the archive. The records end when the next member is asked for."""
        return groupby_members(_frames(self._path))


def groupby_members(frames: Iterator[tuple[str, Frame]]) -> Iterator[tuple[str, Iterator[Frame]]]:
    """Records with their member's name, as members with their records."""
    for name, of_member in groupby(frames, key=lambda pair: pair[0]):
        yield name, (frame for _, frame in of_member)


def _frames(path: Path) -> Iterator[tuple[str, Frame]]:
    for name, data in _entries(path):
        if name not in (ABOUT, MANIFEST):
            member = _place(name)[0]
            for frame in unpacked(data):
                yield member, frame


def _entries(path: Path) -> Iterator[tuple[str, bytes]]:
    try:
        with gzip.open(path, "rb") as packed, io.BufferedReader(cast(io.RawIOBase, packed), 1024 * 1024) as file:
            yield from tar.entries(cast(BinaryIO, file))
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise Damaged("the archive is damaged or cut off, or is none of Phronesis") from error
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}") from error


def _about(name: str, data: bytes, kind: Kind) -> About:
    if name != ABOUT:
        raise Damaged("this is no archive of Phronesis")
    about = _parsed(About, data)
    if about.format != FORMAT:
        raise Refused(f"the archive has format {about.format}, and this version reads format {FORMAT}")
    if of(about.product) > of(PRODUCT):
        raise Refused(f"the archive was written by version {about.product}, which is newer than this one, {PRODUCT}")
    if about.kind != kind:
        raise Refused(f"this is the archive of a {about.kind}: `{_READERS[about.kind]}` reads it")
    return about


def _tallied(entries: Iterator[tuple[str, bytes]], members: list[Member]) -> Iterator[tuple[str, bytes]]:
    """The entries that belong to no member; those that do are counted into `members`."""
    for member, of_member in groupby(entries, key=lambda entry: _place(entry[0])[0]):
        if not member:
            yield from of_member
        elif len(members) >= MOST_MEMBERS or any(known.name == member for known in members):
            raise Damaged("the archive holds a file that it should not")
        else:
            members.append(_counted(member, of_member))


def _counted(member: str, parts: Iterator[tuple[str, bytes]]) -> Member:
    digest, number, size, count = hashlib.sha256(), 0, 0, 0
    for name, data in parts:
        if _place(name)[1] != number or number >= _MOST_PARTS:
            raise Damaged("the archive lacks a part, or holds one twice")
        digest.update(data)
        number += 1
        size += len(data)
        count += sum(frame.count for frame in unpacked(data))
    try:
        return Member(name=member, count=count, parts=number, bytes=size, sha256=digest.hexdigest())
    except ValidationError as error:
        raise Damaged("the archive holds a file that it should not") from error


def _place(name: str) -> tuple[str, int]:
    """Of the name of a part: its member and its number; a name without a number is of no member."""
    member, _, number = name.rpartition("/")
    return (member, int(number)) if member and len(number) == 6 and number.isdecimal() else ("", 0)


def _parsed(model: type[M], data: bytes) -> M:
    if len(data) > _LARGEST_MANIFEST:
        raise Damaged("the manifest of the archive is too large")
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        raise Damaged("the manifest of the archive cannot be read") from error
