"""Sessions with outside servers, bounded, and opened anew where one broke; calling an accepted tool."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from phronesis_contracts import BadRequest, Principal, ServiceError, TimedOut
from phronesis_contracts.errors import Busy
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

from .ports import Connect, Server, Servers, ServerSession, ToolAnswer
from .schemas import ListedTool, find_fault, parse_tools, strip_invisible

log = logging.getLogger(__name__)

MOST = 64
"""Sessions of one worker that are open at once."""
CALLS = 8
"""Calls of one session that run side by side; one more waits within its own time."""
_OPENING = 10.0
"""Seconds that opening a session may take."""
_IDLE = 120.0
"""Seconds after which a session that nobody used is closed."""
_REST = 5.0
"""Seconds for which a server that could not be reached is not tried again."""
_FRESH = 60.0
"""Seconds for which a server's list of tools is believed."""

Key = tuple[str, str, int]


class PooledSession:
    """One session, in a task of its own: what opens it must close it."""

    def __init__(self, who: Principal, server: Server, connect: Connect, fresh: float) -> None:
        self._server = server
        self._fresh = fresh
        self._opened: asyncio.Future[ServerSession] = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self._slots = asyncio.Semaphore(CALLS)
        self._listing = asyncio.Lock()
        self._tools: dict[str, ListedTool] = {}
        self._listed = -fresh
        self.users = 0
        """Calls that run or wait."""
        self.used = time.monotonic()
        self.task = asyncio.create_task(self._live(who, connect), name=f"outside-{server.name}")

    @property
    def over(self) -> bool:
        """Whether it is of no use any more."""
        return self._closing.is_set() or self.task.done()

    async def _live(self, who: Principal, connect: Connect) -> None:
        try:
            async with connect(who, self._server) as talk:
                if not self._opened.done():
                    self._opened.set_result(talk)
                while not self._closing.is_set() and (self.users or time.monotonic() - self.used < _IDLE):
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_IDLE):
                            await self._closing.wait()
        except Exception as error:
            log.warning("the session with the outside server %s ended: %s", self._server.name, type(error).__name__)
            if not self._opened.done():
                known = error if isinstance(error, ServiceError) else OutsideFailed("the outside server cannot be reached")
                self._opened.set_exception(known)
                self._opened.exception()  # somebody may have given up waiting
        finally:
            self._closing.set()

    async def ready(self) -> ServerSession:
        """The open session. Raises what opening it met."""
        try:
            async with asyncio.timeout(_OPENING):
                return await asyncio.shield(self._opened)
        except TimeoutError as error:
            self.close()
            raise OutsideFailed("the outside server took too long to answer") from error

    async def tool(self, name: str) -> ListedTool | None:
        """A tool as the server describes it now; a list that is a minute old is asked for again."""
        talk = await self.ready()
        async with self._listing:
            if time.monotonic() - self._listed >= self._fresh:
                self._tools = {tool.name: tool for tool in parse_tools(self._server.name, await talk.tools())}
                self._listed = time.monotonic()
        return self._tools.get(name)

    async def call(self, tool: str, arguments: dict[str, Any], key: str) -> ToolAnswer:
        """Call a tool. Raises `OutsideFailed`; the session is then not used again."""
        talk = await self.ready()
        async with self._slots:
            try:
                return await talk.call(tool, arguments, key)
            except OutsideFailed:
                self.close()
                raise

    def close(self) -> None:
        """Use it no more; it ends once its task gets to it."""
        self._closing.set()
        if not self._opened.done():
            self.task.cancel()


class SessionPool:
    """The sessions of this worker by tenant and server; a server that was changed gets a new one.

    Args:
        connect: opens sessions.
        fresh: seconds for which a list of tools is believed.
    """

    def __init__(self, connect: Connect, fresh: float = _FRESH) -> None:
        self._connect = connect
        self._fresh = fresh
        self._open: dict[Key, PooledSession] = {}
        self._resting: dict[Key, float] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def of(self, who: Principal, server: Server) -> PooledSession:
        """The session with a server, opened where there is none.

        Raises:
            OutsideFailed: it could not be reached a moment ago.
            Busy: too many sessions are in use.
        """
        key = (who.tenant, server.name, server.version)
        if time.monotonic() < self._resting.get(key, 0.0):
            raise OutsideFailed("the outside server could not be reached a moment ago", retry_after=_REST)
        self._tidy()
        session = self._open.get(key)
        if session is None:
            self._make_room()
            session = self._open[key] = PooledSession(who, server, self._connect, self._fresh)
        session.used = time.monotonic()
        return session

    def rest(self, who: Principal, server: Server) -> None:
        """Leave a server that failed to open alone for a moment."""
        self._resting[(who.tenant, server.name, server.version)] = time.monotonic() + _REST

    async def close(self) -> None:
        """End every session."""
        for session in self._open.values():
            session.close()
        tasks = [*(session.task for session in self._open.values()), *self._ending]
        self._open.clear()
        if tasks:
            _, slow = await asyncio.wait(tasks, timeout=5)
            for task in slow:
                task.cancel()

    def _tidy(self) -> None:
        now = time.monotonic()
        self._resting = {key: until for key, until in self._resting.items() if until > now}
        for key in [key for key, session in self._open.items() if session.over]:
            self._let_go(key)

    def _make_room(self) -> None:
        idle: Sequence[Key] = sorted(
            (key for key, session in self._open.items() if not session.users), key=lambda key: self._open[key].used
        )
        if len(self._open) + len(self._ending) < MOST:
            return
        if not idle:
            raise Busy("too many outside servers are in use", retry_after=1)
        self._open[idle[0]].close()
        self._let_go(idle[0])

    def _let_go(self, key: Key) -> None:
        task = self._open.pop(key).task
        if not task.done():
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)


MAX_RESULT = 60_000
"""Characters of one result."""
_DETAIL = 800
"""Characters of what a tool says of its failure."""


class OutsideCalls:
    """Calls outside tools; see `OutsideCaller`.

    Args:
        servers: the registered ones.
        sessions: the open sessions.
    """

    def __init__(self, servers: Servers, sessions: SessionPool) -> None:
        self._servers = servers
        self._sessions = sessions

    async def call(self, who: Principal, name: str, arguments: dict[str, Any], step_key: str) -> dict[str, Any]:
        """What a tool gave, as data; see `OutsideCaller.call`."""
        server, tool = await self._accepted(who, name)
        if wrong := find_fault(tool.parameters, arguments):
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
        self, who: Principal, server: Server, session: PooledSession, tool: AcceptedTool, arguments: dict[str, Any], key: str
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

    async def _unchanged(self, who: Principal, server: Server, session: PooledSession, tool: AcceptedTool) -> None:
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


def _result(answered: ToolAnswer) -> dict[str, Any]:
    text = strip_invisible(answered.text)
    if answered.failed:
        raise OutsideRefused(text[:_DETAIL] or "the tool says that it failed")
    return {"text": text[:MAX_RESULT], "truncated": len(text) > MAX_RESULT}
