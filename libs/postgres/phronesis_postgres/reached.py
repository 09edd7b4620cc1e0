"""How far a schema has been brought. It stands as the schema's comment, which every role may read: a service's own role does
not see the tables in which migrations are kept."""

from __future__ import annotations

import importlib.resources

import psycopg
from psycopg import sql

Session = psycopg.Connection[tuple[object, ...]]


def newest(service: str) -> str:
    """The last migration in the package of `service`; their names sort."""
    folder = importlib.resources.files(f"phronesis_{service}") / "migrations"
    return max(entry.name.partition(".")[0] for entry in folder.iterdir() if entry.name.endswith(".sql"))


def mark(session: Session, service: str, migration: str) -> None:
    """Say that `migration` is the newest one in the schema of `service`; for whoever has just brought it there."""
    statement = sql.SQL("COMMENT ON SCHEMA {} IS {}")
    session.execute(statement.format(sql.Identifier(service), sql.Literal(migration)))


def reached(session: Session, service: str) -> bool:
    """Whether the schema of `service` is at least as new as its package."""
    row = session.execute("SELECT obj_description(to_regnamespace(%s), 'pg_namespace')", (service,)).fetchone()
    return row is not None and str(row[0] or "") >= newest(service)
