"""How much of the model's window is used, component by component (O-120, O-331, O-332)."""

from __future__ import annotations

import json
from functools import cache

from phronesis import tokens
from phronesis.bus import Call
from phronesis.contracts.catalog import TOOLS
from phronesis.contracts.constitution.session import (
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
from phronesis.contracts.principal import Role

from .parts import FOUNDATION, VISION, WORK
from .start import Sessions

_CONVERSATION = WINDOW - SYSTEM_PROMPT - TOOL_SCHEMAS - SESSION_CONTEXT


class Usage:
    """Tells what of the window is used."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def usage(self, call: Call, request: AskUsage) -> ContextUsage:
        """The components of the caller's session of that id, or of the last one. One that another process started, or that is
        forgotten, is measured as it would begin now.

        Raises:
            Unavailable: it has to be measured, and nothing of it can be loaded.
        """
        stats = self._sessions.of(call.who, request.session_id)
        if stats is None:
            stats = (await self._sessions.start(call, StartSession(session_id=request.session_id))).stats
        return ContextUsage(rows=rows(stats, schemas(call.who.role)))


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


@cache
def schemas(role: Role) -> int:
    """Tokens of the schemas of all tools that a role may use, as a model is shown them."""
    told = [tool.function() for tool in TOOLS.values() if role in tool.roles]
    return tokens.count(tokens.clean(json.dumps(told, ensure_ascii=False, separators=(",", ":"))))


def _row(component: str, budget: int, used: int) -> UsageRow:
    return UsageRow(component=component, budget=budget, used=used, remaining=max(0, budget - used), over_budget=used > budget)
