"""What turns need of others: the stores of turns, conversations and records, and the services that a turn may ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from phronesis_contracts import Principal, Rpc
from phronesis_contracts.deletions import Deletion, Purged
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.media import ExtractedText, Media
from phronesis_contracts.memory import AugmentedMemoryContext
from phronesis_contracts.messages import In, Out_
from phronesis_contracts.orchestrator import (
    Audited,
    Conversation,
    ConversationPage,
    ConversationRef,
    FindConversation,
    ListConversations,
    ListTurns,
    SubmitTurn,
    Turn,
    Turns,
)

from ..approvals.policy import ApprovalAnswer, ApprovalStore
from ..conversations.history import Past, Summary
from ..ledger.usage import Accounts, LedgerEntry
from ..traces.record import ShownHistory, StoredRecord
from .turn import Accepted, Claim, Completed, Failed, NewTurn


@dataclass(frozen=True)
class RecordedTurn:
    """A turn as its rows state it, with what was recorded of it."""

    claim: Claim
    turn: Turn
    record: StoredRecord | None
    """`None` where nothing was recorded: it began before there were records, or is not run yet."""
    forgotten: frozenset[str]
    """Ids of the memories it used that have been forgotten since."""


class TraceStore(Protocol):
    """The records of turns, inside one tenant at a time."""

    async def keep_record(self, claim: Claim, record: StoredRecord, profile: AgentProfile | None) -> None:
        """Keep what was recorded of a turn, while its claim is mine; what an earlier attempt left stands before it."""
        ...

    async def recorded(self, who: Principal, turn_id: str, *, any_user: bool) -> RecordedTurn:
        """A turn of the caller, or of any user of the tenant. Raises `NotFound`; `TurnForgotten` where its texts are gone."""
        ...

    async def ran_with(self, tenant: str, digest: str) -> AgentProfile | None:
        """The profile that an agent ran with."""
        ...

    async def past_of(self, tenant: str, conversation_id: str, remembered: ShownHistory) -> tuple[Past, bool]:
        """The history that a turn was shown, and whether all of it is there still."""
        ...

    async def answers_of(self, tenant: str, turn_id: str) -> dict[str, ApprovalAnswer]:
        """What people answered when the turn asked them, by its steps; what nobody has answered is left out."""
        ...

    async def forgotten(self, tenant: str, user: str, ids: tuple[str, ...]) -> None:
        """Note in the records of a user's turns that memories are gone."""
        ...


class TurnEnding(Protocol):
    """Where a turn ends."""

    async def end(self, claim: Claim, end: Completed | Failed) -> None:
        """End a turn in one transaction. Raises `LostClaim` where the fence or the lease is no longer mine."""
        ...


class TurnStore(TurnEnding, ApprovalStore, Protocol):
    """Turns, as their rows state them. Every write of a running turn is conditional on its fence and its lease."""

    async def accept(self, turn: NewTurn, open_turns: int) -> Accepted:
        """Commit a turn's row, or find it. Raises `KeyReused`, `NotFound` (conversation), `BadRequest` (agent), `Busy`."""
        ...

    async def claim(self, worker: str, limit: int, lease: float, tasks: int | None = None) -> list[Claim]:
        """Claim up to `limit` turns, at most `tasks` of them background tasks: the lowest open one of each conversation,
        people's before tasks, tenants with the fewest running first."""
        ...

    async def renew(self, worker: str, claims: list[Claim], lease: float) -> set[str]:
        """Renew the leases of `claims`; the ids of those that are still this worker's."""
        ...

    async def give_back(self, claim: Claim, delay: float, *, counts: bool) -> None:
        """Give a claim up, to be claimed again after `delay` seconds; `counts` says whether it counts as an idle one."""
        ...

    async def cancel(self, who: Principal, turn_id: str) -> Turn:
        """Cancel a turn that has not ended. Raises `NotFound`, `TurnEnded`."""
        ...

    async def retryable(self, who: Principal, turn_id: str) -> SubmitTurn:
        """What a failed or parked turn of the caller asked for, in its conversation. Raises `NotFound`, `Conflict`."""
        ...

    async def get(self, who: Principal, turn_id: str) -> Turn:
        """One turn of the caller. Raises `NotFound`."""
        ...

    async def list(self, who: Principal, query: ListTurns) -> Turns:
        """The caller's turns, newest first."""
        ...


