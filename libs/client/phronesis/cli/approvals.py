"""`phronesis approvals`: list, show, approve and refuse."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from . import output
from .output import Commands, Stack

if TYPE_CHECKING:
    from phronesis_contracts.approvals import Approval


app = Commands(help="What agents want you to allow: list, show, approve, refuse.")

Id = Annotated[str, typer.Argument(help="Id of an approval.")]
Note = Annotated[str, typer.Option("--note", help="A word with it; of a refusal the agent is told it.", metavar="TEXT")]


@app.default_command()
@app.stack_command("list")
def list_approvals(
    stack: Stack,
    every: Annotated[bool, typer.Option("--all", help="Those that were answered too.")] = False,
    limit: Annotated[int, typer.Option(help="How many to show at most.", min=1, max=200)] = 20,
) -> None:
    """What waits for you, newest first; as an admin, what waits for anybody of the tenant."""
    from phronesis_contracts.approvals import Approvals, ApprovalStatus

    with stack.client() as client:
        found = client.approvals.list(None if every else ApprovalStatus.PENDING, limit)
    if not stack.as_json(Approvals(approvals=found)):
        rows = [(a.approval_id, a.status, f"{a.expires_at:%Y-%m-%d %H:%M}", a.user, a.reason) for a in found]
        output.table(("APPROVAL", "STATUS", "UNTIL (UTC)", "USER", "WHAT"), rows)


@app.stack_command()
def show(stack: Stack, approval: Id) -> None:
    """What an agent wants to do, with which arguments."""
    with stack.client() as client:
        stack.show(client.approvals.get(approval), _print)


@app.stack_command()
def approve(stack: Stack, approval: Id, note: Note = "") -> None:
    """Allow the call: it is made once, as it was shown."""
    with stack.client() as client:
        stack.show(client.approvals.answer(approval, "approve", note), _print)


@app.stack_command()
def refuse(stack: Stack, approval: Id, note: Note = "") -> None:
    """Refuse the call: the agent goes on without it."""
    with stack.client() as client:
        stack.show(client.approvals.answer(approval, "refuse", note), _print)


def _print(approval: Approval) -> None:
    output.out(f"approval   {approval.approval_id}")
    output.out(f"status     {approval.status}")
    output.out(f"turn       {approval.turn_id}")
    output.out(f"agent      {approval.agent}, for {approval.user}")
    output.out(f"why        {approval.reason}")
    output.out(f"until      {approval.expires_at:%Y-%m-%d %H:%M:%S} UTC")
    if approval.answered_by:
        output.out(f"answered   by {approval.answered_by}{f': {approval.note}' if approval.note else ''}")
    output.out(f"call       {approval.tool} {json.dumps(approval.arguments, ensure_ascii=False, indent=2)}")
