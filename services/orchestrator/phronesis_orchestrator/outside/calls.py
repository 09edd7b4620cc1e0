"""Calling an accepted tool of an outside server."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from phronesis_contracts import BadRequest, Principal, ServiceError, TimedOut
from phronesis_contracts.outside import (
    PREFIX,
    AcceptedTool,
    OutcomeUnknown,
    OutsideFailed,
    OutsideRefused,
    ToolChanged,
    ToolNotAllowed,
    UnknownServer,
)

from .domain import Server
from .pool import Session, Sessions
from .ports import Answered, Servers
from .schemas import fault, visible

log = logging.getLogger(__name__)

MAX_RESULT = 60_000
"""Characters of one result."""
_DETAIL = 800
"""Characters of what a tool says of its failure."""


class Calls:
    """Calls outside tools; see `OutsideCaller`.

    Args:
        servers: the registered ones.
        sessions: the open sessions.
    """

    def __init__(self, servers: Servers, sessions: Sessions) -> None:
        self._servers = servers
        self._sessions = sessions

    async def call(self, who: Principal, name: str, arguments: dict[str, Any], step_key: str) -> dict[str, Any]:
        """What a tool gave, as data; see `OutsideCaller.call`."""
        server, tool = await self._accepted(who, name)
        if wrong := fault(tool.parameters, arguments):
            raise BadRequest(wrong, field="arguments")
        session = self._sessions.of(who, server)
        session.users += 1
        try:
            return await self._called(who, server, session, tool, arguments, step_key)
        finally:
            session.users -= 1

    async def _accepted(self, who: Principal, name: str) -> tuple[Server, AcceptedTool]:
        named, _, own = name.removeprefix(PREFIX).partition(".")
        if not name.startswith(PREFIX) or not own:
            raise UnknownServer("an outside tool is named outside.<server>.<tool>")
        server = await self._servers.one(who.tenant, named)
        tool = server.tool(own)
        if tool is None or not server.enabled:
            raise ToolNotAllowed("no administrator allows this outside tool")
        return server, tool

    async def _called(
        self, who: Principal, server: Server, session: Session, tool: AcceptedTool, arguments: dict[str, Any], key: str
    ) -> dict[str, Any]:
        sent = False
        try:
            async with asyncio.timeout(server.seconds):
                await self._unchanged(who, server, session, tool)
                sent = True
                answered = await session.call(tool.name, arguments, key)
        except (TimeoutError, OutsideFailed) as error:
            if sent and not tool.idempotent:
                raise OutcomeUnknown(
                    "the call was made and its answer was lost; whether it had its effect is not known"
                ) from error
            if isinstance(error, ServiceError):
                raise
            raise TimedOut("the outside server took too long") from error
        return _result(answered)

    async def _unchanged(self, who: Principal, server: Server, session: Session, tool: AcceptedTool) -> None:
        """Hold what the server says of the tool now to what was accepted."""
        try:
            now = await session.tool(tool.name)
        except ServiceError:
            session.close()
            self._sessions.rest(who, server)
            raise
        if now is None or now.pin != tool.pin:
            log.warning("the outside server %s describes %s differently from what was accepted", server.name, tool.name)
            raise ToolChanged("the server changed this tool; an administrator has to look at it and accept it again")


def _result(answered: Answered) -> dict[str, Any]:
    text = visible(answered.text)
    if answered.failed:
        raise OutsideRefused(text[:_DETAIL] or "the tool says that it failed")
    return {"text": text[:MAX_RESULT], "truncated": len(text) > MAX_RESULT}
