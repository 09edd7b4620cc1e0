"""What the services' Postgres stores share: the pool, migrations, the outbox, idempotent writes."""

from .pool import EVERY_TENANT, Connection, Database, Reach, reach_of
from .settings import PostgresSettings
from .writes import WRITES_OF_USER, PostgresOutbox, write_news, write_once

__all__ = [
    "EVERY_TENANT",
    "WRITES_OF_USER",
    "Connection",
    "Database",
    "PostgresOutbox",
    "PostgresSettings",
    "Reach",
    "reach_of",
    "write_news",
    "write_once",
]
