"""Scopes that narrow: a key or a token that names one of them may do no more than it says, whatever its role may."""

from __future__ import annotations

from typing import Any

from phronesis_contracts import Forbidden, Principal, Risk, Tool

READ = "phronesis:read"
"""Tools that change nothing."""
WRITE = "phronesis:write"
"""Everything that the role may; it holds `READ` too."""
SCOPES = (READ, WRITE)


class InsufficientScope(Forbidden):
    """The key or the token is narrower than what was asked with it; `WRITE` would do."""

    code = "insufficient_scope"


def needed(tool: Tool[Any, Any]) -> str:
    """The scope that a narrowed caller of `tool` has to have."""
    return READ if tool.risk is Risk.READ else WRITE


def require(who: Principal, scope: str) -> None:
    """Let `who` do what needs `scope`.

    Raises:
        InsufficientScope: `who` is narrowed to less.
    """
    narrowed = [given for given in who.scopes if given in SCOPES]
    if narrowed and scope not in narrowed and WRITE not in narrowed:
        raise InsufficientScope(f"this needs the scope {scope}")
