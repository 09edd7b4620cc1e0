"""The migrations of one service's schema, forward and back, and how far a schema has been brought."""

from __future__ import annotations

import importlib.resources
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
from psycopg import sql
from yoyo import get_backend, read_migrations

from .pool import EVERY_TENANT, SETTING
from .settings import PostgresSettings

Session = psycopg.Connection[tuple[object, ...]]


def newest_migration(service: str) -> str:
    """The last migration in the package of `service`; their names sort."""
    folder = importlib.resources.files(f"phronesis_{service}") / "migrations"
    return max(entry.name.partition(".")[0] for entry in folder.iterdir() if entry.name.endswith(".sql"))


def mark_migration(session: Session, service: str, migration: str) -> None:
    """Say that `migration` is the newest one in the schema of `service`; for whoever has just brought it there."""
    statement = sql.SQL("COMMENT ON SCHEMA {} IS {}")
    session.execute(statement.format(sql.Identifier(service), sql.Literal(migration)))


def is_current(session: Session, service: str) -> bool:
    """Whether the schema of `service` is at least as new as its package."""
    row = session.execute("SELECT obj_description(to_regnamespace(%s), 'pg_namespace')", (service,)).fetchone()
    return row is not None and str(row[0] or "") >= newest_migration(service)


log = logging.getLogger(__name__)

_LOSS = re.compile(r"\A(?:-- .*\n)+")


class UnknownMigration(Exception):
    """A migration that is not applied."""


class Schema:
    """One service's migrations on its schema. `open()` makes one."""

    def __init__(self, backend: Any, folder: Path) -> None:
        self._backend = backend
        self._folder = folder
        self._migrations = read_migrations(str(folder))

    @classmethod
    @contextmanager
    def open(cls, settings: PostgresSettings, service: str) -> Iterator[Schema]:
        """The schema of `service`, which is there, for the length of a block."""
        with importlib.resources.as_file(importlib.resources.files(f"phronesis_{service}") / "migrations") as folder:
            backend = get_backend(_uri(settings, service))
            try:
                yield cls(backend, Path(folder))
            finally:
                backend.connection.close()

    def up(self, to: str | None = None) -> None:
        pending = self._backend.to_apply(self._migrations)
        for migration in pending:
            if to is None or migration.id <= to:
                log.info("%s", migration.id)
                self._backend.apply_one(migration)

    def down(self, to: str | None) -> None:
        """Undo what came after `to`, or everything where it is `None`, newest first.

        Raises:
            UnknownMigration: `to` is not applied.
        """
        wanted = self.after(to)
        for migration in self._backend.to_rollback(self._migrations):
            if migration.id in wanted:
                self._backend.rollback_one(migration)

    def after(self, to: str | None) -> list[str]:
        """The applied migrations after `to`, newest first. Raises `UnknownMigration`: `to` is not applied."""
        applied = [migration.id for migration in self._backend.to_rollback(self._migrations)]
        if to is not None and to not in applied:
            raise UnknownMigration(f"{to} is not applied; applied are {', '.join(reversed(applied)) or 'none'}")
        return applied if to is None else applied[: applied.index(to)]

    def loss(self, id: str) -> str:
        """What undoing a migration loses, as the first comment of its file says."""
        text = (self._folder / f"{id}.rollback.sql").read_text(encoding="utf-8")
        found = _LOSS.match(text)
        return " ".join(line.removeprefix("-- ") for line in found[0].splitlines()) if found else "unknown"


def _uri(settings: PostgresSettings, schema: str) -> str:
    """The address as yoyo takes it. A `schema` of yoyo's own would hide the extension's types in `public`."""
    parts = urlsplit(settings.dsn.get_secret_value())
    address, password = parts.netloc, settings.password()
    if password is not None:
        address = f"{quote(parts.username or '', safe='')}:{quote(password, safe='')}@{address.rpartition('@')[2]}"
    query = f"{parts.query}&" if parts.query else ""
    # A migration works on the rows of all, also where the owner of the tables is no superuser and held to their policies.
    options = quote(f"-c search_path={schema},public -c {SETTING}={EVERY_TENANT.value}")
    return urlunsplit(("postgresql+psycopg", address, parts.path, f"{query}options={options}", ""))
