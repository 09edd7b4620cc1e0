"""The table of contents of the graph service: what it answers and what it follows."""

from __future__ import annotations

from functools import partial

from phronesis_bus import Bus, Relay, follow, serve, serve_basics
from phronesis_bus.streams import refused
from phronesis_contracts import cypher, graph, knowledge_graph, memory, twin

from . import guard
from .adapters.bolt import Bolt
from .adapters.changes import BoltChanges
from .adapters.constitution_igraph import IgraphEngine
from .adapters.constitution_lists import BoltLists
from .adapters.knowledge import BoltKnowledge
from .adapters.names import StoreNames
from .adapters.nodes import BoltNodes
from .adapters.outbox import GraphOutbox
from .adapters.queries import BoltQueries
from .adapters.reasoning import BoltReasoning
from .adapters.schema import Schema
from .adapters.twin import BoltTwin
from .adapters.warming import warm
from .chains import walks
from .constitution.availability import Availability
from .constitution.serving import serve_constitution
from .constitution.whole import Whole
from .curating import Curating
from .curation import names
from .curators import Stores
from .handlers import Handlers
from .ontology import load
from .reading import MOST_ROWS, Reading
from .reasoning import Reasoning
from .settings import Dialect


async def build(bus: Bus, bolt: Bolt, dialect: Dialect) -> None:
    """Wire the service: its schema is declared in the background, its outbox is relayed, its messages are answered."""
    ontology = load()
    schema = Schema(bolt, ontology, dialect)
    relay = Relay(bus, GraphOutbox(bolt))
    handlers = Handlers(ontology, BoltTwin(bolt, ontology, schema), BoltKnowledge(bolt, schema), relay.wake)
    # One row more than an answer holds, so that it can say whether there was more.
    check = guard.Guard(ontology, MOST_ROWS + 1).check
    queries = BoltQueries(bolt, schema, ontology, dialect)
    own_names, taken = StoreNames(bolt), names(ontology)
    stores = Stores(
        BoltNodes(bolt, ontology, schema, own_names), queries, BoltChanges(bolt, ontology, schema, queries, own_names, taken)
    )
    refuse = partial(refused, bus)
    reading = Reading(check, queries, refuse)
    rules = (partial(check, rules=guard.KNOWLEDGE), partial(check, rules=guard.KNOWLEDGE_WRITING))
    curating = Curating(taken, stores, *rules, refuse, relay.wake)
    chains = walks(ontology)
    reasoner = BoltReasoning(bolt, ontology, chains)
    reasoning = Reasoning(ontology, chains, reasoner)
    schema.start(bus, partial(warm, bolt, reasoner, Whole(BoltLists(bolt, schema))))
    relay.start()
    engine = IgraphEngine()
    available = Availability(engine)
    available.start(bus)
    await serve_basics(bus, {"graph": schema.ping}, available.found)
    await serve(bus, graph.UPSERT_TOOL, handlers.upsert)
    await serve(bus, graph.NODES, handlers.nodes)
    await serve(bus, graph.EXPAND, handlers.expand)
    await serve(bus, cypher.READ_CYPHER_TOOL, reading.read_cypher)
    await serve(bus, knowledge_graph.CREATE_NODE_TOOL, curating.create_node)
    await serve(bus, knowledge_graph.CREATE_RELATIONSHIP_TOOL, curating.create_relationship)
    await serve(bus, knowledge_graph.QUERY_GRAPH_TOOL, curating.query_graph)
    await serve(bus, knowledge_graph.SEARCH_NODES_TOOL, curating.search_nodes)
    await serve(bus, knowledge_graph.GET_NODE_DETAILS_TOOL, curating.get_node_details)
    await serve(bus, knowledge_graph.DELETE_NODE_TOOL, curating.delete_node)
    await serve(bus, twin.SURVEY_TOOL, reasoning.survey)
    await serve(bus, twin.RUN_CHAIN_TOOL, reasoning.run_chain)
    await serve(bus, twin.DIAGNOSE_GAPS_TOOL, reasoning.diagnose_gaps)
    await serve(bus, twin.FIND_ENTITIES_TOOL, reasoning.find_entities)
    await follow(bus, memory.KNOWLEDGE_STORED, handlers.on_item_stored)
    await follow(bus, memory.ITEMS_FORGOTTEN, handlers.on_item_forgotten)
    await serve_constitution(bus, bolt, schema, own_names, engine, relay.wake)
