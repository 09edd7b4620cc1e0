"""What agents see of a tool, and what scopes leave of a caller's rights."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import pytest
from mcp_types import JSONRPCMessage, jsonrpc_message_adapter

from phronesis.cli.mcp import Stamp
from phronesis_contracts import Principal, Risk
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.tools import legal_name, schema_of_input
from phronesis_gateway.auth.keys import READ, WRITE, InsufficientScope, require_scope
from phronesis_gateway.mcp.tools import NAMES, describe_tool
from phronesis_gateway.mcp.turns import ASK
from phronesis_gateway.tools.offers import find_tool
from tests.support.cases import for_each
from tests.support.mcp import BEFORE, headers_of, message


@for_each("name", TOOLS)
def test_every_tool_has_a_legal_name_of_its_own_and_its_dotted_one(name: str) -> None:
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", legal_name(name))
    assert find_tool(name) is find_tool(legal_name(name)) is TOOLS[name]
    assert len(NAMES) == len(TOOLS)
    assert legal_name(name) != ASK.name


def _names(schema: Any) -> set[str]:
    """Every word of a schema, names of fields aside."""
    if isinstance(schema, list):
        return set().union(*map(_names, schema)) if schema else set()
    if not isinstance(schema, dict):
        return set()
    inside = [value for word, value in schema.items() if word not in ("properties", "$defs", "default")]
    named = [value for word in ("properties", "$defs") for value in schema.get(word, {}).values()]
    return set(schema) | _names(inside) | _names(named)


@for_each("name", TOOLS)
@pytest.mark.req("O-099")
def test_a_schema_is_told_in_few_words_and_names_every_field_and_what_is_required(name: str) -> None:
    whole = TOOLS[name].rpc.input.model_json_schema()
    short = schema_of_input(whole)
    assert not _names(short) & {"title", "maxLength", "maxItems", "minLength", "additionalProperties"}
    assert "'null'" not in str(short)
    assert set(short.get("properties", {})) == set(whole.get("properties", {}))
    assert short.get("required") == whole.get("required")
    assert len(str(short)) <= len(str(whole))


def test_a_field_of_a_fields_own_name_is_told_and_definitions_stand_where_they_are_used_once() -> None:
    schema = {
        "title": "X",
        "description": "long",
        "type": "object",
        "$defs": {
            "One": {"title": "One", "type": "string", "enum": ["a"], "description": "why"},
            "Two": {"title": "Two", "type": "integer", "maximum": 3},
        },
        "properties": {
            "title": {"title": "Title", "type": "string", "maxLength": 5, "description": "a short text"},
            "default": {"anyOf": [{"$ref": "#/$defs/One"}, {"type": "null"}], "default": None},
            "more": {"type": "array", "items": {"$ref": "#/$defs/Two"}, "default": []},
            "less": {"anyOf": [{"$ref": "#/$defs/Two"}, {"type": "string"}], "default": 1},
        },
        "additionalProperties": False,
    }
    assert schema_of_input(schema) == {
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "a short text"},
            "default": {"type": "string", "enum": ["a"]},
            "more": {"type": "array", "items": {"$ref": "#/$defs/Two"}},
            "less": {"anyOf": [{"$ref": "#/$defs/Two"}, {"type": "string"}], "default": 1},
        },
        "$defs": {"Two": {"type": "integer", "maximum": 3}},
    }


@for_each("name", TOOLS)
def test_the_hints_follow_from_risk_and_irreversibility(name: str) -> None:
    hints, tool = describe_tool(legal_name(name)).annotations, TOOLS[name]
    assert hints is not None
    assert (hints.read_only_hint, hints.destructive_hint, hints.open_world_hint) == (
        tool.risk is Risk.READ,
        tool.irreversible,
        False,
    )


@pytest.mark.parametrize(
    ("scopes", "may"),
    [
        ((), {READ, WRITE}),
        (("operator",), {READ, WRITE}),
        ((READ,), {READ}),
        ((READ, "operator"), {READ}),
        ((WRITE,), {READ, WRITE}),
        ((READ, WRITE), {READ, WRITE}),
    ],
)
def test_a_scope_only_narrows(scopes: tuple[str, ...], may: set[str]) -> None:
    allowed = set()
    for scope in (READ, WRITE):
        with suppress(InsufficientScope):
            require_scope(Principal(tenant="t", user="u", scopes=scopes), scope)
            allowed.add(scope)
    assert allowed == may


def _parsed(body: dict[str, Any]) -> JSONRPCMessage:
    return jsonrpc_message_adapter.validate_python(body)


@pytest.mark.parametrize("body", [message("tools/list"), message("tools/call", {"name": "recall", "arguments": {}})])
def test_the_proxy_repeats_in_headers_what_a_message_says(body: dict[str, Any]) -> None:
    stamped = {name.lower(): value for name, value in Stamp().on(_parsed(body)).items()}
    wanted = {name.lower(): value for name, value in headers_of(body).items() if name != "Accept"}
    assert stamped == wanted


def test_the_proxy_repeats_the_revision_that_a_handshake_agreed_on() -> None:
    stamp = Stamp()
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": "odd"}}
    assert stamp.on(_parsed({"jsonrpc": "2.0", "id": 1, "method": "initialize"})) == {}
    stamp.heard(_parsed({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": BEFORE}}))
    assert stamp.on(_parsed(listing)) == {"mcp-protocol-version": BEFORE}
