"""The trace of a turn, drawn: a row for each span, indented under what began it, with a bar for when and how long."""

from __future__ import annotations

import htpy as h

from phronesis_gateway.traces import TurnTrace

from .trace_tree import Branch, tree

MOST = 1_000
"""Spans that are shown."""
_DEEPEST = 12
"""Levels that are indented; what is deeper stands with these."""
_WIDTH = 1_000.0


def trace_view(trace: TurnTrace) -> h.Element:
    """The tree of a turn's spans."""
    branches = tree(trace.spans)
    whole = max((each.start_ms + each.ms for each in branches), default=0.0)
    return h.section(".trace", aria_label="Trace of the turn")[
        h.h2["Trace"],
        h.p(".note")[f"turn {trace.turn_id} · trace {trace.trace_id or 'none'} · {len(branches)} spans · {whole:,.1f} ms"],
        h.p(".note")[f"Did not answer, so their part is missing: {', '.join(trace.missing)}."] if trace.missing else None,
        _rows(branches[:MOST], whole) if branches else h.p["No service remembers this turn any more."],
        h.p(".note")[f"The first {MOST:,} spans."] if len(branches) > MOST else None,
    ]


def _rows(branches: tuple[Branch, ...], whole: float) -> h.Element:
    heads = ("What", "Service", "Begins", "Takes", "When")
    return h.table[
        h.thead[h.tr[(h.th(scope="col")[each] for each in heads)]],
        h.tbody[(_row(each, whole) for each in branches)],
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
