"""One role for each service: it reads and writes the tables of its own schema, under their policies, and does nothing else."""

from __future__ import annotations

import logging
from pathlib import Path

import psycopg
from psycopg import sql

Guard = psycopg.Connection[tuple[object, ...]]

log = logging.getLogger(__name__)

_INDEXED = ("arrayoverlap(anyarray, anyarray)", "arraycontains(anyarray, anyarray)")
"""What the index of items' words is asked with. Before a policy has looked at a row, the planner runs only what is marked as
telling nothing of its arguments. These two do not: of the numbers that they are used on here they compare, and no more."""
_INSTEAD = "CREATE INDEX IF NOT EXISTS texts_scope ON memory.texts (tenant, owner, kind)"
_ABOVE = """
    SELECT rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb
        OR EXISTS (SELECT FROM pg_auth_members WHERE member = pg_roles.oid) FROM pg_roles WHERE rolname = %s"""


class RoleAbove(Exception):
    """A service's role was given more than a service may have."""


def role_of(service: str) -> str:
    return f"phronesis_{service}"


def close_database(guard: Guard) -> None:
    """Take from everybody what a database lets everybody do: make schemas, tables for a session, and objects in `public`."""
    database = sql.Identifier(guard.info.dbname)
    guard.execute(sql.SQL("REVOKE CREATE, TEMPORARY ON DATABASE {} FROM PUBLIC").format(database))
    if _superuser(guard):
        guard.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")  # as servers before 15 give it


def grant_schema(guard: Guard, service: str, passwords: Path | None) -> None:
    """Make the role of `service` unless it is there, and give it its schema.

    Args:
        passwords: a folder with the file `<service>.password`; `None` where logins are somebody else's.

    Raises:
        RoleAbove: the role is there, and may do more than it should.
    """
    role, schema = sql.Identifier(role_of(service)), sql.Identifier(service)
    row = guard.execute(_ABOVE, (role_of(service),)).fetchone()
    if row is None:
        _make_role(guard, role)
    elif row[0]:
        raise RoleAbove(f"the role {role_of(service)} may do more than a service may")
    if passwords is not None:
        password = (passwords / f"{service}.password").read_text(encoding="utf-8").strip()
        # Hashed here, so that no log of the server has it.
        secret = guard.pgconn.encrypt_password(password.encode(), role_of(service).encode(), b"scram-sha-256").decode()
        guard.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(role, sql.Literal(secret)))
    for grant in (
        "GRANT USAGE ON SCHEMA {schema} TO {role}",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
        "GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
    ):
        guard.execute(sql.SQL(grant).format(schema=schema, role=role))
    for (table,) in guard.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = %s AND tablename ~ '^_?yoyo'", (service,)
    ).fetchall():
        guard.execute(sql.SQL("REVOKE ALL ON {}.{} FROM {}").format(schema, sql.Identifier(str(table)), role))


def keep_indexes_in_use(guard: Guard) -> None:
    """Let the index of items' words answer under row-level security. Only a superuser may; others get an index beside it."""
    if _superuser(guard):
        for function in _INDEXED:
            guard.execute(sql.SQL("ALTER FUNCTION pg_catalog.{} LEAKPROOF").format(sql.SQL(function)))
    else:
        log.warning("not a superuser: words are looked for among all of their owner's items, and not by their own index")
        guard.execute(_INSTEAD)


def _make_role(guard: Guard, role: sql.Identifier) -> None:
    try:
        guard.execute(sql.SQL("CREATE ROLE {} LOGIN").format(role))
    except (psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
        log.info("the role was made by a run on another database of this server")


def _superuser(guard: Guard) -> bool:
    row = guard.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()
    return row is not None and bool(row[0])
