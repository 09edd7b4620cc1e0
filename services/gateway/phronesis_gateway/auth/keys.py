"""Keys: what they are, how a secret is made, who may make one for whom, and the scopes that narrow them."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from phronesis_contracts import SYSTEM_TENANT, Agent, BadRequest, Forbidden, Principal, Risk, Role, Tool
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.principal import ELEVATED

ACT_FOR_USERS = "act_for_users"
"""Scope of programs that have users of their own: each request names the user that it is made for."""
USER = "Phronesis-User"
"""Header that names the user whom a key acts for."""
_LONGEST_USER = 200
OPERATOR = "operator"
"""Scope of those who run the platform: they make keys for any tenant."""
PREFIX_LENGTH = 8
"""Characters of a secret that are kept to tell keys apart."""
_SECRET = re.compile(r"phr_[A-Za-z0-9_-]{43}")
_USER = re.compile(r"(?!u-[0-9a-f]{40}$)[a-z0-9][a-z0-9_-]{0,63}")
"""A name that can stand in a subject, and is none that another name was turned into."""


@dataclass(frozen=True)
class Key:
    """A key without its secret."""

    id: str
    tenant: str
    user: str
    role: Role
    agents: tuple[Agent, ...]
    """Agents that it may act as; empty for administrators, who may act as all."""
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
    tools: tuple[str, ...] | None = None
    """The only tools that it may call; `None` for all that its role and agents open."""

    @property
    def principal(self) -> Principal:
        """Whom the key's requests act for."""
        return Principal(
            tenant=self.tenant,
            user=self.user,
            role=self.role,
            agents=self.agents,
            department=self.department,
            ministry=self.ministry,
            scopes=self.scopes,
            tools=self.tools,
            key=self.id,
        )


def new_secret() -> str:
    return f"phr_{secrets.token_urlsafe(32)}"


def is_first_key(who: Principal) -> bool:
    """Whether `who` came in with the key that a stack begins with, and acts for nobody else."""
    return OPERATOR in who.scopes and (who.tenant, who.user, who.role, who.acted_by) == ("local", "owner", Role.OWNER, None)


def is_secret(text: str) -> bool:
    return _SECRET.fullmatch(text) is not None


def hash_secret(secret: str) -> bytes:
    """What is stored of a secret.

    A plain SHA-256 is enough, and a slow password hash would only cost time: the secret is 256 random bits, so there is
    nothing to guess, and the hash is looked up by equality, so there is no salt to find first.
    """
    return hashlib.sha256(secret.encode()).digest()


def require_manager(who: Principal) -> None:
    """Let only administrators manage keys. Raises `Forbidden`: `who` is none."""
    if not who.administers:
        raise Forbidden(f"{who.rights} may not manage keys")


def require_owner(who: Principal, role: Role) -> None:
    """Let only owners, and those who run the platform, make and revoke keys of owners. Raises `Forbidden`: `who` is neither."""
    if role is Role.OWNER and who.role is not Role.OWNER and OPERATOR not in who.scopes:
        raise Forbidden("the keys of owners are made and revoked by owners")


def find_tools(names: Sequence[str]) -> tuple[str, ...]:
    """The tools of these names, with the other names of each. Raises `BadRequest`: there is no such tool."""
    if unknown := [name for name in names if name not in TOOLS]:
        raise BadRequest(f"there is no tool {unknown[0]}", field="tools")
    meant = {TOOLS[name].rpc.subject for name in names}
    return tuple(sorted(name for name, tool in TOOLS.items() if tool.rpc.subject in meant))


def require_narrower(who: Principal, ends: datetime | None, tools: tuple[str, ...] | None, until: datetime | None) -> None:
    """Let nobody make a key that may call more tools, or is good for longer, than their own; operators neither.

    Args:
        ends: when the maker's own key ends.
        tools: what the new key may call.
        until: when the new key ends.

    Raises:
        Forbidden: it would be wider.
    """
    if who.tools is not None and (tools is None or not set(tools) <= set(who.tools)):
        raise Forbidden("a key cannot call tools that its maker's may not", field="tools")
    if ends is not None and (until is None or until > ends):
        raise Forbidden(
            f"a key cannot be good for longer than its maker's, which ends at {ends:%Y-%m-%dT%H:%M:%SZ}", field="days"
        )


def require_maker(who: Principal, tenant: str, scopes: tuple[str, ...], role: Role = Role.MEMBER) -> None:
    """Let an administrator make a key of `tenant` with `scopes` and a role.

    Raises:
        BadRequest: no key can be made for the platform's own tenant.
        Forbidden: `who` is no administrator, or of another tenant, or would give more than it has.
    """
    require_manager(who)
    if tenant == SYSTEM_TENANT:
        raise BadRequest("no key can be made for this tenant", field="tenant")
    if OPERATOR in who.scopes:
        return
    if tenant != who.tenant:
        raise Forbidden("an administrator makes keys for its own tenant")
    require_owner(who, role)
    if not set(scopes) - {ACT_FOR_USERS} <= set(who.scopes):
        raise Forbidden("a key cannot have scopes that its maker lacks")


