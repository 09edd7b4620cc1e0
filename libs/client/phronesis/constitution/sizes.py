"""How many nodes of each layer and type a graph of some size has (O-023, section 37 of the list)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from phronesis_contracts.constitution.kinds import Layer

_KNOWN: tuple[tuple[int, tuple[int, ...]], ...] = (
    (45, (45, 0, 0, 0, 0, 0, 0)),
    (500, (50, 12, 22, 36, 112, 223, 45)),
    (1_055, (60, 15, 50, 80, 250, 500, 100)),
    (4_855, (80, 25, 100, 150, 2_000, 2_000, 500)),
    (50_000, (120, 40, 1_048, 1_571, 20_952, 20_952, 5_317)),
)
"""Now, at 6 months and at 1 year as the list's table has them; those of 500 and 50,000 keep its proportions, with layers that
are loaded whole growing as slowly as they do there."""
_SHARES: Mapping[Layer, Mapping[str, int]] = {
    Layer.FOUNDATION: {"principle": 30, "guardrail": 22, "value": 20, "policy": 12, "context": 10, "human": 4, "ai": 2},
    Layer.VISION: {"goal": 66, "season": 14, "vision": 12, "business": 8},
    Layer.STRATEGY: {"strategy": 30, "keyResult": 22, "objective": 18, "initiative": 14, "milestone": 8, "risk": 8},
    Layer.TACTICS: {"project": 40, "process": 30, "system": 18, "area": 12},
    Layer.EXECUTION: {"task": 52, "decision": 18, "action": 12, "workSession": 10, "timeBlock": 8},
    Layer.TRACK: {"observation": 72, "event": 14, "signal": 10, "metric": 4},
    Layer.MIND: {"insight": 38, "evidence": 22, "note": 16, "pattern": 14, "source": 10},
}
"""Percent of each type in its layer."""


def layers_of(nodes: int) -> dict[Layer, int]:
    """Nodes of each layer in a graph of so many nodes: the table's where it has that size, else between two of its rows."""
    counts = _between(nodes)
    return dict(zip(Layer, _whole(counts, nodes), strict=True))


def types_of(nodes: int) -> dict[str, int]:
    """Nodes of each type in a graph of so many nodes, in the order of the layers."""
    found: dict[str, int] = {}
    for layer, count in layers_of(nodes).items():
        shares = _SHARES[layer]
        found |= dict(zip(shares, _whole([count * share / 100 for share in shares.values()], count), strict=True))
    return found


def _between(nodes: int) -> list[float]:
    for (low, fewer), (high, more) in pairwise(_KNOWN):
        if nodes <= high or high == _KNOWN[-1][0]:
            share = (nodes - low) / (high - low)
            return [a + share * (b - a) for a, b in zip(fewer, more, strict=True)]
    raise AssertionError("the table has two rows")


def _whole(counts: Sequence[float], total: int) -> list[int]:
    """Whole numbers nearest to `counts` that add up to `total`, by the largest remainders."""
    found = [int(count) for count in counts]
    order = sorted(range(len(counts)), key=lambda at: (found[at] - counts[at], at))
    for at in order[: total - sum(found)]:
        found[at] += 1
    return found
