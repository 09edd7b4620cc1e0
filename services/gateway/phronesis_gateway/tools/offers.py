"""What a caller may call.

The tools that its role and agents open, an agent's allow-list, the tools that are retired; and calling one, on the one path
of every interface.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from starlette.responses import Response

from phronesis_bus import Bus, News, ask
from phronesis_contracts import (
    SYSTEM_TENANT,
    Agent,
    Forbidden,
    NotFound,
    Principal,
    Retired,
    TimedOut,
    Tool,
    Unavailable,
    agents,
    memories,
    ontology,
    outside,
)
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.constitution import writes
from phronesis_contracts.instructions import AGENT_GET, AgentProfile, AgentRef, Released
from phronesis_contracts.tools import bare_name, legal_name, successor_name

from ..auth.authentication import audit_refusal, scope_idempotency_key
from ..auth.keys import require_scope, scope_of
from ..http.responses import invalid_input, json_response

log = logging.getLogger(__name__)

AGENTS = frozenset({Agent.DISCUSS, Agent.DECISIONS, Agent.EXECUTE, Agent.MIND})
"""Agents with an allow-list."""
_FRESH = 10.0
"""Seconds that a list serves without a question: news of a release is sooner, but a copy of the instructions service that
has not heard it yet may answer with the list before."""
_KEPT = 1_000
"""Lists that are kept at most: one for each tenant and agent, and for each user who is in an experiment."""
_LIMIT = 2.0
"""Seconds that a question for a list may take."""

_Key = tuple[str, str, str]
ReadProfile = Callable[[Principal, Agent], Awaitable[AgentProfile]]


def profile_reader(bus: Bus) -> ReadProfile:
    async def read(who: Principal, agent: Agent) -> AgentProfile:
        return await ask(bus, who, AGENT_GET, AgentRef(agent=agent.value), timeout=_LIMIT)

    return read


@dataclass(frozen=True)
class _AllowList:
    tools: tuple[str, ...]
    until: float


class AllowLists:
    """A cache of the lists.

    It fails closed: without a list there is no tool. While the instructions service is away a list that was read still holds,
    since nothing but a release changes one; a list that a release has made stale never does.
    """

    def __init__(self, read: ReadProfile, clock: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._clock = clock
        self._lists: OrderedDict[_Key, _AllowList] = OrderedDict()
        self._drops = 0

    async def of(self, who: Principal, agent: Agent) -> tuple[str, ...] | None:
        """Names of the tools that an agent may use for a caller, in its order; `None` for an agent that has no list.

        Raises:
            Unavailable: the list is not at hand, and the instructions service is away.
            TimedOut: the same, without an answer in time.
        """
        if agent not in AGENTS:
            return None
        of_user, of_all = (who.tenant, agent.value, who.user), (who.tenant, agent.value, "")
        kept = self._lists.get(of_user) or self._lists.get(of_all)
        if kept is not None and self._clock() < kept.until:
            return kept.tools
        drops = self._drops
        try:
            profile = await self._profile(who, agent)
        except (Unavailable, TimedOut) as error:
            if kept is None or drops != self._drops:
                raise
            log.warning("instructions are away; the tools of %s are those that were read before: %s", agent, error.code)
            return kept.tools
        tools = profile.tools if profile else ()
        if drops == self._drops:  # else it may have been read just before the release
            self._lists.pop(of_user, None)
            self._keep(of_user if profile and profile.arms else of_all, tools)
        return tools

    async def on_released(self, news: News, released: Released) -> None:
        """Drop what a release may have made stale: the lists of its tenant, or everybody's after one of the platform."""
        self._drops += 1
        stale = [key for key in self._lists if news.tenant in (SYSTEM_TENANT, key[0])]
        for key in stale:
            del self._lists[key]

    async def _profile(self, who: Principal, agent: Agent) -> AgentProfile | None:
        try:
            return await self._read(who, agent)
        except NotFound:
            log.error("there is no agent %s, so it has no tools", agent)
            return None

    def _keep(self, key: _Key, tools: tuple[str, ...]) -> None:
        self._lists[key] = _AllowList(tools, self._clock() + _FRESH)
        self._lists.move_to_end(key)
        if len(self._lists) > _KEPT:
            self._lists.popitem(last=False)


def find_tool(name: str) -> Tool[Any, Any] | None:
    """The catalog's tool that somebody calls `name`: as it is, with underscores, or with the prefix that some put before it."""
    return _BY_NAME.get(bare_name(name))


