"""What the handlers need from outside."""

from __future__ import annotations

from typing import Protocol

from phronesis.contracts.instructions import AgentProfile

from .domain import AgentContent


class Store(Protocol):
    """Where released instructions stand."""

    async def release(self, content: AgentContent) -> bool:
        """Release an agent's content where it is new, and announce it. Returns whether anything was written.

        Raises:
            Unavailable: the store is down, or not migrated yet.
        """
        ...

    async def profile(self, agent: str) -> AgentProfile | None:
        """The agent's profile with its active texts; `None` for an agent that has none.

        Raises:
            Unavailable: the store is down, or a text of the agent is not active.
        """
        ...

    async def ping(self) -> None:
        """Raise `Unavailable` unless the store answers."""
        ...
