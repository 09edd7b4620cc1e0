"""`phronesis mcp`: the gateway as an MCP server on stdin and stdout; and the outside MCP servers of a tenant."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from . import output
from .output import Commands, Data, Key, Stack, Url, Yes

if TYPE_CHECKING:
    from phronesis_contracts.outside import Inspected, OutsideServer

app = Commands(help="MCP: be a server on stdin and stdout, or look after outside servers.")

Name = Annotated[str, typer.Argument(help="Name of an outside server.")]
Tools = Annotated[list[str], typer.Argument(help="Names of its tools.", metavar="TOOL...")]
Risk = Annotated[str, typer.Option(help="read, low, medium or high.")]
Idempotent = Annotated[bool, typer.Option(help="Whether a call whose answer was lost may be made again.")]


Shown = Annotated[
    Literal["memory", "analyst", "constitution", "all"],
    typer.Option("--tools", help="Which tools the agent gets. A desktop agent chooses well among the eight of memory."),
]


@app.callback(invoke_without_command=True)
def mcp(context: typer.Context, url: Url = None, key: Key = None, data: Data = None, tools: Shown = "memory") -> None:
    """Be an MCP server on stdin and stdout: a desktop agent starts this, and reaches the gateway through it."""
    if context.invoked_subcommand is not None:
        context.obj = Stack(url, key, data)
        return
    from phronesis_contracts import Unavailable

    from ..endpoint import find

    try:
        from .mcp import serve
    except ModuleNotFoundError as missing:
        raise Unavailable("install the MCP library first: pip install 'phronesis[mcp]'") from missing
    serve(find(url, key, data), tools)


@app.command()
def install(
    context: typer.Context,
    client: Annotated[Literal["claude", "cursor", "vscode"], typer.Argument(help="Claude Desktop, Cursor or VS Code.")],
    tools: Shown = "memory",
    file: Annotated[
        Path | None, typer.Option("--file", help="The client's configuration; where it looks for it by default.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be written.")] = False,
) -> None:
    """Write this stack into the configuration of a desktop client; what else stands in it stays.

    An address and a key that are given go into the configuration; those of the local stack are found when it starts.
    """
    import json

    from phronesis_contracts import BadRequest

    stack: Stack = context.obj
    where = file or _configuration(client)
    try:
        known = json.loads(where.read_text("utf-8")) if where.exists() else {}
    except ValueError:
        known = None
    if not isinstance(known, dict) or not isinstance(known.get(_SERVERS[client], {}), dict):
        raise BadRequest(f"{where} is no configuration of {client}; mend it, or name another with --file", field="file")
    stated = {
        "PHRONESIS_URL": stack.url,
        "PHRONESIS_KEY": stack.key,
        "PHRONESIS_DATA": stack.data and str(stack.data.absolute()),
    }
    server: dict[str, object] = {"command": sys.executable, "args": ["-m", "phronesis", "mcp", "--tools", tools]}
    if env := {name: value for name, value in stated.items() if value}:
        server["env"] = env
    known[_SERVERS[client]] = {**known.get(_SERVERS[client], {}), "phronesis": server}
    text = json.dumps(known, indent=2, ensure_ascii=False) + "\n"
    if dry_run:
        output.out(text)
        return
    where.parent.mkdir(parents=True, exist_ok=True)
    if where.exists():
        where.replace(where.with_suffix(where.suffix + ".before"))
    where.touch(0o600)  # a key may stand in it
    where.write_text(text, "utf-8")
    output.note(f"{where} written; start {client} anew")


_SERVERS = {"claude": "mcpServers", "cursor": "mcpServers", "vscode": "servers"}
"""The member of a client's configuration that holds its servers."""


def _configuration(client: str) -> Path:
    """Where a client keeps its configuration: for VS Code that of the folder that it is called in."""
    if client == "vscode":
        return Path(".vscode", "mcp.json")
    if client == "cursor":
        return Path.home() / ".cursor" / "mcp.json"
    home = Path.home()
    folders = {"darwin": home / "Library" / "Application Support", "win32": home / "AppData" / "Roaming"}
    return folders.get(sys.platform, home / ".config") / "Claude" / "claude_desktop_config.json"


