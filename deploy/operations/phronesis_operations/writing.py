"""Writing an archive: to one side first, in place of nothing until it is whole."""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from . import tar
from .errors import Failed, Refused
from .frames import packed
from .manifest import About, Manifest, Member

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
        self.append(packed(header, body), int(header.get("rows", 1)))

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
        tar.write(self._file, f"{self.name}/{self._parts:06d}", part)
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
        tar.write(self._file, ABOUT, about.model_dump_json(indent=2).encode())

    @contextmanager
    def member(self, name: str) -> Iterator[MemberWriter]:
        """A member for the length of a block."""
        writer = MemberWriter(self._file, name)
        yield writer
        self.members.append(writer.closed())

    def manifest(self, manifest: Manifest) -> None:
        """Write the last entry."""
        tar.write(self._file, MANIFEST, manifest.model_dump_json(indent=2).encode())
        tar.end(self._file)


@contextmanager
def writing(path: Path, *, force: bool) -> Iterator[Writer]:
    """An archive that stands at `path` when the block has ended well, and of which nothing is left otherwise.

    Raises:
        Refused: something stands at `path`, and `force` is not given; or there is no such folder.
        Failed: the disk is full, or does not take it.
    """
    if path.exists() and not force:
        raise Refused(f"{path} exists; name another file, or say --force")
    fresh = path.with_name(f"{path.name}.part")
    try:
        with _opened(fresh) as raw:
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


def _opened(path: Path) -> BinaryIO:
    path.unlink(missing_ok=True)  # what a killed run has left
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
