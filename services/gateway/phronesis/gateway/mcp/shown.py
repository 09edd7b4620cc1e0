"""What agents see of the tools: each is made from its value in the catalog."""

from __future__ import annotations

import re
from typing import Any

import mcp_types as types

from phronesis.contracts import Principal, Risk, Tool
from phronesis.contracts.catalog import TOOLS

_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")


def legal(name: str) -> str:
    """`name` with nothing in it that a client may refuse: dots become underscores."""
    return _ILLEGAL.sub("_", name)[:64]


def find(name: str) -> Tool[Any, Any] | None:
    """The catalog's tool that agents call `name`; its own dotted name is good too."""
    return _BY_NAME.get(name)


def listed(who: Principal) -> list[types.Tool]:
    """The catalog's tools that the caller's role may use, in order of their names."""
    return [shown for name, shown in SHOWN.items() if who.role in _BY_NAME[name].roles]


def _shown(tool: Tool[Any, Any]) -> types.Tool:
    reads = tool.risk is Risk.READ
    return types.Tool(
        name=legal(tool.name),
        description=tool.description,
        input_schema=tool.rpc.input.model_json_schema(),
        output_schema=tool.rpc.output.model_json_schema(),
        annotations=types.ToolAnnotations(
            read_only_hint=reads,
            destructive_hint=tool.irreversible,
            # A write can be made safe to repeat by a key, but nothing in its arguments says that it is.
            idempotent_hint=reads,
            open_world_hint=False,
        ),
    )


SHOWN: dict[str, types.Tool] = {legal(name): _shown(tool) for name, tool in sorted(TOOLS.items())}
"""The catalog's tools as agents see them, by the name that agents use."""
_BY_NAME = {legal(name): tool for name, tool in TOOLS.items()} | TOOLS
