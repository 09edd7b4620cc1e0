"""The OpenAPI document says enough for somebody who knows nothing else of the API."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from phronesis_contracts.catalog import TOOLS
from phronesis_gateway import description
from scripts.openapi import document
from scripts.tree import ROOT

Node = dict[str, Any]

DOCUMENT: Node = json.loads((ROOT / "docs/generated/openapi.json").read_text())
SCHEMAS: Node = DOCUMENT["components"]["schemas"]
OPERATIONS: dict[str, Node] = {
    operation["operationId"]: operation for methods in DOCUMENT["paths"].values() for operation in methods.values()
}
EXAMPLES = description._examples()
BINARY = ("multipart/", "application/pdf", "application/octet-stream", "application/vnd.", "image/", "audio/")
"""What an upload may be beside text, and how one is handed out."""
LONGEST = 60
"""Lines of an example."""


def closed(schema: Node) -> Node:
    """A schema that takes no field that it does not name."""
    return {"additionalProperties": False, **schema} if "properties" in schema else schema


COMPONENTS = {"schemas": {name: closed(schema) for name, schema in SCHEMAS.items()}}


def bodies(operation: Node) -> Iterator[tuple[str, str, Node]]:
    """Where a body stands, its media type, and what is said of it: of the request, and of each response that is no error."""
    for type, content in operation.get("requestBody", {}).get("content", {}).items():
        yield "request", type, content
    for status, response in operation["responses"].items():
        if status.startswith("2"):
            assert response["content"], f"{operation['operationId']}: a response without a body"
            for type, content in response["content"].items():
                yield status, type, content


def faults(schema: Node, example: object) -> list[str]:
    validator = jsonschema.Draft202012Validator({**schema, "components": COMPONENTS}, format_checker=jsonschema.FormatChecker())
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(example)]


def test_every_operation_has_a_short_id_of_its_own() -> None:
    named = [operation["operationId"] for methods in DOCUMENT["paths"].values() for operation in methods.values()]
    assert len(set(named)) == len(named)
    assert [id for id in named if not re.fullmatch(r"[a-z]+(_[a-z]+){1,3}", id)] == []


@pytest.mark.parametrize("id", OPERATIONS)
def test_an_operation_says_in_a_few_words_and_in_more_what_it_does(id: str) -> None:
    operation = OPERATIONS[id]
    assert 0 < len(operation["summary"]) <= 70
    assert operation["summary"] != id.replace("_", " ").title()
    assert operation["description"].rstrip(".") != operation["summary"]


def test_every_parameter_has_a_description() -> None:
    bare = [
        f"{id}: {parameter['name']}"
        for id, operation in OPERATIONS.items()
        for parameter in operation.get("parameters", ())
        if not parameter.get("description")
    ]
    assert bare == []


def test_every_field_has_a_description() -> None:
    bare = [
        f"{name}.{field}"
        for name, schema in SCHEMAS.items()
        for field, property in schema.get("properties", {}).items()
        if not property.get("description")
    ]
    assert bare == []


def test_a_description_is_no_repetition_of_the_name() -> None:
    same = [
        f"{name}.{field}"
        for name, schema in SCHEMAS.items()
        for field, property in schema.get("properties", {}).items()
        if re.sub(r"[^a-z]", "", property["description"].lower()) == re.sub(r"[^a-z]", "", field.lower())
    ]
    assert same == []


@pytest.mark.parametrize("id", [id for id, operation in OPERATIONS.items() if operation["security"]])
def test_an_operation_that_takes_a_key_names_the_errors_of_keys_and_of_its_input(id: str) -> None:
    operation = OPERATIONS[id]
    wanted = {"401", "403", "429", "503", "default"} | ({"400", "413"} if "requestBody" in operation else set())
    wanted |= {"404"} if any(parameter["in"] == "path" for parameter in operation.get("parameters", ())) else set()
    assert wanted <= operation["responses"].keys()


@pytest.mark.parametrize("id", OPERATIONS)
def test_every_body_has_an_example_that_its_schema_takes(id: str) -> None:
    for place, media_type, content in bodies(OPERATIONS[id]):
        if not media_type.startswith(BINARY):
            assert content["example"], f"{place} {media_type}"
            assert faults(content.get("schema", {}), content["example"]) == [], f"{place} {media_type}"


@pytest.mark.parametrize("name", DOCUMENT["components"]["responses"])
def test_every_error_has_an_example_that_its_schema_takes(name: str) -> None:
    [content] = DOCUMENT["components"]["responses"][name]["content"].values()
    assert faults(content["schema"], content["example"]) == []


def test_the_examples_are_of_operations_that_there_are_and_short() -> None:
    assert EXAMPLES.keys() <= OPERATIONS.keys()
    long = [
        f"{id} {place}"
        for id, examples in EXAMPLES.items()
        for place, example in examples.items()
        if json.dumps(example, indent=2).count("\n") >= LONGEST
    ]
    assert long == []


def test_making_the_document_leaves_the_schemas_of_tools_as_they_are() -> None:
    def schemas() -> str:
        return json.dumps(
            [(tool.rpc.input.model_json_schema(), tool.rpc.output.model_json_schema()) for tool in TOOLS.values()]
        )

    before = schemas()
    described: Node = document()
    assert schemas() == before
    said = described["components"]["schemas"]["AgentDefinition"]["properties"]["name"]["description"]
    assert said not in before