def require_bus_maker(who: Principal, tenant: str) -> None:
    """Let those who run the platform make a key of the bus: who is let in there takes up the broker itself.

    Raises:
        BadRequest: no key can be made for the platform's own tenant.
        Forbidden: `who` is not one of them.
    """
    require_maker(who, tenant, ())
    if OPERATOR not in who.scopes:
        raise Forbidden("a key of the bus is made with the scope operator")


def visible_tenant(who: Principal) -> str | None:
    """The tenant whose keys an administrator sees; `None` for all."""
    return None if OPERATOR in who.scopes else who.tenant


def act_for(who: Principal, user: str, *, known: bool = False) -> Principal:
    """The principal of a user that the holder of a key acts for: in the key's tenant, with no more rights than a member's.

    Args:
        user: the program's own name for the user, such as an address or a number. A name that cannot stand in a subject becomes
            one that can, always the same.
        known: whether it is the name of a principal already, as a ticket holds it.

    Raises:
        Forbidden: the key may not act for users.
        BadRequest: it is no name.
    """
    if ACT_FOR_USERS not in who.scopes:
        raise Forbidden(f"this key may not act for users: it lacks the scope {ACT_FOR_USERS}", field=USER)
    return Principal(
        tenant=who.tenant,
        user=name_user(user, known=known, field=USER),
        role=Role.READER if who.role is Role.READER else Role.MEMBER,
        agents=tuple(agent for agent in who.agents if agent not in ELEVATED) or (Agent.NOOR,),
        scopes=tuple(scope for scope in who.scopes if scope in SCOPES),
        tools=who.tools,
        key=who.key,
        acted_by=who.user,
    )


def name_user(user: str, *, known: bool = False, field: str = "user_id") -> str:
    """A user's name inside a tenant. Arguments as of `act_for`; `field` is what a refusal names. Raises `BadRequest`."""
    plain = user.strip()
    if not plain or len(plain) > _LONGEST_USER or not plain.isprintable():
        raise BadRequest(f"a user is named by 1 to {_LONGEST_USER} printable characters", field=field)
    return plain if known or _USER.fullmatch(plain) else f"u-{hashlib.sha256(plain.encode()).hexdigest()[:40]}"


READ = "phronesis:read"
"""Tools that change nothing."""
WRITE = "phronesis:write"
"""Everything that the role and its agents may; it holds `READ` too."""
SCOPES = (READ, WRITE)


def narrow_reader(role: Role, scopes: tuple[str, ...]) -> tuple[str, ...]:
    """The scopes of a key with `role`: of a reader's those that let it read alone in the version before, too, which knows no
    readers.
    """
    if role is not Role.READER:
        return scopes
    return (*(scope for scope in scopes if scope not in SCOPES), READ)


class InsufficientScope(Forbidden):
    """The key or the token is narrower than what was asked with it; `WRITE` would do."""

    code = "insufficient_scope"


def scope_of(tool: Tool[Any, Any]) -> str:
    """The scope that a narrowed caller of `tool` has to have."""
    return READ if tool.risk is Risk.READ else WRITE


def require_scope(who: Principal, scope: str) -> None:
    """Let `who` do what needs `scope`.

    Raises:
        Forbidden: `who` is a reader, whom no scope lets change anything.
        InsufficientScope: `who` is narrowed to less.
    """
    if who.role is Role.READER and scope != READ:
        raise Forbidden("a reader changes nothing, and starts no turns")
    narrowed = [given for given in who.scopes if given in SCOPES]
    if narrowed and scope not in narrowed and WRITE not in narrowed:
        raise InsufficientScope(f"this needs the scope {scope}")


class SessionStore(Protocol):
    """Where it is kept who is signed in, and which tickets were used. While it is down every method raises `Unavailable`."""

    async def begin(self, hash: bytes, who: Principal, seconds: float) -> None:
        """Keep a session of `who` for so many seconds at most, under the hash of its secret."""

    async def key_of(self, hash: bytes, idle: float) -> str | None:
        """The key that a session was begun with, which has been used with this; `None` for one that is over, or that was not
        used for `idle` seconds.
        """

    async def end(self, hash: bytes, *, everywhere: bool) -> None:
        """End a session, or every one of its user."""

    async def use_ticket(self, tenant: str, hash: bytes, expires_at: int) -> bool:
        """Whether a ticket is used now for the first time.

        Args:
            expires_at: until when that has to be known, in seconds since the epoch.
        """


def require_whole(who: Principal, *, tools: bool = False) -> None:
    """Refuse a key that is limited to certain tools wherever no tool is called. Raises `Forbidden`.

    Args:
        tools: whether a tool is called; the tool then checks whether the key may call it.
    """
    if who.tools is not None and not tools:
        raise Forbidden("this key may call its tools and nothing else")


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
