"""`phronesis memory add`, `search`, `list`, `get`, `update`, `history`, `delete` and `context`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import output
from .output import Commands, Stack, Yes

if TYPE_CHECKING:
    from phronesis_contracts.memories import Memory

app = Commands()
Conversation = Annotated[str | None, typer.Option("--conversation", help="A conversation's id.")]
Kind = Annotated[list[str], typer.Option("--kind", help="message, note, fact, concept or episode; may be given again.")]
Since = Annotated[str | None, typer.Option("--since", help="What was said then or later: 2026-03-04T12:00:00Z.")]
Until = Annotated[str | None, typer.Option("--until", help="What was said before.")]
Id = Annotated[str, typer.Argument(help="The memory's id, or your own for it.")]


@app.stack_command()
def add(
    stack: Stack,
    texts: Annotated[list[str], typer.Argument(help="What to remember; several are messages in their order.")],
    speaker: Annotated[str | None, typer.Option("--speaker", help="Who said it.")] = None,
    conversation: Conversation = None,
    at: Annotated[str | None, typer.Option("--at", help="When: 2026-03-04T12:00:00Z; now by default.")] = None,
    external_id: Annotated[str | None, typer.Option("--external-id", help="Your own id; again, it replaces.")] = None,
    metadata: Annotated[str, typer.Option("--metadata", help="JSON, to filter by.")] = "{}",
) -> None:
    """Remember texts, or messages of a conversation."""
    said = {"speaker": speaker, "occurred_at": at, "external_id": external_id, "metadata": _json(metadata)}
    given = [{"text": text, **{name: value for name, value in said.items() if value}} for text in texts]
    with stack.client() as client:
        done = client.memory.add(given, conversation_id=conversation)
    if not stack.as_json(done):
        for one in done.memories:
            output.out(f"{one.id}  {one.status}")


@app.stack_command()
def search(
    stack: Stack,
    query: Annotated[str, typer.Argument(help="A question, or a few words.")],
    limit: Annotated[int, typer.Option(help="Memories at most.", min=1, max=100)] = 10,
    kind: Kind = [],  # noqa: B006
    conversation: Conversation = None,
    since: Since = None,
    until: Until = None,
    as_of: Annotated[str | None, typer.Option("--as-of", help="As memory was then.")] = None,
) -> None:
    """Find what is remembered, best first."""
    with stack.client() as client:
        found = client.memory.search(
            query, limit=limit, kinds=kind, conversation_id=conversation, since=since, until=until, as_of=as_of
        )
    if stack.as_json(found):
        return
    for one in found.memories:
        why = ", ".join(f"{name} {value:.2f}" for name, value in one.why.items())
        output.out(f"{_line(one)}\n   score {one.score:.2f} ({why})")
    if found.degraded:
        output.note(f"[degraded: {', '.join(found.degraded)}]")
    if not found.memories:
        output.note("nothing found")


@app.stack_command(name="list")
def show_list(
    stack: Stack,
    limit: Annotated[int, typer.Option(help="Memories of a page.", min=1, max=200)] = 50,
    cursor: Annotated[str | None, typer.Option("--cursor", help="The cursor that the page before ended with.")] = None,
    kind: Kind = [],  # noqa: B006
    conversation: Conversation = None,
    since: Since = None,
    until: Until = None,
) -> None:
    """List what is remembered, the newest first."""
    with stack.client() as client:
        page = client.memory.list(
            limit=limit, cursor=cursor, kinds=kind, conversation_id=conversation, since=since, until=until
        )
    if stack.as_json(page):
        return
    for one in page.memories:
        output.out(_line(one))
    if page.next is not None:
        output.note(f"more: --cursor '{page.next}'")


@app.stack_command()
def get(stack: Stack, id: Id) -> None:
    """Show one memory."""
    with stack.client() as client:
        found = client.memory.get(id)
    if not stack.as_json(found):
        output.out(_line(found, len(found.text)))
        output.note(f"added {found.created_at:%Y-%m-%d %H:%M}, changed {found.updated_at:%Y-%m-%d %H:%M}")


@app.stack_command()
def update(
    stack: Stack,
    id: Id,
    text: Annotated[str | None, typer.Option("--text", help="The new text.")] = None,
    metadata: Annotated[str | None, typer.Option("--metadata", help="All of the new metadata, as JSON.")] = None,
) -> None:
    """Correct a memory; what it said before stays in its history."""
    with stack.client() as client:
        done = client.memory.update(id, text=text, metadata=None if metadata is None else _json(metadata))
    if not stack.as_json(done):
        output.out(_line(done))


@app.stack_command()
def history(stack: Stack, id: Id) -> None:
    """Show what a memory said before it was changed."""
    with stack.client() as client:
        found = client.memory.history(id)
    if stack.as_json(found):
        return
    output.out(_line(found.memory))
    for one in found.versions:
        output.out(f"   until {one.until:%Y-%m-%d %H:%M}: {output.cut(one.text)}")


@app.stack_command()
def delete(stack: Stack, ids: Annotated[list[str], typer.Argument(help="Ids, or your own ids.")], yes: Yes = False) -> None:
    """Delete memories for good, with their history."""
    output.sure(f"Delete {len(ids)} of your memories for good?", yes)
    with stack.client() as client:
        done = client.memory.delete(ids)
    if stack.as_json(done):
        return
    for id in done.ids:
        output.out(id)
    output.note(f"{len(done.ids)} deleted")


@app.stack_command()
def context(
    stack: Stack,
    query: Annotated[str, typer.Argument(help="What the block is wanted on.")],
    budget: Annotated[int, typer.Option("--budget", help="Tokens that it may have.", min=50, max=32_000)] = 1_000,
    conversation: Conversation = None,
) -> None:
    """Print a block of text for a prompt, with what is remembered on a question."""
    with stack.client() as client:
        made = client.memory.context(query, budget_tokens=budget, conversation_id=conversation)
    if stack.as_json(made):
        return
    if made.text:
        output.out(made.text)
    else:
        output.note("nothing found")


def _line(one: Memory, most: int = output.SHOWN) -> str:
    speaker = f" {one.speaker}:" if one.speaker else ""
    where = f", {one.conversation_id}" if one.conversation_id else ""
    return f"{one.id}  {one.occurred_at:%Y-%m-%d %H:%M} ({one.kind}{where}){speaker} {output.cut(one.text, most)}"


def _json(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise typer.BadParameter("--metadata is no JSON object")
    return value
