"""A tenant's rows on their way in: in temporary tables first, where they are checked and get their new name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast
from uuid import uuid4

import asyncpg

from phronesis_contracts.memory import ItemKind
from phronesis_memory.adapters.writing import index_texts, lock
from phronesis_memory.domain.values import Draft
from phronesis_postgres import Connection as PoolConnection

from . import rows
from .errors import Damaged, Failed, Refused
from .frames import Frame
from .rows import Connection
from .tables import Table, quoted
from .tenancy import Tenancy, columns, moved

_QUIET = {"orchestrator.audit", "orchestrator.outbox", "memory.outbox", "memory.writes", "instructions.outbox"}
"""Where a tenant that has nothing may have left something: what was refused to it, and the making of its keys."""
_ITEMS = (
    "SELECT id, kind, title, body, family FROM memory.items WHERE tenant = $1 AND owner = $2 AND id > $3 ORDER BY id LIMIT 500"
)
_OWNERS = "SELECT DISTINCT owner FROM memory.items WHERE tenant = $1 ORDER BY owner"


class Staging:
    """One import's rows, inside one transaction of the connection.

    Args:
        connection: in a transaction.
        all_tables: the installation's tables.
        tenancy: whose rows they are, and whose they become.
    """

    def __init__(self, connection: Connection, all_tables: list[Table], tenancy: Tenancy) -> None:
        self._connection = connection
        self._tables = moved(all_tables)
        self._tenancy = tenancy
        self.mark = f"imported-{uuid4().hex}."
        """What stands before the ids of news that another installation has given."""

    async def nothing_there(self) -> None:
        """Raise `Refused` where the tenant has anything here."""
        for table in self._tables:
            if "tenant" in table.columns and table.full not in _QUIET:
                statement = f"SELECT EXISTS (SELECT FROM {table.quoted} WHERE tenant = $1)"  # noqa: S608
                if await self._connection.fetchval(statement, self._tenancy.new):
                    raise Refused(f"the tenant {self._tenancy.new} has something here ({table.full}): choose another --as")

    async def take(self, name: str, frames: Iterator[Frame]) -> int | None:
        """Take a member of the archive; how many rows it had, or `None` where it is no table's."""
        table = next((table for table in self._tables if table.member == name), None)
        if table is None:
            return None
        stage, names = _stage(table), ", ".join(map(quoted, columns(table)))
        await self._connection.execute(
            f"CREATE TEMP TABLE {stage} ON COMMIT DROP AS SELECT {names} FROM {table.quoted} LIMIT 0"  # noqa: S608
        )
        count = await rows.load(self._connection, table, frames, columns=columns(table), into=stage)
        await self._check(table)
        await self._rename(table)
        return count

    async def store(self) -> None:
        """Put everything in its place.

        Raises:
            Refused: an id of it is taken by something else here.
        """
        try:
            for table in self._tables:
                if await self._connection.fetchval("SELECT to_regclass($1) IS NOT NULL", f"pg_temp.{_stage(table)}"):
                    names = ", ".join(map(quoted, columns(table)))
                    statement = f"INSERT INTO {table.quoted} ({names}) SELECT {names} FROM {_stage(table)}"  # noqa: S608
                    await self._connection.execute(statement)
        except asyncpg.UniqueViolationError as error:
            raise Refused("ids of the archive are taken here: it is this installation's own, or was imported before") from error
        except asyncpg.IntegrityConstraintViolationError as error:
            raise Damaged(f"rows of the archive do not fit together ({error.sqlstate})") from error
        await self._index()

    async def raise_versions(self, last: int) -> None:
        """Let what is written here from now on be newer than anything that came in."""
        await self._connection.execute("SELECT setval('memory.versions', greatest(nextval('memory.versions'), $1))", last)

    async def _check(self, table: Table) -> None:
        stage = _stage(table)
        if "tenant" in table.columns:
            foreign = f"SELECT EXISTS (SELECT FROM {stage} WHERE tenant IS DISTINCT FROM $1)"  # noqa: S608
            wrong = await self._connection.fetchval(foreign, self._tenancy.old)
        else:
            wrong = False
        staged = {known.full: known for known in self._tables}
        for parent in table.parents:
            if parent.table not in staged:
                raise Failed(f"{table.full} hangs on {parent.table}, which does not move")
            above, key, column = _stage(staged[parent.table]), quoted(parent.key), quoted(parent.column)
            lost = f"SELECT EXISTS (SELECT FROM {stage} c WHERE NOT EXISTS (SELECT FROM {above} p WHERE p.{key} = c.{column}))"  # noqa: S608
            wrong = wrong or await self._connection.fetchval(lost)
        if wrong:
            raise Damaged(f"the archive holds rows of another tenant ({table.full})")

    async def _rename(self, table: Table) -> None:
        stage, new = _stage(table), self._tenancy.new
        changes = {
            "tenant": "$1",
            "principal": "jsonb_set(principal, '{tenant}', to_jsonb($1::text), false)",
            "subject": "regexp_replace(subject, '^evt[.][^.]+[.]', 'evt.' || $1 || '.')",
            "news_id": f"'{self.mark}' || regexp_replace(news_id, '^{self._tenancy.old}[.]', '{new}.')",
        }
        wanted = [f"{name} = {value}" for name, value in changes.items() if name in columns(table)]
        if wanted:
            given = [new] if any("$1" in part for part in wanted) else []
            await self._connection.execute(f"UPDATE {stage} SET {', '.join(wanted)}", *given)  # noqa: S608

    async def _index(self) -> None:
        """Count the words of all items anew: their hashes hold the tenant's name."""
        await self._connection.execute("SET LOCAL search_path = memory, public")
        tenant, connection = self._tenancy.new, cast(PoolConnection, self._connection)
        for owner in [row["owner"] for row in await self._connection.fetch(_OWNERS, tenant)]:
            await lock(connection, tenant, owner)
            after = "00000000-0000-0000-0000-000000000000"
            while found := await self._connection.fetch(_ITEMS, tenant, owner, after):
                drafts = [
                    (str(row["id"]), Draft(ItemKind(row["kind"]), row["body"], b"", family=row["family"], title=row["title"]))
                    for row in found
                ]
                await index_texts(connection, tenant, owner, drafts)
                after = str(found[-1]["id"])


def _stage(table: Table) -> str:
    return f"stage_{table.schema}_{table.name}"  # plain names, as our migrations give them
