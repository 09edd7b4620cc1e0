"""How a replay is run: as any turn is, on stand-ins for all that a turn reads and writes."""

from __future__ import annotations

from phronesis_bus.tracing import Tracing
from phronesis_contracts.orchestrator import TurnProgress

from ..domain import Claim
from ..ledger.books import Books
from ..policy.waiting import Pausing
from ..ports import Conversations, Journal, Neighbours
from ..reasoner import Reasoner
from ..run import Runner
from ..settings import OrchestratorSettings
from .record import Record
from .replay import Run
from .replaying import Outcome


def replays(reasoner: Reasoner, settings: OrchestratorSettings, tracing: Tracing, books: Books) -> Run:
    """Runs claims on stand-ins, held to the limits as turns are.

    Args:
        reasoner: what thinks.
        settings: limits of turns.
        tracing: where spans go.
        books: the ledger.
    """

    async def show(claim: Claim, line: TurnProgress) -> None:
        """Nobody watches a replay."""

    async def run(
        outcome: Outcome,
        journal: Journal,
        conversations: Conversations,
        neighbours: Neighbours,
        approvals: Pausing,
        claim: Claim,
        record: Record,
    ) -> None:
        stands = (outcome, journal, conversations, neighbours, reasoner)
        runner = Runner(*stands, settings, tracing, show, lambda: None, books, approvals=approvals)
        await runner.run(claim, record)

    return run
