"""The typed properties of made-up nodes that are no texts: days, hours, shares, returns."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from random import Random
from typing import Any

_EFFORTS = (0.5, 1, 1, 2, 2, 3, 4, 4, 6, 8, 12)
_TASKS = ("todo", "todo", "todo", "in_progress", "done", "done")
_ARCHIVED, _DEPRECATED = 0.05, 0.02
"""Shares of all nodes."""


def figures(type: str, random: Random, as_of: date) -> dict[str, Any]:
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


def status(type: str, random: Random) -> str:
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
