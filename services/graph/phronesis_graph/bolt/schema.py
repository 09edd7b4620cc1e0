"""The labels, keys and indexes of the store, declared when it is there. The one place that knows how the stores differ."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from zlib import crc32

from phronesis_bus import Bus
from phronesis_contracts import Internal, ServiceError
from phronesis_contracts.constitution.registry import LABELS, NODE_LABEL, RELATIONSHIPS

from ..constitution.records import ROI
from ..knowledge.model import KNOWLEDGE
from ..links.items import ITEM_LABELS, LINK_TYPES
from ..settings import Dialect
from ..twin.ontology import Ontology
from .driver import Bolt, Row, Transaction

NEWS = "PlatformNews"
"""Unsent events."""
WRITES = "PlatformWrite"
"""Keys of writes with their first result."""
LOCKS = "PlatformLock"
"""What writers of one tenant or owner touch first, so that they follow each other."""
LINKS = "PlatformLink"
"""Links between knowledge items of which one end has not come yet."""
GONE = "PlatformGone"
"""Keys of knowledge items that were forgotten: late news of them is dropped."""
ONTOLOGIES = "PlatformOntology"
"""Versions of tenants' ontologies, and which of a tenant's is active."""
PLATFORM = (NEWS, WRITES, LOCKS, LINKS, GONE, ONTOLOGIES)


@dataclass(frozen=True)
class Index:
    """An index on one property of the nodes of a label."""

    name: str
    label: str
    property: str


INDEXES = (
    Index("odei_node_status", NODE_LABEL, "status"),
    Index("odei_node_layer", NODE_LABEL, "layer"),
    Index("odei_node_type", NODE_LABEL, "type"),
    Index("odei_node_updated", NODE_LABEL, "updatedAt"),
    Index("task_due_date", "Task", "dueDate"),
    Index("decision_roi", "Decision", ROI),
)
"""Every index beside the one of the unique key, under the seed's names."""
KEY = Index("odei_node_key", NODE_LABEL, "key")
"""The index of the unique key, which finds a node by its tenant and id."""


def constitution_statements(dialect: Dialect) -> Iterator[str]:
    """Statements that declare it, each of which changes nothing where it was run before."""
    yield f"CREATE CONSTRAINT {KEY.name} IF NOT EXISTS FOR (n:{NODE_LABEL}) REQUIRE n.key IS UNIQUE"
    if dialect is Dialect.ARCADEDB:
        # A pair of labels there is a type of its own, and a relationship type is schema, as in `schema`.
        pairs = ", ".join(f"(n{i}:{NODE_LABEL}:`{label}` {{key: '/{label}'}})" for i, label in enumerate(LABELS))
        yield f"CREATE {pairs} DETACH DELETE {', '.join(f'n{i}' for i, _ in enumerate(LABELS))}"
        paths = ", ".join(f"(a)-[:{name}]->(b)" for name in RELATIONSHIPS)
        yield f"CREATE (a:{NODE_LABEL} {{key: '/from'}}), (b:{NODE_LABEL} {{key: '/to'}}), {paths} DETACH DELETE a, b"
        # An index there makes its property one of texts, unless it was declared as something else.
        yield f"CREATE CONSTRAINT decision_roi_number IF NOT EXISTS FOR (n:`Decision`) REQUIRE n.{ROI} IS :: FLOAT"
    for index in INDEXES:
        yield f"CREATE INDEX {index.name} IF NOT EXISTS FOR (n:`{index.label}`) ON (n.{index.property})"
    # One of layers alone holds those of every tenant.
    yield f"CREATE INDEX odei_node_tenant_layer IF NOT EXISTS FOR (n:{NODE_LABEL}) ON (n.tenant, n.layer)"


log = logging.getLogger(__name__)

_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 5.0
_MEETINGS = 20
"""Tries of one declaration that meets another process's."""
_SWEEP_EVERY = 3600.0
_SWEEPS = 100
_KEEP_WRITES = 30 * 24 * 3600
"""Seconds that the key of a write, or of a forgotten item, is kept: longer than any news or turn that could repeat it."""

_ORPHANS = "SHOW INDEXES YIELD name, owningConstraint WHERE owningConstraint IS NULL AND name ENDS WITH '_key' RETURN name"
"""Indexes of constraints that were never made (Neo4j): whoever asked for one went away while its index was being filled."""

_SWEEP = {
    label: f"MATCH (old:{label}) WHERE old.at < $before WITH old LIMIT 1000 DELETE old RETURN count(*) AS swept"
    for label in (WRITES, GONE)
}


