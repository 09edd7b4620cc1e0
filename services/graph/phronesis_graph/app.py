"""Wiring of the graph service: what it serves and follows, and what the store plans before the first request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from phronesis_bus import Bus, Relay, follow, serve, serve_basics
from phronesis_bus.streams import record_refusal
from phronesis_contracts import knowledge_graph, memory, ontology, twin
from phronesis_contracts.deletions import USER_DATA, USER_ERASE

from .bolt.driver import Bolt, Transaction
from .bolt.queries import BoltQueries
from .bolt.schema import Schema
from .bolt.writes import GraphOutbox
from .constitution import walk_store
from .constitution.engine import EngineAvailability, ProcessEngine
from .constitution.handlers import serve_constitution
from .constitution.layers import WholeLayers
from .constitution.list_store import BoltLists
from .knowledge.handlers import KnowledgeHandlers
from .knowledge.ports import KnowledgeStores
from .knowledge.store import BoltChanges, BoltNodes, StoreNames
from .links.items import LinkHandlers
from .links.store import LOOK_UP, STEP, BoltLinkStore
from .settings import Dialect
from .twin.active import activate_packaged
from .twin.handlers import QueryHandlers, ReasoningHandlers, TwinHandlers, VocabularyHandlers
from .twin.ontology_handlers import OntologyHandlers
from .twin.ontology_store import BoltMisfits, BoltOntologies
from .twin.reasoning_store import BoltReasoning
from .twin.store import BoltTwin
from .twin.vocabulary_store import BoltVocabulary

_NOBODY = {"keys": ["-"], "tenant": "-", "owners": ["-"]}
_NOWHERE = {"lifecycles": ["-"], "names": ["-"], "limit": 1}


async def warm(bolt: Bolt, reasoning: Callable[[], Awaitable[None]], whole: WholeLayers) -> None:
    """Let the store plan what a walk and the start of a session ask.

    A Neo4j that has just started takes a second and more to plan its first statements, which is longer than a turn waits for
    the graph. Raises `Unavailable` (the store is down), `TimedOut` (it did not answer in time; what it has planned by then, it
    keeps).
    """

    async def work(transaction: Transaction) -> None:
        await transaction.rows(LOOK_UP, **_NOBODY)
        for statement in STEP.values():
            await transaction.rows(statement, limit=1, **_NOBODY)
        for statement in walk_store.STATEMENTS:
            await transaction.rows(statement, **_NOBODY, **_NOWHERE)

    await bolt.read(work)
    await whole.warm()
    await reasoning()


async def build(bus: Bus, bolt: Bolt, dialect: Dialect) -> None:
    """Wire the service: its schema is declared in the background, its outbox is relayed, its messages are answered."""
    packaged = activate_packaged()
    schema = Schema(bolt, packaged.ontology, dialect)
    ontologies = BoltOntologies(bolt, schema, packaged)
    relay = Relay(bus, GraphOutbox(bolt))
    handlers = TwinHandlers(ontologies, BoltTwin(bolt, ontologies, schema), relay.wake)
    links = LinkHandlers(BoltLinkStore(bolt, schema), relay.wake)
    queries = BoltQueries(bolt, schema, ontologies, dialect)
    own_names = StoreNames(bolt)
    stores = KnowledgeStores(
        BoltNodes(bolt, ontologies, schema, own_names),
        queries,
        BoltChanges(bolt, ontologies, schema, queries, own_names),
    )
    refuse = partial(record_refusal, bus)
    reading = QueryHandlers(ontologies, queries, refuse)
    curating = KnowledgeHandlers(ontologies, stores, refuse, relay.wake)
    reasoner = BoltReasoning(bolt, ontologies)
    reasoning = ReasoningHandlers(ontologies, reasoner)
    telling = VocabularyHandlers(ontologies, BoltVocabulary(bolt))
    governing = OntologyHandlers(ontologies, BoltMisfits(bolt), own_names, schema.declare_types, relay.wake)
    warming = partial(warm, bolt, partial(reasoner.warm, packaged), WholeLayers(BoltLists(bolt, schema)))
    schema.start(bus, warming)
    relay.start()
    engine = ProcessEngine()
    available = EngineAvailability(engine)
    available.start(bus)
    await serve_basics(bus, {"graph": schema.ping}, available.found)
    await serve(bus, twin.UPSERT_TOOL, handlers.upsert)
    await serve(bus, twin.NODES, handlers.nodes)
    await serve(bus, twin.EXPAND, links.expand)
    await serve(bus, USER_DATA["graph"], links.user_data)
    await serve(bus, USER_ERASE["graph"], links.user_erase)
    await serve(bus, twin.READ_CYPHER_TOOL, reading.read_cypher)
    await serve(bus, knowledge_graph.CREATE_NODE_TOOL, curating.create_node)
    await serve(bus, knowledge_graph.CREATE_RELATIONSHIP_TOOL, curating.create_relationship)
    await serve(bus, knowledge_graph.QUERY_GRAPH_TOOL, curating.query_graph)
    await serve(bus, knowledge_graph.SEARCH_NODES_TOOL, curating.search_nodes)
    await serve(bus, knowledge_graph.GET_NODE_DETAILS_TOOL, curating.get_node_details)
    await serve(bus, knowledge_graph.DELETE_NODE_TOOL, curating.delete_node)
    await serve(bus, twin.SURVEY_TOOL, reasoning.survey)
    await serve(bus, twin.LINKS_TOOL, reasoning.links)
    await serve(bus, twin.RUN_CHAIN_TOOL, reasoning.run_chain)
    await serve(bus, twin.DIAGNOSE_GAPS_TOOL, reasoning.diagnose_gaps)
    await serve(bus, twin.FIND_ENTITIES_TOOL, reasoning.find_entities)
    await serve(bus, ontology.VOCABULARY_TOOL, telling.vocabulary)
    await serve(bus, ontology.PUBLISH_TOOL, governing.publish)
    await serve(bus, ontology.GET_TOOL, governing.get)
    await serve(bus, ontology.VERSIONS_TOOL, governing.versions)
    await serve(bus, ontology.ROLL_BACK_TOOL, governing.rollback)
    await follow(bus, ontology.ONTOLOGY_CHANGED, ontologies.on_ontology_changed, every_copy=True)
    await follow(bus, memory.KNOWLEDGE_STORED, links.on_item_stored)
    await follow(bus, memory.ITEMS_FORGOTTEN, links.on_item_forgotten)
    await serve_constitution(bus, bolt, schema, own_names, engine, relay.wake)
