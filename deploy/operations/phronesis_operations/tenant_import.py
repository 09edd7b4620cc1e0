"""`phronesis import`: one tenant's archive into an installation that runs, by way of temporary tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import cast
from uuid import uuid4

import asyncpg

from phronesis_bus import MEDIA, Blobs, Bus, connect
from phronesis_bus.recording import USER
from phronesis_contracts import ServiceError
from phronesis_contracts.memory import ItemKind
from phronesis_graph.twin.ontology_file import load as ontology
from phronesis_memory.items.rows import index_texts, lock_owner
from phronesis_memory.ports import VectorIndex
from phronesis_memory.values import Draft
from phronesis_postgres import Connection as PoolConnection

from . import broker, tables, vectors
from . import graph as graph_model
from .archive import Archive
from .format import Frame, Manifest
from .graph import GraphLoad
from .places import Places
from .reporting import Damaged, Failed, Progress, Refused
from .tables import Connection, Table, quoted
from .tenancy import Tenancy, movable_columns, movable_tables

_QUIET = {"orchestrator.audit", "orchestrator.outbox", "memory.outbox", "memory.writes", "instructions.outbox"}
"""Where a tenant that has nothing may have left something: what was refused to it, and the making of its keys."""
_ITEMS = (
    "SELECT id, kind, title, body, family FROM memory.items WHERE tenant = $1 AND owner = $2 AND id > $3 ORDER BY id LIMIT 500"
)
_OWNERS = "SELECT DISTINCT owner FROM memory.items WHERE tenant = $1 ORDER BY owner"


class Staging:
    """One import's rows, inside one transaction of the connection."""

    def __init__(self, connection: Connection, all_tables: list[Table], tenancy: Tenancy) -> None:
        self._connection = connection
        self._tables = movable_tables(all_tables)
        self._tenancy = tenancy
        self.mark = f"imported-{uuid4().hex}."
        """What stands before the ids of news that another installation has given."""

    async def nothing_there(self) -> None:
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
        stage, names = _stage(table), ", ".join(map(quoted, movable_columns(table)))
        await self._connection.execute(
            f"CREATE TEMP TABLE {stage} ON COMMIT DROP AS SELECT {names} FROM {table.quoted} LIMIT 0"  # noqa: S608
        )
        count = await tables.load_rows(self._connection, table, frames, columns=movable_columns(table), into=stage)
        await self._check(table)
        await self._rename(table)
        return count

    async def store(self) -> None:
        """Put everything in its place. Raises `Refused`: an id of it is taken by something else here."""
        try:
            for table in self._tables:
                if await self._connection.fetchval("SELECT to_regclass($1) IS NOT NULL", f"pg_temp.{_stage(table)}"):
                    names = ", ".join(map(quoted, movable_columns(table)))
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
        wanted = [f"{name} = {value}" for name, value in changes.items() if name in movable_columns(table)]
        if wanted:
            given = [new] if any("$1" in part for part in wanted) else []
            await self._connection.execute(f"UPDATE {stage} SET {', '.join(wanted)}", *given)  # noqa: S608

    async def _index(self) -> None:
        await self._connection.execute("SET LOCAL search_path = memory, public")
        tenant, connection = self._tenancy.new, cast(PoolConnection, self._connection)
        for owner in [row["owner"] for row in await self._connection.fetch(_OWNERS, tenant)]:
            await lock_owner(connection, tenant, owner)
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


_VERSIONS = "memory.versions"


async def import_tenant(places: Places, archive: Archive, tenancy: Tenancy, progress: Progress) -> None:
    """Load a tenant's archive; nothing of it is left where that fails.

    Raises:
        Refused: the tenant has something here, ids are taken, or the schemas or the model of the vectors differ.
        Failed: a store does not take it.
        ServiceError: a store does not answer.
    """
    async with AsyncExitStack() as stack:
        connection = await stack.enter_async_context(tables.connect_owner(places.postgres))
        bus = await stack.enter_async_context(connect(USER, places.bus.model_copy(update={"trust_dir": None})))
        bolt = await stack.enter_async_context(graph_model.open_graph(places.graph))
        await _check(connection, archive.manifest)
        index = None
        if archive.manifest.model is not None and archive.manifest.dimension is not None:
            index = await stack.enter_async_context(
                vectors.open_vectors(places, archive.manifest.model, archive.manifest.dimension)
            )
        graph = GraphLoad(bolt, ontology(), tenancy)
        await _Import(connection, bus, graph, index, archive, tenancy, progress).run()


async def _check(connection: Connection, manifest: Manifest) -> None:
    here = await tables.migrations(connection)
    if any(manifest.migrations.get(schema) != applied for schema, applied in here.items()):
        raise Refused("the archive holds another version of the schemas: bring both installations to the same version")
    model = await vectors.model(connection)
    if manifest.model is not None and model is not None and model != (manifest.model, manifest.dimension):
        raise Refused(f"the vectors of the archive are of {manifest.model}, and those here of {model[0]}")


class _Import:
    def __init__(
        self,
        connection: Connection,
        bus: Bus,
        graph: GraphLoad,
        index: VectorIndex | None,
        archive: Archive,
        tenancy: Tenancy,
        progress: Progress,
    ) -> None:
        self._connection = connection
        self._bus = bus
        self._graph = graph
        self._index = index
        self._archive = archive
        self._tenancy = tenancy
        self._progress = progress
        self._bucket = Blobs(bus, MEDIA)

    async def run(self) -> None:
        """Rows are seen last, all at once: whatever is asked for before that finds nothing of the tenant."""
        everything = await tables.tables(self._connection)
        async with self._connection.transaction():
            staging = Staging(self._connection, everything, self._tenancy)
            await staging.nothing_there()
            if await self._graph.of_tenant(self._tenancy.new) or await self._objects():
                raise Refused(f"the tenant {self._tenancy.new} has something here: choose another --as")
            try:
                await self._stores(staging)
                await staging.raise_versions(self._archive.manifest.sequences.get(_VERSIONS, 1))
                await staging.store()
            except BaseException:
                await self._undo()
                raise
        for name, frames in self._archive.members():
            if name == broker.EVENTS:
                self._progress.done(name, await broker.publish_all(self._bus, frames, self._tenancy, staging.mark))

    async def _stores(self, staging: Staging) -> None:
        for name, frames in self._archive.members():
            count = await staging.take(name, frames)
            if name == graph_model.NODES:
                count = await self._graph.nodes(frames)
            elif name == graph_model.RELATIONSHIPS:
                count = await self._graph.relationships(frames)
            elif name == vectors.VECTORS and self._index is not None:
                dimension = self._archive.manifest.dimension or 0
                count = await vectors.load(self._index, frames, dimension, self._tenancy)
            elif name == broker.OBJECTS:
                count = await broker.load_objects(self._bucket, frames, self._tenancy)
            elif name == broker.EVENTS:
                continue
            if count is None:
                raise Refused(f"the archive holds {name}, which this version does not know")
            self._progress.done(name, count)

    async def _objects(self) -> list[str]:
        return [name for name in await self._bucket.names() if name.startswith(f"{self._tenancy.new}/")]

    async def _undo(self) -> None:
        try:
            await self._graph.remove(self._tenancy.new)
            for name in await self._objects():
                await self._bucket.delete(name)
            if self._index is not None:
                await vectors.remove(self._index, self._tenancy.new)
        except ServiceError as error:
            raise Failed("it failed half-way, and a store did not answer to have its part removed") from error
