"""What a zip archive holds, told without unpacking it, and the limits that stop bombs."""

from __future__ import annotations

import struct
import zipfile
from io import BytesIO

from phronesis_contracts import TooLarge, UnsupportedMedia

_MEMBERS = 10_000
_DIRECTORY = 1024 * 1024
"""Bytes of the central directory; it is parsed in this process, so its size is looked at first."""
_UNPACKED = 256 * 1024 * 1024
"""Bytes of all members together, unpacked."""
_RATIO = 200
_RATIO_FROM = 16 * 1024 * 1024
"""Unpacked bytes below which the ratio says nothing: a small sheet of equal rows packs very well."""
_END = b"PK\x05\x06"
_LOCATOR_64 = b"PK\x06\x07"
_END_SIZE = 22


def members(data: bytes) -> frozenset[str]:
    """Names of the members of the archive in `data`.

    Raises:
        TooLarge: too many members, or too much to unpack (TRAPS 63).
        UnsupportedMedia: damaged, encrypted, or with names that lead out of the archive.
    """
    _check_directory(data)
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            found = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error, OverflowError, UnicodeError) as error:
        raise UnsupportedMedia("the archive is damaged") from error
    if len(found) > _MEMBERS:
        raise TooLarge(f"the archive has over {_MEMBERS} members")
    unpacked = sum(member.file_size for member in found)
    if unpacked > _UNPACKED or (unpacked > _RATIO_FROM and unpacked > _RATIO * len(data)):
        raise TooLarge("the archive unpacks to more than is allowed")
    if any(member.flag_bits & 0x1 for member in found):
        raise UnsupportedMedia("the archive is encrypted")
    names = [member.filename for member in found]
    if len(set(names)) != len(names) or any(_leads_out(name) for name in names):
        raise UnsupportedMedia("the archive has member names that are not allowed")
    return frozenset(names)


def _check_directory(data: bytes) -> None:
    tail = data[-(_END_SIZE + 0xFFFF) :]
    at = tail.rfind(_END)
    if at < 0 or len(tail) - at < _END_SIZE:
        raise UnsupportedMedia("the archive is damaged")
    (size,) = struct.unpack_from("<L", tail, at + 12)
    start = len(data) - len(tail) + at
    if _LOCATOR_64 in data[max(0, start - 20) : start] or size > _DIRECTORY:
        raise TooLarge("the archive has too large a directory")


def _leads_out(name: str) -> bool:
    return name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/") or "\x00" in name
