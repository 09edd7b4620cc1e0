"""What is kept of an outside server."""

from __future__ import annotations

from dataclasses import dataclass, field

from phronesis_contracts import Principal
from phronesis_contracts.outside import AcceptedTool, OutsideServer, Transport


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

    def told(self) -> OutsideServer:
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
        """An accepted tool by its own name."""
        return next((tool for tool in self.tools if tool.name == name), None)


def owner(tenant: str, server: str) -> Principal:
    """For whom a server's headers are encrypted: the tenant's server itself, whichever administrator set them."""
    return Principal(tenant=tenant, user=f"mcp-server-{server}")