@app.stack_command(options=False)
def add(
    stack: Stack,
    name: Name,
    url: Annotated[str | None, typer.Option(help="Address of the outside server's endpoint.", metavar="URL")] = None,
    command: Annotated[str | None, typer.Option(help="The program that is the server, and its arguments.")] = None,
    headers: Annotated[
        list[str] | None,
        typer.Option(
            "--header", help="A secret header; its value is asked for, or read from a pipe, a line each.", metavar="NAME"
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(help="How long one call may take.")] = 20.0,
) -> None:
    """Register an outside server. The stack is chosen before `add`: `phronesis mcp --url GATEWAY add ...`."""
    from phronesis_contracts.outside import ADD_SERVER_TOOL as TOOL

    body: dict[str, Any] = {"name": name, "url": url, "command": shlex.split(command) if command else None, "seconds": seconds}
    body["secret_headers"] = {header: _secret(header) for header in headers or ()}
    stack.show(stack.call(TOOL, body, writes=True), _server)
    output.note(f"none of its tools is offered yet; look at them with: phronesis mcp inspect {name}")


@app.stack_command("servers", options=False)
def list_servers(stack: Stack) -> None:
    """The outside servers that are registered."""
    from phronesis_contracts.outside import LIST_SERVERS_TOOL as TOOL

    found = stack.call(TOOL, {})
    if stack.as_json(found):
        return
    rows = [
        (each.name, each.url or shlex.join(each.command or ()), "on" if each.enabled else "off", str(len(each.tools)))
        for each in found.servers
    ]
    output.table(("NAME", "WHERE", "STATE", "TOOLS"), rows)


@app.stack_command(options=False)
def inspect(stack: Stack, name: Name) -> None:
    """Ask a server for its tools, and show what is new or differs from what was accepted."""
    found = _inspected(stack, name)
    if stack.as_json(found):
        return
    for tool in found.tools:
        output.out(f"{tool.state:<9} {tool.name}  {tool.reason or ' '.join(tool.description.split())[:100]}")
        if tool.diff:
            output.out(tool.diff)


@app.stack_command(options=False)
def accept(
    stack: Stack, name: Name, tools: Tools, risk: Risk = "high", idempotent: Idempotent = False, yes: Yes = False
) -> None:
    """Pin what a server says of tools now, and let agents call them."""
    from phronesis_contracts.outside import ACCEPT_TOOLS_TOOL as TOOL

    found = {tool.name: tool for tool in _inspected(stack, name).tools}
    for tool in (found[each] for each in tools if each in found):
        output.note(f"{tool.name}: {tool.description or tool.reason}")
    output.sure(f"Accept {', '.join(tools)} with the risk {risk}?", yes)
    pins = {each: found[each].pin for each in tools if each in found and found[each].pin}
    body = {"name": name, "tools": _judged(tools, risk, idempotent), "pins": pins}
    stack.show(stack.call(TOOL, body, writes=True), _server)


@app.stack_command(options=False)
def allow(
    stack: Stack,
    name: Name,
    tools: Tools,
    risk: Risk = "high",
    idempotent: Idempotent = False,
    withdraw: Annotated[bool, typer.Option(help="Allow them no longer.")] = False,
) -> None:
    """Set the risk of accepted tools anew, or withdraw them."""
    from phronesis_contracts.outside import JUDGE_TOOLS_TOOL as TOOL

    body: dict[str, Any] = {"withdrawn": tools} if withdraw else {"tools": _judged(tools, risk, idempotent)}
    stack.show(stack.call(TOOL, {"name": name, **body}, writes=True), _server)


@app.stack_command(options=False)
def switch(stack: Stack, name: Name, state: Annotated[str, typer.Argument(help="on or off.")]) -> None:
    """Let a server's tools be called, or let none of them be."""
    from phronesis_contracts import BadRequest
    from phronesis_contracts.outside import SWITCH_SERVER_TOOL as TOOL

    if state not in ("on", "off"):
        raise BadRequest("a server is switched on or off", field="state")
    stack.show(stack.call(TOOL, {"name": name, "enabled": state == "on"}, writes=True), _server)


@app.stack_command(json=False, options=False)
def remove(stack: Stack, name: Name, yes: Yes = False) -> None:
    """Remove a server with its tools and secrets."""
    from phronesis_contracts.outside import REMOVE_SERVER_TOOL as TOOL

    output.sure(f"Remove the outside server {name} for everybody in your tenant?", yes)
    existed = stack.call(TOOL, {"name": name}, writes=True).existed
    output.note(f"{name} is removed" if existed else f"there was no {name}")


def _inspected(stack: Stack, name: str) -> Inspected:
    from phronesis_contracts.outside import INSPECT_SERVER_TOOL as TOOL

    return stack.call(TOOL, {"name": name})


def _judged(tools: list[str], risk: str, idempotent: bool) -> list[dict[str, Any]]:
    from phronesis_contracts import BadRequest, Risk

    if risk.upper() not in Risk.__members__:
        raise BadRequest("a risk is read, low, medium or high", field="risk")
    return [{"name": each, "risk": int(Risk[risk.upper()]), "idempotent": idempotent} for each in tools]


def _secret(header: str) -> str:
    if sys.stdin.isatty():
        return str(typer.prompt(header, hide_input=True))
    return sys.stdin.readline().rstrip("\r\n")


def _server(found: OutsideServer) -> None:
    for tool in found.tools:
        output.out(f"{tool.name}  {tool.risk.name.lower()}{'  idempotent' if tool.idempotent else ''}  {tool.pin[:12]}")
    output.note(f"{found.name} is {'on' if found.enabled else 'off'}, with {len(found.tools)} tools accepted")
