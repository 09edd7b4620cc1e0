"""Records that wait beside the archive until it is their turn, on disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from .writing import MemberWriter


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
def spooled(beside: Path) -> Iterator[Spool]:
    """A spool for the length of a block, on the disk that the archive is written to."""
    with tempfile.TemporaryFile(dir=beside.parent) as file:
        yield Spool(file)
