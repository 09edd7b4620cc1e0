"""`phronesis conversations`: list, show and delete."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from . import output
from .output import AsJson, Data, Key, Url, Yes

if TYPE_CHECKING:
    from phronesis_contracts.deletions import Deletion

    from ..sync import Client

app = typer.Typer(help="Your conversations: list, show, delete.", invoke_without_command=True)

PAUSE = 0.3
"""Seconds between two looks at a deletion."""
PATIENCE = 120.0
"""Seconds that `--wait` waits at most; the deletion goes on after it."""
Id = Annotated[str, typer.Argument(help="Id of a conversation.")]


@app.callback()
def conversations(context: typer.Context, url: Url = None, key: Key = None, data: Data = None) -> None:
    """Your conversations: list them, or show or delete one."""
    if context.invoked_subcommand is None:
        list_conversations(url=url, key=key, data=data)


@app.command("list")
def list_conversations(
    limit: Annotated[int, typer.Option(help="How many to show at most.", min=1, max=100)] = 20,
    cursor: Annotated[str | None, typer.Option(help="`next` of the page before.", metavar="CURSOR")] = None,
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Your conversations, newest activity first."""
    with _client(url, key, data) as client:
        page = client.conversations.list(limit, cursor)
    if as_json:
        output.as_json(page)
        return
    rows = [
        (c.conversation_id, f"{c.updated_at:%Y-%m-%d %H:%M:%S}", str(c.turns), c.agent, c.title) for c in page.conversations
    ]
    output.table(("CONVERSATION", "ACTIVE (UTC)", "TURNS", "AGENT", "TITLE"), rows)
    if page.next:
        output.note(f"more: --cursor {page.next}")


@app.command()
def show(
    conversation: Id,
    limit: Annotated[int, typer.Option(help="How many messages to show at most.", min=1, max=200)] = 50,
    before: Annotated[int | None, typer.Option(help="Only messages before this one.", min=0)] = None,
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """The messages of a conversation, oldest first."""
    with _client(url, key, data) as client:
        found = client.conversations.get(conversation, limit, before)
    if as_json:
        output.as_json(found)
        return
    output.note(f"agent {found.agent}, directive {found.directive}, begun {found.created_at:%Y-%m-%d %H:%M:%S} UTC")
    for message in found.messages:
        output.out(f"{message.seq}. {message.role}: {message.text}")


@app.command()
def delete(
    conversation: Id,
    wait: Annotated[bool, typer.Option("--wait", help="Stay until nothing is left.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Delete a conversation for good, with what was learnt from it alone."""
    from phronesis_contracts.deletions import DeletionState

    output.sure(f"Delete conversation {conversation} for good?", yes)
    with _client(url, key, data) as client:
        deletion = client.conversations.delete(conversation)
        end = time.monotonic() + PATIENCE
        while wait and deletion.state is DeletionState.PENDING and time.monotonic() < end:
            time.sleep(PAUSE)
            deletion = client.conversations.deletion(deletion.deletion_id)
    _print(deletion, as_json)
    if wait and deletion.state is DeletionState.PENDING:
        output.note("the deletion is still going on")
        raise typer.Exit(output.FAILURE)


def _client(url: Url, key: Key, data: Data) -> Client:
    from ..sync import Client

    return Client(url, key, data)


def _print(deletion: Deletion, as_json: bool) -> None:
    if as_json:
        output.as_json(deletion)
        return
    output.out(f"deletion  {deletion.deletion_id}")
    output.out(f"state     {deletion.state}")
    for service, counts in deletion.removed.items():
        removed = ", ".join(f"{count} {name}" for name, count in counts.items())
        output.out(f"{service}: {removed}")