class Schema:
    """Declares constraints and indexes once for each start of the process, and tidies up behind the writes."""

    def __init__(self, bolt: Bolt, ontology: Ontology, dialect: Dialect) -> None:
        self._bolt, self._dialect = bolt, dialect
        self._statements = tuple(_statements(ontology, dialect))
        self._declared = False
        self._declaring: asyncio.Task[None] | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self, bus: Bus, warm: Callable[[], Awaitable[None]]) -> None:
        """Declare in the background, as soon as the store is there, and `warm` it."""
        self._task = asyncio.create_task(self._run(warm), name="graph-schema")
        bus.on_stop(self._stop)

    async def declared(self) -> None:
        """Return when the schema stands; nothing may be written before. Raises `Unavailable`."""
        if self._declared:
            return
        if self._declaring is None or self._declaring.done():
            self._declaring = asyncio.create_task(self._declare(), name="graph-schema-declaration")
            self._declaring.add_done_callback(lambda task: task.cancelled() or task.exception())
        # A caller's limit must not cut a statement in two: on Neo4j its half stays, and stands in the way of the next try.
        await asyncio.shield(self._declaring)

    async def declare_types(self, ontology: Ontology) -> None:
        """Declare the labels and relationship types of a tenant's ontology; what is there already stays as it is.

        Raises `Unavailable`, `TimedOut`, `Internal` (the store does not take a name).
        """
        await self.declared()
        statements = tuple(_type_statements(ontology.nodes, ontology.relationships, self._dialect))
        for statement in statements:
            await asyncio.shield(self._declare_one(statement))

    async def ping(self) -> None:
        """Raise `Unavailable` unless the store answers and the schema stands."""
        await self.declared()
        await self._bolt.read(_run_statement("RETURN 1 AS one"))

    async def _declare(self) -> None:
        if self._dialect is Dialect.NEO4J:
            for row in await self._bolt.write(_run_statement(_ORPHANS)):
                await self._bolt.write(_run_statement(f"DROP INDEX {row['name']} IF EXISTS"))
        for statement in self._statements:
            await self._declare_one(statement)
        self._declared = True
        log.info("the schema is declared")

    async def _declare_one(self, statement: str) -> None:
        for attempt in range(_MEETINGS):
            try:
                await self._bolt.write(_run_statement(statement))
                return
            except Internal:
                # On ArcadeDB one of two processes that make the same type at once is refused; then it is there.
                if attempt == _MEETINGS - 1:
                    raise
                await asyncio.sleep(_FIRST_PAUSE)

    async def _run(self, warm: Callable[[], Awaitable[None]]) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                await self.declared()
                await warm()
                await self._sweep()
                pause = _SWEEP_EVERY
            except ServiceError as error:
                pause = min(_LONGEST_PAUSE, pause * 2)
                log.warning("the graph store is not ready: %s; again in %.1f s", error.code, pause)
            except Exception:
                # The loop may not end: without it a store that comes later would stay without its schema.
                log.exception("the schema could not be kept")
                pause = _LONGEST_PAUSE
            await asyncio.sleep(pause)

    async def _sweep(self) -> None:
        before = time.time() - _KEEP_WRITES
        for statement in _SWEEP.values():

            async def sweep(transaction: Transaction, statement: str = statement) -> int:
                rows = await transaction.rows(statement, before=before)
                return int(rows[0]["swept"]) if rows else 0

            for _ in range(_SWEEPS):
                if not await self._bolt.write(sweep):
                    break

    async def _stop(self) -> None:
        tasks = [task for task in (self._task, self._declaring) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _run_statement(statement: str) -> Callable[[Transaction], Awaitable[list[Row]]]:
    async def run(transaction: Transaction) -> list[Row]:
        return await transaction.rows(statement)

    return run


def _type_statements(labels: Iterable[str], types: Iterable[str], dialect: Dialect) -> Iterator[str]:
    """For names that are none of the packaged ontology's: the stores' own names for them hold no two alike, in any case."""
    for label in labels:
        own = f"{label.lower()}_{crc32(label.encode()):08x}"
        yield f"CREATE CONSTRAINT {own}_key IF NOT EXISTS FOR (n:`{label}`) REQUIRE n.key IS UNIQUE"
        yield f"CREATE INDEX {own}_id IF NOT EXISTS FOR (n:`{label}`) ON (n.id)"
    if dialect is Dialect.ARCADEDB and (names := tuple(types)):
        yield _declare_relationships(names)


def _declare_relationships(names: Iterable[str]) -> str:
    paths = ", ".join(f"(a)-[:`{name}`]->(b)" for name in names)
    return f"CREATE (a:{LOCKS} {{key: '/from'}}), (b:{LOCKS} {{key: '/to'}}), {paths} DETACH DELETE a, b"


def _statements(ontology: Ontology, dialect: Dialect) -> Iterator[str]:
    keyed = (*ontology.nodes, *ITEM_LABELS, KNOWLEDGE, *PLATFORM)
    for label in keyed:
        yield f"CREATE CONSTRAINT {label.lower()}_key IF NOT EXISTS FOR (n:{label}) REQUIRE n.key IS UNIQUE"
    for label in ontology.nodes:
        yield f"CREATE INDEX {label.lower()}_id IF NOT EXISTS FOR (n:{label}) ON (n.id)"
    for end in ("source", "target"):
        yield f"CREATE INDEX {LINKS.lower()}_{end} IF NOT EXISTS FOR (n:{LINKS}) ON (n.{end})"
    if dialect is Dialect.ARCADEDB:
        # A relationship type there is schema. Two transactions that use one first would get into each other's way.
        yield _declare_relationships((*ontology.relationships, *LINK_TYPES))
    yield from constitution_statements(dialect)
