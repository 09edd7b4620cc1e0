"""`phronesis import`: one tenant's archive into an installation that runs, and where the tenant has nothing."""

from __future__ import annotations

from contextlib import AsyncExitStack

from phronesis_bus import MEDIA, Blobs, Bus, connect
from phronesis_bus.recording import USER
from phronesis_contracts import ServiceError
from phronesis_graph.ontology import load as ontology
from phronesis_memory.ports import VectorIndex

from . import events, graph_model, objects, rows, tables, vectors
from .errors import Failed, Refused
from .graph_load import GraphLoad
from .manifest import Manifest
from .places import Places
from .progress import Progress
from .reading import Archive
from .rows import Connection
from .staging import Staging
from .tenancy import Tenancy

_VERSIONS = "memory.versions"


async def bring_in(places: Places, archive: Archive, tenancy: Tenancy, progress: Progress) -> None:
    """Load a tenant's archive; nothing of it is left where that fails.

    Args:
        places: the stores.
        archive: the archive of one tenant.
        tenancy: its name there, and here.
        progress: what is told.

    Raises:
        Refused: the tenant has something here, ids are taken, or the schemas or the model of the vectors differ.
        Failed: a store does not take it.
        ServiceError: a store does not answer.
    """
    async with AsyncExitStack() as stack:
        connection = await stack.enter_async_context(rows.connected(places.postgres))
        bus = await stack.enter_async_context(connect(USER, places.bus.model_copy(update={"trust_dir": None})))
        bolt = await stack.enter_async_context(graph_model.opened(places.graph))
        await _check(connection, archive.manifest)
        index = None
        if archive.manifest.model is not None and archive.manifest.dimension is not None:
            index = await stack.enter_async_context(vectors.opened(places, archive.manifest.model, archive.manifest.dimension))
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
            if name == events.EVENTS:
                self._progress.done(name, await events.publish_all(self._bus, frames, self._tenancy, staging.mark))

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
            elif name == objects.OBJECTS:
                count = await objects.load(self._bucket, frames, self._tenancy)
            elif name == events.EVENTS:
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
