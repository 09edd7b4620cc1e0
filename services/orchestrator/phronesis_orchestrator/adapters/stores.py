"""All stores over one Postgres."""

from __future__ import annotations

from phronesis_postgres import Database

from ..stores import Stores
from .calendars import PostgresCalendars
from .copies import PostgresCopies
from .outside import PostgresServers
from .store import PostgresConversations, PostgresJournal, PostgresRecords, PostgresTurns
from .tasks import PostgresTasks
from .unlearnt import PostgresUnlearnt


def stores(database: Database) -> Stores:
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
