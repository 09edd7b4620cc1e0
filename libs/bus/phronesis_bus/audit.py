"""What an audit entry holds: arguments with secrets masked and long texts cut."""

from __future__ import annotations

from typing import Any

from phronesis_contracts import Principal
from phronesis_contracts.orchestrator import Audited

_SECRET = ("key", "token", "secret", "password", "authorization", "credential")
_LONGEST = 200
_MOST = 20


def audited(who: Principal, action: str, arguments: dict[str, Any], *, code: str | None = None) -> Audited:
    """The entry for one write, or, with a `code`, for one refusal."""
    return Audited(
        who=who.user,
        role=who.role,
        action=action,
        outcome="done" if code is None else "refused",
        code=code,
        arguments=masked(arguments),
    )


def masked(value: Any, name: str = "", *, longest: int = _LONGEST, most: int = _MOST) -> Any:
    """`value` with secrets masked, and cut.

    Args:
        value: JSON.
        name: of the member that it is.
        longest: characters of a text that are kept.
        most: members of an object or a list that are kept.
    """
    if any(word in name.lower() for word in _SECRET):
        return "***"
    match value:
        case dict():
            return {str(k): masked(v, str(k), longest=longest, most=most) for k, v in list(value.items())[:most]}
        case list() | tuple():
            return [masked(v, longest=longest, most=most) for v in value[:most]]
        case str() if len(value) > longest:
            return f"{value[:longest]}… ({len(value)} characters)"
        case _:
            return value
