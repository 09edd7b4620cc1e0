"""`phronesis memory add`, `search`, `list`, `get`, `update`, `history`, `delete`, `context`, `export`; `phronesis import`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from . import output
from .output import Commands, Stack, Yes

if TYPE_CHECKING:
    from phronesis_contracts.memories import Memory

    from ..importing import ImportReport, Problem

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
    expires: Annotated[str | None, typer.Option("--expires", help="When to forget it: 2026-04-01T00:00:00Z.")] = None,
) -> None:
    """Remember texts, or messages of a conversation."""
    said = {"speaker": speaker, "occurred_at": at, "external_id": external_id, "metadata": _json(metadata)}
    given = [{"text": text, **{name: value for name, value in said.items() if value}} for text in texts]
    with stack.client() as client:
        done = client.memory.add(given, conversation_id=conversation, expires_at=expires)
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
        ends = f", expires {found.expires_at:%Y-%m-%d %H:%M}" if found.expires_at is not None else ""
        output.note(f"added {found.created_at:%Y-%m-%d %H:%M}, changed {found.updated_at:%Y-%m-%d %H:%M}{ends}")


@app.stack_command()
def update(
    stack: Stack,
    id: Id,
    text: Annotated[str | None, typer.Option("--text", help="The new text.")] = None,
    metadata: Annotated[str | None, typer.Option("--metadata", help="All of the new metadata, as JSON.")] = None,
    expires: Annotated[str | None, typer.Option("--expires", help="When to forget it: a time, or never.")] = None,
) -> None:
    """Correct a memory; what it said before stays in its history."""
    with stack.client() as client:
        changed = None if metadata is None else _json(metadata)
        done = client.memory.update(id, text=text, metadata=changed, expires_at=expires)
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


@app.stack_command(json=False)
def export(
    stack: Stack,
    file: Annotated[Path, typer.Argument(help="Where to; - for standard output.", metavar="FILE|-", allow_dash=True)],
    kind: Kind = [],  # noqa: B006
    conversation: Conversation = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it is there.")] = False,
) -> None:
    """Write what is remembered as JSON Lines, which `phronesis import jsonl` reads."""
    from ..importing import export as write

    with stack.client() as client, _written(file, force) as to:
        count = write(client, to, kind, conversation)
    output.note(f"{count:,} memories")


@contextmanager
def _written(file: Path, force: bool) -> Iterator[BinaryIO]:
    """Standard output, or a file that is there when all of it is written, and readable by its owner alone."""
    if str(file) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    from phronesis_contracts import BadRequest

    if file.exists() and not force:
        raise BadRequest(f"{file} is there already; --force replaces it", field="FILE")
    part = file.with_name(f"{file.name}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as to:
            yield to
        part.replace(file)
    except OSError as error:
        raise BadRequest(f"{file} cannot be written: {error.strerror}", field="FILE") from error
    finally:
        part.unlink(missing_ok=True)


SOURCES = {
    "mem0": "Memories of mem0: the answer of get_all, or an export.",
    "zep": "Threads, messages, facts and users of Zep.",
    "langmem": "Items of a LangGraph store, in which LangMem keeps memories.",
    "jsonl": "JSON Lines, as `phronesis memory export` writes them.",
}
import_app = Commands()
File = Annotated[Path, typer.Argument(help="JSON or JSON Lines.", metavar="FILE", exists=True, dir_okay=False)]
Users = Annotated[
    list[str], typer.Option("--user", help="Only what the source holds of this user; may be given again.", metavar="NAME")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only tell what would be done.")]


def _add_source(source: str, help: str) -> None:
    def bring_in(stack: Stack, file: File, users: Users = [], dry_run: DryRun = False) -> None:  # noqa: B006
        _bring_in(stack, source, file, users, dry_run)

    bring_in.__doc__ = help
    import_app.stack_command(name=source)(bring_in)


for _name, _help in SOURCES.items():
    _add_source(_name, _help)


def _bring_in(stack: Stack, source: str, file: Path, users: list[str], dry_run: bool) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from phronesis_contracts import ServiceError

    from ..importing import Import

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with stack.client() as client, Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(file.name, total=None)
        work = Import(
            client, file, source, users, dry_run, lambda done, total: progress.update(task, completed=done, total=total)
        )
        try:
            report = work.run()
        except ServiceError:
            if written := work.report.added + work.report.updated:
                output.note(f"{written:,} memories are stored; the same command again goes on")
            raise
    stack.show(report, _report)


def _report(done: ImportReport) -> None:
    words = {"added": done.added, "updated": done.updated, "there already": done.there, "skipped": done.skipped}
    words |= {"of other users": done.others} if done.others else {}
    wanted = "would be " if done.dry_run else ""
    output.out(f"{done.read:,} read: {wanted}" + ", ".join(f"{count:,} {word}" for word, count in words.items()))
    _fields("became", done.mapped)
    _fields("kept in metadata as", done.kept)
    if done.empty:
        output.out(f"without a value: {', '.join(f'{name} ({count:,})' for name, count in done.empty.items())}")
    if done.paging:
        output.out(f"of the pages, not the memories: {', '.join(done.paging)}")
    for name, why in done.dropped.items():
        output.out(f"dropped: {name}: {why}")
    _problems("noted", done.noted)
    _problems("skipped", done.problems)


def _fields(how: str, fields: dict[str, dict[str, int]]) -> None:
    for name, targets in fields.items():
        output.out(f"{name} {how} {', '.join(f'{target} ({count:,})' for target, count in targets.items())}")


def _problems(how: str, problems: tuple[Problem, ...]) -> None:
    for one in problems:
        output.note(f"{how}: line {one.line}{f', {one.field}' if one.field else ''}: {one.reason}")


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
