"""The tables of the services' schemas, as the database lists them, and their rows by COPY."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

import asyncpg

from phronesis_postgres import PostgresSettings

from .archive import MemberWriter
from .format import Frame
from .reporting import Failed, Refused

SCHEMAS = ("gateway", "orchestrator", "memory", "instructions")
PROJECTIONS = {
    "memory.vectors",
    "memory.embedding",
    "memory.vector_changes",
    "memory.constitution_untold",
    "memory.constitution_schedule",
}
"""Behind the port of the vector index, which may be another store: they are in the archive as vectors. The last two are of one
installation: what its index has still to be told, and when its batches are due."""

_TABLES = """
    SELECT n.nspname AS schema, c.relname AS name, a.attname AS column, a.attidentity <> '' AS identity,
        format_type(a.atttypid, a.atttypmod) AS type
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
    WHERE c.relkind = 'r' AND n.nspname = ANY($1::text[]) AND c.relname !~ '^_?yoyo_'
    ORDER BY n.nspname, c.relname, a.attnum"""
_PARENTS = """
    SELECT n.nspname || '.' || c.relname AS child, m.nspname || '.' || p.relname AS parent,
        (SELECT attname FROM pg_attribute WHERE attrelid = c.oid AND attnum = k.conkey[1]) AS column,
        (SELECT attname FROM pg_attribute WHERE attrelid = p.oid AND attnum = k.confkey[1]) AS key
    FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_class p ON p.oid = k.confrelid JOIN pg_namespace m ON m.oid = p.relnamespace
    WHERE k.contype = 'f' AND n.nspname = ANY($1::text[])
    ORDER BY 1, 2"""
_MIGRATIONS = "SELECT migration_id FROM {}._yoyo_migration ORDER BY migration_id"
_SEQUENCES = """
    SELECT schemaname || '.' || sequencename AS name, last_value FROM pg_sequences
    WHERE schemaname = ANY($1::text[]) AND last_value IS NOT NULL ORDER BY 1"""


@dataclass(frozen=True)
class Parent:
    """A foreign key: a column of the child that holds the key of the parent."""

    table: str
    column: str
    key: str


@dataclass(frozen=True)
class Table:
    schema: str
    name: str
    columns: dict[str, str]
    identity: frozenset[str]
    """Columns that the database counts itself."""
    parents: tuple[Parent, ...]

    @property
    def full(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def quoted(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    @property
    def member(self) -> str:
        return f"postgres/{self.schema}/{self.name}"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


async def tables(connection: asyncpg.Connection[asyncpg.Record]) -> list[Table]:
    """All tables but those of projections, parents before children."""
    columns: dict[tuple[str, str], dict[str, str]] = {}
    identity: dict[tuple[str, str], set[str]] = {}
    for row in await connection.fetch(_TABLES, list(SCHEMAS)):
        place = (row["schema"], row["name"])
        columns.setdefault(place, {})[row["column"]] = row["type"]
        identity.setdefault(place, set()).update([row["column"]] if row["identity"] else [])
    parents: dict[str, list[Parent]] = {}
    for row in await connection.fetch(_PARENTS, list(SCHEMAS)):
        if row["child"] != row["parent"]:
            parents.setdefault(row["child"], []).append(Parent(row["parent"], row["column"], row["key"]))
    found = [
        Table(schema, name, of_table, frozenset(identity[schema, name]), tuple(parents.get(f"{schema}.{name}", ())))
        for (schema, name), of_table in columns.items()
        if f"{schema}.{name}" not in PROJECTIONS
    ]
    return _parents_first(found)


def _parents_first(found: list[Table]) -> list[Table]:
    ordered: list[Table] = []
    done: set[str] = set()
    while len(ordered) < len(found):
        ready = [t for t in found if t.full not in done and all(parent.table in done for parent in t.parents)]
        assert ready, "tables that refer to each other in a circle"
        ordered += ready
        done |= {table.full for table in ready}
    return ordered


async def migrations(connection: asyncpg.Connection[asyncpg.Record]) -> dict[str, tuple[str, ...]]:
    """The applied migrations of each schema that there is."""
    found = {}
    for schema in SCHEMAS:
        if await connection.fetchval("SELECT to_regclass($1) IS NOT NULL", f"{schema}._yoyo_migration"):
            found[schema] = tuple(row["migration_id"] for row in await connection.fetch(_MIGRATIONS.format(quoted(schema))))
    return found


async def sequences(connection: asyncpg.Connection[asyncpg.Record]) -> dict[str, int]:
    """The last value of each sequence that was used."""
    return {row["name"]: row["last_value"] for row in await connection.fetch(_SEQUENCES, list(SCHEMAS))}


if TYPE_CHECKING:
    Connection: TypeAlias = asyncpg.Connection[asyncpg.Record]
else:
    Connection = asyncpg.Connection
APPLICATION = "operations of phronesis"
"""How our connections call themselves; a service's begin with `phronesis-`."""
_SEES_ALL = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
_SERVICES = """
    SELECT DISTINCT application_name FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'phronesis-%' ORDER BY 1"""


