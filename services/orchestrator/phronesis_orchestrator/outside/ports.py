"""What outside servers need from outside, and what the hands of agents call them by."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from phronesis_bus import Call
from phronesis_contracts import Principal
from phronesis_contracts.media import ResolvedAddress
from phronesis_contracts.outside import (
    AcceptedTool,
    AcceptTools,
    AddServer,
    JudgeTools,
    OutsideServer,
    ServerRef,
    ServerRemoved,
    SwitchServer,
)

from .domain import Server


class OutsideCaller(Protocol):
    """Calls outside tools for agents. Whoever has approved a call makes it by this, and by nothing else."""

    async def call(self, who: Principal, name: str, arguments: dict[str, Any], step_key: str) -> dict[str, Any]:
        """What a tool gave: `text`, and whether it is `truncated`. It is data.

        Args:
            who: the caller of the turn.
            name: `outside.<server>.<tool>`.
            arguments: they are held to the pinned schema before anything is sent.
            step_key: the same for the same step, as `turn/step`.

        Raises:
            UnknownServer, ToolNotAllowed, BadRequest, ToolChanged: nothing was sent.
            OutsideRefused: the tool says that it failed.
            OutcomeUnknown: it was sent, the answer was lost, and the tool is not marked idempotent.
            OutsideFailed, TimedOut: the server failed; the call may be made again.
        """
        ...


class Servers(Protocol):
    """The registered servers of each tenant. Every write is audited in its own transaction, and made once for its key."""

    async def of(self, tenant: str) -> tuple[Server, ...]:
        """All servers of a tenant by name, with their accepted tools."""
        ...

    async def one(self, tenant: str, name: str) -> Server:
        """One of them. Raises `UnknownServer`."""
        ...

    async def add(self, call: Call, request: AddServer, sealed: bytes | None) -> OutsideServer:
        """Register one. Raises `Conflict` where the name is taken, or there are too many."""
        ...

    async def accept(self, call: Call, request: AcceptTools, tools: Sequence[AcceptedTool]) -> OutsideServer:
        """Pin tools. Raises `UnknownServer`."""
        ...

    async def judge(self, call: Call, request: JudgeTools) -> OutsideServer:
        """Set risk and idempotence of accepted tools anew, withdraw others. Raises `UnknownServer`, `NotFound` (tool)."""
        ...

    async def switch(self, call: Call, request: SwitchServer) -> OutsideServer:
        """Switch one on or off. Raises `UnknownServer`."""
        ...

    async def remove(self, call: Call, request: ServerRef) -> ServerRemoved:
        """Remove one with all that belongs to it; a second time changes nothing."""
        ...


class Talk(Protocol):
    """An open session with one server."""

    async def tools(self) -> Sequence[Any]:
        """The members of its list of tools, as JSON. Raises `OutsideFailed`."""
        ...

    async def call(self, tool: str, arguments: dict[str, Any], key: str) -> Answered:
        """Call a tool. Raises `OutsideFailed` where the answer is lost, or is none."""
        ...


class Answered(Protocol):
    """What a tool gave."""

    @property
    def text(self) -> str:
        """Its text, uncut."""
        ...

    @property
    def failed(self) -> bool:
        """Whether the tool says that it failed."""
        ...


class Connect(Protocol):
    """Opens sessions."""

    def __call__(self, who: Principal, server: Server) -> AbstractAsyncContextManager[Talk]:
        """A session for the length of a block. Raises `OutsideFailed`, `CommandsOff`, `BadRequest` (address), `Unavailable`."""
        ...


class Resolve(Protocol):
    """Asks where an address leads."""

    async def __call__(self, who: Principal, url: str) -> ResolvedAddress:
        """The IP addresses that may be connected to. Raises `BadRequest` where the address is refused."""
        ...


class Seal(Protocol):
    """Encrypts what is kept of secrets."""

    def shut(self, text: str, owner: Principal) -> bytes:
        """The text, encrypted for its owner. Raises `BadRequest` where the installation has no key."""
        ...

    def open(self, sealed: bytes, owner: Principal) -> str:
        """The text again. Raises `Unavailable` where the key is not the one that it was encrypted with."""
        ...
