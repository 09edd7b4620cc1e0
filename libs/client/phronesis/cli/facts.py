"""`phronesis memory`: what is known of you, taken in, found and forgotten; and what agents ask a memory while they work."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import output
from .output import Commands, Stack, Yes

if TYPE_CHECKING:
    from phronesis_contracts.facts import Fact, Forgetting, ForgettingPreview

    from ..sync import Client


app = Commands(
    help="What is remembered: add, search, correct, delete; facts, their import, and forgetting.", no_args_is_help=True
)
Subject = Annotated[str | None, typer.Option("--subject", help="Whom or what it is about; `user` for yourself.")]
_LOOK, _LONGEST = 0.5, 60.0


@app.stack_command()
def facts(
    stack: Stack,
    subject: Subject = None,
    kind: Annotated[
        str | None,
        typer.Option(help="fact, preference, entity, relation, or note; all but notes by default."),
    ] = None,
    query: Annotated[str | None, typer.Option("--query", help="A question that they bear on.", metavar="TEXT")] = None,
    superseded: Annotated[bool, typer.Option("--superseded", help="What no longer holds, too.")] = False,
    limit: Annotated[int, typer.Option(help="How many to show at most.", min=1, max=50)] = 50,
) -> None:
    """List what is known of you, the newest first; with --query what bears on it, and why."""
    with stack.client() as client:
        if query is not None:
            found = client.memory.recall_facts(query, limit)
            if stack.as_json(found):
                return
            for one in found.facts:
                words = ", ".join(one.why.words) or "none"
                why = f"relevance {one.why.relevance:.2f}, words {words}, trust {one.why.trust:.2f}"
                output.out(f"{_line(one.fact)}\n   score {one.score:.2f}: {why}, recency {one.why.recency:.2f}")
            return
        listed = client.memory.list_facts(subject, kind, superseded, limit)
    if stack.as_json(listed):
        return
    for fact in listed.facts:
        output.out(_line(fact))
    output.note(f"{len(listed.facts)} of {listed.total}")


@app.stack_command(name="import")
def bring_in(
    stack: Stack, file: Annotated[Path, typer.Argument(help="JSON Lines.", metavar="FILE", exists=True, dir_okay=False)]
) -> None:
    """Take facts in from a file of JSON Lines; the same file again changes nothing."""
    from phronesis_contracts import BadRequest

    try:
        lines = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadRequest(f"{file} is no UTF-8 text") from error
    with stack.client() as client:
        done = client.memory.import_memory(lines, hashlib.sha256(lines.encode()).hexdigest())
    if stack.as_json(done):
        return
    output.out(f"{done.lines} lines: {done.added} added, {done.confirmed} known before, {done.superseded} superseded")
    if done.skipped:
        output.note(f"skipped: lines {', '.join(map(str, done.skipped_lines))}")


@app.stack_command()
def forget(
    stack: Stack,
    ids: Annotated[list[str] | None, typer.Argument(help="Ids of facts or of stored items.", metavar="[ID...]")] = None,
    subject: Subject = None,
    conversation: Annotated[
        str | None, typer.Option("--conversation", help="All that was learnt from it.", metavar="ID")
    ] = None,
    preview: Annotated[bool, typer.Option("--preview", help="Only tell what would go.")] = False,
    yes: Yes = False,
) -> None:
    """Forget for good, in every store, and report what went."""
    with stack.client() as client:
        if preview or not yes:
            shown = client.memory.preview_forgetting(ids or (), subject, conversation)
            if preview:
                stack.show(shown, _preview)
                return
            output.sure(f"{_counts(shown.removed)} and the texts of {len(shown.turns)} turns will go. Forget for good?", yes)
        begun = client.memory.forget_for_good(ids or (), subject, conversation)
        done = _completed(client, begun)
    if stack.as_json(done):
        return
    for service, removed in sorted(done.removed.items()):
        output.out(f"{service}: {_counts(removed)}")
    output.note(f"forgetting {done.forgetting_id}: {done.state}")


def _completed(client: Client, begun: Forgetting) -> Forgetting:
    end = time.monotonic() + _LONGEST
    while begun.state != "complete" and time.monotonic() < end:
        time.sleep(_LOOK)
        begun = client.memory.forgetting(begun.forgetting_id)
    return begun


def _preview(shown: ForgettingPreview) -> None:
    for fact in shown.facts:
        output.out(_line(fact))
    output.note(f"{_counts(shown.removed)}; texts of {len(shown.turns)} turns")


def _counts(removed: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in removed.items() if count) or "nothing"


def _line(fact: Fact) -> str:
    until = "" if fact.held else f" until {fact.valid_to:%Y-%m-%d %H:%M}"
    return f"{fact.id}  {fact.text} ({fact.kind}, by {fact.origin}, since {fact.valid_from:%Y-%m-%d %H:%M}{until})"


query_app = Commands()

SHOWN = 300
"""Characters of a text that a list shows."""


@query_app.stack_command()
def query(
    stack: Stack,
    operation: Annotated[str, typer.Argument(help="episodes, context, style or failures.", metavar="OPERATION")],
    text: Annotated[str, typer.Argument(help="What to look for.", metavar="TEXT")],
    limit: Annotated[int, typer.Option(help="How many to show at most.", min=1, max=20)] = 5,
) -> None:
    """Find past turns, what is known, how you write, or errors of tools."""
    with stack.client() as client:
        found = client.memory.query(operation, text, limit)
    if stack.as_json(found):
        return
    for number, hit in enumerate(found.results, 1):
        when = f", {hit.when:%Y-%m-%d %H:%M}" if hit.when else ""
        said = " ".join(hit.text.split())
        output.out(f"{number}. {hit.source}{when} (score {hit.score:.2f})")
        output.out(f"   {said if len(said) <= SHOWN else said[: SHOWN - 1] + '…'}")
    if found.error:
        output.note(f"[{found.error}]")
    if not found.results and not found.error:
        output.note("nothing found")
