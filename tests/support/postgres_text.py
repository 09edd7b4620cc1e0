"""Looking for a text in everything that a Postgres holds."""

from __future__ import annotations

import asyncpg

from phronesis_postgres import EVERY_TENANT, Connection, Database

_TABLES = """
SELECT table_schema, table_name FROM information_schema.tables
WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema') AND table_name !~ '^_?yoyo'
"""


async def holding(database: Database, text: str) -> dict[str, int]:
    """How many rows of each table hold `text`, in any column, also as bytes; tables without any are left out."""
    async with database.connection(EVERY_TENANT) as connection:
        return {name.partition(".")[2]: rows for name, rows in (await rows_with(connection, text)).items()}


async def rows_with(connection: Connection | asyncpg.Connection, text: str) -> dict[str, int]:
    """The same over every schema, by `schema.table`."""
    found: dict[str, int] = {}
    for schema, table in await connection.fetch(_TABLES):
        rows = await connection.fetchval(
            f'SELECT count(*) FROM "{schema}"."{table}" AS t WHERE position($1 IN t::text) > 0 OR position($2 IN t::text) > 0',
            text,
            text.encode().hex(),
        )
        if rows:
            found[f"{schema}.{table}"] = rows
    return found
