"""The orchestrator's store in Postgres, put together from its parts."""

from __future__ import annotations

from phronesis_contracts.orchestrator import Audited
from phronesis_postgres import Database

from .approvals import Approving
from .claims import Claims, PostgresJournal
from .deletions import Deletions
from .ends import Ends
from .expiries import Expiries
from .intake import Intake
from .ledger import LedgerRows
from .pages import ConversationPages
from .pasts import Pasts
from .reads import ConversationReads, TurnReads
from .traces import TraceRows


class PostgresTurns(Intake, Claims, Approving, Expiries, Ends, TurnReads):
    """Turns: accepted, claimed, waiting for people, ended and read."""

    def __init__(self, database: Database) -> None:
        self._database = database


class PostgresConversations(ConversationReads, ConversationPages, Pasts, Deletions):
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


__all__ = ["PostgresConversations", "PostgresJournal", "PostgresRecords", "PostgresTurns"]
