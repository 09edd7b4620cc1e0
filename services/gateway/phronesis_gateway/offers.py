"""What a caller may call: the tools of its role, an agent's allow-list, and the tools that are retired."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from phronesis_contracts import Forbidden, Principal, Retired, Tool
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.constitution import writes
from phronesis_contracts.faces import bare, legal, successor

from .allowing import AllowLists


def find(name: str) -> Tool[Any, Any] | None:
    """The catalog's tool that somebody calls `name`: as it is, with underscores, or with the prefix that some put before it."""
    return _BY_NAME.get(bare(name))


class Offers:
    """The tools that each caller may call.

    Args:
        lists: the agents' allow-lists.
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
        listed = await self._lists.of(who)
        tools = _ORDER if listed is None else tuple(tool for name in listed if (tool := TOOLS.get(name)) is not None)
        return tuple(tool for tool in tools if who.role in tool.roles and tool.name not in self._retired)

    async def require(self, who: Principal, tool: Tool[Any, Any]) -> None:
        """Let a caller call a tool.

        Raises:
            Forbidden: its role may not, or its agent's list does not have it.
            Retired: nobody may any more.
            ServiceError: an agent's list cannot be had.
        """
        if who.role not in tool.roles:
            raise Forbidden(f"role {who.role} may not use {tool.name}")
        listed = await self._lists.of(who)
        if listed is not None and tool.name not in listed:
            raise Forbidden(f"{tool.name} is not among the tools of the agent {who.role}")
        if tool.name in self._retired:
            raise Retired(f"{tool.name} is retired; use {successor(tool.name)}")


def _rank(tool: Tool[Any, Any]) -> int:
    """Tools of one node type each come last, and other names of a tool before them: there is a tool for each of them."""
    if tool.name in _OF_TYPES:
        return 2
    return int(next(one.name for one in sorted(TOOLS.values(), key=_plain) if one.rpc is tool.rpc) != tool.name)


def _plain(tool: Tool[Any, Any]) -> tuple[bool, str]:
    return "." not in tool.name, tool.name


_OF_TYPES = frozenset(tool.name for table in (writes.CREATE, writes.UPDATE) for tool in table.values())
_BY_NAME = {legal(name): tool for name, tool in TOOLS.items()} | TOOLS
_ORDER = tuple(sorted(TOOLS.values(), key=lambda tool: (_rank(tool), tool.name)))
"""All tools: those that a caller without a list of its own is told first come first."""
