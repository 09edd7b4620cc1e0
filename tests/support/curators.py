"""What tests of the graph's query tools share: the handlers on a real store, with every refusal kept."""

from __future__ import annotations

from typing import Any

from phronesis_bus import Call
from phronesis_contracts import Principal, ServiceError, knowledge_graph
from phronesis_contracts.knowledge_graph import Envelope
from phronesis_contracts.twin import CypherRows, ReadCypher
from phronesis_graph.bolt.queries import BoltQueries
from phronesis_graph.knowledge.handlers import KnowledgeHandlers
from phronesis_graph.knowledge.ports import KnowledgeStores
from phronesis_graph.knowledge.store import BoltChanges, BoltNodes, StoreNames
from phronesis_graph.twin.handlers import QueryHandlers
from tests.support import graph
from tests.support.bus import somebody
from tests.support.personas import Persona

TOOLS = {
    "create_node": knowledge_graph.CreateNode,
    "create_relationship": knowledge_graph.CreateRelationship,
    "query_graph": knowledge_graph.QueryGraph,
    "search_nodes": knowledge_graph.SearchNodes,
    "get_node_details": knowledge_graph.GetNodeDetails,
    "delete_node": knowledge_graph.DeleteNode,
}


class Curators:
    """The six tools and the reading one, for one caller.

    Args:
        stores: the graph service's stores.
        who: the caller; a curator of a tenant of its own by default.
    """

    def __init__(self, stores: graph.Stores, who: Principal | None = None) -> None:
        self.who = who or somebody(**Persona.CURATOR.rights)
        self.refusals: list[tuple[str, dict[str, Any], str]] = []
        self.woken = 0
        ontologies, bolt = stores.ontologies, stores.bolt
        queries = BoltQueries(bolt, stores.schema, ontologies, stores.dialect)
        own = StoreNames(bolt)
        self.stores = KnowledgeStores(
            BoltNodes(bolt, ontologies, stores.schema, own),
            queries,
            BoltChanges(bolt, ontologies, stores.schema, queries, own),
        )
        self.curating = KnowledgeHandlers(ontologies, self.stores, self._refuse, self._wake)
        self.reading = QueryHandlers(ontologies, queries, self._refuse)

    async def _refuse(self, who: Principal, tool: str, arguments: dict[str, Any], error: ServiceError) -> None:
        assert who == self.who
        self.refusals.append((tool, arguments, error.code))

    def _wake(self) -> None:
        self.woken += 1

    async def call(self, tool: str, key: str | None = None, /, **given: Any) -> dict[str, Any]:
        """The envelope of a call, as JSON has it."""
        request = TOOLS[tool].model_validate(given)
        answer: Envelope = await getattr(self.curating, tool)(Call(self.who, "gateway", key), request)
        return answer.model_dump(mode="json")

    async def node(self, label: str = "Product", **properties: Any) -> str:
        """The id of a new node."""
        made = await self.call("create_node", label=label, properties=properties)
        assert made["success"], made
        return str(made["node_id"])

    async def joined(self, source: str, type: str, target: str, **properties: Any) -> str:
        """The id of a new relationship."""
        ends = {"from_node_id": source, "to_node_id": target}
        made = await self.call("create_relationship", **ends, type=type, properties=properties)
        assert made["success"], made
        return str(made["relationship_id"])

    async def rows(self, statement: str, **parameters: Any) -> list[dict[str, Any]]:
        """The rows of a reading statement."""
        made = await self.call("query_graph", cypher_query=statement, parameters=parameters, read_only=True)
        assert made["success"], made
        return list(made["results"])

    async def changed(self, statement: str, **parameters: Any) -> dict[str, Any]:
        """The envelope of a changing statement."""
        return await self.call("query_graph", cypher_query=statement, parameters=parameters, read_only=False)

    async def read(self, statement: str, **parameters: Any) -> CypherRows:
        """What the reading tool answers."""
        return await self.reading.read_cypher(
            Call(self.who, "gateway"), ReadCypher(cypher_query=statement, parameters=parameters)
        )