class Journal(Protocol):
    """The journal of running turns."""

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
        ...

    async def result(self, claim: Claim, step: str, result: dict[str, Any], spend: LedgerEntry | None = None) -> None:
        """Write down what `step` gave and, in the same transaction, what its model call used. Raises `LostClaim`.

        Where the claim is lost, what was used is entered all the same.
        """
        ...


class Conversations(Protocol):
    """Conversations and their messages."""

    async def recent(self, tenant: str, conversation_id: str) -> Past:
        """The directive in force, the newest turns, and the summary with the turns that it does not cover yet."""
        ...

    async def keep_summary(self, tenant: str, conversation_id: str, summary: Summary) -> None:
        """Store a summary, unless one that reaches as far is there."""
        ...

    async def get(self, who: Principal, ref: ConversationRef) -> Conversation:
        """A conversation of the caller. Raises `NotFound`."""
        ...


class ConversationStore(Conversations, Protocol):
    """Conversations as their owner sees them: listed and deleted too."""

    async def page(self, who: Principal, query: ListConversations) -> ConversationPage:
        """A page of the caller's conversations, newest activity first. Raises `BadRequest` (cursor)."""
        ...

    async def ending(self, who: Principal, query: FindConversation) -> str | None:
        """The newest conversation of the caller that ends with these exchanges; `None` where none does."""
        ...

    async def delete(self, who: Principal, conversation_id: str) -> tuple[Deletion, tuple[str, ...]]:
        """Delete a conversation, once; its deletion, and the turns that this stopped. Raises `NotFound`."""
        ...

    async def deletion(self, who: Principal, deletion_id: str) -> Deletion:
        """A deletion of the caller. Raises `NotFound`."""
        ...

    async def purged(self, tenant: str, service: str, report: Purged) -> None:
        """Enter what a service removed; a repeat changes nothing."""
        ...


class Records(Accounts, TraceStore, Protocol):
    """What the orchestrator keeps of turns and for others: accounts, traces, the audit trail, and the revoked keys."""

    async def audit(self, news_id: str, tenant: str, service: str, entry: Audited) -> None:
        """Keep an audit entry; a repeat changes nothing."""
        ...

    async def revoke(self, tenant: str, key: str) -> None:
        """Remember that a key is revoked."""
        ...


class Neighbours(Protocol):
    """The services that a turn asks, on behalf of its caller."""

    async def agent(self, who: Principal, name: str) -> AgentProfile:
        """An agent's profile, from the cache where it is fresh. Raises `NotFound`."""
        ...

    async def profile(self, who: Principal) -> dict[str, object]:
        """What memory knows of the user."""
        ...

    async def retrieve(self, who: Principal, phrases: tuple[str, ...], budget: int, limit: float) -> AugmentedMemoryContext:
        """Hybrid retrieval for key phrases."""
        ...

    async def media(self, who: Principal, media_id: str) -> Media:
        """One medium of the caller. Raises `NotFound`."""
        ...

    async def medium_text(self, who: Principal, medium: Media, limit: float) -> ExtractedText:
        """The text of a medium, by the tool of its kind (D-021)."""
        ...

    async def ask(self, who: Principal, rpc: Rpc[In, Out_], request: In, *, key: str | None = None) -> Out_:
        """Ask a tool's owner. Raises the `ServiceError` that it answers with.

        Args:
            who: the caller of the turn.
            rpc: the tool's contract.
            request: its arguments.
            key: idempotency key of a write.
        """
        ...
