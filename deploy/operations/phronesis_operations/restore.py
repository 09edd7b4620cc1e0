"""`phronesis restore`: an archive into empty stores; what was forgotten since the backup is forgotten again."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from phronesis_bus import MEDIA, Blobs, Bus, connect
from phronesis_bus.recording import USER, count_waiting_events, duplicate_window, forget_events
from phronesis_contracts import ServiceError
from phronesis_graph.bolt.driver import Bolt
from phronesis_graph.bolt.schema import Schema
from phronesis_graph.bolt.writes import GraphOutbox
from phronesis_graph.twin.ontology_file import load as ontology
from phronesis_memory.ports import VectorIndex
from phronesis_postgres.migrate import migrate

from . import broker, graph, tables, vectors
from .archive import Archive
from .format import Frame, Manifest
from .graph import GraphLoad
from .places import Places
from .reporting import Failed, Progress, Refused
from .tables import SCHEMAS, Connection, Table

_COLUMNS = ("id", "tenant", "owner", "ids", "turns", "conversation_id", "requested_at")
_OF_ERASURES = ("id", "tenant", "user_id", "requested_by", "requested_at")
_OF_SOURCES = ("id", "tenant", "user_id", "principal", "media", "conversation_id", "origin", "turns", "linked", "requested_at")
_READ_SOURCES = """
    SELECT id::text, tenant, user_id, principal::text, media, conversation_id::text, origin::text, turns::text[], linked,
        requested_at::text FROM orchestrator.source_forgettings ORDER BY requested_at, id"""
_READ_FORGOTTEN = """
    SELECT id::text, tenant, owner, ids, turns, conversation_id, requested_at::text FROM memory.forgettings
    ORDER BY requested_at, id"""
_READ_ERASED = """
    SELECT id::text, tenant, user_id, requested_by, requested_at::text FROM gateway.erasures ORDER BY requested_at, id"""
_FORGET_AGAIN = """
    INSERT INTO memory.forgettings (id, tenant, owner, ids, turns, conversation_id, requested_at, again)
    VALUES ($1::text::uuid, $2, $3, $4, $5, $6, $7::text::timestamptz, true) ON CONFLICT (id) DO NOTHING"""
# One that is not complete is taken up by the gateway as it starts.
_ERASE_AGAIN = """
    INSERT INTO gateway.erasures (id, tenant, user_id, requested_by, requested_at)
    VALUES ($1::text::uuid, $2, $3, $4, $5::text::timestamptz) ON CONFLICT DO NOTHING"""
# So is one of these by the orchestrator.
_FORGET_SOURCES_AGAIN = """
    INSERT INTO orchestrator.source_forgettings
        (id, tenant, user_id, principal, media, conversation_id, origin, turns, linked, requested_at)
    VALUES ($1::text::uuid, $2, $3, $4::text::jsonb, $5, $6::text::uuid, $7::text::jsonb, $8::text[]::uuid[], $9,
        $10::text::timestamptz) ON CONFLICT (id) DO NOTHING"""
_COUNT = """
    SELECT (SELECT count(*) FROM memory.forgettings) + (SELECT count(*) FROM gateway.erasures)
        + (SELECT count(*) FROM orchestrator.source_forgettings)"""
_LISTS = (
    (_READ_FORGOTTEN, _FORGET_AGAIN, _COLUMNS),
    (_READ_SOURCES, _FORGET_SOURCES_AGAIN, _OF_SOURCES),
    (_READ_ERASED, _ERASE_AGAIN, _OF_ERASURES),
)
"""Of each kind: how it is read, how it is written, and its columns."""
Forgotten = Sequence[dict[str, Any]]
"""Forgettings of facts and of sources, and erasures of users, each as a row by column."""


async def find_forgotten(connection: Connection) -> Forgotten:
    """Every forgetting, and every erasure of a user, that these stores know."""
    return [dict(row) for statement, _, _ in _LISTS for row in await connection.fetch(statement)]


async def forget_again(connection: Connection, known: Forgotten) -> int:
    """Let the services repeat, when they start, what the restored stores do not know; how many forgettings those are."""
    before = await connection.fetchval(_COUNT)
    for _, statement, columns in _LISTS:
        rows = [[one[name] for name in columns] for one in known if set(one) == set(columns)]
        await connection.executemany(statement, rows)
    return int(await connection.fetchval(_COUNT)) - int(before)


def write_forgotten(known: Forgotten, path: Path) -> None:
    path.write_text("".join(f"{json.dumps(one)}\n" for one in known), encoding="utf-8")


def read_forgotten(path: Path) -> Forgotten:
    """The forgettings of a file. Raises `Refused` where it is none."""
    try:
        found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise Refused(f"{path} is no list of what was forgotten") from error
    if not all(isinstance(one, dict) and set(one) in [set(columns) for _, _, columns in _LISTS] for one in found):
        raise Refused(f"{path} is no list of what was forgotten")
    return found


Counts = dict[str, int]
_RELEASE = """
    WITH held AS (DELETE FROM memory.held_news RETURNING tenant, subject, body, headers)
    INSERT INTO memory.outbox (tenant, subject, body, headers) SELECT * FROM held"""
_AGAIN = "the stores hold part of it: do it again with --force, before any service is started"


async def restore(
    places: Places, archive: Archive, progress: Progress, *, force: bool = False, known: Forgotten = ()
) -> Counts:
    """Load a backup.

    Args:
        places: the stores; no service may run on them.
        force: whether to empty stores that are not; what they know to be forgotten is forgotten again.
        known: more that is to be forgotten again.

    Returns:
        What the stores hold now, by the names of the manifest's members.

    Raises:
        Refused: services run, the schemas differ, or a store is not empty; nothing was changed.
        Failed: it ended half-way.
    """
    async with AsyncExitStack() as stack:
        target = await Target.opened(stack, places, archive.manifest)
        await target.check_versions()
        if not force:
            await target.check_empty()
        try:
            if force:
                known = [*known, *await target.known()]
                await target.empty()
            for name, frames in archive.members():
                progress.done(name, await target.load(name, frames))
            await target.finish()
            if force:
                await target.forgotten(progress)
            counts = await target.counts()
            await target.release()
            await target.forget_again(known, progress)
            return counts
        except (ServiceError, Failed, Refused, OSError) as error:
            raise Failed(f"{error}; {_AGAIN}") from error


class Target:
    """The stores of an installation, opened to be loaded. `opened()` makes one."""

    def __init__(
        self, manifest: Manifest, connection: Connection, bus: Bus, bolt: Bolt, schema: Schema, index: VectorIndex
    ) -> None:
        self._manifest = manifest
        self._connection = connection
        self._bus = bus
        self._bolt = bolt
        self._graph = GraphLoad(bolt, ontology(), declare=schema.declare_types)
        self._index = index
        self._bucket = Blobs(bus, MEDIA)
        self._tables: list[Table] = []
        self._published = 0
        self._began = time.monotonic()

    @classmethod
    async def opened(cls, stack: AsyncExitStack, places: Places, manifest: Manifest) -> Target:
        """The stores until `stack` is closed, with the schemas that this version has.

        Raises:
            Refused: services run on them, or Postgres does not let us in.
            ServiceError: another store does not answer.
        """
        connection = await stack.enter_async_context(tables.connect_owner(places.postgres))
        if there := await tables.connected_services(connection):
            names = ", ".join(name.removeprefix("phronesis-") for name in there)
            raise Refused(f"services run on these stores ({names}): stop them first")
        await asyncio.to_thread(migrate, places.postgres, list(SCHEMAS))
        bus = await stack.enter_async_context(connect(USER, places.bus.model_copy(update={"trust_dir": None})))
        bolt = await stack.enter_async_context(graph.open_graph(places.graph))
        schema = Schema(bolt, ontology(), places.graph.dialect)
        await schema.declared()
        index = await stack.enter_async_context(vectors.open_vectors(places, manifest.model or "", manifest.dimension or 1))
        target = cls(manifest, connection, bus, bolt, schema, index)
        target._tables = await tables.tables(connection)
        return target

    async def check_versions(self) -> None:
        here = await tables.migrations(self._connection)
        for schema, applied in here.items():
            if self._manifest.migrations.get(schema) != applied:
                raise Refused(
                    f"the archive holds another version of the schema {schema}: "
                    "restore it with the version that wrote it, and bring that up to date"
                )
        held = {member.name for member in self._manifest.members if member.name.startswith("postgres/")}
        if held != {table.member for table in self._tables}:
            raise Refused("the archive holds other tables than this version has")

    async def check_empty(self) -> None:
        counts = await self.counts()
        claimed = await vectors.model(self._connection)
        waiting = {broker.EVENTS: await count_waiting_events(self._bus), vectors.VECTORS: counts[vectors.VECTORS] or claimed}
        if full := [name for name, count in (counts | waiting).items() if count]:
            raise Refused(f"there is something in {', '.join(full[:5])}: --force removes everything first")

    async def empty(self) -> None:
        await tables.empty_tables(self._connection, self._tables)
        await self._graph.empty()
        await self._index.clear()
        await broker.remove_objects(self._bucket)
        await forget_events(self._bus)

    async def load(self, name: str, frames: Iterator[Frame]) -> int:
        by_member = {table.member: table for table in self._tables}
        if name in by_member:
            return await tables.load_rows(self._connection, by_member[name], frames)
        if name == vectors.VECTORS:
            return await vectors.load(self._index, frames, self._manifest.dimension or 0)
        if name == graph.NODES:
            return await self._graph.nodes(frames)
        if name == graph.RELATIONSHIPS:
            return await self._graph.relationships(frames)
        if name == broker.OBJECTS:
            return await broker.load_objects(self._bucket, frames)
        if name == broker.EVENTS:
            self._published = await broker.publish_all(self._bus, frames)
            return self._published
        raise Refused(f"the archive holds {name}, which this version does not know")

    async def finish(self) -> None:
        """Let no sequence give a number again that it gave before the point."""
        await tables.set_sequences(self._connection, self._manifest.sequences)

    async def forgotten(self, progress: Progress) -> None:
        """Where news waits in an outbox, wait until the broker has forgotten that it saw it: it would swallow it."""
        unsent = [await tables.count_rows(self._connection, table) for table in self._tables if table.name == "outbox"]
        left = duplicate_window() - (time.monotonic() - self._began)
        if left > 0 and (any(unsent) or await GraphOutbox(self._bolt).waiting()):
            progress.say(f"waiting {left:.0f} s until the broker takes news again that it saw before")
            await asyncio.sleep(left)

    async def known(self) -> Forgotten:
        """What these stores know to be forgotten."""
        return await find_forgotten(self._connection)

    async def forget_again(self, known: Forgotten, progress: Progress) -> None:
        """Let the services forget again, when they start, what the archive does not know to be forgotten or erased."""
        if count := await forget_again(self._connection, known):
            progress.say(f"{count} forgettings will be made again when the services start")

    async def release(self) -> None:
        """Let news go that waited for vectors to be gone: the archive holds none of them."""
        await self._connection.execute(_RELEASE)

    async def counts(self) -> Counts:
        nodes, relationships = await self._graph.counts()
        return {
            graph.NODES: nodes,
            graph.RELATIONSHIPS: relationships,
            **{table.member: await tables.count_rows(self._connection, table) for table in self._tables},
            vectors.VECTORS: await vectors.count(self._index),
            broker.OBJECTS: len(await self._bucket.names()),
            broker.EVENTS: self._published,
        }
