"""What the services' Postgres stores share: the pool, migrations, the outbox, idempotent writes."""

from .outbox import PostgresOutbox, write_news
from .pool import Connection, Database
from .settings import PostgresSettings
from .tenants import EVERY_TENANT, Reach, reach
from .writes import write_once

__all__ = [
    "EVERY_TENANT",
    "Connection",
    "Database",
    "PostgresOutbox",
    "PostgresSettings",
    "Reach",
    "reach",
    "write_news",
    "write_once",
]
