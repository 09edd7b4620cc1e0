"""`phronesis approvals`: list, show, approve and refuse."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from . import output
from .output import AsJson, Data, Key, Url

if TYPE_CHECKING:
    from phronesis_contracts.approvals import Approval

    from ..sync import Client

app = typer.Typer(help="What agents want you to allow: list, show, approve, refuse.", invoke_without_command=True)

Id = Annotated[str, typer.Argument(help="Id of an approval.")]
Note = Annotated[str, typer.Option("--note", help="A word with it; of a refusal the agent is told it.", metavar="TEXT")]


@app.callback()
def approvals(context: typer.Context, url: Url = None, key: Key = None, data: Data = None) -> None:
    """What agents want you to allow: list it, or show, approve or refuse one."""
    if context.invoked_subcommand is None:
        list_approvals(url=url, key=key, data=data)


@app.command("list")
def list_approvals(
    every: Annotated[bool, typer.Option("--all", help="Those that were answered too.")] = False,
    limit: Annotated[int, typer.Option(help="How many to show at most.", min=1, max=200)] = 20,
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """What waits for you, newest first; as an admin, what waits for anybody of the tenant."""
    from phronesis_contracts.approvals import Approvals, ApprovalStatus

    with _client(url, key, data) as client:
        found = client.approvals.list(None if every else ApprovalStatus.PENDING, limit)
    if as_json:
        output.as_json(Approvals(approvals=found))
    else:
        rows = [(a.approval_id, a.status, f"{a.expires_at:%Y-%m-%d %H:%M}", a.user, a.reason) for a in found]
        output.table(("APPROVAL", "STATUS", "UNTIL (UTC)", "USER", "WHAT"), rows)


@app.command()
def show(approval: Id, as_json: AsJson = False, url: Url = None, key: Key = None, data: Data = None) -> None:
    """What an agent wants to do, with which arguments."""
    with _client(url, key, data) as client:
        _print(client.approvals.get(approval), as_json)


@app.command()
def approve(
    approval: Id, note: Note = "", as_json: AsJson = False, url: Url = None, key: Key = None, data: Data = None
) -> None:
    """Allow the call: it is made once, as it was shown."""
    with _client(url, key, data) as client:
        _print(client.approvals.answer(approval, "approve", note), as_json)


@app.command()
def refuse(approval: Id, note: Note = "", as_json: AsJson = False, url: Url = None, key: Key = None, data: Data = None) -> None:
    """Refuse the call: the agent goes on without it."""
    with _client(url, key, data) as client:
        _print(client.approvals.answer(approval, "refuse", note), as_json)


def _client(url: Url, key: Key, data: Data) -> Client:
    from ..sync import Client

    return Client(url, key, data)


def _print(approval: Approval, as_json: bool) -> None:
    if as_json:
        output.as_json(approval)
        return
    output.out(f"approval   {approval.approval_id}")
    output.out(f"status     {approval.status}")
    output.out(f"turn       {approval.turn_id}")
    output.out(f"agent      {approval.agent}, for {approval.user}")
    output.out(f"why        {approval.reason}")
    output.out(f"until      {approval.expires_at:%Y-%m-%d %H:%M:%S} UTC")
    if approval.answered_by:
        output.out(f"answered   by {approval.answered_by}{f': {approval.note}' if approval.note else ''}")
    output.out(f"call       {approval.tool} {json.dumps(approval.arguments, ensure_ascii=False, indent=2)}")
