"""`phronesis trace`: every message of a turn as a tree with times."""

from __future__ import annotations

import sys
from collections import defaultdict

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from phronesis_contracts.service import Span

from ..models import Trace
from . import output

WIDE = 250
"""Columns when nobody looks at a terminal, so that lines stay whole."""


def show(trace: Trace) -> None:
    """Print the tree on stdout: for each span its service, name, offset from the start and duration."""
    console = Console(width=None if sys.stdout.isatty() else WIDE, highlight=False, markup=False, emoji=False)
    console.print(tree(trace))
    if trace.missing:
        output.note(f"no answer from: {', '.join(trace.missing)}")


def tree(trace: Trace) -> Tree:
    """The spans of a trace under their parents; a span whose parent is gone stands at the top."""
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
    offset, took = (span.start_ns - start) / 1e6, (span.end_ns - span.start_ns) / 1e6
    line = Text(f"+{offset:8.1f} ms {took:8.1f} ms  ", style="dim")
    line.append(f"{span.service:<13}", style="cyan")
    line.append(output.clean(span.name), style="default")
    if span.error:
        line.append(f"  {output.clean(span.error)}", style="red")
    return line
