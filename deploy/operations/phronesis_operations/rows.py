"""Tables out of Postgres and into it, by COPY: nothing is parsed, and no more than some blocks are held."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

import asyncpg

from phronesis_postgres import PostgresSettings

from .errors import Failed, Refused
from .frames import Frame
from .tables import PROJECTIONS, Table, quoted
from .writing import MemberWriter

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
async def connected(settings: PostgresSettings) -> AsyncIterator[Connection]:
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
    async with connected(settings) as connection:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            point = await connection.fetchval("SELECT clock_timestamp()")
            yield connection, point


async def dump(connection: Connection, query: str, writer: MemberWriter) -> None:
    """The rows of a query as records."""

    async def take(block: bytes) -> None:
        writer.add({"rows": block.count(b"\n")}, block)  # in COPY's text a line is a row

    await connection.copy_from_query(query, output=take, format="text")


def everything(table: Table) -> str:
    """The query for all rows of a table."""
    return f"SELECT {_columns(table)} FROM {table.quoted}"  # noqa: S608


async def load(
    connection: Connection,
    table: Table,
    frames: Iterator[Frame],
    *,
    columns: list[str] | None = None,
    into: str | None = None,
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
            into or table.name,
            schema_name=schema,
            columns=columns or list(table.columns),
            source=blocks(),
            format="text",
        )
    except asyncpg.PostgresError as error:
        raise Failed(f"Postgres did not take the rows of {table.full} ({error.sqlstate})") from error
    return int(done.split()[-1])


async def empty(connection: Connection, all_tables: list[Table]) -> None:
    """Remove all rows of all tables, and of those that stand behind the port of the vector index."""
    await connection.execute(f"TRUNCATE {', '.join([*(table.quoted for table in all_tables), *sorted(PROJECTIONS)])}")


async def count(connection: Connection, table: Table) -> int:
    """How many rows a table has."""
    return int(await connection.fetchval(f"SELECT count(*) FROM {table.quoted}"))  # noqa: S608


async def services_there(connection: Connection) -> list[str]:
    """The services that are connected at this moment."""
    return [row["application_name"] for row in await connection.fetch(_SERVICES)]


async def set_sequences(connection: Connection, values: dict[str, int]) -> None:
    """Let no sequence give a number again that it gave before."""
    for name, value in values.items():
        schema, _, sequence = name.partition(".")
        await connection.execute("SELECT setval($1::text::regclass, $2)", f"{quoted(schema)}.{quoted(sequence)}", value)


def _columns(table: Table) -> str:
    return ", ".join(map(quoted, table.columns))
