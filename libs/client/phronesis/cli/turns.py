"""`phronesis turns`: list, show, cancel and retry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from . import output
from .output import AsJson, Data, Key, Url

if TYPE_CHECKING:
    from phronesis_contracts.orchestrator import Turn

    from ..sync import Client

app = typer.Typer(help="Your turns: list, show, cancel, retry.", invoke_without_command=True)

Id = Annotated[str, typer.Argument(help="Id of a turn.")]


@app.callback()
def turns(context: typer.Context, url: Url = None, key: Key = None, data: Data = None) -> None:
    """Your turns: list them, or show, cancel or retry one."""
    if context.invoked_subcommand is None:
        list_turns(url=url, key=key, data=data)


@app.command("list")
def list_turns(
    conversation: Annotated[str | None, typer.Option(help="Of this conversation.", metavar="ID")] = None,
    limit: Annotated[int, typer.Option(help="How many to show at most.", min=1, max=200)] = 20,
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Your turns, newest first."""
    with _client(url, key, data) as client:
        found = client.turns.list(conversation, limit=limit)
    if as_json:
        from phronesis_contracts.orchestrator import Turns

        output.as_json(Turns(turns=found))
    else:
        rows = [(t.turn_id, t.status, f"{t.created_at:%Y-%m-%d %H:%M:%S}", t.agent, t.conversation_id) for t in found]
        output.table(("TURN", "STATUS", "CREATED (UTC)", "AGENT", "CONVERSATION"), rows)


@app.command()
def show(turn: Id, as_json: AsJson = False, url: Url = None, key: Key = None, data: Data = None) -> None:
    """The state of a turn, and its reply."""
    with _client(url, key, data) as client:
        _print(client.turns.get(turn), as_json)


@app.command()
def cancel(turn: Id, as_json: AsJson = False, url: Url = None, key: Key = None, data: Data = None) -> None:
    """Cancel a turn that has not ended."""
    with _client(url, key, data) as client:
        _print(client.turns.cancel(turn), as_json)


@app.command()
def retry(turn: Id, as_json: AsJson = False, url: Url = None, key: Key = None, data: Data = None) -> None:
    """Make a new turn of a parked or failed one."""
    with _client(url, key, data) as client:
        _print(client.turns.retry(turn), as_json)


def _client(url: Url, key: Key, data: Data) -> Client:
    from ..sync import Client

    return Client(url, key, data)


def _print(turn: Turn, as_json: bool) -> None:
    if as_json:
        output.as_json(turn)
        return
    output.out(f"turn          {turn.turn_id}")
    output.out(f"conversation  {turn.conversation_id}")
    output.out(f"status        {turn.status}")
    output.out(f"created       {turn.created_at:%Y-%m-%d %H:%M:%S} UTC")
    if turn.retry_of:
        output.out(f"retry of      {turn.retry_of}")
    if turn.problem:
        output.out(f"problem       {turn.problem.code}: {turn.problem.detail}")
    if turn.reply:
        output.out()
        output.reply(turn.reply)
