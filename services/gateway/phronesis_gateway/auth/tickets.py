"""Tickets: how a browser, which cannot send a bearer with an event stream, opens one turn's stream, once, within a minute."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from phronesis_contracts import Unauthorized

LIFETIME = 60
"""Seconds that a ticket is good for."""
_PURPOSE = b"phronesis gateway: ticket for one turn's events"
_LONGEST = 1_024


@dataclass(frozen=True)
class Holder:
    """Whom a ticket was made for, and by what it is known once it was used."""

    key: str
    """Id of the key that it was made with."""
    user: str | None
    """The user that the key acts for."""
    hash: bytes
    expires_at: int


@dataclass(frozen=True)
class Ticket:
    """A ticket, and when it expires in seconds since the epoch."""

    text: str
    expires_at: int


class Tickets:
    """Signs and checks tickets. A ticket names a key and a turn, and no claims: those are the key's when it is used.

    Args:
        secret: what all replicas share and nobody else has.
        clock: seconds since the epoch.
    """

    def __init__(self, secret: bytes, clock: Callable[[], float] = time.time) -> None:
        # A key of its own, so that a ticket can be taken for nothing else that the secret signs.
        self._key = hmac.digest(secret, _PURPOSE, "sha256")
        self._clock = clock

    @classmethod
    def load(cls, path: Path | None) -> Tickets:
        """Tickets signed with a key made from the gateway's signing key, which all replicas have."""
        return cls(path.read_bytes() if path else secrets.token_bytes(32))

    def make(self, key: str, turn: str, user: str | None = None) -> Ticket:
        """A ticket. `user`: whom the key acts for, where that is not its own user."""
        expires_at = int(self._clock()) + LIFETIME
        # The last part tells two of one second apart. Copies of the version before read the first four.
        claims = json.dumps([key, turn, expires_at, user, secrets.token_urlsafe(12)], separators=(",", ":")).encode()
        return Ticket(f"{_encode(claims)}.{_encode(self._mac(claims))}", expires_at)

    def holder(self, ticket: str, turn: str) -> Holder:
        """Whom a ticket for `turn` was made for. That it was not used before is the caller's to find out.

        Raises:
            Unauthorized: it was not made here, is for another turn, or has expired.
        """
        try:
            claims, mac = (_decode(part) for part in ticket[:_LONGEST].split("."))
        except ValueError as error:
            raise Unauthorized("the ticket is not valid") from error
        if not hmac.compare_digest(mac, self._mac(claims)):
            raise Unauthorized("the ticket is not valid")
        key, its_turn, expires_at, *more = json.loads(claims)
        if its_turn != turn or self._clock() >= expires_at:
            raise Unauthorized("the ticket has expired, or is for another turn")
        return Holder(str(key), more[0] if more else None, hashlib.sha256(claims).digest(), int(expires_at))

    def _mac(self, claims: bytes) -> bytes:
        return hmac.new(self._key, claims, hashlib.sha256).digest()


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError("no base64") from error
