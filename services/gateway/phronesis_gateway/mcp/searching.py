"""The tool that finds tools: those that a caller may call and that its list has no room for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import mcp_types as types
from pydantic import Field

from phronesis_contracts import Message, Tool
from phronesis_contracts.faces import answered, legal, told

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
    input_schema=told(SearchTools.model_json_schema()),
    output_schema=answered(ToolsFound.model_json_schema()),
    annotations=types.ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False),
)


def search(tools: Sequence[Tool[Any, Any]], asked: SearchTools) -> ToolsFound:
    """The tools that share the most words with a question, in name or description.

    Args:
        tools: those that the caller may call.
        asked: the question.
    """
    wanted = set(_words(asked.query))
    rated = [(_rating(tool, wanted), tool) for tool in tools]
    found = sorted(((rating, tool) for rating, tool in rated if rating), key=lambda one: (-one[0], one[1].name))
    return ToolsFound(tools=tuple(_found(tool) for _, tool in found[: asked.limit]), total=len(found))


def _rating(tool: Tool[Any, Any], wanted: set[str]) -> int:
    named, said = set(_words(tool.name)), set(_words(tool.description))
    return sum(_NAMED if word in named else int(word in said) for word in wanted)


def _words(text: str) -> list[str]:
    return _WORD.findall(_HUMP.sub(" ", text).lower())


def _found(tool: Tool[Any, Any]) -> ToolFound:
    schema = told(tool.rpc.input.model_json_schema())
    return ToolFound(name=legal(tool.name), description=tool.description, input_schema=schema)
