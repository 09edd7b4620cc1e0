"""The spans of a turn as a tree with times: which began which, when, and how long each took."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from phronesis_contracts.service import Span

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


def tree(spans: Iterable[Span]) -> tuple[Branch, ...]:
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
