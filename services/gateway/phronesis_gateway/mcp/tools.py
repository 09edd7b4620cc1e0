"""What agents see of the tools, within its budget of tokens, and the tool that finds those that their list has no room for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

import mcp_types as types
from pydantic import Field

import phronesis_tokens as tokens
from phronesis_contracts import Message, Risk, Tool
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.constitution.session import TOOL_SCHEMAS
from phronesis_contracts.tools import legal_name, schema_of_input, schema_of_output

from ..tools.offers import OF_MEMORY, find_tool
from .turns import ASK

_WORD = re.compile(r"[a-z]+|[0-9]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NAMED = 2
"""How much more a word counts in a name than in a description."""


class SearchTools(Message):
    """Words that say what a tool should do."""

    query: str = Field(min_length=1, max_length=400, pattern=r"\S")
    limit: int = Field(default=5, ge=1, le=20)


class ToolFound(Message):
    """A tool, ready to be called."""

    name: str
    description: str
    input_schema: dict[str, Any]


class ToolsFound(Message):
    """The best first."""

    tools: tuple[ToolFound, ...]
    total: int
    """How many there are that share a word with the question."""


SEARCH = types.Tool(
    name="search_tools",
    description="Find tools that this list has no room for, such as one that creates or changes a node of some type. What it "
    "finds can be called at once.",
    input_schema=schema_of_input(SearchTools.model_json_schema()),
    output_schema=schema_of_output(ToolsFound.model_json_schema()),
    annotations=types.ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False),
)


def rank_tools(tools: Sequence[Tool[Any, Any]], request: SearchTools) -> ToolsFound:
    """The tools that share the most words with a question, in name or description."""
    wanted = set(_words(request.query))
    rated = [(_rating(tool, wanted), tool) for tool in tools]
    found = sorted(((rating, tool) for rating, tool in rated if rating), key=lambda one: (-one[0], one[1].name))
    return ToolsFound(tools=tuple(_tool_found(tool) for _, tool in found[: request.limit]), total=len(found))


def _rating(tool: Tool[Any, Any], wanted: set[str]) -> int:
    named, said = set(_words(tool.name)), set(_words(tool.description))
    return sum(_NAMED if word in named else int(word in said) for word in wanted)


def _words(text: str) -> list[str]:
    return _WORD.findall(_HUMP.sub(" ", text).lower())


def _tool_found(tool: Tool[Any, Any]) -> ToolFound:
    schema = schema_of_input(tool.rpc.input.model_json_schema())
    return ToolFound(name=legal_name(tool.name), description=tool.description, input_schema=schema)


_OF_ANALYSTS = tuple(f"graph.v1.{name}" for name in ("chain", "cypher", "entities", "gaps", "knowledge", "twin"))
_OF_CONSTITUTION = ("graph.v1.constitution", "graph.v2.constitution", "memory.v1.constitution")


def _named(subjects: tuple[str, ...]) -> frozenset[str]:
    return frozenset(name for name, tool in TOOLS.items() if tool.rpc.subject.startswith(subjects))


SHORT_LISTS = {"memory": OF_MEMORY, "analyst": _named(_OF_ANALYSTS), "constitution": _named(_OF_CONSTITUTION)}
"""The tools of each short list, by the name that stands behind `/mcp/`: a desktop client that gets them all chooses badly."""
BUDGET = TOOL_SCHEMAS
"""Tokens that a list of tools may have."""
_AROUND = 64
"""Tokens of what stands around the tools of a list, and between them where two make one less or more."""


def list_tools(tools: Sequence[Tool[Any, Any]], profile: str | None = None) -> list[types.Tool]:
    """A list of tools for somebody who may call these, in at most `BUDGET` tokens.

    Where all of it with the outputs' schemas is too much, the last are told without them. Where it is too much without any, the
    first tools are told that there is room for, and the tool that finds the others.

    Args:
        tools: those that are told first come first.
        profile: one of `SHORT_LISTS`, whose tools alone are told; of memory's there are eight, and no agent to ask.
    """
    names = tuple(tool.name for tool in tools if profile is None or tool.name in SHORT_LISTS[profile])
    return list(_list_named(names))[profile == "memory" :]


@lru_cache(maxsize=64)
def _list_named(names: tuple[str, ...]) -> tuple[types.Tool, ...]:
    whole = (ASK, *(describe_tool(legal_name(name)) for name in names))
    short = tuple(_without_output(one) for one in whole)
    if _fits(short):
        return next(shown for end in range(len(whole), -1, -1) if _fits(shown := (*whole[:end], *short[end:])))
    end = next(end for end in range(len(short), 0, -1) if _fits((*short[:end], SEARCH)))
    return (short[0], SEARCH, *short[1:end])


def _fits(shown: Sequence[types.Tool]) -> bool:
    return _AROUND + sum(_tokens(one.name, one.output_schema is not None) for one in shown) <= BUDGET


@cache
def _tokens(name: str, output: bool) -> int:
    known = {ASK.name: ASK, SEARCH.name: SEARCH}
    one = known.get(name) or describe_tool(name)
    whole = one if output else _without_output(one)
    return tokens.count(whole.model_dump_json(by_alias=True, exclude_none=True)) + 1


def _without_output(tool: types.Tool) -> types.Tool:
    return tool.model_copy(update={"output_schema": None})


@cache
def describe_tool(name: str) -> types.Tool:
    """One of the catalog's tools as agents see it. It is made when it is first asked for: the schemas of all take a second.

    Args:
        name: the name that agents use, one of `NAMES`.
    """
    tool = find_tool(name)
    assert tool is not None, "it is one of NAMES"
    reads = tool.risk is Risk.READ
    return types.Tool(
        name=legal_name(tool.name),
        description=tool.description,
        input_schema=schema_of_input(tool.rpc.input.model_json_schema()),
        output_schema=schema_of_output(tool.rpc.output.model_json_schema()),
        annotations=types.ToolAnnotations(
            read_only_hint=reads,
            destructive_hint=tool.irreversible,
            # A write can be made safe to repeat by a key, but nothing in its arguments says that it is.
            idempotent_hint=reads,
            open_world_hint=False,
        ),
    )


NAMES = frozenset(legal_name(name) for name in TOOLS)
