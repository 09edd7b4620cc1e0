"""Bring every service's schema up to date; run before the services start, by one process at a time.

    python -m phronesis.postgres.migrate gateway orchestrator memory instructions

A service's migrations are the SQL files in its package's folder `migrations`, applied by yoyo-migrations, each in its
schema and each file in one transaction. An advisory lock keeps two runs apart and is freed when a run dies.
"""

from __future__ import annotations

import argparse
import importlib.resources
import logging
import sys
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
from psycopg import sql
from yoyo import get_backend, read_migrations

from .reached import mark
from .settings import PostgresSettings

log = logging.getLogger(__name__)

_LOCK = 7_420_911


def migrate(dsn: str, services: list[str]) -> None:
    """Apply what is missing to the schemas of `services`."""
    with psycopg.connect(dsn, autocommit=True) as guard:
        guard.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        guard.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        for service in services:
            guard.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(service)))
            _apply(dsn, service)
            mark(guard, service)


def _apply(dsn: str, service: str) -> None:
    with importlib.resources.as_file(importlib.resources.files(f"phronesis.{service}") / "migrations") as folder:
        backend = get_backend(_uri(dsn, service))
        try:
            migrations = read_migrations(str(Path(folder)))
            pending = backend.to_apply(migrations)
            for migration in pending:
                log.info("%s: %s", service, migration.id)
            backend.apply_migrations(pending)
        finally:
            backend.connection.close()


def _uri(dsn: str, schema: str) -> str:
    """The address as yoyo takes it. A `schema` of yoyo's own would hide the extension's types in `public`."""
    parts = urlsplit(dsn)
    query = f"{parts.query}&" if parts.query else ""
    path = quote(f"-c search_path={schema},public")
    return urlunsplit(("postgresql+psycopg", parts.netloc, parts.path, f"{query}options={path}", ""))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("services", nargs="+")
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(message)s")
    migrate(PostgresSettings().dsn.get_secret_value(), parser.parse_args().services)


if __name__ == "__main__":
    main()
