"""What an audit entry holds: arguments with secrets masked and long texts cut."""

from __future__ import annotations

from typing import Any

from phronesis.contracts import Principal
from phronesis.contracts.orchestrator import Audited

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
        arguments=_masked(arguments),
    )


def _masked(value: Any, name: str = "") -> Any:
    if any(word in name.lower() for word in _SECRET):
        return "***"
    match value:
        case dict():
            return {str(k): _masked(v, str(k)) for k, v in list(value.items())[:_MOST]}
        case list() | tuple():
            return [_masked(v) for v in value[:_MOST]]
        case str() if len(value) > _LONGEST:
            return f"{value[:_LONGEST]}… ({len(value)} characters)"
        case _:
            return value
