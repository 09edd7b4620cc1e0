"""Keys: what they are, how a secret is made, and who may make one for whom."""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from datetime import datetime

from phronesis_contracts import SYSTEM_TENANT, BadRequest, Forbidden, Principal, Role

OPERATOR = "operator"
"""Scope of those who run the platform: they make keys for any tenant."""
SHOWN = 8
"""Characters of a secret that are kept to tell keys apart."""
_SECRET = re.compile(r"phr_[A-Za-z0-9_-]{43}")


@dataclass(frozen=True)
class Key:
    """A key without its secret."""

    id: str
    tenant: str
    user: str
    role: Role
    department: str | None
    ministry: str | None
    scopes: tuple[str, ...]
    prefix: str
    created_at: datetime
    revoked_at: datetime | None = None
    bus: bool = False
    """Whether it opens the bus, and nothing here."""
    expires_at: datetime | None = None
    """When it ends by itself; every key of the bus does."""

    @property
    def principal(self) -> Principal:
        """Whom the key's requests act for."""
        return Principal(
            tenant=self.tenant,
            user=self.user,
            role=self.role,
            department=self.department,
            ministry=self.ministry,
            scopes=self.scopes,
            key=self.id,
        )


def new_secret() -> str:
    """A new secret with 256 random bits."""
    return f"phr_{secrets.token_urlsafe(32)}"


def is_secret(text: str) -> bool:
    """Whether `text` has the form of a secret."""
    return _SECRET.fullmatch(text) is not None


def digest(secret: str) -> bytes:
    """What is stored of a secret.

    A plain SHA-256 is enough, and a slow password hash would only cost time: the secret is 256 random bits, so there is
    nothing to guess, and the hash is looked up by equality, so there is no salt to find first.
    """
    return hashlib.sha256(secret.encode()).digest()


def may_manage(who: Principal) -> None:
    """Let only administrators manage keys.

    Raises:
        Forbidden: `who` is none.
    """
    if who.role is not Role.ADMIN:
        raise Forbidden(f"role {who.role} may not manage keys")


def may_make(who: Principal, tenant: str, scopes: tuple[str, ...]) -> None:
    """Let an administrator make a key of `tenant` with `scopes`.

    Raises:
        BadRequest: no key can be made for the platform's own tenant.
        Forbidden: `who` is no administrator, or of another tenant, or would give more than it has.
    """
    may_manage(who)
    if tenant == SYSTEM_TENANT:
        raise BadRequest("no key can be made for this tenant", field="tenant")
    if OPERATOR in who.scopes:
        return
    if tenant != who.tenant:
        raise Forbidden("an administrator makes keys for its own tenant")
    if not set(scopes) <= set(who.scopes):
        raise Forbidden("a key cannot have scopes that its maker lacks")


def may_make_for_bus(who: Principal, tenant: str) -> None:
    """Let those who run the platform make a key of the bus: who is let in there takes up the broker itself.

    Raises:
        BadRequest: no key can be made for the platform's own tenant.
        Forbidden: `who` is not one of them.
    """
    may_make(who, tenant, ())
    if OPERATOR not in who.scopes:
        raise Forbidden("a key of the bus is made with the scope operator")


def seen_by(who: Principal) -> str | None:
    """The tenant whose keys an administrator sees; `None` for all."""
    return None if OPERATOR in who.scopes else who.tenant
