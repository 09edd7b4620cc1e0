"""What learning needs from outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from phronesis_contracts.forgetting import CopiesPurged, MemoryForgotten
from phronesis_contracts.instructions import AgentProfile

from ..reasoner import Answer
from .domain import Drawn, EndedTurn


@runtime_checkable
class Drawer(Protocol):
    """A reasoner that can also draw statements from ended turns. One that cannot leaves it to rules."""

    async def draw(self, agent: AgentProfile, batch: Sequence[EndedTurn]) -> Answer[Drawn]:
        """Draw statements from a batch of one user's turns, by one call; it is never repaired. Raises `CallFailed`."""
        ...


class Unlearnt(Protocol):
    """The ended turns that were not learnt from yet."""

    async def claim(self, most: int, after: float, lease: float) -> list[EndedTurn]:
        """Turns of one user, oldest first, once there are `most` or the oldest ended `after` seconds ago; none otherwise.

        Nobody else gets them for `lease` seconds.
        """
        ...

    async def learnt(self, turns: Sequence[EndedTurn]) -> None:
        """Note that these were learnt from."""
        ...


class Copies(Protocol):
    """What this service holds of memories in its turns."""

    async def forget(self, tenant: str, event: MemoryForgotten) -> CopiesPurged:
        """Remove the texts of the turns in which something was said, or before which memory put it, and report, once."""
        ...

    async def erased(self, tenant: str, user: str, seconds: float) -> tuple[str, ...]:
        """A user's turns that hold no text any more and ended within the last `seconds`, the newest first."""
        ...


class Streams(Protocol):
    """What the broker keeps of turns."""

    async def erase_shown(self, tenant: str, user: str, turns: Sequence[str]) -> None:
        """Erase the progress of a user's turns. Raises `Unavailable`."""
        ...

    async def erase_parked(self, tenant: str, ids: Sequence[str]) -> None:
        """Erase a tenant's parked messages that name one of these ids. Raises `Unavailable` and `TimedOut`."""
        ...
