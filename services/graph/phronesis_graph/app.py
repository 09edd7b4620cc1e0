"""Wiring of the graph service: what it serves and follows, and what the store plans before the first request."""

from __future__ import annotations

from functools import partial

from phronesis_bus import Bus, Relay, follow, serve, serve_basics
from phronesis_bus.streams import record_refusal
from phronesis_contracts import knowledge_graph, memory, twin
from phronesis_contracts import ontology as ontology_contract

from . import guard
from .bolt.driver import Bolt, Transaction
from .bolt.queries import BoltQueries
from .bolt.schema import Schema
from .bolt.writes import GraphOutbox
from .constitution import walk_store
from .constitution.engine import EngineAvailability, IgraphEngine
from .constitution.handlers import serve_constitution
from .constitution.layers import WholeLayers
from .constitution.list_store import BoltLists
from .knowledge.handlers import KnowledgeHandlers
from .knowledge.model import allowed_names
from .knowledge.ports import KnowledgeStores
from .knowledge.store import BoltChanges, BoltNodes, StoreNames
from .links.handlers import LinkHandlers
from .links.store import LOOK_UP, STEP, BoltLinkStore
from .settings import Dialect
from .twin.chains import build_walks
from .twin.handlers import QueryHandlers, ReasoningHandlers, TwinHandlers, VocabularyHandlers
from .twin.ontology_file import load, packaged_version
from .twin.ports import MOST_ROWS
from .twin.reasoning_store import BoltReasoning
from .twin.store import BoltTwin
from .twin.vocabulary import to_view
from .twin.vocabulary_store import BoltVocabulary

_NOBODY = {"keys": ["-"], "tenant": "-", "owners": ["-"]}
_NOWHERE = {"lifecycles": ["-"], "names": ["-"], "limit": 1}


async def warm(bolt: Bolt, reasoner: BoltReasoning, whole: WholeLayers) -> None:
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
    await reasoner.warm()


async def build(bus: Bus, bolt: Bolt, dialect: Dialect) -> None:
    """Wire the service: its schema is declared in the background, its outbox is relayed, its messages are answered."""
    ontology = load()
    schema = Schema(bolt, ontology, dialect)
    relay = Relay(bus, GraphOutbox(bolt))
    handlers = TwinHandlers(ontology, BoltTwin(bolt, ontology, schema), relay.wake)
    links = LinkHandlers(BoltLinkStore(bolt, schema), relay.wake)
    # One row more than an answer holds, so that it can say whether there was more.
    check = guard.Guard(ontology, MOST_ROWS + 1).check
    queries = BoltQueries(bolt, schema, ontology, dialect)
    own_names, taken = StoreNames(bolt), allowed_names(ontology)
    stores = KnowledgeStores(
        BoltNodes(bolt, ontology, schema, own_names), queries, BoltChanges(bolt, ontology, schema, queries, own_names, taken)
    )
    refuse = partial(record_refusal, bus)
    reading = QueryHandlers(check, queries, refuse)
    rules = (partial(check, rules=guard.KNOWLEDGE), partial(check, rules=guard.KNOWLEDGE_WRITING))
    curating = KnowledgeHandlers(taken, stores, *rules, refuse, relay.wake)
    chains = build_walks(ontology)
    reasoner = BoltReasoning(bolt, ontology, chains)
    reasoning = ReasoningHandlers(ontology, chains, reasoner)
    telling = VocabularyHandlers(ontology, to_view(ontology, packaged_version()), BoltVocabulary(bolt))
    schema.start(bus, partial(warm, bolt, reasoner, WholeLayers(BoltLists(bolt, schema))))
    relay.start()
    engine = IgraphEngine()
    available = EngineAvailability(engine)
    available.start(bus)
    await serve_basics(bus, {"graph": schema.ping}, available.found)
    await serve(bus, twin.UPSERT_TOOL, handlers.upsert)
    await serve(bus, twin.NODES, handlers.nodes)
    await serve(bus, twin.EXPAND, links.expand)
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
    await serve(bus, ontology_contract.VOCABULARY_TOOL, telling.vocabulary)
    await follow(bus, memory.KNOWLEDGE_STORED, links.on_item_stored)
    await follow(bus, memory.ITEMS_FORGOTTEN, links.on_item_forgotten)
    await serve_constitution(bus, bolt, schema, own_names, engine, relay.wake)
