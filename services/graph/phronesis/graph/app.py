"""The table of contents of the graph service: what it answers and what it follows."""

from __future__ import annotations

from functools import partial

from phronesis.bus import Bus, Relay, follow, serve, serve_basics
from phronesis.contracts import graph, memory, twin

from .adapters.bolt import Bolt
from .adapters.knowledge import BoltKnowledge
from .adapters.outbox import GraphOutbox
from .adapters.reasoning import BoltReasoning
from .adapters.schema import Schema
from .adapters.twin import BoltTwin
from .adapters.warming import warm
from .chains import walks
from .handlers import Handlers
from .ontology import load
from .reasoning import Reasoning
from .settings import Dialect


async def build(bus: Bus, bolt: Bolt, dialect: Dialect) -> None:
    """Wire the service: its schema is declared in the background, its outbox is relayed, its messages are answered."""
    ontology = load()
    schema = Schema(bolt, ontology, dialect)
    relay = Relay(bus, GraphOutbox(bolt))
    handlers = Handlers(ontology, BoltTwin(bolt, ontology, schema), BoltKnowledge(bolt, schema), relay.wake)
    chains = walks(ontology)
    reasoner = BoltReasoning(bolt, ontology, chains)
    reasoning = Reasoning(ontology, chains, reasoner)
    schema.start(bus, partial(warm, bolt, reasoner))
    relay.start()
    await serve_basics(bus, {"graph": schema.ping})
    await serve(bus, graph.UPSERT_TOOL, handlers.upsert)
    await serve(bus, graph.NODES, handlers.nodes)
    await serve(bus, graph.EXPAND, handlers.expand)
    await serve(bus, twin.SURVEY_TOOL, reasoning.survey)
    await serve(bus, twin.RUN_CHAIN_TOOL, reasoning.run_chain)
    await serve(bus, twin.DIAGNOSE_GAPS_TOOL, reasoning.diagnose_gaps)
    await serve(bus, twin.FIND_ENTITIES_TOOL, reasoning.find_entities)
    await follow(bus, memory.KNOWLEDGE_STORED, handlers.on_item_stored)
    await follow(bus, memory.ITEMS_FORGOTTEN, handlers.on_item_forgotten)
