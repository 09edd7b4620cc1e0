"""Pages of conversations: what a cursor is, and what a title is."""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from phronesis_contracts import BadRequest, Principal

TITLE = 60
"""Characters of a title."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PLACE = struct.Struct(">q16s")
_SEAL = 16
_LATEST = 253_402_300_799_999_999
"""Microseconds until the year 10000."""


@dataclass(frozen=True)
class Place:
    """Where a page ended: the last conversation on it."""

    updated_at: datetime
    id: UUID


def cursor_of(who: Principal, place: Place) -> str:
    """A place as an opaque text that is good for `who` alone.

    The seal finds out mistakes and mix-ups. It is no secret: whoever makes one up has named a place in a list of his own.
    """
    packed = _PLACE.pack((place.updated_at - _EPOCH) // timedelta(microseconds=1), place.id.bytes)
    return base64.urlsafe_b64encode(packed + _seal(who, packed)).decode().rstrip("=")


def place_of(who: Principal, cursor: str) -> Place:
    """The place in a cursor.

    Raises:
        BadRequest: it is no cursor, or another's.
    """
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise _no_cursor() from error
    packed, seal = data[: _PLACE.size], data[_PLACE.size :]
    if len(data) != _PLACE.size + _SEAL or seal != _seal(who, packed):
        raise _no_cursor()
    micros, id = _PLACE.unpack(packed)
    if not 0 <= micros <= _LATEST:
        raise _no_cursor()
    place = Place(_EPOCH + timedelta(microseconds=micros), UUID(bytes=id))
    # Unused bits at a text's end would give one place several cursors.
    if cursor_of(who, place) != cursor:
        raise _no_cursor()
    return place


def title_of(text: str) -> str:
    """The first words of a text, up to `TITLE` characters; what is left out is marked."""
    words = " ".join(text.split())
    if len(words) <= TITLE:
        return words
    whole = words[: TITLE + 1].rpartition(" ")[0]
    return f"{whole or words[:TITLE]}…"


def _seal(who: Principal, packed: bytes) -> bytes:
    # Tenant and user are tokens without NUL, so the parts cannot run into each other.
    owner = f"conversations\x00{who.tenant}\x00{who.user}\x00".encode()
    return hashlib.sha256(owner + packed).digest()[:_SEAL]


def _no_cursor() -> BadRequest:
    return BadRequest("this is no cursor of the caller's; begin with the first page", field="cursor")
