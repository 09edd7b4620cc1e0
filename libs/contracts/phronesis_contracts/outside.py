"""Contracts of outside MCP servers: registered by an administrator, their tools pinned when they are accepted."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, ConfigDict, Field, StringConstraints

from .errors import BadRequest, Conflict, Forbidden, NotFound, Unavailable
from .messages import Message, Nothing, Rpc
from .principal import ADMINISTRATORS_ALONE
from .tools import Effect, Risk, Tool

PREFIX = "outside."
"""What the names of outside tools begin with, as `outside.<server>.<tool>`."""

ServerName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,19}$")]
HeaderName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{1,64}$")]
HeaderValue = Annotated[str, StringConstraints(pattern=r"^[\x20-\x7e]{1,4000}$")]
ToolName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_./-]{1,64}$")]


class UnknownServer(NotFound):
    """No outside server of this tenant has that name."""

    code = "outside.unknown_server"


class ToolNotAllowed(Forbidden):
    """No administrator allows this outside tool, or its server is switched off."""

    code = "outside.not_allowed"


class ToolChanged(Conflict):
    """The server describes the tool differently from what was accepted; an administrator has to accept it again."""

    code = "tool_changed"


class OutsideFailed(Unavailable):
    """The outside server answered nonsense, too much, or not at all."""

    code = "outside.failed"


class OutsideRefused(BadRequest):
    """The outside tool says that the call failed; `detail` is the server's own text: data, cut."""

    code = "outside.refused"


class CommandsOff(Forbidden):
    """This installation starts no commands for outside servers."""

    code = "outside.commands_off"


class OutcomeUnknown(Conflict):
    """The call was begun and its answer was lost. It may have had its effect, so it is not made again."""

    code = "outcome_unknown"


class Transport(StrEnum):
    """How a server is reached."""

    HTTP = "http"
    COMMAND = "command"


class AllowTool(Message):
    """A tool of a server as the administrator judges it; what the server says of itself counts for nothing."""

    model_config = ConfigDict(extra="forbid")

    name: ToolName
    """The tool's name at its server."""
    risk: Risk = Risk.HIGH
    """How much is at stake in a call: 0 reads, 1 low, 2 medium, 3 high. What is high waits for a person's approval."""
    idempotent: bool = False
    """Whether a call whose answer was lost may be made again."""


ONLY_NAMED: dict[str, Any] = {"additionalProperties": False}
"""A key that its pattern does not fit is none."""


def _not_empty(url: str) -> str:
    if not url:
        raise ValueError("an address is not empty")
    return url


class AddServer(Message):
    """An outside MCP server. Its tools are offered to nobody before they are accepted."""

    model_config = ConfigDict(extra="forbid")

    name: ServerName
    """A name for it in the tenant, which the names of its tools begin with: lower case, 20 characters at most."""
    url: Annotated[str, AfterValidator(_not_empty)] | None = Field(default=None, max_length=2_048)
    """Address of its streamable HTTP endpoint; the installation's rules for outside addresses apply."""
    command: tuple[Annotated[str, StringConstraints(min_length=1, max_length=1_000)], ...] | None = Field(
        default=None, min_length=1, max_length=50
    )
    """The program and its arguments, where the installation allows commands; no shell reads it."""
    secret_headers: dict[HeaderName, HeaderValue] = Field(
        default_factory=dict, max_length=10, repr=False, json_schema_extra=ONLY_NAMED
    )
    """Headers that go with each request, such as `Authorization`. They are kept encrypted and never told."""
    seconds: float = Field(default=20.0, gt=0, le=55)
    """Seconds that one call may take, 55 at most."""


class ServerRef(Message):
    """One server by name."""

    name: ServerName


class SwitchServer(Message):
    """Let a server's tools be called, or let none of them be."""

    name: ServerName
    enabled: bool


class AcceptTools(Message):
    """Pin what a server says of its tools now, and allow them. It replaces what was said of the same tools before."""

    model_config = ConfigDict(extra="forbid")

    name: ServerName
    tools: tuple[AllowTool, ...] = Field(min_length=1, max_length=100)
    pins: dict[ToolName, str] = Field(default_factory=dict, max_length=100, json_schema_extra=ONLY_NAMED)
    """The pins that were looked at, by tool: where a server says something else by now, nothing is accepted."""


class JudgeTools(Message):
    """Set risk and idempotence of accepted tools anew, or allow some no longer. Nobody asks the server."""

    model_config = ConfigDict(extra="forbid")

    name: ServerName
    tools: tuple[AllowTool, ...] = Field(default=(), max_length=100)
    withdrawn: tuple[ToolName, ...] = Field(default=(), max_length=100)


class AcceptedTool(Message):
    """A pinned tool."""

    name: str
    """The tool's name at its server."""
    description: str
    """The server's own words, as they were accepted."""
    parameters: dict[str, Any]
    """JSON schema of its arguments, as it was accepted."""
    pin: str
    """Hash of what was accepted; a server that says something else is not called."""
    risk: Risk
    """How much is at stake in a call, as the administrator judges it."""
    idempotent: bool
    """Whether a call whose answer was lost may be made again."""
    accepted_by: str
    """The user who accepted it."""
    accepted_at: AwareDatetime
    """When it was accepted."""


