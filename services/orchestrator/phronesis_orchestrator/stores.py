"""All stores of the orchestrator over one Postgres."""

from __future__ import annotations

from dataclasses import dataclass

from phronesis_postgres import Database

from .approvals.store import PostgresApprovals
from .conversations.store import PostgresConversations
from .learning.statements import Copies, Unlearnt
from .learning.store import PostgresCopies, PostgresUnlearnt
from .ledger.store import PostgresLedger
from .outside_tools.ports import Servers
from .outside_tools.store import PostgresServers
from .sessions.calendar import Calendars
from .sessions.store import PostgresCalendars
from .tasks.handlers import TaskQueries
from .tasks.store import PostgresTasks
from .traces.store import PostgresTraces
from .turns.journal import PostgresJournal
from .turns.store import PostgresTurns


@dataclass(frozen=True)
class Stores:
    """One of each, all over the same database: what is committed by one is seen by the others."""

    turns: PostgresTurns
    journal: PostgresJournal
    approvals: PostgresApprovals
    conversations: PostgresConversations
    ledger: PostgresLedger
    traces: PostgresTraces
    tasks: TaskQueries
    calendars: Calendars
    servers: Servers
    unlearnt: Unlearnt
    copies: Copies


def open_stores(database: Database) -> Stores:
    return Stores(
        turns=PostgresTurns(database),
        journal=PostgresJournal(database),
        approvals=PostgresApprovals(database),
        conversations=PostgresConversations(database),
        ledger=PostgresLedger(database),
        traces=PostgresTraces(database),
        tasks=PostgresTasks(database),
        calendars=PostgresCalendars(database),
        servers=PostgresServers(database),
        unlearnt=PostgresUnlearnt(database),
        copies=PostgresCopies(database),
    )
