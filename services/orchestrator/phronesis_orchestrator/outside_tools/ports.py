"""What is stored of an outside server, and what outside servers need from outside."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
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
    Transport,
)


@dataclass(frozen=True)
class Server:
    """A registered server as its row states it."""

    name: str
    url: str | None = None
    command: tuple[str, ...] | None = None
    header_names: tuple[str, ...] = ()
    sealed: bytes | None = field(default=None, repr=False)
    """The headers with their values, encrypted."""
    seconds: float = 20.0
    enabled: bool = True
    version: int = 1
    created_by: str = ""
    tools: tuple[AcceptedTool, ...] = ()

    def to_contract(self) -> OutsideServer:
        """The server as administrators see it: of its headers the names alone."""
        return OutsideServer(
            name=self.name,
            transport=Transport.HTTP if self.url is not None else Transport.COMMAND,
            url=self.url,
            command=self.command,
            headers=self.header_names,
            seconds=self.seconds,
            enabled=self.enabled,
            tools=self.tools,
            version=self.version,
            created_by=self.created_by,
        )

    def tool(self, name: str) -> AcceptedTool | None:
        return next((tool for tool in self.tools if tool.name == name), None)


def secrets_owner(tenant: str, server: str) -> Principal:
    """For whom a server's headers are encrypted: the tenant's server itself, whichever administrator set them."""
    return Principal(tenant=tenant, user=f"mcp-server-{server}")


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


class Servers(Protocol):
    """The registered servers of each tenant. Every write is audited in its own transaction, and made once for its key."""

    async def of(self, tenant: str) -> tuple[Server, ...]:
        """All servers of a tenant by name, with their accepted tools."""

    async def one(self, tenant: str, name: str) -> Server:
        """One of them. Raises `UnknownServer`."""

    async def add(self, call: Call, request: AddServer, sealed: bytes | None) -> OutsideServer:
        """Register one. Raises `Conflict` where the name is taken, or there are too many."""

    async def accept(self, call: Call, request: AcceptTools, tools: Sequence[AcceptedTool]) -> OutsideServer:
        """Pin tools. Raises `UnknownServer`."""

    async def judge(self, call: Call, request: JudgeTools) -> OutsideServer:
        """Set risk and idempotence of accepted tools anew, withdraw others. Raises `UnknownServer`, `NotFound` (tool)."""

    async def switch(self, call: Call, request: SwitchServer) -> OutsideServer:
        """Switch one on or off. Raises `UnknownServer`."""

    async def remove(self, call: Call, request: ServerRef) -> ServerRemoved:
        """Remove one with all that belongs to it; a second time changes nothing."""


class ServerSession(Protocol):
    async def tools(self) -> Sequence[Any]:
        """The members of its list of tools, as JSON. Raises `OutsideFailed`."""

    async def call(self, tool: str, arguments: dict[str, Any], key: str) -> ToolAnswer:
        """Call a tool. Raises `OutsideFailed` where the answer is lost, or is none."""


class ToolAnswer(Protocol):
    @property
    def text(self) -> str:
        """Its text, uncut."""

    @property
    def failed(self) -> bool:
        """Whether the tool says that it failed."""


class Connect(Protocol):
    def __call__(self, who: Principal, server: Server) -> AbstractAsyncContextManager[ServerSession]:
        """A session for the length of a block. Raises `OutsideFailed`, `CommandsOff`, `BadRequest` (address), `Unavailable`."""


class Resolve(Protocol):
    """Asks where an address leads."""

    async def __call__(self, who: Principal, url: str) -> ResolvedAddress:
        """The IP addresses that may be connected to. Raises `BadRequest` where the address is refused."""


class Seal(Protocol):
    """Encrypts what is kept of secrets."""

    def shut(self, text: str, owner: Principal) -> bytes:
        """The text, encrypted for its owner. Raises `BadRequest` where the installation has no key."""

    def open(self, sealed: bytes, owner: Principal) -> str:
        """The text again. Raises `Unavailable` where the key is not the one that it was encrypted with."""
