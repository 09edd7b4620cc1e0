"""What agents see of the tools: each is made from its value in the catalog, and all that one sees fits its budget."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

import mcp_types as types

import phronesis_tokens as tokens
from phronesis_contracts import Risk, Tool
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.constitution.session import TOOL_SCHEMAS
from phronesis_contracts.faces import answered, legal, told
from phronesis_gateway.offers import find

from .searching import SEARCH
from .turns import ASK

__all__ = ["BUDGET", "NAMES", "find", "listed", "shown"]

BUDGET = TOOL_SCHEMAS
"""Tokens that a list of tools may have (O-099)."""
_AROUND = 64
"""Tokens of what stands around the tools of a list, and between them where two make one less or more."""


def listed(tools: Sequence[Tool[Any, Any]]) -> list[types.Tool]:
    """A list of tools for somebody who may call these, in at most `BUDGET` tokens.

    Where all of it with the outputs' schemas is too much, it is told without them. Where that is still too much, the first
    tools are told that there is room for, and the tool that finds the others.

    Args:
        tools: those that are told first come first.
    """
    return list(_listed(tuple(tool.name for tool in tools)))


@lru_cache(maxsize=64)
def _listed(names: tuple[str, ...]) -> tuple[types.Tool, ...]:
    whole = (ASK, *(shown(legal(name)) for name in names))
    if _fits(whole):
        return whole
    short = tuple(_without_output(one) for one in whole)
    if _fits(short):
        return short
    end = next(end for end in range(len(short), 0, -1) if _fits((*short[:end], SEARCH)))
    return (short[0], SEARCH, *short[1:end])


def _fits(shown: Sequence[types.Tool]) -> bool:
    return _AROUND + sum(_tokens(one.name, one.output_schema is not None) for one in shown) <= BUDGET


@cache
def _tokens(name: str, output: bool) -> int:
    known = {ASK.name: ASK, SEARCH.name: SEARCH}
    one = known.get(name) or shown(name)
    whole = one if output else _without_output(one)
    return tokens.count(whole.model_dump_json(by_alias=True, exclude_none=True)) + 1


def _without_output(tool: types.Tool) -> types.Tool:
    return tool.model_copy(update={"output_schema": None})


@cache
def shown(name: str) -> types.Tool:
    """One of the catalog's tools as agents see it. It is made when it is first asked for: the schemas of all take a second.

    Args:
        name: the name that agents use, one of `NAMES`.
    """
    tool = find(name)
    assert tool is not None, "it is one of NAMES"
    reads = tool.risk is Risk.READ
    return types.Tool(
        name=legal(tool.name),
        description=tool.description,
        input_schema=told(tool.rpc.input.model_json_schema()),
        output_schema=answered(tool.rpc.output.model_json_schema()),
        annotations=types.ToolAnnotations(
            read_only_hint=reads,
            destructive_hint=tool.irreversible,
            # A write can be made safe to repeat by a key, but nothing in its arguments says that it is.
            idempotent_hint=reads,
            open_world_hint=False,
        ),
    )


NAMES = frozenset(legal(name) for name in TOOLS)
"""Names of the catalog's tools as agents use them."""
