"""Results of calls: the same JSON as by HTTP, and a typed problem where there is none."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types
from pydantic import BaseModel

from phronesis_contracts import ServiceError, TooLarge

MOST = 125_000
"""Bytes of a result, what 25,000 tokens of prose may have: more would fill the window of the model that reads it. Tools that
cut their answers themselves cut them by tokens."""


def result(found: BaseModel, *, reads: bool) -> types.CallToolResult:
    """What a tool answered.

    Args:
        found: the answer.
        reads: whether the tool changed nothing. Only then can a large answer be withheld: the caller may ask for less,
            while an error in place of a write's answer would say that nothing was written.

    Raises:
        TooLarge: the answer of a tool that only reads is over `MOST`.
    """
    text = found.__pydantic_serializer__.to_json(found).decode()
    if reads and len(text) > MOST:
        raise TooLarge(f"the result is over {MOST} bytes; ask for less: a smaller limit, or a narrower question")
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=json.loads(text))


def problem(body: dict[str, Any]) -> types.CallToolResult:
    """A problem, `code`, `status` and `detail` and what else is known, for the model to read and to act on.

    It is text alone: structured content has to be what the tool's output schema says.
    """
    return types.CallToolResult(content=[types.TextContent(text=json.dumps(body))], is_error=True)


def refused(error: ServiceError) -> types.CallToolResult:
    """A `ServiceError` as a result."""
    return problem(error.body())
