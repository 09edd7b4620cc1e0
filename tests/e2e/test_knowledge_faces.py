"""The six tools of the agents' knowledge by all three faces: what is wrong with a call is told in its envelope."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.faces import REFUSED, callers
from tests.support.people import Town
from tests.support.personas import Persona
from tests.support.stack import RunningStack

pytestmark = pytest.mark.timeout(240)

FAULTS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("create_node", {"label": 7}, {"node_id": None}),
    ("create_node", {"label": "EntityProject"}, {"node_id": None}),
    ("create_relationship", {"from_node_id": "a", "to_node_id": "b", "type": "DEFINES"}, {"relationship_id": None}),
    ("query_graph", {"cypher_query": "MATCH (n:Product) RETURN n.name"}, {"results": []}),
    ("query_graph", {"cypher_query": "MATCH (n) DETACH DELETE n", "read_only": False}, {"results": []}),
    ("search_nodes", {"limit": "3"}, {"nodes": []}),
    ("get_node_details", {"node_id": "nothing"}, {"node": None}),
    ("delete_node", {"node_id": "nothing", "force_delete": False}, {}),
]


@pytest.mark.req("K-008", "K-064", "K-065", "XC-002", "XC-009")
async def test_a_fault_is_the_same_envelope_by_all_faces(stack: RunningStack, everybody: Town) -> None:
    async with callers(everybody, stack.data.url.read_text().strip(), Persona.CURATOR) as found:
        for tool, given, empty in FAULTS:
            said = {name: await caller.face.call(tool, given) for name, caller in found.items()}
            assert said == dict.fromkeys(said, said["rest"]), tool
            message = said["rest"].pop("message")
            assert said["rest"] == {"success": False, **empty}, tool
            assert len(message) > 20


@pytest.mark.req("K-008", "K-077", "T-011", "T-012")
async def test_the_seeds_example_runs_by_all_faces(stack: RunningStack, everybody: Town) -> None:
    async with callers(everybody, stack.data.url.read_text().strip(), Persona.CURATOR) as found:
        for caller in found.values():
            made = await caller.face.call("create_node", {"label": "Product", "properties": {"name": "Milk"}})
            assert made == {"success": True, "node_id": made["node_id"], "message": "Node created successfully."}
            query = {"cypher_query": "MATCH (p:Product) RETURN p.name AS ProductName", "read_only": True}
            read = await caller.face.call("query_graph", query)
            assert read == {"success": True, "results": [{"ProductName": "Milk"}], "message": "Query executed successfully."}


@pytest.mark.req("K-035", "K-061", "XC-001", "KC-002", "KC-017", "KC-028")
async def test_a_role_without_the_right_is_refused_by_all_faces(stack: RunningStack, everybody: Town) -> None:
    calls = {
        "query_graph": {"cypher_query": "MATCH (n:Product) SET n.a = 1", "read_only": False},
        "delete_node": {"node_id": "a", "force_delete": True},
    }
    async with callers(everybody, stack.data.url.read_text().strip(), Persona.NOOR) as found:
        for tool, given in calls.items():
            said = {name: await caller.face.call(tool, given) for name, caller in found.items()}
            assert {one[REFUSED]["code"] for one in said.values()} == {"forbidden"}
