"""`phronesis backup` and `phronesis export`: all stores, or one tenant's part of them, into one archive, as they are at one
moment, with nothing stopped for it."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from phronesis_bus import MEDIA, Blobs, Bus, connect
from phronesis_bus.recording import USER, Recording
from phronesis_graph.twin.ontology_file import load as ontology

from . import broker, graph, tables, tenancy, vectors
from .archive import Spool, Writer, open_spool, write_archive
from .broker import EVENTS, EventFilter, unsent_news
from .format import FORMAT, PRODUCT, About, Manifest
from .graph import NODES, RELATIONSHIPS, GraphDump
from .places import Places
from .reporting import Progress, Refused
from .tables import Connection, Table

_RECORDING = 120.0
"""Seconds in which the last events have to be recorded."""


@dataclass(frozen=True)
class _Spools:
    nodes: Spool
    relationships: Spool
    events: Spool


async def backup(places: Places, path: Path, progress: Progress, *, tenant: str | None = None, force: bool = False) -> Manifest:
    """Write an archive of everything, or of what one tenant has.

    Args:
        progress: what is told.
        tenant: whose part; all by default.
        force: whether to replace what stands there.

    Raises:
        Refused: something stands there, or a store does not let us in.
        Failed: the disk is full, or a store holds what an archive does not take.
        ServiceError: a store does not answer.
    """
    with write_archive(path, force=force) as writer:
        about = About(format=FORMAT, product=PRODUCT, kind="tenant" if tenant else "backup", tenant=tenant)
        writer.about(about)
        async with AsyncExitStack() as stack:
            bus = await stack.enter_async_context(connect(USER, places.bus.model_copy(update={"trust_dir": None})))
            spools = _Spools(*(stack.enter_context(open_spool(path)) for _ in range(3)))
            return await _Backup(places, bus, writer, spools, progress).run(about)


class _Backup:
    def __init__(self, places: Places, bus: Bus, writer: Writer, spools: _Spools, progress: Progress) -> None:
        self._places = places
        self._tenant: str | None = None
        self._bus = bus
        self._writer = writer
        self._spools = spools
        self._progress = progress

    async def run(self, about: About) -> Manifest:
        self._tenant = about.tenant
        wanted = EventFilter(self._spools.events, about.tenant)
        async with Recording.begun(self._bus, wanted.keep) as recording:
            async with tables.snapshot(self._places.postgres) as (connection, point):
                wanted.point = await recording.last()
                self._progress.say(f"the point is {point:%Y-%m-%d %H:%M:%S.%f} UTC")
                await self._graph()
                wanted.end = await recording.last()
                manifest = await self._postgres(about, connection, point)
            await recording.until(wanted.end, _RECORDING)
        await self._objects()
        self._spooled(EVENTS, self._spools.events)
        if self._tenant is not None and not any(member.count for member in self._writer.members):
            raise Refused(f"there is nothing of {self._tenant}")
        manifest = manifest.model_copy(update={"members": tuple(self._writer.members)})
        self._writer.manifest(manifest)
        return manifest

    async def _graph(self) -> None:
        async with graph.open_graph(self._places.graph) as bolt:
            still = await GraphDump(bolt, ontology(), self._tenant).run(self._spools.nodes, self._spools.relationships)
            if not still:
                self._progress.say("the graph was written all the time: batches from after the point may be there in part")
            if self._tenant is not None:
                await unsent_news(bolt, self._tenant, self._spools.events)
        self._spooled(NODES, self._spools.nodes)
        self._spooled(RELATIONSHIPS, self._spools.relationships)

    async def _postgres(self, about: About, connection: Connection, point: datetime) -> Manifest:
        for table, query in self._queries(await tables.tables(connection)):
            with self._writer.member(table.member) as member:
                await tables.dump_rows(connection, query, member)
            self._progress.done(member.name, member.count)
        model = await vectors.model(connection)
        with self._writer.member(vectors.VECTORS) as member:
            if model is not None:
                async with vectors.open_snapshot(connection, self._places, *model) as index:
                    await vectors.dump(index, member, self._tenant)
        self._progress.done(member.name, member.count)
        return Manifest(
            about=about,
            point=point,
            migrations=await tables.migrations(connection),
            sequences=await tables.sequences(connection),
            model=model[0] if model else None,
            dimension=model[1] if model else None,
            members=(),
        )

    def _queries(self, all_tables: list[Table]) -> list[tuple[Table, str]]:
        if self._tenant is None:
            return [(table, tables.select_all(table)) for table in all_tables]
        return [(table, tenancy.tenant_query(table, all_tables, self._tenant)) for table in tenancy.movable_tables(all_tables)]

    async def _objects(self) -> None:
        with self._writer.member(broker.OBJECTS) as member:
            await broker.dump_objects(Blobs(self._bus, MEDIA), member, self._tenant)
        self._progress.done(member.name, member.count)

    def _spooled(self, name: str, spool: Spool) -> None:
        with self._writer.member(name) as member:
            spool.into(member)
        self._progress.done(name, spool.count)
