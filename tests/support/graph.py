"""What tests of the graph share: the service's stores on a real server, and batches in a few words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from phronesis_bus import Call, audit_entry
from phronesis_contracts import Principal
from phronesis_contracts.memory import EntityType, KnowledgeLink, KnowledgeNode, KnowledgeStored
from phronesis_contracts.twin import Expand, Level, Neighbour, Node, NodeRef, Upsert, Upserted, UpsertNode, UpsertRelationship
from phronesis_graph.bolt.driver import Bolt, Row, Transaction
from phronesis_graph.bolt.schema import Schema
from phronesis_graph.bolt.writes import GraphOutbox
from phronesis_graph.links.store import BoltLinkStore
from phronesis_graph.settings import Dialect, GraphSettings
from phronesis_graph.twin.ontology import Ontology
from phronesis_graph.twin.ontology_file import load
from phronesis_graph.twin.store import BoltTwin
from phronesis_graph.twin.upserts import plan_batch
from tests.support.servers import GraphServer

YEAR = 2023


class Stores:
    """The graph service's stores, and statements of a test's own beside them."""

    def __init__(self, bolt: Bolt, ontology: Ontology, dialect: Dialect) -> None:
        self.bolt = bolt
        self.ontology = ontology
        self.dialect = dialect
        self.schema = Schema(bolt, ontology, dialect)
        self.twin = BoltTwin(bolt, ontology, self.schema)
        self.knowledge = BoltLinkStore(bolt, self.schema)
        self.outbox = GraphOutbox(bolt)

    async def upsert(self, who: Principal, batch: Upsert, *, key: str | None = None) -> Upserted:
        """Write a batch as the handler does."""
        arguments = batch.model_dump_json()
        entry = audit_entry(who, "graph_upsert", {})
        return await self.twin.upsert(Call(who, "gateway", key), arguments, plan_batch(self.ontology, who.tenant, batch), entry)

    async def nodes(self, who: Principal, *refs: NodeRef) -> list[Node]:
        """The nodes of the caller's tenant that exist."""
        return await self.twin.nodes(who.tenant, tuple(ref.key for ref in refs))

    async def expand(self, who: Principal, *ids: str, hops: int = 2, limit: int = 100) -> list[Neighbour]:
        """Neighbours of the caller's items."""
        return await self.knowledge.expand(who.tenant, who.user, Expand(ids=ids, hops=hops, limit=limit))

    async def run(self, statement: str, **parameters: Any) -> list[Row]:
        """Run a statement of the test's own in a write transaction."""

        async def work(transaction: Transaction) -> list[Row]:
            return await transaction.rows(statement, **parameters)

        return await self.bolt.write(work)


def settings(server: GraphServer, folder: Path, **changes: Any) -> GraphSettings:
    """How the service reaches `server`: one user that writes, and another that reads where the store knows such users."""
    for login in (server.root, server.reader):
        if login is not None:
            (folder / f"{login.user}.password").write_text(login.password)
    values: dict[str, Any] = {
        "url": server.url,
        "user": server.root.user,
        "password_file": folder / f"{server.root.user}.password",
        "database": server.database,
        "dialect": server.dialect,
        "read_timeout": 20.0,  # the first answers of a fresh store take seconds on a busy machine
    }
    if server.reader is not None:
        values |= {"read_user": server.reader.user, "read_password_file": folder / f"{server.reader.user}.password"}
    return GraphSettings(**(values | changes))


@asynccontextmanager
async def opened(server: GraphServer, folder: Path) -> AsyncIterator[Stores]:
    """The stores on `server` for the length of a block."""
    async with Bolt.open(settings(server, folder)) as bolt:
        yield Stores(bolt, load(), server.dialect)


def ref(id: str, type: str = "EntityProject", year: int = YEAR) -> NodeRef:
    """A node by name."""
    return NodeRef(type=type, id=id, year=year)


def node(id: str, level: str = "L3", type: str = "EntityProject", year: int = YEAR, **properties: Any) -> UpsertNode:
    """A node as it should be."""
    return UpsertNode(type=type, id=id, year=year, name=f"The {id}", level=Level(level), properties=properties)


def joined(type: str, source: NodeRef, target: NodeRef) -> UpsertRelationship:
    """A relationship as it should be."""
    ends = [NodeRef(type=end.type, id=end.id, year=end.year) for end in (source, target)]
    return UpsertRelationship(type=type, source=ends[0], target=ends[1])


def stored(owner: str, *ids: str, links: tuple[str, ...] = (), version: int = 1) -> KnowledgeStored:
    """News of stored items; a link is written `a>b`, and an id that begins with `c` is a Concept."""
    return KnowledgeStored(
        owner=owner,
        version=version,
        nodes=tuple(KnowledgeNode(id=id, type=_entity(id)) for id in ids),
        links=tuple(KnowledgeLink(source=link.split(">")[0], target=link.split(">")[1], type="RELATED_TO") for link in links),
    )


def _entity(id: str) -> EntityType:
    return EntityType.CONCEPT if id.startswith("c") else EntityType.MEMORY_UNIT
