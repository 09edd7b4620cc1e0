"""Rooms: where the memories of a scope are. A room is the owner of its items, by a name that no user can have."""

from __future__ import annotations

from urllib.parse import quote

from phronesis_contracts import BadRequest, Forbidden, Principal, Role
from phronesis_contracts.scoped_memory import RECALLED, Scope

FACTS = "facts:"
"""What the name of every owner of facts begins with."""
ROOM = "scope:"
"""What the name of every room begins with. The policy `of_its_room` of the schema knows it too."""


def recalled(role: Role, name: str) -> Scope:
    """The scope of this name, which the role may recall.

    Raises:
        Forbidden: the role may not recall it (N-085).
        BadRequest: there is no such scope; the detail lists those that the role may recall (N-087).
    """
    allowed = RECALLED.get(role, frozenset())
    if name not in set(Scope):
        raise BadRequest(f"there is no such scope; allowed: {', '.join(sorted(allowed))}", field="scope")
    if (scope := Scope(name)) not in allowed:
        raise Forbidden(f"role {role} may not recall memories of the scope {scope}")
    return scope


def room_of(who: Principal, scope: Scope) -> str | None:
    """The room of this scope that the caller belongs to; `None` for one without the department or ministry.

    Names are quoted, so that each is one of a kind whatever characters an index trims or splits at.
    """
    match scope:
        case Scope.PERSONAL:
            name: str | None = who.user
        case Scope.DEPARTMENTAL:
            name = who.department
        case Scope.MINISTRY:
            name = who.ministry
        case _:
            return f"{ROOM}{scope}"
    return f"{ROOM}{scope}:{quote(name, safe='', errors='surrogatepass')}" if name and name.strip() else None


def owner_of_facts(user: str) -> str:
    """The owner of the items by which a user's held facts are found."""
    return FACTS + quote(user, safe="", errors="surrogatepass")
