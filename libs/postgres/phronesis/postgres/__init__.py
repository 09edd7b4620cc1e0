"""What the services' Postgres stores share: the pool, migrations, the outbox, idempotent writes."""

from .outbox import PostgresOutbox, write_news
from .pool import Connection, Database
from .settings import PostgresSettings
from .writes import write_once

__all__ = ["Connection", "Database", "PostgresOutbox", "PostgresSettings", "write_news", "write_once"]
