from __future__ import annotations

from typing import Any

import pytest

from phronesis_contracts import BadRequest, Busy, Conflict, Internal, KeyReused, NotFound, ServiceError, TimedOut, Unavailable
from phronesis_contracts.twin import QueryRefused
from phronesis_graph.knowledge.handlers import failure_message
from phronesis_graph.knowledge.model import allowed_names, check_form, check_properties
from phronesis_graph.twin.ontology_file import load
from phronesis_graph.twin.ports import redact_literals
from tests.support.cases import for_each
from tests.support.curators import TOOLS

NAMES = allowed_names(load())
ODD: list[Any] = [
    *(None, {"b": 1}, [1, "a"], [1, 1.5], [[1]], [None], [{}]),
    *(2**63, -(2**63) - 1, float("nan"), float("inf"), "x" * 20_001, ["x"] * 1_001),
]
OWNED = ("tenant", "key", "node_id", "relationship_id")
VECTORS = ("embedding", "nameEmbedding", "text_vector", "vector")
NO_NAMES = ("", "1a", "a b", "a`b", "a.b", "ä", "x" * 65, "@rid")


@pytest.mark.req("K-016", "XC-004", "KC-014")
@for_each("value", ODD)
def test_a_value_that_no_store_keeps_is_refused_by_its_name(value: Any) -> None:
    with pytest.raises(BadRequest) as caught:
        check_properties({"fine": 1, "a": value})
    assert caught.value.field == "properties.a"


@pytest.mark.parametrize("value", ["", 0, 2**63 - 1, -(2**63), 0.5, True, [], ["a", ""], [1, 2], [0.5], [True]])
def test_a_value_that_stores_keep_stays_as_it_is(value: Any) -> None:
    assert repr(check_properties({"a": value})) == repr({"a": value})


@for_each("name", [*OWNED, *VECTORS, *NO_NAMES])
def test_a_name_of_the_platform_of_an_embedding_or_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(BadRequest) as caught:
        check_properties({name: 1})
    assert caught.value.field == f"properties.{name[:60]}"


def test_properties_are_bounded_in_number_and_in_all() -> None:
    for given in ({f"p{n}": 1 for n in range(101)}, {f"p{n}": "x" * 20_000 for n in range(6)}):
        with pytest.raises(BadRequest) as caught:
            check_properties(given)
        assert caught.value.field == "properties"


@pytest.mark.req("XC-006")
@pytest.mark.parametrize("label", ["EntityProject", "RATED", "RELATED_TO", "PlatformLock", "platformX", "Memory", "MEMORYUNIT"])
def test_a_label_that_is_somebody_elses_is_refused(label: str) -> None:
    for check in (NAMES.label, NAMES.type):
        with pytest.raises(BadRequest):
            check(label)


def test_a_search_may_name_a_label_of_the_twin_and_none_of_the_platform() -> None:
    assert [NAMES.searched(label) for label in ("EntityProject", "Product")] == ["EntityProject", "Product"]
    for label in ("PlatformKnowledge", "MemoryUnit", "RATED"):
        with pytest.raises(BadRequest):
            NAMES.searched(label)


