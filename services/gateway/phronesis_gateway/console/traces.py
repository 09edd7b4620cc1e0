"""The trace of a turn, drawn: its spans as a tree with times, a row for each with a bar for when and how long."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import htpy as h

from phronesis_contracts.service import Span

from ..turns.submission import TurnTrace

_NS = 1_000_000


@dataclass(frozen=True)
class Branch:
    """One span in its place."""

    depth: int
    """How many spans are above it."""
    service: str
    name: str
    start_ms: float
    """Milliseconds from the beginning of the first span."""
    ms: float
    """Milliseconds that it took."""
    error: str | None


def build_tree(spans: Iterable[Span]) -> tuple[Branch, ...]:
    """Every span once, each behind the one that began it, those of one parent by their start.

    A span whose parent is not known stands at the top, and so does the first of spans that name each other.
    """
    known = sorted({span.span_id: span for span in spans}.values(), key=lambda span: (span.start_ns, span.span_id))
    if not known:
        return ()
    ids = {span.span_id for span in known}
    below: dict[str, list[Span]] = defaultdict(list)
    for span in known:
        if span.parent_id in ids:
            below[str(span.parent_id)].append(span)
    # Roots come first; whatever no root leads to is left over in the same list.
    tops = [span for span in known if span.parent_id not in ids] + known
    began, placed, branches = known[0].start_ns, set[str](), list[Branch]()
    for top in tops:
        waiting = [(0, top)]
        while waiting:
            depth, span = waiting.pop()
            if span.span_id in placed:
                continue
            placed.add(span.span_id)
            branches.append(_branch(span, depth, began))
            waiting.extend((depth + 1, child) for child in reversed(below[span.span_id]))
    return tuple(branches)


def _branch(span: Span, depth: int, began: int) -> Branch:
    return Branch(
        depth=depth,
        service=span.service,
        name=span.name,
        start_ms=(span.start_ns - began) / _NS,
        ms=max(0, span.end_ns - span.start_ns) / _NS,
        error=span.error,
    )


MAX_SPANS = 1_000
_DEEPEST = 12
"""Levels that are indented; what is deeper stands with these."""
_WIDTH = 1_000.0


def render_trace(trace: TurnTrace) -> h.Element:
    branches = build_tree(trace.spans)
    whole = max((each.start_ms + each.ms for each in branches), default=0.0)
    return h.section(".trace", aria_label="Trace of the turn")[
        h.h2["Trace"],
        h.p(".note")[f"turn {trace.turn_id} · trace {trace.trace_id or 'none'} · {len(branches)} spans · {whole:,.1f} ms"],
        h.p(".note")[f"Did not answer, so their part is missing: {', '.join(trace.missing)}."] if trace.missing else None,
        _rows(branches[:MAX_SPANS], whole) if branches else h.p["No service remembers this turn any more."],
        h.p(".note")[f"The first {MAX_SPANS:,} spans."] if len(branches) > MAX_SPANS else None,
    ]


def _rows(branches: tuple[Branch, ...], whole: float) -> h.Element:
    heads = ("What", "Service", "Begins", "Takes", "When")
    return h.table[
        h.thead[h.tr[(h.th(scope="col")[each] for each in heads)]], h.tbody[(_row(each, whole) for each in branches)]
    ]


def _row(branch: Branch, whole: float) -> h.Element:
    failed = branch.error is not None
    return h.tr(class_={"failed": failed}, data_depth=str(branch.depth))[
        h.th(f".depth-{min(branch.depth, _DEEPEST)}", scope="row")[branch.name, f" — {branch.error}" if failed else None],
        h.td[branch.service],
        h.td(".number")[f"{branch.start_ms:,.1f} ms"],
        h.td(".number")[f"{branch.ms:,.1f} ms"],
        h.td(".when")[_bar(branch, whole)],
    ]


def _bar(branch: Branch, whole: float) -> h.Element:
    scale = _WIDTH / whole if whole else 0.0
    place, width = branch.start_ms * scale, max(2.0, branch.ms * scale)
    svg, rect = h.svg, h.rect
    return svg(viewBox=f"0 0 {_WIDTH:.0f} 10", preserveAspectRatio="none", aria_hidden="true")[
        rect(x=f"{min(place, _WIDTH - 2):.1f}", y="0", width=f"{width:.1f}", height="10")
    ]
