"""All stores of the orchestrator over one Postgres, put together from the stores of its folders."""

from __future__ import annotations

from dataclasses import dataclass

from phronesis_contracts.orchestrator import Audited
from phronesis_postgres import Database

from .approvals.store import ApprovalExpiries, ApprovalRows
from .conversations.deletions import ConversationDeletions
from .conversations.store import ConversationHistory, ConversationPages
from .learning.statements import Copies, Unlearnt
from .learning.store import PostgresCopies, PostgresUnlearnt
from .ledger.store import LedgerRows
from .outside_tools.ports import Servers
from .outside_tools.store import PostgresServers
from .sessions.calendar import Calendars
from .sessions.store import PostgresCalendars
from .tasks.handlers import TaskQueries
from .tasks.store import PostgresTasks
from .traces.store import TraceRows
from .turns.ports import ConversationStore, Journal, Records, TurnStore
from .turns.queue import PostgresJournal, TurnClaims, TurnEnds
from .turns.store import ConversationReads, TurnIntake, TurnReads


@dataclass(frozen=True)
class Stores:
    """One of each, all over the same database: what is committed by one is seen by the others."""

    turns: TurnStore
    journal: Journal
    conversations: ConversationStore
    records: Records
    tasks: TaskQueries
    calendars: Calendars
    servers: Servers
    unlearnt: Unlearnt
    copies: Copies


class PostgresTurns(TurnIntake, TurnClaims, ApprovalRows, ApprovalExpiries, TurnEnds, TurnReads):
    """Turns: accepted, claimed, waiting for people, ended and read."""

    def __init__(self, database: Database) -> None:
        self._database = database


class PostgresConversations(ConversationReads, ConversationPages, ConversationHistory, ConversationDeletions):
    """Conversations: read, listed, summarised and deleted."""

    def __init__(self, database: Database) -> None:
        self._database = database


class PostgresRecords(LedgerRows, TraceRows):
    """The ledger, the traces, the audit trail and the revoked keys."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def audit(self, news_id: str, tenant: str, service: str, entry: Audited) -> None:
        """Keep an audit entry, once."""
        async with self._database.transaction(tenant) as connection:
            await connection.execute(
                "INSERT INTO audit (news_id, tenant, service, who, role, action, outcome, code, arguments) "
                "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (news_id) DO NOTHING",
                news_id,
                tenant,
                service,
                entry.who,
                entry.role,
                entry.action,
                entry.outcome,
                entry.code,
                entry.arguments,
            )

    async def revoke(self, tenant: str, key: str) -> None:
        """Remember a revoked key; its turns end at their next claim."""
        async with self._database.transaction(tenant) as connection:
            await connection.execute("INSERT INTO revoked_keys (key_id) VALUES ($1) ON CONFLICT DO NOTHING", key)


def open_stores(database: Database) -> Stores:
    """The stores of the orchestrator in a database."""
    return Stores(
        turns=PostgresTurns(database),
        journal=PostgresJournal(database),
        conversations=PostgresConversations(database),
        records=PostgresRecords(database),
        tasks=PostgresTasks(database),
        calendars=PostgresCalendars(database),
        servers=PostgresServers(database),
        unlearnt=PostgresUnlearnt(database),
        copies=PostgresCopies(database),
    )
