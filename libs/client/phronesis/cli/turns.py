"""`phronesis turns`: list, show, cancel and retry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from . import output
from .output import Commands, Stack

if TYPE_CHECKING:
    from phronesis_contracts.orchestrator import Turn


app = Commands(help="Your turns: list, show, cancel, retry.")

Id = Annotated[str, typer.Argument(help="Id of a turn.")]


@app.default_command()
@app.stack_command("list")
def list_turns(
    stack: Stack,
    conversation: Annotated[str | None, typer.Option(help="Of this conversation.", metavar="ID")] = None,
    limit: Annotated[int, typer.Option(help="How many to show at most.", min=1, max=200)] = 20,
) -> None:
    """Your turns, newest first."""
    from phronesis_contracts.orchestrator import Turns

    with stack.client() as client:
        found = client.turns.list(conversation, limit=limit)
    if not stack.as_json(Turns(turns=found)):
        rows = [(t.turn_id, t.status, f"{t.created_at:%Y-%m-%d %H:%M:%S}", t.agent, t.conversation_id) for t in found]
        output.table(("TURN", "STATUS", "CREATED (UTC)", "AGENT", "CONVERSATION"), rows)


@app.stack_command()
def show(stack: Stack, turn: Id) -> None:
    """The state of a turn, and its reply."""
    with stack.client() as client:
        stack.show(client.turns.get(turn), _print)


@app.stack_command()
def cancel(stack: Stack, turn: Id) -> None:
    """Cancel a turn that has not ended."""
    with stack.client() as client:
        stack.show(client.turns.cancel(turn), _print)


@app.stack_command()
def retry(stack: Stack, turn: Id) -> None:
    """Make a new turn of a parked or failed one."""
    with stack.client() as client:
        stack.show(client.turns.retry(turn), _print)


def _print(turn: Turn) -> None:
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
