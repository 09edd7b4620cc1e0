"""What the stages need from outside: what memory knows of earlier turns."""

from __future__ import annotations

from typing import Protocol

from phronesis_contracts import Principal

from .remembered import KnownStrategy, PastEpisode, ToolRecord


class Experience(Protocol):
    """The caller's earlier turns. Each method raises a `ServiceError` where memory does not answer."""

    async def recall_episodes(self, who: Principal, query: str, limit: int) -> tuple[PastEpisode, ...]:
        """Earlier turns that are like the message, best first (V-106)."""
        ...

    async def tool_statistics(self, who: Principal, tools: tuple[str, ...]) -> tuple[ToolRecord, ...]:
        """How often each of these tools worked (V-136)."""
        ...

    async def recall_strategies(self, who: Principal, query: str, limit: int) -> tuple[KnownStrategy, ...]:
        """Ways of working that went well for something like the message, best first (V-109)."""
        ...

    async def style_examples(self, who: Principal, query: str, limit: int) -> tuple[str, ...]:
        """How the person writes texts like the one that is wanted (V-107)."""
        ...


class NoExperience:
    """A memory that knows of no earlier turn."""

    async def recall_episodes(self, who: Principal, query: str, limit: int) -> tuple[PastEpisode, ...]:
        """None."""
        return ()

    async def tool_statistics(self, who: Principal, tools: tuple[str, ...]) -> tuple[ToolRecord, ...]:
        """None."""
        return ()

    async def recall_strategies(self, who: Principal, query: str, limit: int) -> tuple[KnownStrategy, ...]:
        """None."""
        return ()

    async def style_examples(self, who: Principal, query: str, limit: int) -> tuple[str, ...]:
        """None."""
        return ()
