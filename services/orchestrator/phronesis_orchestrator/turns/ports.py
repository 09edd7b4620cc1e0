"""What a running turn needs: where it ends, its journal, its conversation, and the services that it may ask."""

from __future__ import annotations

from typing import Any, Protocol

from phronesis_contracts import Principal, Rpc
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.media import ExtractedText, Media
from phronesis_contracts.memory import AugmentedMemoryContext
from phronesis_contracts.messages import In, Out_
from phronesis_contracts.orchestrator import Conversation, ConversationRef

from ..conversations.history import Past, Summary
from ..ledger.usage import LedgerEntry
from ..traces.record import StoredRecord
from .turn import Claim, Completed, Failed


class TurnEnding(Protocol):
    """Where a turn ends."""

    async def end(self, claim: Claim, end: Completed | Failed) -> None:
        """End a turn in one transaction. Raises `LostClaim` where the fence or the lease is no longer mine."""


class TurnQueue(Protocol):
    """What a worker needs of the store of turns. Every write of a running turn is conditional on its fence and its lease."""

    async def claim(self, worker: str, limit: int, lease: float, tasks: int | None = None) -> list[Claim]:
        """Claim up to `limit` turns, at most `tasks` of them background tasks: the lowest open one of each conversation,
        people's before tasks, tenants with the fewest running first."""

    async def renew(self, worker: str, claims: list[Claim], lease: float) -> set[str]:
        """Renew the leases of `claims`; the ids of those that are still this worker's."""

    async def give_back(self, claim: Claim, delay: float, *, counts: bool) -> None:
        """Give a claim up, to be claimed again after `delay` seconds; `counts` says whether it counts as an idle one."""


class Journal(Protocol):
    async def intend(self, claim: Claim, step: str, intent: dict[str, Any], *, once: bool = False) -> dict[str, Any] | None:
        """Write down that `step` is about to be made; the result where it was made before.

        Args:
            claim: the turn.
            step: its name in the turn.
            intent: what is about to be done.
            once: whether it may not be begun a second time.

        Raises:
            LostClaim: the turn is no longer mine.
            AlreadyBegun: with `once`, an earlier attempt began it and wrote no result down.
        """

    async def result(self, claim: Claim, step: str, result: dict[str, Any], spend: LedgerEntry | None = None) -> None:
        """Write down what `step` gave and, in the same transaction, what its model call used. Raises `LostClaim`.

        Where the claim is lost, what was used is entered all the same.
        """

    async def keep_record(self, claim: Claim, record: StoredRecord, profile: AgentProfile | None) -> None:
        """Keep what was recorded of a turn, while its claim is mine; what an earlier attempt left stands before it."""


class Conversations(Protocol):
    async def recent(self, tenant: str, conversation_id: str) -> Past:
        """The directive in force, the newest turns, and the summary with the turns that it does not cover yet."""

    async def keep_summary(self, tenant: str, conversation_id: str, summary: Summary) -> None:
        """Store a summary, unless one that reaches as far is there."""

    async def get(self, who: Principal, ref: ConversationRef) -> Conversation:
        """A conversation of the caller. Raises `NotFound`."""


class Neighbours(Protocol):
    """The services that a turn asks, on behalf of its caller."""

    async def agent(self, who: Principal, name: str) -> AgentProfile:
        """An agent's profile, from the cache where it is fresh. Raises `NotFound`."""

    async def profile(self, who: Principal) -> dict[str, object]:
        """What memory knows of the user."""

    async def retrieve(self, who: Principal, phrases: tuple[str, ...], budget: int, limit: float) -> AugmentedMemoryContext:
        """Hybrid retrieval for key phrases."""

    async def media(self, who: Principal, media_id: str) -> Media:
        """One medium of the caller. Raises `NotFound`."""

    async def medium_text(self, who: Principal, medium: Media, limit: float) -> ExtractedText:
        """The text of a medium, by the tool of its kind."""

    async def ask(self, who: Principal, rpc: Rpc[In, Out_], request: In, *, key: str | None = None) -> Out_:
        """Ask a tool's owner. Raises the `ServiceError` that it answers with.

        Args:
            who: the caller of the turn.
            rpc: the tool's contract.
            request: its arguments.
            key: idempotency key of a write.
        """
