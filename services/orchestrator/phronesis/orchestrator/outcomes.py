"""What came of tool calls, noted while a turn runs: its end tells it to the memory (V-136, V-138)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Mapping
from typing import Any

from phronesis.contracts import TimedOut
from phronesis.contracts.orchestrator import MAX_DETAIL, ToolOutcome

from .running import Running

_CODE = 100


async def watched(running: Running, tool: str, call: Awaitable[dict[str, Any]]) -> dict[str, Any]:
    """Wait for a tool call, and note what came of it and how long it took.

    Args:
        running: the turn.
        tool: the tool's own name.
        call: gives an object with a `problem`, the body of a `ServiceError`, where it failed.
    """
    began = time.perf_counter()
    try:
        given = await call
    except asyncio.CancelledError:
        late = {"code": TimedOut.code, "detail": "the call had not ended when the turn was stopped"}
        running.tools.append(outcome(tool, late, time.perf_counter() - began))
        raise
    running.tools.append(outcome(tool, given.get("problem"), time.perf_counter() - began))
    return given


def outcome(tool: str, problem: Mapping[str, Any] | None, seconds: float) -> ToolOutcome:
    """What came of one call.

    Args:
        tool: the tool's own name.
        problem: the body of its error; `None` where it worked.
        seconds: what it took.
    """
    ms = max(0, round(seconds * 1_000))
    if problem is None:
        return ToolOutcome(name=tool, ok=True, ms=ms)
    return ToolOutcome(
        name=tool, ok=False, code=str(problem["code"])[:_CODE], detail=str(problem.get("detail", ""))[:MAX_DETAIL], ms=ms
    )