class Offers:
    """The tools that each caller may call.

    Args:
        retired: names of tools that are neither shown nor called any more, each with a second version.
    """

    def __init__(self, lists: AllowLists, retired: Iterable[str] = ()) -> None:
        self._lists = lists
        self._retired = frozenset(retired)

    async def of(self, who: Principal) -> tuple[Tool[Any, Any], ...]:
        """The tools that a caller may call, those that are told first before the others.

        Raises:
            ServiceError: an agent's list cannot be had.
        """
        found = dict.fromkeys(_ORDER) if who.administers else {}
        for agent in who.agents:
            listed = await self._lists.of(who, agent)
            tools = _ORDER if listed is None else tuple(tool for name in listed if (tool := TOOLS.get(name)) is not None)
            found.update(dict.fromkeys(tool for tool in tools if agent in tool.agents))
        return tuple(tool for tool in found if tool.open_to(who) and tool.name not in self._retired)

    async def require(self, who: Principal, tool: Tool[Any, Any]) -> None:
        """Let a caller call a tool.

        Raises:
            Forbidden: its role and agents do not open it, or no list of an agent has it.
            Retired: nobody may any more.
            ServiceError: an agent's list cannot be had.
        """
        if not tool.open_to(who):
            raise Forbidden(f"{who.rights} may not use {tool.name}")
        if not (who.administers or await self._is_listed(who, tool)):
            raise Forbidden(f"{tool.name} is not among the tools of the agent {', '.join(who.agents)}")
        if tool.name in self._retired:
            raise Retired(f"{tool.name} is retired; use {successor_name(tool.name)}")

    async def _is_listed(self, who: Principal, tool: Tool[Any, Any]) -> bool:
        for agent in who.agents:
            if agent in tool.agents:
                listed = await self._lists.of(who, agent)
                if listed is None or tool.name in listed:
                    return True
        return False


def _rank(tool: Tool[Any, Any]) -> int:
    """Tools of one node type each, those that set a tenant up, and those of memory that programs call, come last; earlier
    versions and other names before them.
    """
    if tool.name in _OF_TYPES | _OF_SETUP | OF_MEMORY:
        return 2
    if successor_name(tool.name) in TOOLS:
        return 1
    return int(next(one.name for one in sorted(TOOLS.values(), key=_plain_name_key) if one.rpc is tool.rpc) != tool.name)


def _plain_name_key(tool: Tool[Any, Any]) -> tuple[bool, str]:
    return "." not in tool.name, tool.name


_OF_TYPES = frozenset(tool.name for table in (writes.CREATE, writes.UPDATE) for tool in table.values())
_OF_SETUP = frozenset(
    tool.name for module in (agents, ontology, outside) for tool in vars(module).values() if isinstance(tool, Tool)
)
"""Those who set a tenant up look for them by name; whoever asks has no use for them."""
OF_MEMORY = frozenset(tool.name for tool in vars(memories).values() if isinstance(tool, Tool))
"""Programs call them, and agents that have nothing but memory, which are told of nothing else."""
_BY_NAME = {legal_name(name): tool for name, tool in TOOLS.items()} | TOOLS
_ORDER = tuple(sorted(TOOLS.values(), key=lambda tool: (_rank(tool), tool.name)))
"""All tools: those that a caller without a list of its own is told first come first."""


async def call_tool(
    bus: Bus, offers: Offers, who: Principal, tool: Tool[Any, Any], given: dict[str, Any], key: str | None
) -> BaseModel:
    """Ask a tool's owner.

    Args:
        key: idempotency key of a write, as its owner gets it.

    Raises:
        Forbidden: the caller's role or agents may not use it, or the caller is narrowed to less; each is audited.
        Retired: nobody may use it any more.
        BadRequest: the input breaks the tool's schema.
        ServiceError: what the owner answered.
    """
    try:
        await offers.require(who, tool)
        require_scope(who, scope_of(tool))
    except Forbidden as error:
        await audit_refusal(bus, who, tool.name, given, error)
        raise
    try:
        request = tool.rpc.input.model_validate(given)
    except ValidationError as fault:
        raise invalid_input(fault.errors(include_url=False, include_context=False, include_input=False)) from fault
    answer: BaseModel = await ask(bus, who, tool.rpc, request, key=key)
    return answer


async def tool_response(
    bus: Bus,
    offers: Offers,
    who: Principal,
    tool: Tool[Any, Any],
    given: dict[str, Any],
    key: str | None = None,
    *,
    created: str | None = None,
) -> Response:
    """A tool's answer as a route gives it. Raises as `call_tool`.

    Args:
        key: idempotency key of a write, as the caller sent it.
        created: where that is which the call made; the status is then 201.
    """
    found = await call_tool(bus, offers, who, tool, given, scope_idempotency_key(who, key))
    return json_response(found, 201 if created else 200, {"Location": created} if created else None)
