"""`phronesis mcp`: the gateway as an MCP server on stdin and stdout; and the outside MCP servers of a tenant."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import output
from .output import AsJson, Data, Key, Url, Yes

if TYPE_CHECKING:
    from phronesis_contracts.outside import Inspected, OutsideServer

app = typer.Typer(help="MCP: be a server on stdin and stdout, or look after outside servers.", invoke_without_command=True)

Name = Annotated[str, typer.Argument(help="Name of an outside server.")]
Tools = Annotated[list[str], typer.Argument(help="Names of its tools.", metavar="TOOL...")]
Risk = Annotated[str, typer.Option(help="read, low, medium or high.")]
Idempotent = Annotated[bool, typer.Option(help="Whether a call whose answer was lost may be made again.")]


@app.callback()
def mcp(context: typer.Context, url: Url = None, key: Key = None, data: Data = None) -> None:
    """Be an MCP server on stdin and stdout: a desktop agent starts this, and reaches the gateway through it."""
    if context.invoked_subcommand is not None:
        context.obj = (url, key, data)
        return
    from phronesis_contracts import Unavailable

    from ..endpoint import find

    try:
        from .mcp import serve
    except ModuleNotFoundError as missing:
        raise Unavailable("install the MCP library first: pip install 'phronesis[mcp]'") from missing
    serve(find(url, key, data))


@app.command()
def add(
    context: typer.Context,
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
    as_json: AsJson = False,
) -> None:
    """Register an outside server. The stack is chosen before `add`: `phronesis mcp --url GATEWAY add ...`."""
    from phronesis_contracts.outside import ADD_SERVER_TOOL as TOOL

    body: dict[str, Any] = {"name": name, "url": url, "command": shlex.split(command) if command else None, "seconds": seconds}
    body["secret_headers"] = {header: _secret(header) for header in headers or ()}
    _server(_ask(context, TOOL, body, writes=True), as_json)
    output.note(f"none of its tools is offered yet; look at them with: phronesis mcp inspect {name}")


@app.command("servers")
def list_servers(context: typer.Context, as_json: AsJson = False) -> None:
    """The outside servers that are registered."""
    from phronesis_contracts.outside import LIST_SERVERS_TOOL as TOOL

    found = _ask(context, TOOL, {})
    if as_json:
        output.as_json(found)
        return
    rows = [
        (each.name, each.url or shlex.join(each.command or ()), "on" if each.enabled else "off", str(len(each.tools)))
        for each in found.servers
    ]
    output.table(("NAME", "WHERE", "STATE", "TOOLS"), rows)


@app.command()
def inspect(context: typer.Context, name: Name, as_json: AsJson = False) -> None:
    """Ask a server for its tools, and show what is new or differs from what was accepted."""
    found = _inspected(context, name)
    if as_json:
        output.as_json(found)
        return
    for tool in found.tools:
        output.out(f"{tool.state:<9} {tool.name}  {tool.reason or ' '.join(tool.description.split())[:100]}")
        if tool.diff:
            output.out(tool.diff)


@app.command()
def accept(
    context: typer.Context,
    name: Name,
    tools: Tools,
    risk: Risk = "high",
    idempotent: Idempotent = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Pin what a server says of tools now, and let agents call them."""
    from phronesis_contracts.outside import ACCEPT_TOOLS_TOOL as TOOL

    found = {tool.name: tool for tool in _inspected(context, name).tools}
    for tool in (found[each] for each in tools if each in found):
        output.note(f"{tool.name}: {tool.description or tool.reason}")
    output.sure(f"Accept {', '.join(tools)} with the risk {risk}?", yes)
    pins = {each: found[each].pin for each in tools if each in found and found[each].pin}
    body = {"name": name, "tools": _judged(tools, risk, idempotent), "pins": pins}
    _server(_ask(context, TOOL, body, writes=True), as_json)


@app.command()
def allow(
    context: typer.Context,
    name: Name,
    tools: Tools,
    risk: Risk = "high",
    idempotent: Idempotent = False,
    withdraw: Annotated[bool, typer.Option(help="Allow them no longer.")] = False,
    as_json: AsJson = False,
) -> None:
    """Set the risk of accepted tools anew, or withdraw them."""
    from phronesis_contracts.outside import JUDGE_TOOLS_TOOL as TOOL

    body: dict[str, Any] = {"withdrawn": tools} if withdraw else {"tools": _judged(tools, risk, idempotent)}
    _server(_ask(context, TOOL, {"name": name, **body}, writes=True), as_json)


@app.command()
def switch(
    context: typer.Context, name: Name, state: Annotated[str, typer.Argument(help="on or off.")], as_json: AsJson = False
) -> None:
    """Let a server's tools be called, or let none of them be."""
    from phronesis_contracts import BadRequest
    from phronesis_contracts.outside import SWITCH_SERVER_TOOL as TOOL

    if state not in ("on", "off"):
        raise BadRequest("a server is switched on or off", field="state")
    _server(_ask(context, TOOL, {"name": name, "enabled": state == "on"}, writes=True), as_json)


@app.command()
def remove(context: typer.Context, name: Name, yes: Yes = False) -> None:
    """Remove a server with its tools and secrets."""
    from phronesis_contracts.outside import REMOVE_SERVER_TOOL as TOOL

    output.sure(f"Remove the outside server {name} for everybody in your tenant?", yes)
    existed = _ask(context, TOOL, {"name": name}, writes=True).existed
    output.note(f"{name} is removed" if existed else f"there was no {name}")


def _ask(context: typer.Context, tool: Any, body: dict[str, Any], *, writes: bool = False) -> Any:
    from .instructions import ask

    url, key, data = context.obj
    return ask(tool.name, tool.rpc, body, url, key, data, writes=writes)


def _inspected(context: typer.Context, name: str) -> Inspected:
    from phronesis_contracts.outside import INSPECT_SERVER_TOOL as TOOL

    found: Inspected = _ask(context, TOOL, {"name": name})
    return found


def _judged(tools: list[str], risk: str, idempotent: bool) -> list[dict[str, Any]]:
    from phronesis_contracts import BadRequest, Risk

    if risk.upper() not in Risk.__members__:
        raise BadRequest("a risk is read, low, medium or high", field="risk")
    return [{"name": each, "risk": int(Risk[risk.upper()]), "idempotent": idempotent} for each in tools]


def _secret(header: str) -> str:
    if sys.stdin.isatty():
        return str(typer.prompt(header, hide_input=True))
    return sys.stdin.readline().rstrip("\r\n")


def _server(found: OutsideServer, as_json: bool) -> None:
    if as_json:
        output.as_json(found)
        return
    for tool in found.tools:
        output.out(f"{tool.name}  {tool.risk.name.lower()}{'  idempotent' if tool.idempotent else ''}  {tool.pin[:12]}")
    output.note(f"{found.name} is {'on' if found.enabled else 'off'}, with {len(found.tools)} tools accepted")
