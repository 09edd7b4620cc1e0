"""What traces and replays need of the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from phronesis_contracts import Principal
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.orchestrator import Turn

from ..domain import Claim
from ..history import Past
from ..policy.waiting import Answered
from .record import KeptRecord, Remembered


@dataclass(frozen=True)
class Ended:
    """A turn as its rows state it, with what was recorded of it."""

    claim: Claim
    turn: Turn
    record: KeptRecord | None
    """`None` where nothing was recorded: it began before there were records, or is not run yet."""
    forgotten: frozenset[str]
    """Ids of the memories it used that have been forgotten since."""


class TraceStore(Protocol):
    """The records of turns, inside one tenant at a time."""

    async def keep_record(self, claim: Claim, record: KeptRecord, profile: AgentProfile | None) -> None:
        """Keep what was recorded of a turn, while its claim is mine; what an earlier attempt left stands before it."""
        ...

    async def recorded(self, who: Principal, turn_id: str, *, any_user: bool) -> Ended:
        """A turn of the caller, or of any user of the tenant. Raises `NotFound`; `TurnForgotten` where its texts are gone."""
        ...

    async def ran_with(self, tenant: str, digest: str) -> AgentProfile | None:
        """The profile that an agent ran with."""
        ...

    async def past_of(self, tenant: str, conversation_id: str, remembered: Remembered) -> tuple[Past, bool]:
        """The history that a turn was shown, and whether all of it is there still."""
        ...

    async def answers_of(self, tenant: str, turn_id: str) -> dict[str, Answered]:
        """What people answered when the turn asked them, by its steps; what nobody has answered is left out."""
        ...

    async def forgotten(self, tenant: str, user: str, ids: tuple[str, ...]) -> None:
        """Note in the records of a user's turns that memories are gone."""
        ...
