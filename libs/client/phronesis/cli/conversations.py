"""`phronesis conversations`: list, show and delete; and `phronesis approvals`, what agents in them wait for."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated

import typer

from . import output
from .output import Commands, Stack, Yes

if TYPE_CHECKING:
    from phronesis_contracts.approvals import Approval
    from phronesis_contracts.deletions import Deletion


app = Commands(help="Your conversations: list, show, delete.")

PAUSE = 0.3
"""Seconds between two looks at a deletion."""
PATIENCE = 120.0
"""Seconds that `--wait` waits at most; the deletion goes on after it."""
Id = Annotated[str, typer.Argument(help="Id of a conversation.")]


@app.default_command()
@app.stack_command("list")
def list_conversations(
    stack: Stack,
    limit: Annotated[int, typer.Option(help="How many to show at most.", min=1, max=100)] = 20,
    cursor: Annotated[str | None, typer.Option(help="`next` of the page before.", metavar="CURSOR")] = None,
) -> None:
    """Your conversations, newest activity first."""
    with stack.client() as client:
        page = client.conversations.list(limit, cursor)
    if stack.as_json(page):
        return
    rows = [
        (c.conversation_id, f"{c.updated_at:%Y-%m-%d %H:%M:%S}", str(c.turns), c.agent, c.title) for c in page.conversations
    ]
    output.table(("CONVERSATION", "ACTIVE (UTC)", "TURNS", "AGENT", "TITLE"), rows)
    if page.next:
        output.note(f"more: --cursor {page.next}")


@app.stack_command()
def show(
    stack: Stack,
    conversation: Id,
    limit: Annotated[int, typer.Option(help="How many messages to show at most.", min=1, max=200)] = 50,
    before: Annotated[int | None, typer.Option(help="Only messages before this one.", min=0)] = None,
) -> None:
    """The messages of a conversation, oldest first."""
    with stack.client() as client:
        found = client.conversations.get(conversation, limit, before)
    if stack.as_json(found):
        return
    output.note(f"agent {found.agent}, directive {found.directive}, begun {found.created_at:%Y-%m-%d %H:%M:%S} UTC")
    for message in found.messages:
        output.out(f"{message.seq}. {message.role}: {message.text}")


@app.stack_command()
def delete(
    stack: Stack,
    conversation: Id,
    wait: Annotated[bool, typer.Option("--wait", help="Stay until nothing is left.")] = False,
    yes: Yes = False,
) -> None:
    """Delete a conversation for good, with what was learnt from it alone."""
    from phronesis_contracts.deletions import DeletionState

    output.sure(f"Delete conversation {conversation} for good?", yes)
    with stack.client() as client:
        deletion = client.conversations.delete(conversation)
        end = time.monotonic() + PATIENCE
        while wait and deletion.state is DeletionState.PENDING and time.monotonic() < end:
            time.sleep(PAUSE)
            deletion = client.conversations.deletion(deletion.deletion_id)
    stack.show(deletion, _print)
    if wait and deletion.state is DeletionState.PENDING:
        output.note("the deletion is still going on")
        raise typer.Exit(output.FAILURE)


def _print(deletion: Deletion) -> None:
    output.out(f"deletion  {deletion.deletion_id}")
    output.out(f"state     {deletion.state}")
    for service, counts in deletion.removed.items():
        removed = ", ".join(f"{count} {name}" for name, count in counts.items())
        output.out(f"{service}: {removed}")


approvals_app = Commands(help="What agents want you to allow: list, show, approve, refuse.")

ApprovalId = Annotated[str, typer.Argument(help="Id of an approval.")]
Note = Annotated[str, typer.Option("--note", help="A word with it; of a refusal the agent is told it.", metavar="TEXT")]


@approvals_app.default_command()
@approvals_app.stack_command("list")
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


@approvals_app.stack_command("show")
def show_approval(stack: Stack, approval: ApprovalId) -> None:
    """What an agent wants to do, with which arguments."""
    with stack.client() as client:
        stack.show(client.approvals.get(approval), _print_approval)


@approvals_app.stack_command()
def approve(stack: Stack, approval: ApprovalId, note: Note = "") -> None:
    """Allow the call: it is made once, as it was shown."""
    with stack.client() as client:
        stack.show(client.approvals.answer(approval, "approve", note), _print_approval)


@approvals_app.stack_command()
def refuse(stack: Stack, approval: ApprovalId, note: Note = "") -> None:
    """Refuse the call: the agent goes on without it."""
    with stack.client() as client:
        stack.show(client.approvals.answer(approval, "refuse", note), _print_approval)


def _print_approval(approval: Approval) -> None:
    output.out(f"approval   {approval.approval_id}")
    output.out(f"status     {approval.status}")
    output.out(f"turn       {approval.turn_id}")
    output.out(f"agent      {approval.agent}, for {approval.user}")
    output.out(f"why        {approval.reason}")
    output.out(f"until      {approval.expires_at:%Y-%m-%d %H:%M:%S} UTC")
    if approval.answered_by:
        output.out(f"answered   by {approval.answered_by}{f': {approval.note}' if approval.note else ''}")
    output.out(f"call       {approval.tool} {json.dumps(approval.arguments, ensure_ascii=False, indent=2)}")
