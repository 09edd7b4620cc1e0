"""Who holds a key: looked up in the store, remembered for seconds so that a request costs no query."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from phronesis_contracts import Forbidden, Principal, Unauthorized, Unavailable

from .keys import USER, Key, KeyStore, act_for, hash_secret, is_secret

log = logging.getLogger(__name__)

FRESH = 5.0
"""Seconds that a remembered key is believed; another replica's revocation takes this long to be felt here."""
STALE = 30.0
"""Seconds that it is believed while the store is down: nobody can revoke a key in that time."""
_REMEMBERED = 4_096


@dataclass(frozen=True)
class _Entry:
    key: Key
    read_at: float


class Keyring:
    def __init__(self, store: KeyStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._entries: OrderedDict[bytes | str, _Entry] = OrderedDict()
        self._revocations = 0
        self._elevated: OrderedDict[tuple[str, str], tuple[bool, float]] = OrderedDict()
        """By tenant and user: whether they have more rights than a member, and when that was read."""

    async def holder(self, secret: str) -> Principal:
        """Whom the key with this secret acts for.

        Raises:
            Unauthorized: there is no such key, or it was revoked.
            Unavailable: the key is not remembered, and the store is down.
        """
        if not is_secret(secret):
            raise Unauthorized("the key is not valid")
        hash = hash_secret(secret)
        return _require_valid(await self._found(hash, lambda: self._store.by_hash(hash)))

    async def holder_of(self, id: str) -> Principal:
        """Whom the key with this id acts for; raises as `holder` does."""
        return _require_valid(await self._found(id, lambda: self._store.by_id(id)))

    async def admitted(self, caller: Key) -> Principal:
        """Whom the holder of a good token acts for. At first sight the caller is entered among the keys, under its own id
        and without a secret: so administrators see who comes in, and can shut one out for good.

        Raises:
            Unauthorized: the caller was shut out.
            Unavailable: the caller is not remembered, and the store is down.
        """
        _require_valid(await self._found(caller.id, lambda: self._entered(caller)))
        return caller.principal

    async def acting(self, who: Principal, user: str, *, known: bool = False) -> Principal:
        """The principal of a user that `who` acts for; arguments as of `act_for`.

        Raises:
            Forbidden: the key may not act for users, or not for this one, who has more rights than a member.
            BadRequest: it is no name of a user.
            Unavailable: what the user holds is not remembered, and the store is down.
        """
        acted = act_for(who, user, known=known)
        name, now = (acted.tenant, acted.user), self._clock()
        elevated, read_at = self._elevated.get(name, (False, now - FRESH))
        if now - read_at >= FRESH:
            elevated = await self._store.is_elevated(*name)
            self._elevated[name] = (elevated, now)
            self._elevated.move_to_end(name)
            if len(self._elevated) > _REMEMBERED:
                self._elevated.popitem(last=False)
        if elevated:
            raise Forbidden("no key acts for a user with more rights than a member", field=USER)
        return acted

    def forget(self, id: str) -> None:
        """Drop a key that was revoked."""
        self._revocations += 1
        for name in [name for name, entry in self._entries.items() if entry.key.id == id]:
            del self._entries[name]

    async def _found(self, name: bytes | str, read: Callable[[], Awaitable[Key | None]]) -> Key | None:
        entry = self._entries.get(name)
        age = self._clock() - entry.read_at if entry else STALE
        if entry and age < FRESH:
            return entry.key
        revocations = self._revocations
        try:
            key = await read()
        except Unavailable:
            if entry and age < STALE:
                return entry.key
            raise
        # A row that was read before a revocation must not be remembered after it. Unknown keys are not remembered: a
        # stranger could drive the known ones out with them.
        if key is not None and revocations == self._revocations:
            self._remember(name, key)
        return key

    async def _entered(self, caller: Key) -> Key:
        known = await self._store.by_id(caller.id)
        if known is None:
            # No secret has this hash: the id has not the form of one.
            await self._store.add_absent(caller, hash_secret(caller.id), "keys.admit")
        return known or caller

    def _remember(self, name: bytes | str, key: Key) -> None:
        self._entries[name] = _Entry(key, self._clock())
        self._entries.move_to_end(name)
        if len(self._entries) > _REMEMBERED:
            self._entries.popitem(last=False)


def _require_valid(key: Key | None) -> Principal:
    if key is None or key.revoked_at is not None:
        raise Unauthorized("the key is not valid")
    if key.expires_at is not None and key.expires_at <= datetime.now(UTC):
        raise Unauthorized("the key has expired")
    return key.principal
