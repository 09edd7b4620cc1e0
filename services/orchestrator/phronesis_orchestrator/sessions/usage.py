"""How much of the model's window is used, component by component (O-120, O-331, O-332)."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import cache

import phronesis_tokens as tokens
from phronesis_bus import Call
from phronesis_contracts import Principal, ServiceError
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.constitution.session import (
    SESSION_CONTEXT,
    SYSTEM_PROMPT,
    TOOL_SCHEMAS,
    WINDOW,
    AskUsage,
    ContextUsage,
    SessionStats,
    StartSession,
    UsageRow,
)
from phronesis_contracts.faces import legal, told
from phronesis_contracts.instructions import AgentProfile

from .parts import FOUNDATION, VISION, WORK
from .start import Sessions

log = logging.getLogger(__name__)

Agent = Callable[[Principal, str], Awaitable[AgentProfile]]
"""Reads the profile of an agent by its name."""
_CONVERSATION = WINDOW - SYSTEM_PROMPT - TOOL_SCHEMAS - SESSION_CONTEXT


class Usage:
    """Tells what of the window is used.

    Args:
        sessions: the sessions that were begun.
        agent: reads the profile of an agent, which has its allow-list.
    """

    def __init__(self, sessions: Sessions, agent: Agent) -> None:
        self._sessions = sessions
        self._agent = agent

    async def usage(self, call: Call, request: AskUsage) -> ContextUsage:
        """The components of the caller's session of that id, or of the last one. One that another process started, or that is
        forgotten, is measured as it would begin now.

        Raises:
            Unavailable: it has to be measured, and nothing of it can be loaded.
        """
        stats = self._sessions.of(call.who, request.session_id)
        if stats is None:
            stats = (await self._sessions.start(call, StartSession(session_id=request.session_id))).stats
        return ContextUsage(rows=rows(stats, schemas(await self._tools(call.who))))

    async def _tools(self, who: Principal) -> tuple[str, ...]:
        """The caller's tools: those of its agent's allow-list, or all of its role where its role has none."""
        try:
            listed = (await self._agent(who, who.role.value)).tools
        except ServiceError as error:  # no agent of that name, or nobody there who would know it
            log.info("the tools of %s are those of its role: %s", who.role, error.code)
            listed = ()
        return tuple(name for name in listed or sorted(TOOLS) if name in TOOLS and who.role in TOOLS[name].roles)


def rows(stats: SessionStats, schema_tokens: int) -> tuple[UsageRow, ...]:
    """The components and their sum. The budgets add up to the window, and so do what is used and what is left in the sum.

    Args:
        stats: what a session's context came to.
        schema_tokens: tokens of the caller's tools. The system prompt is the model's side's own, and counts as used up.
    """
    components = (
        _row("system prompt", SYSTEM_PROMPT, SYSTEM_PROMPT),
        _row("tool schemas", TOOL_SCHEMAS, schema_tokens),
        _row("foundation", FOUNDATION, stats.foundation_tokens),
        _row("vision", VISION, stats.vision_tokens),
        _row("workload", WORK, stats.workload_tokens),
    )
    # what is reserved is not for the conversation, used or not; what the session's context leaves is
    taken = SYSTEM_PROMPT + max(TOOL_SCHEMAS, schema_tokens) + stats.total_tokens
    left = max(0, WINDOW - taken)
    conversation = UsageRow(component="conversation", budget=_CONVERSATION, used=0, remaining=left, over_budget=False)
    used = sum(row.used for row in components)
    return (*components, conversation, _row("total", WINDOW, used))


def schemas(tools: Iterable[str]) -> int:
    """Tokens of the schemas that a caller with these tools is shown: the first ones that there is room for. The others are
    found by searching (O-331)."""
    used = 0
    for tool in tools:
        more = _schema(tool)
        if used + more > TOOL_SCHEMAS:
            break
        used += more
    return used


@cache
def _schema(name: str) -> int:
    tool = TOOLS[name]
    shown = {"name": legal(name), "description": tool.description, "parameters": told(tool.rpc.input.model_json_schema())}
    return tokens.count(tokens.clean(json.dumps(shown, ensure_ascii=False, separators=(",", ":"))))


def _row(component: str, budget: int, used: int) -> UsageRow:
    return UsageRow(component=component, budget=budget, used=used, remaining=max(0, budget - used), over_budget=used > budget)