def test_the_seeds_types_are_the_agents_to_give() -> None:
    assert [NAMES.type(type) for type in ("HAS_PROPERTY", "DEFINES", "RELATES_TO")] == ["HAS_PROPERTY", "DEFINES", "RELATES_TO"]


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("create_node", {}, "label"),
    ("create_node", {"label": ""}, "label"),
    ("create_node", {"label": 7}, "label"),
    ("create_node", {"label": None}, "label"),
    ("create_node", {"label": "X) DETACH DELETE (n"}, "label"),
    ("create_node", {"label": "X`"}, "label"),
    ("create_node", {"label": "P", "properties": []}, "properties"),
    ("create_node", {"label": "P", "properties": "a"}, "properties"),
    ("create_node", {"label": "P", "labels": ["Q"]}, "labels"),
    ("create_relationship", {"to_node_id": "b", "type": "T"}, "from_node_id"),
    ("create_relationship", {"from_node_id": 12, "to_node_id": "b", "type": "T"}, "from_node_id"),
    ("create_relationship", {"from_node_id": "a", "type": "T"}, "to_node_id"),
    ("create_relationship", {"from_node_id": "a", "to_node_id": "b"}, "type"),
    ("create_relationship", {"from_node_id": "a", "to_node_id": "b", "type": ""}, "type"),
    ("create_relationship", {"from_node_id": "a", "to_node_id": "b", "type": "R]->() DELETE x //"}, "type"),
    ("create_relationship", {"from_node_id": "a", "to_node_id": "b", "type": "T", "properties": "x"}, "properties"),
    ("query_graph", {"read_only": True}, "cypher_query"),
    ("query_graph", {"cypher_query": "", "read_only": True}, "cypher_query"),
    ("query_graph", {"cypher_query": 5, "read_only": True}, "cypher_query"),
    ("query_graph", {"cypher_query": "RETURN 1", "parameters": [], "read_only": True}, "parameters"),
    ("query_graph", {"cypher_query": "RETURN 1"}, "read_only"),
    ("query_graph", {"cypher_query": "RETURN 1", "read_only": "true"}, "read_only"),
    ("query_graph", {"cypher_query": "RETURN 1", "read_only": 1}, "read_only"),
    ("search_nodes", {"label": 7}, "label"),
    ("search_nodes", {"properties": []}, "properties"),
    ("search_nodes", {"limit": "3"}, "limit"),
    ("search_nodes", {"limit": 0}, "limit"),
    ("search_nodes", {"limit": -1}, "limit"),
    ("search_nodes", {"limit": 101}, "limit"),
    ("get_node_details", {}, "node_id"),
    ("get_node_details", {"node_id": ""}, "node_id"),
    ("get_node_details", {"node_id": 1}, "node_id"),
    ("delete_node", {"force_delete": True}, "node_id"),
    ("delete_node", {"node_id": "a"}, "force_delete"),
    ("delete_node", {"node_id": "a", "force_delete": "true"}, "force_delete"),
]


@pytest.mark.req("K-009", "K-010", "K-018", "K-019", "K-020", "K-021", "K-027", "K-028", "K-029", "K-045", "K-046", "K-047")
@pytest.mark.req("K-051", "K-053", "K-057", "K-058", "K-066", "K-067", "T-018", "KC-005")
@for_each(("tool", "given", "field"), WRONG)
def test_an_argument_that_does_not_fit_is_refused_by_its_name(tool: str, given: dict[str, Any], field: str) -> None:
    request = TOOLS[tool].model_validate(given)
    with pytest.raises(BadRequest) as caught:
        check_form(request, request.form)
    assert caught.value.field == field


@pytest.mark.req("K-065", "K-069", "K-070")
def test_each_failure_says_what_is_wrong_and_what_to_do() -> None:
    failures: list[ServiceError] = [
        BadRequest("it is wrong", field="label"),
        QueryRefused("syntax: it is wrong.", field="cypher_query"),
        NotFound("it is not there", field="node_id"),
        KeyReused("it was used"),
        Conflict("it is so"),
        Unavailable("the graph store does not answer"),
        Busy("too many"),
        TimedOut("it took too long"),
        Internal("it failed"),
    ]
    said = [failure_message(error) for error in failures]
    assert said[0] == "label: it is wrong. Correct the argument and call again."
    assert said[5] == (
        "the graph store does not answer. "
        "The database is unavailable at this moment: repeat the same call later, a write with the same key."
    )
    assert all(text.count(". ") >= 1 and text.endswith(".") for text in said)
    assert len(set(said)) == len(said)


@pytest.mark.req("NC-096")
def test_a_statement_in_a_log_holds_no_text_of_anybodys() -> None:
    statement = "MATCH (n:Product) WHERE n.name = 'Ann\\'s' OR n.a = \"b\" RETURN n.name, 'open"
    assert redact_literals(statement) == "MATCH (n:Product) WHERE n.name = '…' OR n.a = '…' RETURN n.name, '…'"
