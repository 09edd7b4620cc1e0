"""What the gateway needs from outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from phronesis_contracts import Principal

from .keys import Key


class KeyStore(Protocol):
    """Where keys are kept. Every method raises `Unavailable` while the store is down."""

    async def by_hash(self, hash: bytes) -> Key | None:
        """The key whose secret has this hash, revoked or not."""

    async def by_id(self, id: str) -> Key | None:
        """The key with this id, revoked or not."""

    async def of(self, tenant: str | None, limit: int) -> Sequence[Key]:
        """Keys, newest first, of one tenant or of all."""

    async def add(self, key: Key, hash: bytes, by: Principal) -> None:
        """Store a new key that `by` made."""

    async def add_absent(self, key: Key, hash: bytes, action: str = "keys.bootstrap") -> bool:
        """Store a key unless it is there, and audit it as `action`; returns whether it was stored."""

    async def revoke(self, id: str, tenant: str | None, by: Principal) -> Key | None:
        """Revoke a key of one tenant, or of any, and announce it; `None` when there is no such key."""

    async def is_elevated(self, tenant: str, user: str) -> bool:
        """Whether a user holds a key of an elevated role, or one that runs the platform or acts for others."""

    async def revoked_of_bus(self) -> Sequence[str]:
        """Ids of the revoked keys of the bus that would be good otherwise."""