@asynccontextmanager
async def connect_owner(settings: PostgresSettings) -> AsyncIterator[Connection]:
    """A connection of the schemas' owner for the length of a block.

    Raises:
        Refused: the database does not answer, or does not let us in.
    """
    # With row security on, a table whose rows we may not all see would be copied in part; so it is refused instead.
    options = {"application_name": APPLICATION, "row_security": "off", "statement_timeout": "0"}
    try:
        connection = await asyncpg.connect(
            settings.dsn.get_secret_value(), password=settings.password(), timeout=10, server_settings=options
        )
    except (OSError, TimeoutError, asyncpg.PostgresError) as error:
        raise Refused(f"Postgres does not let us in ({type(error).__name__}): see POSTGRES_DSN") from error
    try:
        if not await connection.fetchval(_SEES_ALL):
            raise Refused("POSTGRES_DSN has to name a superuser, or a role with BYPASSRLS: others see some tenants' rows alone")
        yield connection
    except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise Failed(f"Postgres did not do what was asked ({type(error).__name__})") from error
    finally:
        connection.terminate()


@asynccontextmanager
async def snapshot(settings: PostgresSettings) -> AsyncIterator[tuple[Connection, datetime]]:
    """A connection that sees all schemas as they are at one moment, and that moment."""
    async with connect_owner(settings) as connection:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            point = await connection.fetchval("SELECT clock_timestamp()")
            yield connection, point


async def dump_rows(connection: Connection, query: str, writer: MemberWriter) -> None:
    async def take(block: bytes) -> None:
        writer.add({"rows": block.count(b"\n")}, block)  # in COPY's text a line is a row

    await connection.copy_from_query(query, output=take, format="text")


def select_all(table: Table) -> str:
    return f"SELECT {_columns(table)} FROM {table.quoted}"  # noqa: S608


async def load_rows(
    connection: Connection, table: Table, frames: Iterator[Frame], *, columns: list[str] | None = None, into: str | None = None
) -> int:
    """Rows into a table, or into a temporary one with some of its columns; how many there were.

    Raises:
        Failed: the database does not take them.
    """

    async def blocks() -> AsyncIterator[bytes]:
        for frame in frames:
            yield frame.body

    schema = None if into else table.schema
    try:
        done = await connection.copy_to_table(
            into or table.name, schema_name=schema, columns=columns or list(table.columns), source=blocks(), format="text"
        )
    except asyncpg.PostgresError as error:
        raise Failed(f"Postgres did not take the rows of {table.full} ({error.sqlstate})") from error
    return int(done.split()[-1])


async def empty_tables(connection: Connection, all_tables: list[Table]) -> None:
    """Remove all rows of all tables, and of those that stand behind the port of the vector index."""
    await connection.execute(f"TRUNCATE {', '.join([*(table.quoted for table in all_tables), *sorted(PROJECTIONS)])}")


async def count_rows(connection: Connection, table: Table) -> int:
    return int(await connection.fetchval(f"SELECT count(*) FROM {table.quoted}"))  # noqa: S608


async def connected_services(connection: Connection) -> list[str]:
    return [row["application_name"] for row in await connection.fetch(_SERVICES)]


async def set_sequences(connection: Connection, values: dict[str, int]) -> None:
    """Let no sequence give a number again that it gave before."""
    for name, value in values.items():
        schema, _, sequence = name.partition(".")
        await connection.execute("SELECT setval($1::text::regclass, $2)", f"{quoted(schema)}.{quoted(sequence)}", value)


def _columns(table: Table) -> str:
    return ", ".join(map(quoted, table.columns))
