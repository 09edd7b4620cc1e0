"""The tools at hand in a turn: those of the agent that its caller's role may use. All that they say is noted."""

from __future__ import annotations

import logging
from typing import Any

from phronesis_contracts import Forbidden, Principal, ServiceError, Tool
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.constitution.session import SET_CALENDAR_TOOL
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.messages import In, Out_
from phronesis_contracts.orchestrator import TURN_GET_TOOL

from ..outside.offers import outside_tools
from ..policy.rules import Ruling, judge
from ..policy.waiting import arguments_of
from ..running import Running
from .record import Record

log = logging.getLogger(__name__)

_OUTSIDE = frozenset({TURN_GET_TOOL.name, SET_CALENDAR_TOOL.name})
"""Tools on a list that are for callers from outside: to look after a turn, and to state a password that no model should see."""


class NotOffered(Exception):
    """A tool is needed that the agent, or its caller's role, does not have.

    Args:
        tool: its name.
    """

    def __init__(self, tool: str) -> None:
        super().__init__(tool)
        self.tool = tool


def offered(agent: AgentProfile, who: Principal) -> tuple[Tool[Any, Any], ...]:
    """The tools of an agent for a caller: the agent's list, less what the caller's role may not call.

    The role is the caller's, from the token; no text and no argument can change it.
    """
    tools = (TOOLS[name] for name in agent.tools if name in TOOLS and name not in _OUTSIDE)
    return tuple(tool for tool in tools if who.role in tool.roles)


async def reached(running: Running, agent: AgentProfile) -> dict[str, Tool[Any, Any]]:
    """The outside tools that an agent's profile allows; without them the turn goes on, and says so.

    Args:
        running: the turn.
        agent: whose profile counts.
    """
    try:
        return await outside_tools(running.neighbours, running.claim.who, agent.outside)
    except ServiceError as error:
        log.warning("the outside tools cannot be had: %s", error.code)
        running.degrade("outside")
        return {}


class Desk:
    """The tools of one turn.

    Args:
        running: the turn.
        agent: whose list counts.
    """

    def __init__(self, running: Running, agent: AgentProfile) -> None:
        self._running = running
        self._agent = agent
        self.tools = {tool.name: tool for tool in offered(agent, running.claim.who)}
        self.record = Record()

    async def reach_outside(self) -> None:
        """Add the outside tools that the agent's profile allows; without them the turn goes on, and says so."""
        self.tools |= await reached(self._running, self._agent)

    def has(self, tool: Tool[Any, Any]) -> bool:
        """Whether a tool is at hand."""
        return tool.name in self.tools

    async def ask(self, tool: Tool[In, Out_], request: In) -> Out_:
        """Ask a tool's owner, and note the nodes that it names.

        Raises:
            NotOffered: the tool is not at hand.
            ServiceError: what the owner answered; `Forbidden` of a call that needs a person, whom rules do not ask.
        """
        if not self.has(tool):
            raise NotOffered(tool.name)
        verdict = judge(tool.name, arguments_of(request))
        if verdict.ruling is not Ruling.ALLOW:
            raise Forbidden(verdict.reason)
        answer = await self._running.neighbours.ask(self._running.claim.who, tool.rpc, request)
        self.record.note(answer)
        return answer
