"""The plan of a made-up graph: how many nodes of which type, theme and status."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from random import Random
from typing import Any

from phronesis_contracts.constitution.registry import TYPES, Layer

from .texts import Theme, read_themes

_EFFORTS = (0.5, 1, 1, 2, 2, 3, 4, 4, 6, 8, 12)
_TASKS = ("todo", "todo", "todo", "in_progress", "done", "done")
_ARCHIVED, _DEPRECATED = 0.05, 0.02
"""Shares of all nodes."""


def make_figures(type: str, random: Random, as_of: date) -> dict[str, Any]:
    """Figures for a node of a type, on days around `as_of`."""
    made: dict[str, Any] = {}
    match type:
        case "value":
            made["priority"] = random.randint(2, 5)
        case "goal" | "season" | "business" | "vision":
            made["deadline"] = _day(random, as_of, 30, 900)
        case "milestone" | "action":
            made["dueDate"] = _day(random, as_of, -90, 200)
        case "risk":
            made["likelihood"] = round(random.betavariate(2, 4), 2)
        case "decision":
            made["decidedAt"] = _day(random, as_of, -720, -1)
            if random.random() < 0.85:
                made["roi"] = {"total": round(random.gauss(1.4, 1.8), 1)}
        case "task":
            made |= {"dueDate": _day(random, as_of, -120, 120), "priority": random.randint(1, 5)}
            made |= {"effortHours": random.choice(_EFFORTS)} if random.random() < 0.9 else {}
        case "timeBlock" | "workSession":
            begin = _moment(random, as_of, *((1, 30) if type == "timeBlock" else (-200, -1)))
            made |= {
                "startsAt": begin.isoformat(),
                "endsAt": (begin + timedelta(minutes=30 * random.randint(1, 8))).isoformat(),
            }
        case "observation" | "signal":
            made["observedAt"] = _moment(random, as_of, -365, 0).isoformat()
        case "event":
            made["occurredAt"] = _moment(random, as_of, -365, 0).isoformat()
        case "insight" | "pattern":
            made["confidence"] = round(random.betavariate(6, 3), 2)
    if type == "observation":
        made["value"] = round(random.lognormvariate(3, 0.6), 1)
    return made


def draw_status(type: str, random: Random) -> str:
    """A status: one node in fourteen is no longer active."""
    drawn = random.random()
    if drawn < _ARCHIVED:
        return "archived"
    if drawn < _ARCHIVED + _DEPRECATED:
        return "deprecated"
    return random.choice(_TASKS) if type == "task" else "active"


def _day(random: Random, as_of: date, first: int, last: int) -> str:
    return (as_of + timedelta(days=random.randint(first, last))).isoformat()


def _moment(random: Random, as_of: date, first: int, last: int) -> datetime:
    day = as_of + timedelta(days=random.randint(first, last))
    return datetime.combine(day, time(random.randint(6, 18), random.choice((0, 15, 30, 45))), UTC)


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


def count_layers(nodes: int) -> dict[Layer, int]:
    """Nodes of each layer in a graph of so many nodes: the table's where it has that size, else between two of its rows."""
    counts = _between(nodes)
    return dict(zip(Layer, _whole(counts, nodes), strict=True))


def count_types(nodes: int) -> dict[str, int]:
    """Nodes of each type in a graph of so many nodes, in the order of the layers."""
    found: dict[str, int] = {}
    for layer, count in count_layers(nodes).items():
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


_EMBEDDED_EACH = 25
"""Nodes that are found by meaning for each theme, so that a question has enough that answers it."""
_FEWEST_THEMES = 8
_OBLIQUE = {"task": 0.14, "action": 0.2, "decision": 0.06}
"""Share of nodes whose words say nothing of their theme; what they belong to, their relationships say."""
_RESTATED = {"task": 0.006, "insight": 0.02, "decision": 0.01}
"""Share of nodes that say what another says, in nearly its words."""


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """One node of the plan."""

    at: int
    id: str
    type: str
    theme: int
    status: str
    oblique: bool = False
    restates: int | None = None
    """The spot whose words it takes."""

    @property
    def active(self) -> bool:
        """Whether lists and searches tell it by default."""
        return self.status not in ("archived", "deprecated")


def plan_nodes(nodes: int, seed: int) -> tuple[list[PlannedNode], tuple[Theme, ...]]:
    """The spots in the order of the layers, and the themes in use: fewer of them in a small graph."""
    random = Random(f"plan {seed}")
    counts = count_types(nodes)
    found = sum(count for type, count in counts.items() if TYPES[type].tier is not None)
    used = read_themes()[: max(_FEWEST_THEMES, min(len(read_themes()), found // _EMBEDDED_EACH))]
    spots: list[PlannedNode] = []
    for type, count in counts.items():
        spots.extend(_of_type(type, count, len(used), len(spots), random))
    return spots, used


def _of_type(type: str, count: int, used: int, first: int, random: Random) -> Iterator[PlannedNode]:
    order = [number % used for number in range(count)]
    random.shuffle(order)
    plain: dict[int, int] = {}
    for number, theme in enumerate(order):
        at, oblique = first + number, random.random() < _OBLIQUE.get(type, 0.0)
        like = plain.get(theme) if random.random() < _RESTATED.get(type, 0.0) else None
        drawn = draw_status(type, random)
        # Each theme keeps a project that is alive, so that there is something to ask around.
        stands = "active" if type == "project" and theme not in plain else drawn
        if not oblique and like is None:
            plain[theme] = at
        yield PlannedNode(at, f"{type}-{number + 1:05d}", type, theme, stands, oblique and like is None, like)


def group_by_type(spots: Sequence[PlannedNode]) -> dict[str, dict[int, list[int]]]:
    """Where the spots of each type and theme stand."""
    found: dict[str, dict[int, list[int]]] = {}
    for spot in spots:
        found.setdefault(spot.type, {}).setdefault(spot.theme, []).append(spot.at)
    return found
