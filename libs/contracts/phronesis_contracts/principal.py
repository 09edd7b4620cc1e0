"""Who asks: the verified caller of a message, and the table of roles."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

Token = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
"""A name that can stand as one token of a subject: tenants, users, services."""


class Role(StrEnum):
    """What a caller may do; a role is no agent's name, though some share one."""

    NOOR = "noor"
    MAESTRO = "maestro"
    CURATOR = "curator"
    DISCUSS = "discuss"
    DECISIONS = "decisions"
    EXECUTE = "execute"
    MIND = "mind"
    EDITOR = "editor"
    ADMIN = "admin"


EVERYONE: frozenset[Role] = frozenset(Role)
"""Every role."""


class Principal(BaseModel):
    """The caller a message acts for.

    It is verified from a signed token by `serve()` and `take()`; no body and no other header ever names the caller.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    tenant: Token
    user: Token
    role: Role = Role.NOOR
    department: str | None = None
    ministry: str | None = None
    scopes: tuple[str, ...] = ()
    key: str | None = None
    """Id of the gateway key that this principal came from; revoking that key ends its turns."""
    acted_by: Token | None = None
    """The user of the key that acts for this one; `None` where the key is the user's own."""
    inbox: str | None = None
    """For an outside system: the prefix that its reply subjects must have. `None` for the platform's own services."""


SYSTEM_TENANT = "system"
"""The tenant of the platform's own questions (health); no key can be made for it."""
