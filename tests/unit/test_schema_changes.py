"""What is found to differ between two documents of the API or the bus, and what a changelog has to name."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import yaml

from scripts import schema_changes
from scripts.schema_changes import changes, is_told, operations, released, unreleased
from tests.support.cases import for_each

PATH = "/api/v1/things/{id}"
OLD: dict[str, Any] = {
    "openapi": "3.1.0",
    "paths": {
        PATH: {
            "get": {
                "parameters": [{"in": "query", "name": "limit", "schema": {"type": "integer", "maximum": 10}}],
                "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}}},
            }
        }
    },
    "components": {
        "schemas": {
            "Thing": {
                "type": "object",
                "description": "A thing.",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "parts": {"type": "array", "items": {"$ref": "#/x/Thing"}}},
            }
        }
    },
}


def edited(edit: str) -> dict[str, Any]:
    """The document with one edit."""
    new = deepcopy(OLD)
    operation, thing = new["paths"][PATH]["get"], new["components"]["schemas"]["Thing"]
    match edit:
        case "nothing":
            pass
        case "a word":
            thing["description"], operation["summary"] = "Another.", "Get it."
        case "a field more":
            thing["properties"]["description"] = {"type": "string"}
        case "a field less":
            del thing["properties"]["name"]
        case "an operation more":
            new["paths"][PATH]["delete"] = {"responses": {}}
        case "an operation less":
            del new["paths"][PATH]["get"]
        case "a parameter more":
            operation["parameters"].append({"in": "query", "name": "q", "schema": {"type": "string"}})
        case "a parameter that is needed":
            operation["parameters"].append({"in": "query", "name": "q", "required": True, "schema": {"type": "string"}})
        case "a parameter less":
            operation["parameters"].clear()
        case "a narrower parameter":
            operation["parameters"][0]["schema"]["maximum"] = 5
        case "null for a parameter":
            operation["parameters"][0]["schema"] = {"anyOf": [{"type": "integer", "maximum": 10}, {"type": "null"}]}
        case "an answer less":
            operation["responses"].clear()
    return new


GET, DELETE = f"GET {PATH}", f"DELETE {PATH}"
FOUND: dict[str, list[tuple[str, str, bool]]] = {
    "nothing": [],
    "a word": [],
    "null for a parameter": [],
    "a field more": [(GET, "changed", False)],
    "a field less": [(GET, "changed", True)],
    "an operation more": [(DELETE, "added", False)],
    "an operation less": [(GET, "removed", True)],
    "a parameter more": [(GET, "changed", False)],
    "a parameter that is needed": [(GET, "changed", True)],
    "a parameter less": [(GET, "changed", True)],
    "a narrower parameter": [(GET, "changed", True)],
    "an answer less": [(GET, "changed", True)],
}


@for_each("edit", FOUND)
def test_a_difference_is_found_and_it_is_known_whether_it_breaks(edit: str) -> None:
    found = [(change.name, change.what, change.breaking) for change in changes(OLD, edited(edit))]
    assert found == FOUND[edit]


def test_a_message_of_the_bus_that_changed_is_found_by_its_subject() -> None:
    old = released("asyncapi.yaml")
    new = deepcopy(old)
    new["components"]["schemas"]["Recall"]["properties"]["since"] = {"type": "string"}
    del new["operations"]["evt.memory.v1.audited"]
    found = [(change.name, change.what, change.breaking) for change in changes(old, new)]
    assert found == [("evt.memory.v1.audited", "removed", True), ("rpc.memory.v1.recall", "changed", False)]


@pytest.mark.parametrize("name", ["openapi.json", "asyncapi.yaml"])
def test_the_documents_of_the_last_release_are_there_and_compare_with_those_of_now(name: str) -> None:
    now = yaml.safe_load(schema_changes.current(name))
    assert operations(released(name))
    assert changes(now, now) == []


TOLD = [
    ("GET /api/v1/turns", "- `GET /api/v1/turns` has a limit.", True),
    ("GET /api/v1/turns", "- `/api/v1/turns`, and more", True),
    ("GET /api/v1/turns", "- `GET /api/v1/turns/{id}` has more.", False),
    ("GET /api/v1/turns/{id}", "- `GET /api/v1/turns/{id}/events` has more.", False),
    ("GET /api/v1/turns/{id}", "- Turns.", False),
    ("rpc.memory.v1.recall", "- `memory.v1.recall` takes a time.", True),
    ("rpc.memory.v1.recall", "- The tool `recall` takes a time.", True),
    ("rpc.memory.v1.recall", "- One can recall.", False),
    ("rpc.memory.v1.profile", "- `memory.v1.profile.get` takes a time.", False),
    ("evt.memory.v1.item.remembered", "- The event `memory.v1.item.remembered`.", True),
]


@pytest.mark.parametrize(("name", "text", "told"), TOLD)
def test_a_change_is_told_by_a_line_that_names_it(name: str, text: str, told: bool) -> None:
    assert is_told(name, text) is told


def test_only_what_is_not_released_counts_as_told() -> None:
    text = "# Changelog\n\n## [Unreleased]\n\n- New.\n\n## [0.1.0]\n\n- Old.\n"
    assert unreleased(text).strip() == "- New."
    assert unreleased("# Changelog\n") == ""
