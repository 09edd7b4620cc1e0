"""What tests of executed plans share: a neighbour that asks the graph service's own handlers, and its ontology as plans see it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from phronesis_contracts import Message, Principal
from phronesis_contracts.messages import Rpc
from phronesis_contracts.ontology import ChainView, OntologyView, PropertyView, RelationshipView, TypeView
from phronesis_contracts.twin import DIAGNOSE_GAPS, LINKS, RUN_CHAIN, SURVEY
from phronesis_graph.twin.handlers import ReasoningHandlers
from phronesis_graph.twin.ontology import Ontology
from phronesis_orchestrator.understanding.reader import TwinReader
from phronesis_orchestrator.understanding.schema import Schema
from tests.support.graph import Stores
from tests.support.twins import call, reasoning


class GraphNeighbour:
    """Asks the graph's handlers as the bus would, with their own validation; it counts how often."""

    def __init__(self, handlers: ReasoningHandlers) -> None:
        self._handlers: dict[str, Callable[..., Awaitable[Any]]] = {
            SURVEY.subject: handlers.survey,
            LINKS.subject: handlers.links,
            DIAGNOSE_GAPS.subject: handlers.diagnose_gaps,
            RUN_CHAIN.subject: handlers.run_chain,
        }
        self.asked = 0

    async def ask(self, who: Principal, rpc: Rpc[Any, Any], request: Message, *, key: str | None = None) -> Any:
        """Ask the handler of a message; it comes and goes as JSON."""
        self.asked += 1
        sent = rpc.input.model_validate_json(request.model_dump_json())
        found = await self._handlers[rpc.subject](call(who), sent)
        return rpc.output.model_validate_json(found.model_dump_json())


def reader(stores: Stores, who: Principal) -> TwinReader:
    """The twin of somebody on a real store."""
    return TwinReader(GraphNeighbour(reasoning(stores)), who, Schema(view_of(stores.ontology)))  # type: ignore[arg-type]


def view_of(ontology: Ontology) -> OntologyView:
    """The graph's ontology as its contract has it, without words: names stand for them."""
    types = tuple(
        TypeView(
            name=type.name,
            properties=tuple(
                PropertyView(name=one.name, kind=one.kind.value, unit=one.unit, choices=one.choices)
                for one in type.properties.values()
            ),
        )
        for type in ontology.nodes.values()
    )
    relationships = tuple(
        RelationshipView(name=one.name, sources=one.sources, targets=one.targets, rule=one.rule.value)
        for one in ontology.relationships.values()
    )
    chains = tuple(ChainView(name=one.name, steps=one.steps) for one in ontology.chains.values())
    return OntologyView(name="transformation", version="1", types=types, relationships=relationships, chains=chains)
