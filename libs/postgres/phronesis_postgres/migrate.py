"""Bring every service's schema up to date; run before the services start, by one process at a time.

    python -m phronesis_postgres.migrate gateway orchestrator memory instructions

A service's migrations are the SQL files in its package's folder `migrations`, applied by yoyo-migrations, each in its
schema and each file in one transaction. An advisory lock keeps two runs apart and is freed when a run dies. Afterwards each
service's role is made and given its schema, by whoever runs this: the owner of the tables, and a superuser where there is
one.

The way back, with the service stopped, undoes what came after one migration and says first what is lost by it:

    python -m phronesis_postgres.migrate --down memory --to 0003-passages
    python -m phronesis_postgres.migrate --down memory --to 0003-passages --accept-loss
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from .roles import close_database, grant_schema, keep_indexes_in_use
from .schemas import Schema, UnknownMigration, mark_migration, newest_migration
from .settings import PostgresSettings

_LOCK = 7_420_911
_CONNECT = 5
"""Seconds for a connection."""


def migrate(settings: PostgresSettings, services: list[str]) -> None:
    """Apply what is missing to the schemas of `services`, and let their roles in."""
    with _exclusive_connection(settings) as guard:
        guard.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        close_database(guard)
        for service in services:
            guard.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(service)))
            with Schema.open(settings, service) as schema:
                schema.up()
            grant_schema(guard, service, settings.roles_dir)
            mark_migration(guard, service, newest_migration(service))
        if "memory" in services:
            keep_indexes_in_use(guard)


def go_back(settings: PostgresSettings, service: str, to: str) -> None:
    """Undo the migrations of `service` that came after `to`. What `losses` says is lost.

    Raises:
        UnknownMigration: `to` is not applied.
    """
    with _exclusive_connection(settings) as guard, Schema.open(settings, service) as schema:
        schema.down(to)
        mark_migration(guard, service, to)


def losses(settings: PostgresSettings, service: str, to: str) -> list[str]:
    """What `go_back` would lose, a paragraph for each migration, newest first.

    Raises:
        UnknownMigration: `to` is not applied.
    """
    with Schema.open(settings, service) as schema:
        return [f"{id}: {schema.loss(id)}" for id in schema.after(to)]


@contextmanager
def _exclusive_connection(settings: PostgresSettings) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    dsn, password = settings.dsn.get_secret_value(), settings.password()
    with psycopg.connect(dsn, password=password, connect_timeout=_CONNECT, autocommit=True) as guard:
        guard.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        yield guard


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("services", nargs="*", help="whose schemas to bring up to date")
    parser.add_argument("--down", metavar="SERVICE", help="whose schema to take back")
    parser.add_argument("--to", metavar="MIGRATION", help="the newest migration that stays")
    parser.add_argument("--accept-loss", action="store_true", help="do it, and do not only say what is lost")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(message)s")
    settings = PostgresSettings()
    if given.down is None:
        if not given.services or given.to or given.accept_loss:
            parser.error("name the services, or --down with --to")
        migrate(settings, given.services)
        return 0
    if given.services or given.to is None:
        parser.error("--down goes with --to, and with no other services")
    try:
        lost = losses(settings, given.down, given.to)
        print("\n".join(lost) or "Nothing to undo.")
        if lost and not given.accept_loss:
            print("Nothing is done yet. Stop the service, make a backup, and say it again with --accept-loss.")
            return 1
        go_back(settings, given.down, given.to)
    except UnknownMigration as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
