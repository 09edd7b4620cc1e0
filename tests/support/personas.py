"""Whom tests act as: an administrator, or a member who may act as one agent."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from phronesis_contracts import Agent, Principal, Role, Tool


class Persona(StrEnum):
    """Whom a test acts as."""

    NOOR = "noor"
    MAESTRO = "maestro"
    CURATOR = "curator"
    DISCUSS = "discuss"
    DECISIONS = "decisions"
    EXECUTE = "execute"
    MIND = "mind"
    EDITOR = "editor"
    ADMIN = "admin"

    @property
    def rights(self) -> dict[str, Any]:
        """Role and agents, as a key and a principal state them."""
        if self is Persona.ADMIN:
            return {"role": Role.ADMIN, "agents": ()}
        return {"role": Role.MEMBER, "agents": (Agent(self.value),)}

    @property
    def stated(self) -> dict[str, Any]:
        """The same as a body states it."""
        return {"role": "admin"} if self is Persona.ADMIN else {"role": "member", "agents": [self.value]}

    @property
    def text(self) -> str:
        """The same in words, as the audit trail has it."""
        return self.principal.rights

    @property
    def principal(self) -> Principal:
        """Such a caller, of any tenant."""
        return Principal(tenant="t", user="u", **self.rights)

    def may(self, tool: Tool[Any, Any]) -> bool:
        """Whether such a caller may use a tool, as the contract states it."""
        return self is Persona.ADMIN or Agent(self.value) in tool.agents


def persona_of(who: Principal) -> Persona:
    """Whom a principal is."""
    (found,) = (one for one in Persona if one.rights == {"role": who.role, "agents": who.agents})
    return found
