"""The tables of the services' schemas, as the database's own catalog lists them: a new one is in the next backup."""

from __future__ import annotations

from dataclasses import dataclass

import asyncpg

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
    """One table."""

    schema: str
    name: str
    columns: dict[str, str]
    """Type by name."""
    identity: frozenset[str]
    """Columns that the database counts itself."""
    parents: tuple[Parent, ...]

    @property
    def full(self) -> str:
        """`schema.name`."""
        return f"{self.schema}.{self.name}"

    @property
    def quoted(self) -> str:
        """The same, as a statement takes it."""
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    @property
    def member(self) -> str:
        """Its name in an archive."""
        return f"postgres/{self.schema}/{self.name}"


def quoted(name: str) -> str:
    """A name as a statement takes it."""
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
