"""What tests of executed plans share: a neighbour that asks the handlers of the graph service, and its ontology."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from phronesis_contracts import Message, Principal
from phronesis_contracts.messages import Rpc
from phronesis_contracts.twin import DIAGNOSE_GAPS, LINKS, RUN_CHAIN, SURVEY
from phronesis_graph.twin.handlers import ReasoningHandlers
from phronesis_graph.twin.ontology import Ontology
from phronesis_graph.twin.vocabulary import to_view
from phronesis_orchestrator.understanding.plan import Schema
from phronesis_orchestrator.understanding.reader import TwinReader
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
    return TwinReader(GraphNeighbour(reasoning(stores)), who, schema_of(stores.ontology))  # type: ignore[arg-type]


def schema_of(ontology: Ontology) -> Schema:
    """The graph's ontology as plans see it."""
    return Schema(to_view(ontology, "1"))