class OutsideServer(Message):
    """A registered server; of its headers the names alone."""

    name: str
    """Its name in the tenant."""
    transport: Transport
    """How it is reached."""
    url: str | None = None
    """Address of its endpoint; absent where a command starts it."""
    command: tuple[str, ...] | None = None
    """The program and its arguments; absent where it has an address."""
    headers: tuple[str, ...] = ()
    """Names of the secret headers that go with each request; what they hold is never told."""
    seconds: float
    """Seconds that one call may take."""
    enabled: bool = True
    """Whether its tools may be called."""
    tools: tuple[AcceptedTool, ...] = ()
    """The tools that were accepted."""
    version: int = 1
    """Grows with each change of the server or of its tools."""
    created_by: str = ""
    """The user who registered it."""


class OutsideServers(Message):
    """The servers of the tenant."""

    servers: tuple[OutsideServer, ...] = ()
    """The servers of the tenant, by name."""


class ToolState(StrEnum):
    """How what a server says now stands to what was accepted."""

    ACCEPTED = "accepted"
    NEW = "new"
    CHANGED = "changed"
    GONE = "gone"
    UNUSABLE = "unusable"


class InspectedTool(Message):
    """A tool as its server describes it now. All of its text is a stranger's: data for a person to judge."""

    name: str
    """The tool's name at its server."""
    state: ToolState
    """How it stands to what was accepted."""
    description: str = ""
    """The server's own words of now."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """JSON schema of its arguments, as the server states it now."""
    pin: str = ""
    """Hash of what the server says now; give it back when you accept the tool."""
    diff: str = ""
    """For a changed one: a unified diff from what was accepted."""
    reason: str = ""
    """For an unusable one: why it cannot be accepted."""


class Inspected(Message):
    """What a server offers at this moment."""

    server: OutsideServer
    """The server, with what was accepted of it."""
    tools: tuple[InspectedTool, ...] = ()
    """The tools that it offers now, and accepted ones that are gone."""


class ServerRemoved(Message):
    """It is gone, with its tools and secrets."""

    name: str
    """The server's name."""
    existed: bool
    """Whether there was one; false the second time."""


ADD_SERVER = Rpc("orchestrator.v1.mcp_servers.add", AddServer, OutsideServer, timeout=10.0)
LIST_SERVERS = Rpc("orchestrator.v1.mcp_servers.list", Nothing, OutsideServers, max_bytes=1_000_000)
INSPECT_SERVER = Rpc("orchestrator.v1.mcp_servers.inspect", ServerRef, Inspected, timeout=30.0, max_bytes=1_000_000)
ACCEPT_TOOLS = Rpc("orchestrator.v1.mcp_servers.accept", AcceptTools, OutsideServer, timeout=30.0)
JUDGE_TOOLS = Rpc("orchestrator.v1.mcp_servers.judge", JudgeTools, OutsideServer)
SWITCH_SERVER = Rpc("orchestrator.v1.mcp_servers.switch", SwitchServer, OutsideServer)
REMOVE_SERVER = Rpc("orchestrator.v1.mcp_servers.remove", ServerRef, ServerRemoved)

ADD_SERVER_TOOL = Tool(
    "mcp_servers.add",
    "Register an outside MCP server for the tenant.",
    ADD_SERVER,
    risk=Risk.HIGH,
    kind=Effect.OUTBOUND,
    agents=ADMINISTRATORS_ALONE,
)
LIST_SERVERS_TOOL = Tool("mcp_servers.list", "The tenant's outside MCP servers.", LIST_SERVERS, agents=ADMINISTRATORS_ALONE)
INSPECT_SERVER_TOOL = Tool(
    "mcp_servers.inspect",
    "What an outside MCP server says of its tools now, and how that differs from what was accepted.",
    INSPECT_SERVER,
    risk=Risk.LOW,
    kind=Effect.OUTBOUND,
    agents=ADMINISTRATORS_ALONE,
)
ACCEPT_TOOLS_TOOL = Tool(
    "mcp_servers.accept",
    "Pin what an outside MCP server says of tools, and allow them with a risk.",
    ACCEPT_TOOLS,
    risk=Risk.HIGH,
    kind=Effect.OUTBOUND,
    agents=ADMINISTRATORS_ALONE,
)
JUDGE_TOOLS_TOOL = Tool(
    "mcp_servers.judge",
    "Set the risk of accepted outside tools anew, or withdraw them.",
    JUDGE_TOOLS,
    risk=Risk.HIGH,
    kind=Effect.OUTBOUND,
    agents=ADMINISTRATORS_ALONE,
)
SWITCH_SERVER_TOOL = Tool(
    "mcp_servers.switch",
    "Switch an outside MCP server on or off.",
    SWITCH_SERVER,
    risk=Risk.MEDIUM,
    kind=Effect.OUTBOUND,
    agents=ADMINISTRATORS_ALONE,
)
REMOVE_SERVER_TOOL = Tool(
    "mcp_servers.remove",
    "Remove an outside MCP server with its tools and secrets.",
    REMOVE_SERVER,
    risk=Risk.HIGH,
    agents=ADMINISTRATORS_ALONE,
    irreversible=True,
)
