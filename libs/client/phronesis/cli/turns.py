"""`phronesis turns`: list, show, cancel and retry; and the trace of one, every message as a tree with times."""

from __future__ import annotations

import sys
from collections import defaultdict
from typing import TYPE_CHECKING, Annotated

import typer

from . import output
from .output import Commands, Stack

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

    from phronesis_contracts.orchestrator import Turn
    from phronesis_contracts.service import Span

    from ..models import Trace

WIDE = 250
"""Columns when nobody looks at a terminal, so that lines stay whole."""

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


def show_trace(trace: Trace) -> None:
    """Print the tree on stdout: for each span its service, name, offset from the start and duration."""
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else WIDE, highlight=False, markup=False, emoji=False)
    console.print(trace_tree(trace))
    if trace.missing:
        output.note(f"no answer from: {', '.join(trace.missing)}")


def trace_tree(trace: Trace) -> Tree:
    """The spans of a trace under their parents; a span whose parent is gone stands at the top."""
    from rich.text import Text
    from rich.tree import Tree

    known = {span.span_id for span in trace.spans}
    children: dict[str | None, list[Span]] = defaultdict(list)
    for span in sorted(trace.spans, key=lambda s: (s.start_ns, s.span_id)):
        children[span.parent_id if span.parent_id in known else None].append(span)
    start = min((span.start_ns for span in trace.spans), default=0)
    root = Tree(Text(f"turn {trace.turn_id}  trace {trace.trace_id or '-'}", style="bold"))
    waiting = [(root, span) for span in reversed(children[None])]
    while waiting:
        under, span = waiting.pop()
        branch = under.add(_line(span, start))
        waiting += [(branch, child) for child in reversed(children[span.span_id])]
    return root


def _line(span: Span, start: int) -> Text:
    from rich.text import Text

    offset, took = (span.start_ns - start) / 1e6, (span.end_ns - span.start_ns) / 1e6
    line = Text(f"+{offset:8.1f} ms {took:8.1f} ms  ", style="dim")
    line.append(f"{span.service:<13}", style="cyan")
    line.append(output.clean(span.name), style="default")
    if span.error:
        line.append(f"  {output.clean(span.error)}", style="red")
    return line
